"""Calibration and pairs: no record moves a sum by more than is paid for."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from loops import over
from scored import some_scores

from skdp._random import noise_source
from skdp.algorithms.additive import UNIT, Identity, Logit, Records, pairs
from skdp.algorithms.additive import pairs as calibration
from skdp.algorithms.additive.model import Draft
from skdp.algorithms.additive.pairs import (
    _GRAIN,
    _REACH,
    _moments,
    calibrate,
    coarse_axis,
    monotone,
    shared_factor,
)


@over("link", [Logit(2), Logit(3), Identity(np.array([-UNIT, 0, 700]))])
@over("size", [0.1, 3.0, 200.0])
def test_no_record_moves_the_moments_by_more_than_is_paid_for(link, size):
    rng = np.random.default_rng(3)
    n, n_functions = 300, 5
    tables = rng.normal(0, size * UNIT, (n, n_functions, link.n_outputs)).astype(np.int64)
    scores = some_scores(link.n_outputs)[:n]
    most = _REACH // (2 if link.n_outputs == 1 else 1)
    if isinstance(link, Identity):
        most = _REACH // 2
    for label in range(3 if link.n_outputs != 1 or isinstance(link, Identity) else 2):
        for i in range(0, n, 10):
            one = Records(
                np.array([[i]]), np.array([label]), np.array([1]), (n,), scores[i : i + 1]
            )
            gradient, hessian = _moments(
                one, link, lambda g: tables[g[:, 0]].swapaxes(0, 1), n_functions, most
            )
            assert np.abs(gradient).sum() <= _REACH
            assert np.abs(np.triu(hessian)).sum() <= most**2
            assert np.array_equal(hessian, hessian.T)


@over("link", [Logit(2), Logit(3), Identity(np.array([-UNIT, 0, 700]))])
def test_a_step_has_noise_for_what_a_record_moves_at_most(link, monkeypatch):
    """Both sums pay for the bounds of the test above, with parts that sum to epsilon."""
    calls = []

    def recorded(values, epsilon, sensitivity, *, random_state):
        calls.append((epsilon, sensitivity))
        return values

    monkeypatch.setattr(calibration, "discrete_laplace", recorded)
    nothing = np.zeros((1, link.n_outputs), dtype=np.int64)
    records = Records(nothing[:, :1], nothing[:, 0], np.ones(1, int), (1,), nothing)
    calibration.newton_step(
        records,
        link,
        lambda groups: np.full((2, len(groups), link.n_outputs), UNIT),
        np.zeros(2),
        1.0,
        Fraction(1),
        noise_source(0),
    )
    (rate, reach), (other, most) = calls
    assert reach == _REACH
    assert most == (reach // 2 if link.n_outputs == 1 else reach) ** 2
    assert rate + other == 1


def test_moments_are_those_of_the_loss_where_nothing_is_cut():
    rng = np.random.default_rng(5)
    link, n = Logit(2), 200
    tables = rng.normal(0, 0.3 * UNIT, (n, 3, 1)).astype(np.int64)
    scores = rng.normal(0, UNIT, (n, 1)).astype(np.int64)
    labels = rng.integers(0, 2, n)
    records = Records(np.arange(n)[:, None], labels, np.ones(n, dtype=np.int64), (n,), scores)
    rows = lambda g: tables[g[:, 0]].swapaxes(0, 1)  # noqa: E731
    gradient, hessian = _moments(records, link, rows, 3, _REACH // 2)
    features = np.concatenate([np.ones((n, 1)), tables[:, :, 0] / UNIT], axis=1)
    share = 1 / (1 + np.exp(-scores[:, 0] / UNIT))
    np.testing.assert_allclose(gradient / _GRAIN, features.T @ (labels - share), atol=n / _GRAIN)
    curvature = np.maximum(share * (1 - share), 0.1)
    exact = (features * curvature[:, None]).T @ features
    np.testing.assert_allclose(hessian / _GRAIN**2, exact, atol=n * 2 / _GRAIN)


def scored_records(n, factor, shift, seed=0):
    """Records of two groups whose class has a logit of shift + factor * what the draft says."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, (n, 2))
    draft = Draft.empty(np.array([-0.5]), (2, 2))
    draft.shapes = [np.array([[-1.0], [1.0]]), np.array([[-0.7], [0.7]])]
    draft.sizes = [np.full(2, n / 2.0)] * 2
    score = -0.5 + shift + factor * (2.0 * groups[:, 0] - 1 + 1.4 * groups[:, 1] - 0.7)
    labels = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return Records(groups, labels, np.ones(n, dtype=np.int64), (2, 2)), draft


@over("factor, shift", [(1.0, 0.0), (0.5, 0.3), (1.4, -0.6)])
def test_calibration_finds_factor_and_shift(factor, shift):
    records, draft = scored_records(20_000, factor, shift)
    calibrate(records, Logit(2), draft, 1.0, Fraction(1), 2e4, noise_source(0))
    # Scores count as the middle of their interval, at most half of it away.
    np.testing.assert_allclose(draft.shapes[0][:, 0], [-factor, factor], atol=0.25)
    np.testing.assert_allclose(draft.intercept, [-0.5 + shift], atol=0.25)


# Each in the middle of an interval.
MIDDLES = np.arange(-3.5, 4)


def bent_records(n, seed=0):
    """Records whose class has a logit of twice the score below 0 and of a third of it above."""
    rng = np.random.default_rng(seed)
    draft = Draft.empty(np.array([0.0]), (8,))
    draft.shapes = [MIDDLES[:, None]]
    draft.sizes = [np.full(8, n / 8.0)]
    groups = rng.integers(0, 8, (n, 1))
    score = MIDDLES[groups[:, 0]]
    logit = np.where(score < 0, 2 * score, score / 3)
    labels = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    return Records(groups, labels, np.ones(n, dtype=np.int64), (8,)), draft


def test_a_rising_line_finds_a_bend_that_no_factor_has():
    records, draft = bent_records(40_000)
    scores, logits = monotone(records, draft, Fraction(1), noise_source(0))
    assert (np.diff(scores) > 0).all() and (np.diff(logits) > 0).all()
    found = np.interp(MIDDLES, scores, logits)
    np.testing.assert_allclose(found, np.where(MIDDLES < 0, 2 * MIDDLES, MIDDLES / 3), atol=0.45)
    # It goes on with one slope, farther than any score of the model.
    farthest = np.abs(draft.shapes[0]).max() + abs(draft.intercept[0])
    assert scores[-1] > farthest and scores[0] < -farthest


def test_a_rising_line_is_what_is_expected_where_all_is_noise():
    records, draft = bent_records(50)
    found = []
    for seed in range(8):
        scores, logits = monotone(records, draft, Fraction(1, 10_000), noise_source(seed))
        assert (np.diff(scores) > 0).all() and (np.diff(logits) > 0).all()
        found.append(np.interp([-2, 2], scores, logits))
    np.testing.assert_allclose(np.median(found, axis=0), [-2, 2], atol=0.2)
    # So is a factor with a shift.
    records, draft = scored_records(50, 1.4, -0.6)
    calibrate(records, Logit(2), draft, 0.6, Fraction(1, 10_000), 50.0, noise_source(0))
    np.testing.assert_allclose(draft.shapes[0][:, 0], [-0.6, 0.6], atol=0.25)


@over("alone", [False, True])
def test_a_record_is_in_one_cell_of_the_calibration(alone):
    records, _ = scored_records(400, 1.0, 0.0)
    tables = []

    def watch(values, epsilon, random_state=None):
        tables.append(values)
        return values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "discrete_laplace", watch)
        for left_out in (None, 0, 17, 399):
            kept = np.arange(400) != (-1 if left_out is None else left_out)
            some = Records(records.groups[kept], records.labels[kept], records.counts[kept], (2, 2))
            draft = scored_records(4, 1, 0)[1]
            if alone:
                monotone(some, draft, Fraction(1), None)
            else:
                calibrate(some, Logit(2), draft, 1.0, Fraction(1), 4e2, None)
    assert tables[0].sum() == 400
    for table in tables[1:]:
        assert np.abs(tables[0] - table).sum() == 1


def many_records(n, factor, n_classes=5, seed=0):
    """Records whose class has scores of ``factor`` times what the draft says, and intercepts."""
    rng = np.random.default_rng(seed)
    draft = Draft.empty(rng.normal(0, 0.7, n_classes), (6, 6))
    draft.shapes = [rng.normal(0, 1, (6, n_classes)) for _ in range(2)]
    draft.sizes = [np.full(6, n / 6.0)] * 2
    groups = rng.integers(0, 6, (n, 2))
    score = draft.intercept + factor * sum(draft.shapes[j][groups[:, j]] for j in range(2))
    labels = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    return Records(groups, labels, np.ones(n, dtype=np.int64), (6, 6)), draft


@over("factor, centre", [(0.3, 0.7), (0.7, 0.7), (1.2, 0.7), (0.15, 1.0)])
def test_pairs_of_classes_find_the_factor_of_many(factor, centre):
    records, draft = many_records(20_000, factor)
    found, variance = shared_factor(records, Logit(5), draft, centre, Fraction(1), noise_source(0))
    assert abs(found - factor) < 0.08 and 0 < variance < 0.01
    # What is expected, where all is noise.
    records, draft = many_records(50, factor)
    found, _ = shared_factor(records, Logit(5), draft, centre, Fraction(1, 10_000), noise_source(0))
    assert abs(found - centre) < 0.1


def test_no_record_moves_pairs_of_classes_by_more_than_is_paid_for(monkeypatch):
    calls = []

    def watch(values, epsilon, sensitivity, *, random_state):
        calls.append((np.abs(values).sum(), sensitivity))
        return values

    monkeypatch.setattr(calibration, "discrete_laplace", watch)
    for size in (0.1, 1.0, 30.0):
        records, draft = many_records(60, 1.0)
        draft.shapes = [size * shape for shape in draft.shapes]
        for each in records.blocks(1):
            shared_factor(each, Logit(5), draft, 1.0, Fraction(1), None)
    moved, paid = zip(*calls, strict=True)
    assert set(paid) == {UNIT} and 0.9 * UNIT < max(moved) <= UNIT


def numbered_records(n, factor, shift, seed=0):
    """The same with numbers, of which the draft says another multiple and is shifted."""
    records, draft = scored_records(n, 1.0, 0.0, seed)
    draft.intercept = np.array([0.1])
    draft.shapes = [0.1 * shape for shape in draft.shapes]
    at = sum(shape[records.groups[:, j], 0] for j, shape in enumerate(draft.shapes))
    outcomes = np.rint((0.1 + shift + factor * at) * UNIT).astype(np.int64)
    return replace(records, labels=np.arange(n)), draft, Identity(outcomes)


@over("factor, shift", [(1.0, 0.0), (0.5, 0.3), (1.4, -0.3)])
def test_calibration_of_numbers_finds_factor_and_shift(factor, shift):
    records, draft, link = numbered_records(5_000, factor, shift)
    calibrate(records, link, draft, 0.8, Fraction(10), 5e3, noise_source(0))
    np.testing.assert_allclose(draft.shapes[0][:, 0], [-0.1 * factor, 0.1 * factor], atol=0.01)
    np.testing.assert_allclose(draft.intercept, [0.1 + shift], atol=0.01)


def test_no_record_moves_sums_of_numbers_by_more_than_is_paid_for(monkeypatch):
    records, draft, link = numbered_records(60, 3.0, 0.4)
    link = Identity(np.clip(link.outcomes, -UNIT, UNIT), 300)
    calls = []

    def watch(values, epsilon, sensitivity, random_state=None):
        calls.append((np.atleast_1d(values), epsilon, sensitivity))
        return np.zeros(np.shape(values), dtype=np.int64)

    monkeypatch.setattr(calibration, "discrete_laplace", watch)
    worst = 0.0
    for record in range(60):
        alone = Records(records.groups[[record]], np.array([record]), np.ones(1, int), (2, 2))
        calls.clear()
        calibrate(alone, link, draft.copy(), 1.0, Fraction(1), 60.0, None)
        ((values, epsilon, sensitivity),) = calls
        assert epsilon == 1
        worst = max(worst, np.abs(values).sum() / sensitivity)
    assert 0.3 < worst <= 1


def test_axes_have_few_groups_of_about_equal_size():
    even = coarse_axis(np.full(32, 10.0), range(32))
    assert even.n_groups == even.n_ordered == 8
    assert np.bincount(even.groups).tolist() == [4] * 8
    skewed = coarse_axis(np.array([900.0] + [5.0] * 20 + [50.0]), range(21))
    assert (np.diff(skewed.groups[:21]) >= 0).all()
    # The value outside the order is alone.
    assert skewed.groups[21] == skewed.n_ordered == skewed.n_groups - 1
    free = coarse_axis(np.array([3.0, 90, 4, 80, 70, 60, 50, 40, 30, 1]), None)
    assert free.n_groups == 8 and free.n_ordered == 0
    assert (free.groups[[0, 2, 9]] == 7).all()
    empty = coarse_axis(np.zeros(5), range(5))
    assert empty.n_groups == 5


def test_no_record_moves_the_scores_of_pairs_or_their_sums_by_more_than_is_paid_for():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, (300, 3))
    labels = rng.integers(0, 2, 300)
    draft = Draft.empty(np.array([0.3]), (3, 3, 3))
    draft.shapes = [rng.normal(size=(3, 1)) for _ in range(3)]
    draft.sizes = [np.full(3, 100.0)] * 3
    plan = pairs.PairPlan([range(3)] * 3, n_pairs=1)

    def run(kept):
        seen = []

        def choose(scores, epsilon, score_range, random_state=None):
            seen.append((scores, score_range))
            return 1

        def add(values, epsilon, sensitivity, random_state=None):
            seen.append((values, sensitivity))
            return values

        some = Records(groups[kept], labels[kept], np.ones(kept.sum(), dtype=np.int64), (3, 3, 3))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pairs, "noisy_max", choose)
            patch.setattr(pairs, "discrete_laplace", add)
            pairs.add_pairs(
                some, Logit(2), draft.copy(), np.array([50.0]), plan, Fraction(1), 300.0, None
            )
        return seen

    everyone = run(np.ones(300, dtype=bool))
    for left_out in range(0, 300, 25):
        (scores, score_range), (sums, sensitivity) = run(np.arange(300) != left_out)
        changes = everyone[0][0] - scores
        assert changes.max() - changes.min() <= score_range
        assert np.abs(everyone[1][0] - sums).sum() <= sensitivity
