"""Budgets of columns, their noise, and parts that sum to epsilon."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from loops import over

from skdp._random import noise_source
from skdp.algorithms.additive import (
    UNIT,
    Identity,
    Logit,
    PairPlan,
    Records,
    additive_parts,
    fit_additive,
    fitting,
    located,
    pairs,
)
from skdp.algorithms.additive.fitting import agreed, column_shares
from skdp.algorithms.additive.model import Prior
from skdp.mechanisms import top_k

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


ASKED = ({"pairs": ((0, 1),)}, {"n_pairs": 1}, {})


def test_parts_and_plan_sum_to_epsilon():
    parts = additive_parts(Fraction(1, 3))
    assert sum(parts.values()) == Fraction(1, 3)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 4, (5_000, 2))
    records = Records(groups, groups[:, 0] // 2, np.ones(5_000, dtype=np.int64), (4, 4))
    priors = [Prior(4, range(4)), Prior(4, None)]
    original = fitting.discrete_laplace
    # Histograms alone, then more and more rounds. Pairs are listed, chosen, or do not pay.
    plans = [None, *(PairPlan([range(4), None], **asked) for asked in ASKED)]
    for epsilon, plan in product(
        (Fraction(1, 100), Fraction(4, 5), Fraction(9, 10), Fraction(100)), plans
    ):
        spent = []
        source = noise_source(0)

        def watch(*args, spent=spent, **kwargs):
            spent.append(args[1])
            return original(*args, **kwargs)

        def watch_choice(*args, spent=spent, **kwargs):
            spent.append(args[2])
            return top_k(*args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            for module in (fitting, pairs):
                patch.setattr(module, "discrete_laplace", watch)
            patch.setattr(pairs, "top_k", watch_choice)
            fit_additive(records, Logit(2), priors, epsilon, 5_000.0, source, plan)
        assert sum(spent) == epsilon


# ------------------------------------------------------------------- where the numbers are


def numbers(counts):
    """Records of some outcomes, by their numbers."""
    n = len(counts)
    return Records(np.zeros((n, 1), int), np.arange(n), np.array(counts), (1,))


def test_no_record_moves_where_the_numbers_are_by_more_than_is_paid_for(monkeypatch):
    rng = np.random.default_rng(0)
    link = Identity(np.linspace(-UNIT, UNIT, 40).astype(np.int64))
    calls = []

    def choose(scores, epsilon, score_range, random_state=None):
        calls.append((np.array(scores), epsilon, score_range))
        return len(scores) // 2

    def add(values, epsilon, sensitivity, random_state=None):
        calls.append((np.array(values), epsilon, sensitivity))
        return np.zeros(len(values), dtype=np.int64)

    monkeypatch.setattr(fitting, "noisy_max", choose)
    monkeypatch.setattr(fitting, "discrete_laplace", add)
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


@over("shape", ["narrow", "skewed", "one value"])
def test_numbers_are_found_in_a_range_that_is_far_too_wide(shape):
    """A sum over the range would have noise of several of their standard deviations."""
    rng = np.random.default_rng(1)
    values = {
        "narrow": rng.normal(-900, 12, 2_000),
        "skewed": rng.exponential(20, 2_000) - 1_000,
        "one value": np.full(2_000, 500.0),
    }[shape]
    outcomes = np.arange(-UNIT, UNIT + 1)
    counts = np.bincount(np.rint(values).astype(int) + UNIT, minlength=len(outcomes))
    link, records = Identity(outcomes), numbers(counts)
    for seed in range(12):
        found = located(records, link, Fraction(1, 8), 2_000.0, 250.0, noise_source(seed))
        assert abs(found.centre * UNIT - values.mean()) < max(values.std(), 12) / 1.5
        assert found.scale * UNIT < 9 * max(values.std(), 12)
        # Outcomes are about the centre, in units of the scale.
        at = found.outcomes[0] / UNIT * found.scale + found.centre
        assert at == pytest.approx(-1, abs=0.01)
