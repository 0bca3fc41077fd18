"""The plan that cubes have by default."""

from cubes import make

from skdp import DataCube
from skdp.algorithms.cuboids import optimize


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
