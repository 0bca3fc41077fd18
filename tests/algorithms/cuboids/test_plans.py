"""Plans of cuboids against all sets of sources and known values."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from cubes import ADULT, plan_noise
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp.algorithms.cuboids import (
    best_sources,
    blue_variances,
    equal_shares,
    lattice,
    plan_all,
    plan_base,
    plan_bmax,
    plan_optimized,
    plan_pmost,
    plans,
)

# --- planners -------------------------------------------------------------------------------------


def raw(cube, plan, worth=None):
    """s**2 times the growth of the noise: largest, or mean."""
    variances = best_sources(cube, plan_noise(cube, plan))[0][cube.published] / 2
    return variances.max() if worth is None else variances.mean()


@over(
    "d, every, base, greedy",
    [(4, 256, 120, 64), (6, 4096, 12600, 1008), (8, 65536, 1814400, 16384)],
)
def test_bmax_reaches_the_known_values(d, every, base, greedy):
    cube = lattice(ADULT[-d:])
    assert raw(cube, plan_all(cube)) == pytest.approx(every)
    assert raw(cube, plan_base(cube)) == pytest.approx(base)
    assert raw(cube, plan_bmax(cube)) <= greedy * (1 + 1e-9)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple))
def test_bmax_against_all_sets_of_sources(sizes):
    cube = lattice(sizes)
    scores = {False: [], True: []}
    for count in range(1, len(cube) + 1):
        for places in itertools.combinations(range(len(cube)), count):
            plan = equal_shares(cube, list(places))
            for mean, found in scores.items():
                found.append(raw(cube, plan, mean or None))
    for mean, weights in ((False, None), (True, np.ones(len(cube)))):
        score = raw(cube, plan_bmax(cube, weights), mean or None)
        best = min(scores[mean])
        assert best * (1 - 1e-9) <= score <= 1.35 * best
        assert score <= min(raw(cube, p, mean or None) for p in (plan_all(cube), plan_base(cube)))


def test_pmost_against_all_sets_of_sources():
    cube = lattice((3, 5, 2))

    def noise(count):
        return 2.0 * count**2

    worth = np.arange(1.0, len(cube) + 1)
    for limit in (2, 8, 30, 50, 72, 128):
        plan = plan_pmost(cube, limit, noise, worth)
        variances = best_sources(cube, plan_noise(cube, plan))[0]
        gained = worth[variances <= limit * (1 + 1e-6)].sum()
        best = 0.0
        for count in range(1, len(cube) + 1):
            for places in itertools.combinations(range(len(cube)), count):
                trial = best_sources(cube, plan_noise(cube, equal_shares(cube, list(places))))[0]
                best = max(best, worth[trial <= limit * (1 + 1e-6)].sum())
        assert 0.75 * best <= gained <= best
    assert len(plan_pmost(cube, 128, noise).masks) <= 8


# ------------------------------------------------------------------------------------------------
# The optimized plan.


@over("mean, reach", [(False, 66.4), (True, 34.1)])
def test_optimized_reaches_the_known_values(mean, reach, monkeypatch):
    monkeypatch.setattr(plans, "EVALUATIONS", 32_000)
    cube = lattice((6, 5, 2, 2))
    weights = np.ones(len(cube)) if mean else None
    plan = plan_optimized(cube, weights)
    variances = blue_variances(cube, plan_noise(cube, plan))
    # The known values are given in units of 2 / epsilon**2 or not; the smaller reading binds.
    assert (variances.mean() if mean else variances.max()) <= reach * 1.005
    assert sum(plan.shares) == 1
    assert all(isinstance(share, Fraction) and share > 0 for share in plan.shares)
    assert plan == plan_optimized(cube, weights)
