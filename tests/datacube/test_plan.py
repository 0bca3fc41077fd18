"""The plan that cubes have by default."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from cubes import make

from skdp import DataCube
from skdp.algorithms import cuboids
from skdp.algorithms.cuboids import lattice, optimize
from skdp.datacube.plan import find_sources, search


def test_the_default_is_the_better_of_two(monkeypatch):
    monkeypatch.setattr(optimize, "EVALUATIONS", 6_000)
    for objective in ("max", "mean"):
        plans = {
            strategy: make(strategy=strategy, objective=objective, epsilon=0.7).plan()
            for strategy in ("auto", "bmax", "optimized")
        }
        reached = {
            name: plan.max_std_error if objective == "max" else plan.mean_variance
            for name, plan in plans.items()
        }
        assert reached["auto"] == min(reached.values())
        assert plans["auto"].strategy in ("bmax", "optimized")
        assert plans["auto"].sources == plans[plans["auto"].strategy].sources
    # The search is one for least squares.
    assert make(consistency=None).plan().strategy == "bmax"
    assert DataCube().strategy == "auto"


def test_the_default_falls_back_where_the_search_is_worse(monkeypatch):
    cube = lattice((4, 5))
    bad = cuboids.Plan((0, 3), (Fraction(999, 1000), Fraction(1, 1000)))
    monkeypatch.setattr(cuboids, "plan_optimized", lambda *args: bad)
    settings = {"limit": None, "noise_of": lambda n: 2.0 * float(n) ** 2, "progress": print}
    for weights in (None, np.ones(len(cube))):
        search.cache_clear()
        label, plan = find_sources(cube, "auto", weights=weights, consistent=True, **settings)
        assert label == "bmax" and plan != bad
    search.cache_clear()
