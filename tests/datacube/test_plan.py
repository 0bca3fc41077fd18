"""The plan that cubes have by default, and plans kept on disk."""

from __future__ import annotations

import json
import os
from fractions import Fraction

import numpy as np
import pytest
from cubes import ROWS, make

from skdp import Categorical, DataCube, Domain
from skdp.algorithms import cuboids
from skdp.algorithms.cuboids import lattice, optimize
from skdp.datacube import plan as sources
from skdp.datacube.plan import find_sources, search

FOUR = Domain({f"c{i}": Categorical(list("abcde"[: 2 + i])) for i in range(4)})


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """An empty directory for plans, short searches, and their number."""
    monkeypatch.setenv("SKDP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(optimize, "EVALUATIONS", 600)
    monkeypatch.setattr(optimize, "MIN_EVALUATIONS", 300)
    runs = []
    found = cuboids.plan_optimized
    monkeypatch.setattr(cuboids, "plan_optimized", lambda *args: runs.append(1) or found(*args))
    search.cache_clear()
    yield tmp_path / "plans", runs
    search.cache_clear()


def plan_again(**params):
    """The plan as a new process finds it."""
    search.cache_clear()
    return DataCube(domain=FOUR, **params).plan()


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


def test_plans_are_kept_by_their_question(shelf):
    place, runs = shelf
    first = plan_again()
    assert len(runs) == 1 and len(list(place.iterdir())) == 2
    assert plan_again(epsilon=0.1).sources == first.sources
    assert len(runs) == 1
    plan_again(objective="mean"), plan_again(max_order=2)
    plan_again(objective="mean", weights={("c0",): 3})
    assert len(runs) == 4
    # Nothing of the data or of the names is written.
    text = "".join(path.read_text() for path in place.iterdir())
    assert "c0" not in text and set(json.loads(next(place.iterdir()).read_text())) == {
        "format",
        "sources",
    }
    # A cube of three dimensions is planned again.
    make().fit(ROWS)
    number = len(list(place.iterdir()))
    search.cache_clear()
    make().plan()
    assert len(list(place.iterdir())) == number


def test_damaged_plans_are_ignored(shelf):
    place, runs = shelf
    first = plan_again()
    for number, content in enumerate(
        [
            b"",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"sources": 3}',
            b'{"sources": [[15, "1/0"]]}',
            b'{"sources": [[15, "1/2"]]}',
            b'{"sources": [[15, "1"], [15, "0"]]}',
            b'{"sources": [[15.0, "1"]]}',
            b'{"sources": [["15", "1"]]}',
            b'{"sources": [[16, "1"]]}',
            b'{"sources": [[1, "1"]]}',
            b'{"sources": [[true, "1"]]}',
            b'{"sources": [[15, "2"], [14, "-1"]]}',
            b'{"other": []}',
            b"null",
        ],
        2,
    ):
        for path in place.iterdir():
            path.write_bytes(content)
        assert plan_again().sources == first.sources
        assert len(runs) == number, content[:40]
        assert plan_again().sources == first.sources
        assert len(runs) == number


def test_other_valid_plans_are_used_as_given(shelf):
    place, runs = shelf
    plan_again(strategy="bmax")
    [path] = place.iterdir()
    path.write_text('{"sources": [[15, "1"]]}')
    assert plan_again(strategy="bmax").sources == {FOUR.names: Fraction(1)}


def test_a_directory_that_cannot_be_used_costs_nothing(shelf):
    place, runs = shelf
    place.write_text("a file where the directory should be")
    plan_again(), plan_again()
    assert len(runs) == 2


def test_where_plans_are_kept(monkeypatch, tmp_path):
    assert sources.directory() is None
    monkeypatch.delenv("SKDP_CACHE_DIR")
    monkeypatch.setattr(sources.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if os.name != "nt":
        assert sources.directory() == tmp_path / "skdp"
        monkeypatch.setattr(sources.sys, "platform", "darwin")
        assert sources.directory().parts[-3:] == ("Library", "Caches", "skdp")

    def homeless():
        raise RuntimeError

    monkeypatch.setattr(sources.Path, "home", homeless)
    assert sources.directory() is None
