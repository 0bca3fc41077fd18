"""Views: one basis for all tables, columns with their covariance, and answers with their bars."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from loops import over
from scipy.stats import norm

from skdp._random import noise_source
from skdp.algorithms.marginals.fit import Attribute, Population, between_groups
from skdp.algorithms.marginals.plans import Candidates, column_plan, ladder_of
from skdp.domain import Zeros
from skdp.release.basis import Coefficients, ColumnEstimate, Ladder, basis_of
from skdp.tables import CountTable

LADDERS = {
    0: Ladder(np.arange(5), (1, 5)),
    1: Ladder(np.arange(8), (1, 2, 4, 8)),
    2: Ladder(np.arange(3), (1, 3)),
}
SHAPE = (5, 8, 3)


def design(axes, sizes):
    """Which cells of the whole table each measured cell sums."""
    places = np.indices(SHAPE).reshape(len(SHAPE), -1)
    cell = np.zeros(places.shape[1], dtype=int)
    for axis, size in zip(axes, sizes, strict=True):
        cell = cell * size + places[axis] // (SHAPE[axis] // size)
    matrix = np.zeros((int(np.prod(sizes)), len(cell)))
    matrix[cell, np.arange(len(cell))] = 1
    return matrix


def weighted_least_squares(matrices, values, variances):
    """The best linear unbiased estimate, and its covariance."""
    matrix, y = np.vstack(matrices), np.concatenate(values)
    precision = np.concatenate(
        [np.full(len(m), 1 / v) for m, v in zip(matrices, variances, strict=True)]
    )
    # Singular: some functions of cells were not measured. Round-off differs between machines.
    information = matrix.T @ (matrix * precision[:, None])
    covariance = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    return covariance @ matrix.T @ (precision * y), covariance


def test_averaged_coefficients_are_the_best_linear_estimate():
    rng = np.random.default_rng(0)
    truth = rng.poisson(20, SHAPE).ravel()
    known = Coefficients(LADDERS)
    matrices, values, variances = [], [], []
    for axes, sizes, variance in [
        ((0, 1), (5, 4), 2.0),
        ((0, 1), (5, 2), 0.5),
        ((1, 2), (8, 3), 1.0),
        ((0, 1, 2), (5, 2, 3), 3.0),
        ((0, 2), (5, 3), 0.7),
    ]:
        matrices.append(design(axes, sizes))
        values.append(matrices[-1] @ truth + rng.normal(0, variance**0.5, len(matrices[-1])))
        variances.append(variance)
        known.add(axes, values[-1].reshape(sizes), variance)
    best, covariance = weighted_least_squares(matrices, values, variances)
    for axes, sizes in [((0, 1), (5, 4)), ((1, 2), (8, 3)), ((0, 1, 2), (5, 2, 3))]:
        asked = design(axes, sizes)
        alone = {
            axis: design((axis,), (size,)) @ best for axis, size in zip(axes, sizes, strict=True)
        }
        counts, _ = known.table(axes, sizes, alone)
        np.testing.assert_allclose(counts.ravel(), asked @ best, atol=1e-9)
    # The pure part of a pair has the variance that least squares say, and no covariance.
    pure = np.kron(basis_of((1, 5))[:, 1:].T, basis_of((1, 2, 4, 8))[:, 1:4].T)
    pure = np.kron(pure, np.ones(3))
    found = pure @ covariance @ pure.T
    look = known.looks[0, 1]
    np.testing.assert_allclose(found, np.diag(np.diag(found)), atol=1e-9)
    np.testing.assert_allclose(look.variances[:, :3].ravel(), np.diag(found), atol=1e-9)


def test_a_column_is_the_best_linear_estimate_with_its_covariance():
    rng = np.random.default_rng(1)
    n_codes, sizes, variances = 10, (1, 3, 12), {3: 2.0, 12: 5.0}
    truth = np.append(rng.poisson(30, n_codes), [0, 0])
    tables = {
        size: truth.reshape(size, -1).sum(axis=1) + rng.normal(0, each**0.5, size)
        for size, each in variances.items()
    }
    ladder = Ladder(np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3]), (1, 2, 4))
    margin = np.zeros((3, 12))
    margin[:, :n_codes] = basis_of(ladder.sizes)[:, 1:][ladder.units].T
    looks, noise = margin @ truth + rng.normal(0, 1, 3), np.array([3.0, 2.0, 2.0])
    total = truth.sum() + 1.5
    blocks = np.kron(np.eye(3), np.ones(4))
    matrices = [np.ones((1, 12)), blocks, np.eye(12), *(row[None] for row in margin)]
    values = [np.array([total]), tables[3], tables[12], *(looks[:, None])]
    # Nobody is beyond the last code, which moves what is known of the others but not of their sum.
    own, alone = weighted_least_squares(matrices[:3], values[:3], [4.0, 2.0, 5.0])
    outside = np.append(np.zeros(n_codes), [1, 1])
    pure = alone - alone.sum() / 144
    shares = np.eye(12)[:n_codes] - np.outer(pure @ outside, outside)[:n_codes] / (
        outside @ pure @ outside
    )
    before, spread = shares @ own, shares @ alone @ shares.T
    gain = spread @ margin[:, :n_codes].T
    inverse = np.linalg.inv(margin[:, :n_codes] @ gain + np.diag(noise))
    stays = np.eye(n_codes) - np.outer(spread.sum(axis=1), np.ones(n_codes)) / spread.sum()
    best = before + stays @ gain @ inverse @ (looks - margin[:, :n_codes] @ before)
    lower = gain @ inverse @ gain.T
    covariance = spread - lower + (np.eye(n_codes) - stays) @ lower @ (np.eye(n_codes) - stays).T
    column = ColumnEstimate(n_codes, sizes, variances, 4.0, codes=np.arange(n_codes))
    column.fit(tables, total)
    assert column.counts.sum() == pytest.approx(own.sum())
    column.join(ladder, looks, noise)
    assert column.counts.sum() == pytest.approx(own.sum())
    np.testing.assert_allclose(column.counts, best, atol=1e-9)
    asked = rng.normal(size=(n_codes, 4))
    wanted = np.einsum("kq,kl,lq->q", asked, covariance, asked)
    np.testing.assert_allclose(column.variance(asked), wanted, rtol=1e-9)


def test_counts_that_are_known_well_stay_when_running_sums_may_not_fall():
    """Tables of several columns say that the first code holds nearly all of a block."""
    rng, codes = np.random.default_rng(0), np.arange(32)
    truth = np.where(codes == 0, 900.0, 0.0) + 5
    column = ColumnEstimate(32, (1, 4, 32), {4: 50.0, 32: 9000.0}, 10.0, 2, codes=codes)
    tables = {n: truth.reshape(n, -1).sum(axis=1) + rng.normal(0, 60, n) for n in (4, 32)}
    column.fit(tables, truth.sum())
    ladder = Ladder((codes > 0).astype(int), (1, 2))
    look = basis_of(ladder.sizes)[ladder.units, 1] @ truth
    column.join(ladder, np.array([look]), np.array([4.0]))
    below = np.triu(np.ones((32, 32)))
    np.testing.assert_allclose(column._variances_of_sums(), column.variance(below), rtol=1e-9)
    found = column.rising()
    assert found[:30].min() >= 0 > column.counts[:30].min()
    np.testing.assert_array_equal(found[30:], column.counts[30:])
    assert abs(found[0] - column.counts[0]) < 10 < np.abs(found - column.counts).max()


@over("n_codes, ordered", itertools.product([2, 3, 7, 16, 17, 40, 300], [True, False]))
def test_ladders_are_nested_groups_and_plans_spend_all_their_budget(n_codes, ordered):
    counts = np.random.default_rng(n_codes).gamma(0.3, 100, n_codes) - 5
    ladder = ladder_of(counts, np.arange(n_codes) if ordered else None)
    assert ladder.sizes[0] == 1 and len(ladder.units) == n_codes
    assert not any(fine % coarse for coarse, fine in itertools.pairwise(ladder.sizes))
    assert 0 <= ladder.units.min() and ladder.units.max() < ladder.n_units
    assert n_codes > 16 or len(np.unique(ladder.units)) == n_codes
    assert not ordered or (np.diff(ladder.units) >= 0).all()
    for many in (n_codes, 1, 100_000):
        plan = column_plan(many, ordered, 300.0)
        assert sum(plan.shares.values()) == 1 and plan.sizes[-1] >= many
        assert set(plan.shares) <= set(plan.sizes)


@over("n_bins", [1024, 1000])
def test_special_values_and_gaps_are_not_mixed_with_their_neighbours(n_bins):
    """1,000 records in bins, 455 with a special value, 200 without one: 12 noise scales."""
    rng, n_codes = np.random.default_rng(1), n_bins + 2
    exact, scores = np.zeros(n_codes), []
    exact[:100], exact[n_bins], exact[n_bins + 1] = 10, 455, 200
    plan = column_plan(n_codes, True, exact.sum() / 12)
    padded = np.pad(exact, (0, plan.sizes[-1] - n_codes))
    scales = {size: 12 / float(share) for size, share in plan.shares.items()}
    variances = {size: 2 * b * b for size, b in scales.items()}
    for _ in range(60):
        column = ColumnEstimate(n_codes, plan.sizes, variances, 100.0, 2, codes=np.arange(n_codes))
        sums = {size: padded.reshape(size, -1).sum(axis=1) for size in scales}
        noisy = {size: sums[size] + rng.laplace(0, b, size) for size, b in scales.items()}
        column.fit(noisy, float(exact.sum()))
        for code in (n_bins, n_bins + 1):
            noise = column.variance((np.arange(n_codes) == code).astype(float))
            # It is far below what is counted.
            assert noise < 100**2
            scores.append((column.counts[code] - exact[code]) / np.sqrt(noise))
    # 120 standard normal scores, not independent in pairs: false alarms below 1e-4.
    assert abs(np.mean(scores)) < 4 / np.sqrt(60)
    assert 0.7 < np.std(scores) < 1.35


def test_one_record_moves_the_distance_of_unmeasured_pairs_by_their_number_at_most(monkeypatch):
    """By brute force: every record that can be added to a few."""
    shape, seen, pairs = (3, 2, 9), [], [(0, 1), (0, 2), (1, 2)]
    few = np.array([[0, 0, 0], [1, 1, 8], [2, 0, 4], [2, 1, 4], [0, 0, 0]])

    def exact(values, epsilon, sensitivity=1, *, random_state=None):
        seen.append((int(values), sensitivity))
        return np.asarray(values)

    monkeypatch.setattr("skdp.algorithms.marginals.plans.discrete_laplace", exact)
    even = [Attribute(np.ones(n) / n, np.arange(n), np.arange(n)) for n in shape]
    rows = Population.of(even, Zeros(), 500, np.random.default_rng(0))

    def distance(records):
        table = CountTable.from_codes(np.array(records, dtype=np.int32), shape)
        known = {
            axis: ColumnEstimate(n, (1, n), {n: 2.0}, codes=np.arange(n))
            for axis, n in enumerate(shape)
        }
        candidates = Candidates(table, even, dict.fromkeys(pairs, 1), 5.0)
        # The first pair is measured, and two are not.
        found = candidates.misfits(rows, known, {1: pairs[1:]}, Fraction(1), noise_source(0))
        return found[1], seen[-1]

    share, (before, sensitivity) = distance(few)
    assert sensitivity == 2 and 0 < share
    moved = [distance([*few, each])[1][0] - before for each in np.ndindex(shape)]
    assert max(map(abs, moved)) == 2


def test_values_between_groups_are_linear_in_normal_scores_and_others_those_of_their_group():
    mass, groups = np.ones(20), np.repeat(np.arange(4), 5)
    scores = norm.ppf((np.arange(16) + 0.5) / 16)
    found = between_groups(mass, groups, 4, np.arange(16))
    middles = np.append([scores[at : at + 5].mean() for at in (0, 5, 10)], scores[15])
    np.testing.assert_allclose(
        found[:16] @ middles, np.clip(scores, 2 * middles[0] - middles[1], 9)
    )
    np.testing.assert_array_equal(found[16:], np.eye(4)[groups[16:]])
    # Of one group, or a group for each code, nothing is between.
    for size, own in ((1, np.zeros(20, dtype=int)), (20, np.arange(20))):
        np.testing.assert_allclose(
            between_groups(mass, own, size, np.arange(20)), np.eye(size)[own]
        )
