"""Budgets of columns, their noise, and parts that sum to epsilon."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from skdp._random import noise_source
from skdp.algorithms.additive import (
    Logit,
    PairPlan,
    Records,
    additive_parts,
    fit_additive,
    fitting,
    pairs,
)
from skdp.algorithms.additive import pairs as calibration
from skdp.algorithms.additive.fitting import agreed, column_shares
from skdp.algorithms.additive.model import Prior
from skdp.mechanisms import noisy_max

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
    # One factor of all columns; then weights of each, and more and more rounds. Pairs are listed,
    # chosen, or do not pay.
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
            spent.append(args[1])
            return noisy_max(*args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            for module in (calibration, fitting, pairs, calibration):
                patch.setattr(module, "discrete_laplace", watch)
            patch.setattr(pairs, "noisy_max", watch_choice)
            fit_additive(records, Logit(2), priors, epsilon, 5_000.0, source, plan)
        assert sum(spent) == epsilon
