"""Kernels of trees and forests: ranges of qualities, growing, shares of the budget."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from loops import over

from skdp._random import noise_source
from skdp.algorithms import trees
from skdp.algorithms.additive import Records
from skdp.algorithms.trees import (
    Growth,
    Quality,
    binary_splits,
    fit_trees,
    one_split,
    shrunk_shares,
    tree_parts,
)

HUGE = Fraction(10**6)


def records_of(groups, labels, n_groups):
    groups, labels = np.asarray(groups), np.asarray(labels)
    return Records(groups, labels, np.ones(len(labels), dtype=np.int64), n_groups)


# --- qualities


def changes(quality, counts):
    """Change of the score of a child by one record of each class."""
    before, more = quality.of(counts), np.eye(counts.shape[-1], dtype=np.int64)
    return [quality.of(counts + each) - before for each in more]


QUALITIES = {"max": None, "gini": 0.0, "clipped": 0.1, "clipped, far": 0.2}


@over("name", QUALITIES)
@over("n_classes, most", [(2, 60), (3, 14), (4, 7)])
def test_no_record_moves_a_score_beyond_its_range(name, n_classes, most):
    quality = Quality(QUALITIES[name], n_classes)
    counts = np.array(list(itertools.product(range(most), repeat=n_classes)))
    rng = np.random.default_rng(0)
    large = rng.integers(0, [10**6, 10**3, 10, 10**5][:n_classes], (5_000, n_classes))
    ends = np.eye(n_classes, dtype=np.int64) * 10**7
    counts = np.concatenate([counts, large, ends])
    for moved in changes(quality, counts):
        # A record of one class enters another child in each candidate.
        assert moved.max() - moved.min() <= quality.score_range


def test_gini_is_the_gini_impurity():
    quality = Quality(0.0, 2)
    counts = np.array([[3, 1], [5, 5], [0, 0], [7, 0]])
    sizes = counts.sum(axis=1)
    shares = counts / np.maximum(sizes, 1)[:, None]
    expected = sizes * (shares**2).sum(axis=1)
    np.testing.assert_allclose(quality.of(counts) / 2**10, expected, atol=1e-3)


def test_a_rare_class_moves_the_edge_of_clipped():
    for counts, edge in (([950.0, 50.0], 0.025), ([500.0, 500.0], 0.1), ([-3.0, 5.0], 0.0)):
        assert Quality.named("clipped", np.array(counts)).edge == pytest.approx(edge)


# --- growing


def test_divided_counts_are_those_of_brute_force():
    splits = binary_splits(5, [2, 0, 1])
    counts = np.random.default_rng(0).integers(0, 9, (3, 5, 2))
    divided = splits.divide(counts)
    assert divided.shape == (3, len(splits), 2, 2)
    # A column of one group has no split.
    assert len(binary_splits(1, None)) == len(binary_splits(1, [0])) == len(one_split(1)) == 0
    assert len(binary_splits(2, None)) == 1
    for split, child in itertools.product(range(len(splits)), range(2)):
        here = splits.routes[split] == child
        np.testing.assert_array_equal(divided[:, split, child], counts[:, here].sum(axis=1))
    assert splits.routes.tolist() == [
        [1, 1, 0, 1, 1], [0, 1, 0, 1, 1], [1, 1, 1, 0, 1], [1, 1, 1, 1, 0]
    ]  # fmt: skip


def test_the_best_split_is_found_without_noise():
    groups = np.random.default_rng(0).integers(0, 6, (500, 2))
    labels = (groups[:, 1] > 3).astype(np.int64)
    growth = Growth(records_of(groups, labels, (6, 6)), [binary_splits(6, range(6))] * 2, 2)
    growth.divide(Quality(0.0, 2), HUGE, noise_source(0))
    assert growth.nodes[0].column == 1
    assert growth.nodes[0].children.tolist() == [1, 1, 1, 1, 2, 2]
    counts = growth.class_counts(growth.leaves())
    assert (counts > 0).sum() == 2
    assert counts.sum() == 500


def test_id3_uses_a_column_once_on_a_path():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, (2_000, 3))
    records = records_of(groups, rng.integers(0, 2, 2_000), (3, 3, 3))
    parts = tree_parts(Fraction(1000), "id3", 5)
    (model,), _ = fit_trees(
        records, [one_split(3)] * 3, 2, parts, noise_source(0),
        algorithm="id3", quality="max", max_depth=5,
    )  # fmt: skip
    parents = trees.parents_of(model.nodes)
    for node in range(1, len(parents)):
        used = []
        while parents[node] >= 0:
            node = parents[node]
            used.append(model.nodes[node].column)
        assert len(used) == len(set(used)) <= 3


def test_records_reach_the_leaf_that_counted_them():
    groups = np.random.default_rng(1).integers(0, 5, (3_000, 2))
    labels = (groups.sum(axis=1) > 4).astype(np.int64)
    records = records_of(groups, labels, (5, 5))
    menu = [binary_splits(5, range(5)), binary_splits(5, None)]
    (model,), totals = fit_trees(records, menu, 2, tree_parts(HUGE), noise_source(0))
    assert totals.tolist() == np.bincount(labels).tolist()
    reached = model.reach(groups)
    for leaf in np.unique(reached):
        assert model.nodes[leaf] is None
        seen = np.bincount(labels[reached == leaf], minlength=2)
        np.testing.assert_array_equal(model.class_counts[leaf], seen)
    assert (np.argmax(model.shares[reached], axis=1) == labels).mean() > 0.99
    unknown = groups[:2].copy()
    unknown[:, model.nodes[0].column] = -1
    assert model.reach(unknown).tolist() == [0, 0]


# --- shares


def test_shares_are_drawn_to_the_parent_where_noise_is_large():
    growth = Growth(records_of(np.zeros((1, 1), dtype=int), [0], (2,)), [one_split(2)], 2)
    growth._split(np.array([0]), np.array([0]))
    counts = np.array([[110.0, 90.0], [100.0, 0.0], [10.0, 90.0]])
    plain = shrunk_shares(growth.nodes, counts, np.zeros(3), np.inf, 1)
    np.testing.assert_allclose(plain, [[0.55, 0.45], [1.0, 0.0], [0.1, 0.9]], atol=1e-5)
    sure = shrunk_shares(growth.nodes, counts, np.zeros(3), 0.03, 1)
    noisy = shrunk_shares(growth.nodes, counts, np.full(3, 1e4), 0.03, 1)
    for node in (1, 2):
        assert abs(sure[node, 0] - 0.55) > abs(noisy[node, 0] - 0.55) > 0
        assert sure[node].sum() == pytest.approx(1)
    empty = shrunk_shares(growth.nodes, np.minimum(counts, 0) - 1, np.ones(3), 0.03, 1)
    np.testing.assert_allclose(empty, 0.5)
