"""Calibration: no record moves a sum by more than is paid for."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from loops import over

from skdp._random import noise_source
from skdp.algorithms.additive import UNIT, Identity, Logit, Prior, Records, calibration
from skdp.algorithms.additive.calibration import calibrate
from skdp.algorithms.additive.model import AdditiveModel


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


@over("factor, shift", [(1.0, 0.0), (0.5, 0.3), (1.4, -0.6)])
def test_calibration_finds_factor_and_shift(factor, shift):
    records, model = scored_records(20_000, factor, shift)
    found = calibrate(records, Logit(2), model, Fraction(1), 2e4, noise_source(0))
    # Scores count as the middle of their interval, at most half of it away.
    np.testing.assert_allclose(found[:2], [shift, factor], atol=0.25)


def test_a_calibration_is_what_is_expected_where_all_is_noise():
    records, model = scored_records(50, 1.4, -0.6)
    found = [
        calibrate(records, Logit(2), model, Fraction(1, 10_000), 50.0, noise_source(seed))[:2]
        for seed in range(8)
    ]
    np.testing.assert_allclose(np.median(found, axis=0), [0, 1], atol=0.2)


def test_a_record_is_in_one_cell_of_the_calibration():
    records, model = scored_records(400, 1.0, 0.0)
    tables = []

    def watch(values, epsilon, random_state=None):
        tables.append(values)
        return values

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "discrete_laplace", watch)
        for left_out in (None, 0, 17, 399):
            kept = np.arange(400) != (-1 if left_out is None else left_out)
            some = Records(records.groups[kept], records.labels[kept], records.counts[kept], (2, 2))
            calibrate(some, Logit(2), model, Fraction(1), 4e2, None)
    assert tables[0].sum() == 400
    for table in tables[1:]:
        assert np.abs(tables[0] - table).sum() == 1


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
    calls = []

    def watch(values, epsilon, sensitivity, *, random_state):
        calls.append((np.abs(values).sum(), sensitivity))
        return values

    monkeypatch.setattr(calibration, "discrete_laplace", watch)
    for size in (0.1, 1.0, 30.0):
        records, model = many_records(60, 1.0, size)
        for each in records.blocks(1):
            calibrate(each, Logit(5), model, Fraction(1), 60.0, None)
    moved, paid = zip(*calls, strict=True)
    assert set(paid) == {UNIT} and 0.9 * UNIT < max(moved) <= UNIT


def numbered_records(n, factor, shift):
    """The same with numbers, of which the model says another multiple and is shifted."""
    records, _ = scored_records(n, 1.0, 0.0)
    shapes = np.array([[-0.1, 0.1], [-0.07, 0.07]])
    at = sum(shape[records.groups[:, j]] for j, shape in enumerate(shapes))
    outcomes = np.rint((0.1 + shift + factor * at) * UNIT).astype(np.int64)
    return replace(records, labels=np.arange(n)), model_of(0.1, shapes, n), Identity(outcomes)


@over("factor, shift", [(1.0, 0.0), (0.5, 0.3), (1.4, -0.3)])
def test_calibration_of_numbers_finds_factor_and_shift(factor, shift):
    records, model, link = numbered_records(5_000, factor, shift)
    found = calibrate(records, link, model, Fraction(10), 5e3, noise_source(0))
    np.testing.assert_allclose(found[:2], [shift, factor], atol=0.05)


def test_no_record_moves_sums_of_numbers_by_more_than_is_paid_for(monkeypatch):
    records, model, link = numbered_records(60, 3.0, 0.4)
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
        calibrate(alone, link, model, Fraction(1), 60.0, None)
        ((values, epsilon, sensitivity),) = calls
        assert epsilon == 1
        worst = max(worst, np.abs(values).sum() / sensitivity)
    assert 0.3 < worst <= 1
