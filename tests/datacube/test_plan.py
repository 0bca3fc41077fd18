"""The plan that cubes have by default, and cuboids that are public already."""

import numpy as np
import pytest
from cubes import DIMENSIONS, ROWS, aggregation, make
from loops import over

from skdp import DataCube
from skdp.algorithms.cuboids import plans as planning


@over("objective, reached", [("max", "max_std_error"), ("mean", "mean_variance")])
def test_the_default_is_the_better_of_two(monkeypatch, objective, reached):
    monkeypatch.setattr(planning, "EVALUATIONS", 6_000)
    auto, *both = (
        make(strategy=strategy, objective=objective, epsilon=0.7).plan()
        for strategy in ("auto", "bmax", "optimized")
    )
    best = min(both, key=lambda plan: getattr(plan, reached))
    assert (auto.strategy, auto.sources) == (best.strategy, best.sources)
    # The search is one for least squares.
    assert make(consistency=None).plan().strategy == "bmax"
    assert DataCube().strategy == "auto"


def test_known_cuboids_have_no_error_and_all_agree_with_them():
    domain = make().plan().domain
    codes = domain.encode(ROWS[DIMENSIONS])
    cells = np.zeros(domain.shape)
    np.add.at(cells, tuple(codes[(codes >= 0).all(axis=1)].T), 1)
    known = {("sex",): cells.sum(axis=(0, 2)), ("region", "age"): cells.sum(axis=1).T}
    cube = make(epsilon=0.5, random_state=0, strategy="all", known=known).fit(ROWS)
    np.testing.assert_allclose(cube.tables_["age", "region"], cells.sum(axis=1))
    answer = cube.count("age < 40", return_interval=True)
    assert answer.lower == answer.upper == pytest.approx(cells[:2].sum())
    assert cube.plan_.std_error(["sex"]) == 0
    # The least squares of all tables together, where those that are known have hardly any noise.
    plan, rows, values = cube.plan_, [], []
    tables = [(*each, plan._noise) for each in cube.sources_.items()]
    tables += [(*each, np.full(len(plan._noise), 1e-8)) for each in known.items()]
    for names, given, noise in tables:
        axes = [domain.index(name) for name in names]
        mask = sum(1 << axis for axis in axes)
        weight = noise[plan._lattice.position[mask]] ** -0.5
        rows.append(weight * aggregation(cells.shape, mask))
        values.append(weight * np.transpose(given, np.argsort(axes)).ravel())
    design = np.concatenate(rows)
    best = np.linalg.lstsq(design, np.concatenate(values), rcond=None)[0]
    np.testing.assert_allclose(cube.tables_[tuple(DIMENSIONS)].ravel(), best, atol=1e-3)
    std = np.sqrt(np.linalg.inv(design.T @ design)[0, 0])
    assert plan.std_error(DIMENSIONS) == pytest.approx(std, rel=1e-4)
    # A plan for it is better, and another cube with other known tables has another plan.
    assert make(known=known).plan().max_std_error < make().plan().max_std_error
