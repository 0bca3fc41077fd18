"""Networks of a release, against the whole table by multiplying."""

import itertools
import math

import numpy as np
import pytest
from boxed import asked
from loops import over

from skdp.release.network import Conditional, NetworkModel

SHAPE = (3, 2, 4, 1, 2, 3)


def random_network(seed, total=1.0, *, zeros=False):
    """A network over SHAPE in a random order, some parents in groups."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(SHAPE)).tolist()
    nodes = []
    for place, axis in enumerate(order):
        parents = [p for p in order[:place] if rng.random() < 0.6]
        groups = [
            np.minimum(np.arange(SHAPE[p]) // 2, 1) if SHAPE[p] > 2 and rng.random() < 0.5 else None
            for p in parents
        ]
        pairs = zip(parents, groups, strict=True)
        sizes = [SHAPE[p] if own is None else own.max() + 1 for p, own in pairs]
        table = rng.dirichlet(np.ones(SHAPE[axis]), size=math.prod(sizes))
        if zeros and SHAPE[axis] > 1:
            table[rng.random(len(table)) < 0.4, 0] = 0.0
            table /= table.sum(axis=1, keepdims=True)
        nodes.append(Conditional(axis, tuple(parents), tuple(groups), table))
    return NetworkModel(SHAPE, nodes, total)


def full_table(density):
    """Probability of every cell, by multiplying."""
    cells = np.indices(SHAPE).reshape(len(SHAPE), -1).T
    result = np.ones(len(cells))
    for axis, node in density.nodes.items():
        result *= node.table[density.rows_of(node, cells), cells[:, axis]]
    return result.reshape(SHAPE)


def margin(table, axes):
    others = tuple(axis for axis in range(len(SHAPE)) if axis not in axes)
    kept = sorted(axes)
    return table.sum(axis=others).transpose([kept.index(axis) for axis in axes])


@over("seed", range(6))
def test_elimination_agrees_with_brute_force(seed):
    density = random_network(seed)
    whole = full_table(density)
    rng = np.random.default_rng(seed)
    for n_axes in range(len(SHAPE) + 1):
        for axes in itertools.permutations(range(len(SHAPE)), n_axes):
            if rng.random() > 60 / math.perm(len(SHAPE), n_axes):
                continue
            np.testing.assert_allclose(density.joint(axes), margin(whole, axes), atol=1e-12)
    weights = {0: rng.normal(size=3), 4: rng.random(2), 5: rng.random(3)}
    product = whole * np.einsum("a,b,c->abc", *weights.values()).reshape(3, 1, 1, 1, 2, 3)
    np.testing.assert_allclose(density.joint((), weights), product.sum(), atol=1e-12)
    np.testing.assert_allclose(density.joint((2, 1), weights), margin(product, (2, 1)), atol=1e-12)


@pytest.mark.parametrize("cells", [10**6, 100, 0])
def test_answers_exact_and_from_rows(cells, monkeypatch):
    model = random_network(3, 1000.0)
    whole = full_table(model)
    monkeypatch.setattr("skdp.release.network.MOST_CELLS", cells)
    rng = np.random.default_rng(0)
    queries = [{}]
    for n_axes in (1, 2, 3, 6):
        for axes in itertools.combinations(range(len(SHAPE)), n_axes):
            queries += [{axis: rng.integers(0, 2, SHAPE[axis]) * 1.0 for axis in axes}] * 2
    expected = []
    for query in queries:
        table = whole
        for axis, weights in query.items():
            table = table * weights.reshape([-1 if axis == k else 1 for k in range(len(SHAPE))])
        expected.append(1000 * table.sum())
    answers = model.answer(asked(queries))
    # Rows give shares with a standard deviation of at most 0.0016 of the records.
    tolerance = 1e-9 if cells > 10**6 else 8.0
    np.testing.assert_allclose(answers, expected, atol=tolerance)
    np.testing.assert_allclose(model.view((2, 0)), 1000 * margin(whole, (2, 0)), atol=tolerance)
    assert (model.answer(asked(queries)) == answers).all()


def distance(codes, law):
    """Total variation between drawn codes and a table of probabilities."""
    found = np.zeros(law.shape)
    np.add.at(found, tuple(codes.T), 1.0 / len(codes))
    return 0.5 * np.abs(found - law / law.sum()).sum()


@over("conditioned", [True, False])
def test_rows_follow_the_network(conditioned):
    model = random_network(2, 100.0, zeros=True)
    weights = {2: np.array([0, 1, 0.2, 0]), 5: np.array([0.5, 0, 1])}
    weights = weights if conditioned else {2: np.ones(4), 5: np.ones(3)}
    law = full_table(model) * weights[2].reshape(-1, 1, 1, 1) * weights[5]
    for rounded in (False, True):
        rng = np.random.default_rng(0)
        codes = model.sample_codes(20_000, rng, weights if conditioned else {}, rounded)
        assert codes.dtype == np.int32
        assert distance(codes, law) < 0.04
        assert (law[tuple(codes.T)] > 0).all()
