"""Taxonomies, and trees of counts measured with noise, that Hypothesis draws."""

import numpy as np
from hypothesis import strategies as st

from skdp.domain import Taxonomy
from skdp.hierarchy import Tree


@st.composite
def trees(draw, labels):
    """A taxonomy over ``labels``: neighbours are merged until one group is left."""
    parts = [[label] for label in draw(st.permutations(labels))]
    nested = [part[0] for part in parts]
    while len(nested) > 1:
        start = draw(st.integers(0, len(nested) - 2))
        stop = draw(st.integers(start + 2, len(nested)))
        nested[start:stop] = [{f"group of {stop - start}": nested[start:stop]}]
    return Taxonomy.from_tree({"all": nested})


# ------------------------------------------------------------------------------------------------
# Random trees of counts, measured with noise.


@st.composite
def parents(draw, largest=30):
    """Parent arrays of random trees, nodes in random order."""
    n = draw(st.integers(1, largest))
    above = [-1] + [draw(st.integers(0, i - 1)) for i in range(1, n)]
    order = draw(st.permutations(range(n)))
    given = [0] * n
    for node, parent in enumerate(above):
        given[order[node]] = -1 if parent < 0 else order[parent]
    return given


def of_each(number, values):
    """An array of so many values."""
    return st.lists(values, min_size=number, max_size=number).map(np.array)


@st.composite
def measured_trees(draw, unmeasured=True, exact=True, largest=30, spread=100.0):
    """A tree with values and variances, some of them infinite or zero."""
    tree = Tree.from_parents(draw(parents(largest)))
    kinds = [st.floats(1 / spread, spread)]
    kinds += [st.just(np.inf)] * unmeasured + [st.just(0.0)] * exact
    variances = draw(of_each(tree.n_nodes, st.one_of(kinds)))
    values = draw(of_each(tree.n_nodes, st.integers(-50, 50)))
    return tree, values.astype(float), variances


def membership(tree):
    """Matrix (nodes, leaves): which leaves each node holds."""
    inside = np.zeros((tree.n_nodes, len(tree.leaves)))
    for j, leaf in enumerate(tree.leaves):
        node = leaf
        while node >= 0:
            inside[node, j] = 1.0
            node = tree.parent[node]
    return inside
