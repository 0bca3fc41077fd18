"""Links, priors, budgets and calibration of additive models; no sum moves by more than is paid."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from boxed import Recorder
from loops import over
from scored import some_scores

from skdp._random import noise_source
from skdp.algorithms import additive
from skdp.algorithms.additive import (
    UNIT,
    AdditiveModel,
    Identity,
    Logit,
    Prior,
    Records,
    agreed,
    calibrate,
    class_shares,
    column_shares,
    located,
)


@over("n_classes", [2, 3, 7])
def test_residuals_of_classes_are_near_the_exact_ones(n_classes):
    link = Logit(n_classes)
    scores = some_scores(link.n_outputs)
    labels = np.arange(len(scores)) % n_classes
    residuals = link.residuals(scores, labels)
    # In any company.
    alone = [link.residuals(scores[i : i + 1], labels[i : i + 1])[0] for i in range(len(scores))]
    assert np.array_equal(residuals, alone)
    exact = np.eye(n_classes)[labels] - link.probabilities(scores / UNIT)
    np.testing.assert_allclose(
        residuals / UNIT, exact[:, -link.n_outputs :], atol=1.1 / UNIT + 1e-4
    )


def test_shares_of_classes_are_those_of_the_counts_as_far_as_noise_allows():
    truth = np.array([0.5, 0.3, 0.15, 0.05, 0.0])
    np.testing.assert_allclose(class_shares(1e4 * truth, 0.0), truth, atol=1e-3)
    # Even where noise is large, or counts are negative.
    np.testing.assert_allclose(class_shares(10 * truth, 1e8), 0.2, atol=0.01)
    for counts in (-np.arange(5.0), np.zeros(5), np.array([-300.0, 2.0, 5.0, 1.0, 0.0])):
        shares = class_shares(counts, 50.0)
        assert (shares > 0).all() and abs(shares.sum() - 1) < 1e-12


# ------------------------------------------------------------------------------------- one column


def test_the_posterior_follows_precise_sums_and_forgets_noisy_ones():
    truth = np.sin(np.arange(20) / 3)
    curvature = np.full(20, 100.0)
    for prior in (Prior(20, range(20)), Prior(20, None)):
        near = prior.update(curvature * truth, curvature, np.full(20, 1e-6))
        np.testing.assert_allclose(near[0], truth, atol=1e-3)
        far = prior.update(curvature * truth, curvature, np.full(20, 1e12))
        np.testing.assert_allclose(far[0], 0, atol=1e-3)


def test_a_second_measurement_counts_as_much_as_its_noise_allows():
    """Two independent sums of the same function are as good as one with half the variance."""
    truth, noise = np.array([1.0, -0.5, 0.2]), np.full(3, 50.0)
    curvature, prior = np.full(3, 100.0), Prior(3, None)
    once, left = prior.update(curvature * truth, curvature, noise)
    twice, rest = prior.update(curvature * (truth - once), curvature, noise, 1e-9, left)
    best, least = prior.update(curvature * truth, curvature, noise / 2)
    np.testing.assert_allclose(once + twice, best, rtol=1e-3)
    np.testing.assert_allclose(rest, least, rtol=1e-2)


@over("n_classes", [2, 3])
@over("reach", [None, UNIT, 301])
def test_residuals_of_a_record_stay_within_their_bound(n_classes, reach):
    outcomes = np.arange(-UNIT, UNIT + 1, 64)
    link = Logit(n_classes) if reach is None else Identity(outcomes, reach=reach)
    scores = np.arange(-9 * UNIT, 9 * UNIT)[:, None] * np.arange(1, link.n_outputs + 1)
    for label in range(n_classes if reach is None else len(outcomes)):
        residuals = link.residuals(scores, np.full(len(scores), label))
        assert residuals.dtype == np.int64
        assert 0.98 * link.reach <= np.abs(residuals).sum(axis=1).max() <= link.reach


# ------------------------------------------------------------------- histograms and calibration


def test_budgets_of_columns_sum_to_the_whole_and_make_the_noise_least():
    sizes = [2, 2, 40, 7, 500]
    shares = column_shares(sizes)
    assert sum(shares) == 1

    def noise(parts):
        return sum(n / float(part) ** 2 for n, part in zip(sizes, parts, strict=True))

    best = noise(shares)
    assert best < 0.6 * noise([0.2] * 5)
    for i in range(5):
        moved = [share * (Fraction(9, 10) if i == j else 1) for j, share in enumerate(shares)]
        assert best < noise([part / sum(moved) for part in moved])


def test_totals_of_columns_agree():
    tables = [np.array([[1.0, 5.0], [2.0, 0.0]]), np.array([[6.0, 9.0]])]
    found = agreed(tables, [1.0, 2.0])
    for table in found:
        np.testing.assert_allclose(table.sum(axis=0), (4.5, 7))
    np.testing.assert_allclose(found[0] - tables[0], [[0.75, 1], [0.75, 1]])


# ------------------------------------------------------------------- where the numbers are


def numbers(counts):
    """Records of some outcomes, by their numbers."""
    n = len(counts)
    return Records(np.zeros((n, 1), int), np.arange(n), np.array(counts), (1,))


def test_no_record_moves_where_the_numbers_are_by_more_than_is_paid_for(monkeypatch):
    rng = np.random.default_rng(0)
    link = Identity(np.linspace(-UNIT, UNIT, 40).astype(np.int64))
    calls = []

    def noted(answer):
        def call(values, epsilon, width, random_state=None):
            calls.append((np.array(values), epsilon, width))
            return answer(values)

        return call

    monkeypatch.setattr(additive, "noisy_max", noted(lambda scores: len(scores) // 2))
    monkeypatch.setattr(additive, "discrete_laplace", noted(np.zeros_like))
    widest = np.zeros(3)
    for _ in range(20):
        counts = rng.integers(0, 4, 40) * (rng.random(40) < rng.random())
        for record in range(0, 40, 3):
            calls.clear()
            for more in (0, 1):
                some = numbers(counts + more * (np.arange(40) == record))
                located(some, link, Fraction(1), 40.0, 40.0, None)
            before, after = calls[:3], calls[3:]
            assert sum(epsilon for _, epsilon, _ in before) == 1
            for step, (one, other) in enumerate(zip(before, after, strict=True)):
                assert one[1:] == other[1:]
                change = other[0] - one[0]
                width = np.abs(change).sum() if step == 2 else change.max() - change.min()
                widest[step] = max(widest[step], width / one[2])
    assert (widest <= 1).all() and (widest[:2] == 1).all() and widest[2] > 0.95, widest


RNG = np.random.default_rng(1)


@over(
    "values",
    [RNG.normal(-900, 12, 2_000), RNG.exponential(20, 2_000) - 1_000, np.full(2_000, 500.0)],
)
def test_numbers_are_found_in_a_range_that_is_far_too_wide(values):
    """A sum over the range would have noise of several of their standard deviations."""
    outcomes = np.arange(-UNIT, UNIT + 1)
    counts = np.bincount(np.rint(values).astype(int) + UNIT, minlength=len(outcomes))
    link, records = Identity(outcomes), numbers(counts)
    for seed in range(12):
        found = located(records, link, Fraction(1, 8), 2_000.0, 250.0, noise_source(seed))
        assert abs(found.centre * UNIT - values.mean()) < max(values.std(), 12) / 1.5
        assert found.scale * UNIT < 9 * max(values.std(), 12)


# --- calibration


def model_of(intercept, shapes, n):
    """A released model of functions with groups of equal size."""
    shapes = [np.asarray(shape, dtype=float).reshape(len(shape), -1) for shape in shapes]
    priors = [Prior(len(shape), None) for shape in shapes]
    sizes = [np.full(len(shape), n / len(shape)) for shape in shapes]
    model = AdditiveModel.constant(np.atleast_1d(intercept), priors, sizes)
    terms = zip(model.terms, shapes, strict=True)
    model.terms = [replace(term, scores=shape) for term, shape in terms]
    return model


def scored_records(n, factor, shift, seed=0):
    """Records of two groups whose class has a logit of shift + factor * what the model says."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, (n, 2))
    model = model_of(-0.5, [[-1.0, 1.0], [-0.7, 0.7]], n)
    score = -0.5 + shift + factor * (2.0 * groups[:, 0] - 1 + 1.4 * groups[:, 1] - 0.7)
    labels = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return Records(groups, labels, np.ones(n, dtype=np.int64), (2, 2)), model


@over("factor, shift", [(1.0, 0.0), (0.5, 0.3), (1.4, -0.4)])
def test_calibration_finds_factor_and_shift(factor, shift):
    records, model = scored_records(20_000, factor, shift)
    found = calibrate(records, Logit(2), model, Fraction(1), 2e4, noise_source(0))
    # Scores count as the middle of their interval, at most half of it away.
    np.testing.assert_allclose(found[:2], [shift, factor], atol=0.25)
    # What is expected, where all is noise.
    records, model = scored_records(50, factor, shift)
    given = Logit(2), model, Fraction(1, 10_000), 50.0
    found = [calibrate(records, *given, noise_source(seed))[:2] for seed in range(8)]
    np.testing.assert_allclose(np.median(found, axis=0), [0, 1], atol=0.2)


def many_records(n, factor, size=1.0, n_classes=5):
    """Records whose class has scores of ``factor`` times what the model says, and intercepts."""
    rng = np.random.default_rng(0)
    shapes = [size * rng.normal(0, 1, (6, n_classes)) for _ in range(2)]
    model = model_of(rng.normal(0, 0.7, n_classes), shapes, n)
    groups = rng.integers(0, 6, (n, 2))
    score = model.intercept + factor * sum(shapes[j][groups[:, j]] for j in range(2))
    labels = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    return Records(groups, labels, np.ones(n, dtype=np.int64), (6, 6)), model


@over("factor, size", [(0.4, 0.7), (1.0, 0.7), (1.7, 0.7), (0.15, 1.0)])
def test_pairs_of_classes_find_the_factor_of_many(factor, size):
    records, model = many_records(20_000, factor, size)
    found = calibrate(records, Logit(5), model, Fraction(1), 2e4, noise_source(0))
    assert found[0] == 0 and abs(found[1] - factor) < 0.15 and 0 < found[2] < 0.02
    # What is expected, where all is noise.
    records, model = many_records(50, factor, size)
    found = calibrate(records, Logit(5), model, Fraction(1, 10_000), 50.0, noise_source(0))
    assert abs(found[1] - 1) < 0.2


def test_no_record_moves_pairs_of_classes_by_more_than_is_paid_for(monkeypatch):
    monkeypatch.setattr(additive, "discrete_laplace", recorder := Recorder())
    for size in (0.1, 1.0, 30.0):
        records, model = many_records(60, 1.0, size)
        for each in records.blocks(1):
            calibrate(each, Logit(5), model, Fraction(1), 60.0, None)
    moved = max(np.abs(values).sum() for values, *_ in recorder.calls)
    assert {paid for *_, paid in recorder.calls} == {UNIT} and 0.9 * UNIT < moved <= UNIT


def numbered_records(n, factor, shift):
    """The same with numbers, of which the model says another multiple and is shifted."""
    records, _ = scored_records(n, 1.0, 0.0)
    shapes = np.array([[-0.1, 0.1], [-0.07, 0.07]])
    at = sum(shape[records.groups[:, j]] for j, shape in enumerate(shapes))
    outcomes = np.rint((0.1 + shift + factor * at) * UNIT).astype(np.int64)
    return replace(records, labels=np.arange(n)), model_of(0.1, shapes, n), Identity(outcomes)


def test_no_record_moves_sums_of_numbers_by_more_than_is_paid_for(monkeypatch):
    records, model, link = numbered_records(60, 3.0, 0.4)
    link = Identity(np.clip(link.outcomes, -UNIT, UNIT), 300)
    calls = []

    def watch(values, epsilon, sensitivity, random_state=None):
        calls.append((np.atleast_1d(values), epsilon, sensitivity))
        return np.zeros(np.shape(values), dtype=np.int64)

    monkeypatch.setattr(additive, "discrete_laplace", watch)
    worst = 0.0
    for record in range(60):
        alone = Records(records.groups[[record]], np.array([record]), np.ones(1, int), (2, 2))
        calls.clear()
        calibrate(alone, link, model, Fraction(1), 60.0, None)
        ((values, epsilon, sensitivity),) = calls
        assert epsilon == 1
        worst = max(worst, np.abs(values).sum() / sensitivity)
    assert 0.3 < worst <= 1
