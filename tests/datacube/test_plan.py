"""The plan that cubes have by default, and cuboids that are public already."""

import numpy as np
import pytest
from cubes import DIMENSIONS, ROWS, make

from skdp import DataCube
from skdp.algorithms.cuboids import plans as planning


def test_the_default_is_the_better_of_two(monkeypatch):
    monkeypatch.setattr(planning, "EVALUATIONS", 6_000)
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
    tables = [(*each, cube.plan_._noise) for each in cube.sources_.items()]
    tables += [(*each, np.full(len(plan._noise), 1e-8)) for each in known.items()]
    index = np.indices(cells.shape).reshape(3, -1)
    for names, given, noise in tables:
        order = sorted(domain.index(name) for name in names)
        table = np.transpose(given, np.argsort([domain.index(name) for name in names]))
        axes, variance = order, noise[plan._lattice.position[sum(1 << axis for axis in order)]]
        place = (
            np.ravel_multi_index(index[axes], table.shape) if axes else np.zeros(cells.size, int)
        )
        block = np.zeros((table.size, cells.size))
        block[place, np.arange(cells.size)] = 1 / np.sqrt(variance)
        rows.append(block)
        values.append(table.ravel() / np.sqrt(variance))
    design = np.concatenate(rows)
    best = np.linalg.lstsq(design, np.concatenate(values), rcond=None)[0]
    found = cube.tables_[tuple(DIMENSIONS)]
    np.testing.assert_allclose(found.ravel(), best, atol=1e-3)
    std = np.sqrt(np.linalg.inv(design.T @ design)[0, 0])
    assert plan.std_error(DIMENSIONS) == pytest.approx(std, rel=1e-4)
    # A plan for it is better, and another cube with other known tables has another plan.
    assert make(known=known).plan().max_std_error < make().plan().max_std_error


@pytest.mark.parametrize(
    "given, match",
    [
        ({"known": {("sex",): [1, 2, 3]}}, "finite counts"),
        ({"known": {("sex",): [1, 2], (): 4}}, "different sums"),
        ({"known": {("sex",): [1, 2]}, "consistency": None}, "l2"),
        ({"known": {("age",): [1, 2, 3, 4]}, "dimensions": ["age"]}, "nothing to measure"),
        ({"known": {("pay",): [1, 2]}}, "no dimension"),
    ],
)
def test_wrong_known_cuboids_are_refused(given, match):
    with pytest.raises(ValueError, match=match):
        make(**given).plan()
