import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import trees

from skdp.domain import Categorical, Numeric, Taxonomy
from skdp.exceptions import DomainError

QUICK = settings(max_examples=100)


WORLD = {"World": {"Europe": ["DE", "FR"], "Asia": {"East": ["JP", "KR"], "South": ["IN"]}}}


def test_taxonomy_from_tree():
    tree = Taxonomy.from_tree(WORLD)
    assert tree.labels[:3] == ("World", "Europe", "Asia")
    assert tree.leaves == ("DE", "FR", "JP", "KR", "IN")
    assert (tree.height, tree.n_leaves) == (3, 5)
    assert [tree.groups(level).tolist() for level in range(4)] == [
        [0, 0, 0, 0, 0],
        [0, 0, 1, 1, 1],
        [0, 1, 2, 2, 3],
        [0, 1, 2, 3, 4],
    ]
    assert [tree.labels[node] for node in tree.cut(2)] == ["DE", "FR", "East", "South"]
    with pytest.raises(ValueError, match=r"level must be in 0\.\.3"):
        tree.cut(4)


def test_taxonomy_shorthands():
    assert Taxonomy.from_tree(["a", "b"]).labels == ("Any", "a", "b")
    assert Taxonomy.from_tree({"x": "a", "y": ["b"]}).labels == ("Any", "x", "y", "a", "b")
    assert Taxonomy.from_tree({"all": ["a", {"rest": ["b", "c"]}]}).leaves == ("a", "b", "c")
    assert Taxonomy.from_tree({"all": {"a": None, "b": None}}).leaves == ("a", "b")
    # A group may be called like its only leaf.
    assert Taxonomy.from_tree({"all": {"other": ["other"], "x": ["a"]}}).leaves == ("other", "a")


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "'Any' is empty"),
        ([], "'Any' is empty"),
        ({"a": {"b": []}}, "'b' is empty"),
        ({"r": {"x": ["a"], "y": ["a"]}}, "'a' occur more than once: groups must be nested"),
    ],
)
def test_refused_trees(tree, message):
    with pytest.raises(DomainError, match=message):
        Taxonomy.from_tree(tree)


def test_refused_arrays_of_parents():
    for labels, parents in (([], []), (["a"], [0]), (["a", "b"], [-1, 1]), (["a"], [-1, 0])):
        with pytest.raises(DomainError):
            Taxonomy(labels, parents)


@given(st.integers(1, 300))
@QUICK
def test_dyadic_tree(n):
    tree = Taxonomy.dyadic(n)
    assert tree.leaves == tuple(range(n))
    assert tree.height == math.ceil(math.log2(n))
    for level in range(tree.height + 1):
        step = 2 ** (tree.height - level)
        assert tree.groups(level).tolist() == [code // step for code in range(n)]


def test_dyadic_labels():
    assert Taxonomy.dyadic(3).labels == ("[0, 3)", "[0, 2)", "[2, 3)", 0, 1, 2)
    ages = Numeric(0, 120, 3).hierarchy()[0]
    assert ages.labels == ("[0, 120]", "[0, 80)", "[80, 120]", 0, 1, 2)
    assert Numeric(1, 4, integer=True).hierarchy()[0].labels[:2] == ("[1, 5)", "[1, 3)")
    for n in (0, -1, 2.5, "a"):
        with pytest.raises(DomainError):
            Taxonomy.dyadic(n)


@given(st.integers(1, 9).flatmap(lambda n: trees(list(range(n)))))
@QUICK
def test_taxonomies_are_nested(tree):
    assert sorted(tree.leaves) == list(range(tree.n_leaves))
    assert (tree.first[0], tree.last[0]) == (0, tree.n_leaves)
    for node, parent in enumerate(tree.parents.tolist()):
        if parent >= 0:
            assert tree.first[parent] <= tree.first[node] < tree.last[node] <= tree.last[parent]
            assert tree.depths[node] == tree.depths[parent] + 1
        children = np.flatnonzero(tree.parents == node)
        if len(children):
            assert (tree.last - tree.first)[children].sum() == tree.last[node] - tree.first[node]
    assert [tree.labels[node] for node in tree.leaf_nodes] == list(tree.leaves)
    coarser = tree.groups(0)
    for level in range(1, tree.height + 1):
        finer = tree.groups(level)
        # Each group lies in one group of the level above.
        assert len(set(zip(finer.tolist(), coarser.tolist(), strict=True))) == finer.max() + 1
        coarser = finer
    assert coarser.tolist() == list(range(tree.n_leaves))


def test_levels_of_attributes():
    country = Categorical(
        ["IN", "FR", "KR", "DE", "JP"], taxonomy=Taxonomy.from_tree(WORLD), nullable=True
    )
    levels = country.levels()
    assert [level.groups.tolist() for level in levels] == [
        [0, 0, 0, 0, 0, 0],
        [1, 0, 1, 0, 1, 2],
        [3, 1, 2, 0, 2, 4],
        [4, 1, 3, 0, 2, 5],
    ]
    assert levels[1].labels == ["Europe", "Asia", "missing"]
    assert levels[3].labels == ["DE", "FR", "JP", "KR", "IN", "missing"]
    age = Numeric(0, 3, integer=True).levels()
    assert [level.groups.tolist() for level in age] == [[0] * 4, [0, 0, 1, 1], [0, 1, 2, 3]]
    assert [level.labels for level in age[1:]] == [["[0, 2)", "[2, 4)"], ["0", "1", "2", "3"]]
    flat = Categorical(["a", "b", "c"]).levels()
    assert [level.groups.tolist() for level in flat] == [[0, 0, 0], [0, 1, 2]]
    ordered = Categorical(["a", "b", "c"], ordered=True).levels()
    assert [level.groups.tolist() for level in ordered] == [[0] * 3, [0, 0, 1], [0, 1, 2]]
    single = Numeric(1, 1, integer=True, nullable=True).levels()
    assert [level.groups.tolist() for level in single] == [[0, 0], [0, 1]]
