"""HDMM: strategies in whole numbers, their errors, and what is measured through them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from boxed import Recorder, as_table
from designs import refused
from loops import over

import skdp
from skdp import workloads
from skdp.exceptions import DomainError
from skdp.workloads import (
    Workload,
    error_on,
    measure_strategy,
    p_identity,
    planned_strategy,
    product_strategy,
)

KINDS = ["marginals", "prefixes", "ranges", "random ranges"]


def every_query(kind, n):
    """The queries of one column; random ranges as often as two draws give them."""
    codes = np.arange(n)
    ends = {
        "marginals": [(i, i) for i in range(n)],
        "prefixes": [(0, i) for i in range(n)],
        "ranges": [(i, j) for i in range(n) for j in range(i, n)],
        "random ranges": [(min(i, j), max(i, j)) for i in range(n) for j in range(n)],
    }[kind]
    return np.array([(codes >= low) & (codes <= high) for low, high in ends], dtype=float)


@over("kind", KINDS)
def test_grams_and_drawn_queries_are_those_of_all_queries(kind):
    rows = every_query(kind, 5)
    np.testing.assert_allclose(Workload(kind).gram(5), rows.T @ rows / len(rows))
    drawn = Workload(kind, 1).draw((5,), 20_000, np.random.default_rng(0))
    found = np.array([query.products[0][0] for query in drawn])
    np.testing.assert_allclose(found.T @ found / len(found), Workload(kind).gram(5), atol=0.02)


@over("kind, k", [(kind, k) for kind in KINDS for k in (1, 2, 3)])
def test_the_error_is_that_of_least_squares_over_all_queries(kind, k):
    shape = (4, 3, 2)
    strategy = planned_strategy(Workload(kind, k), shape)
    for matrix, total in zip(strategy.matrices, strategy.sums, strict=True):
        # Every column has the same sum: the sensitivity, whatever the record is.
        assert (matrix.sum(axis=0) == total).all() and (matrix >= 0).all()
        assert np.linalg.matrix_rank(matrix) == matrix.shape[1]
    whole = np.ones((1, 1))
    for share in strategy.shares:
        whole = np.kron(whole, share)
    covariance = np.linalg.inv(whole.T @ whole)
    errors = []
    for kept in [s for s in np.ndindex(2, 2, 2) if sum(s) == k]:
        query = np.ones((1, 1))
        for inside, size in zip(kept, shape, strict=True):
            query = np.kron(query, every_query(kind, size) if inside else np.ones((1, size)))
        errors.append(np.trace(query @ covariance @ query.T) / len(query))
    assert strategy.error == pytest.approx(np.mean(errors))
    # Whole numbers cost little, and a strategy is no worse than counting every cell.
    rows, error = product_strategy(Workload(kind, k), shape)
    assert error <= strategy.error * (1 + 1e-9) <= error * 1.05
    assert p_identity(Workload(kind).gram(4))[0] <= np.trace(Workload(kind).gram(4)) + 1e-9


def test_without_noise_it_is_exact_and_every_measurement_has_its_noise(monkeypatch):
    monkeypatch.setattr(workloads, "discrete_laplace", asked := Recorder())
    cells = np.random.default_rng(0).integers(0, 9, (6, 5, 1)) * (np.arange(5)[:, None] > 1)
    strategy = planned_strategy(Workload("ranges", 2), cells.shape)
    made = measure_strategy(as_table(cells), strategy, Fraction(1, 3))
    np.testing.assert_allclose(made.counts, cells.ravel(), atol=1e-8)
    ((values, epsilon, sensitivity),) = asked.calls
    assert values.shape == tuple(map(len, strategy.matrices)) and epsilon == Fraction(1, 3)
    assert sensitivity == math.prod(strategy.sums) <= 2**30
    # One record more adds just so much in all.
    cells[3, 0, 0] += 1
    measure_strategy(as_table(cells), strategy, Fraction(1, 3))
    assert np.abs(asked.calls[1][0] - values).sum() == sensitivity


def test_errors_and_intervals_of_a_release():
    X = np.random.default_rng(0).uniform(0, 1, (2000, 2))
    workload = Workload("ranges", 2)
    given = {"domain": skdp.Numeric(0, 1, bins=12), "workload": workload}
    truth = int(((X[:, 0] < 0.5) & (X[:, 1] >= 0.25)).sum())
    squares, covered, deviations = [], 0, []
    for seed in range(60):
        view = skdp.HDMMSynthesizer(random_state=seed, calibration="paper", **given).fit(X)
        with pytest.warns(skdp.PrivacyLeakWarning):
            squares.append(error_on(view, X, workload) ** 2)
        answer = view.count("x0 < 0.5 and x1 >= 0.25", return_interval=True)
        covered += answer.lower <= truth <= answer.upper
        deviations.append((answer.value - truth) / answer.std)
    domain = [given["domain"]] * 2
    maker = skdp.HDMMSynthesizer(calibration="paper", **{**given, "domain": domain})
    expected = maker.expected_error(n=2000)[1.0]
    assert np.sqrt(np.mean(squares)) == pytest.approx(expected["workload"], rel=0.15)
    assert covered >= 51 and 0.7 < np.std(deviations) < 1.35
    assert view.synopsis_.total_std == pytest.approx(expected["total"])
    # Sums of products, and their covariance, are those of the disjoint parts.
    both = view.count("x0 < 0.5 or x1 >= 0.25", return_interval=True)
    rest = view.count("x0 >= 0.5 and x1 < 0.25", return_interval=True)
    assert both.value + rest.value == pytest.approx(view.synopsis_.total)
    for wrong, error in (
        ({"domain": skdp.Numeric(0, 1, bins=2000)}, DomainError),
        ({"epsilon": 1e-12}, ValueError),
    ):
        refused(skdp.HDMMSynthesizer(**{**given, **wrong}), error, "", X)


@over("kind, k", [("marginals", 1), ("prefixes", 2), ("ranges", 1)])
def test_error_on_a_workload_is_that_of_its_queries(kind, k):
    X = np.random.default_rng(1).uniform(0, 1, (500, 3))
    view = skdp.PrivTreeSynthesizer(domain=skdp.Numeric(0, 1, bins=4), random_state=0).fit(X)
    with pytest.warns(skdp.PrivacyLeakWarning):
        exact = error_on(view, X, Workload(kind, k))
        drawn = error_on(view.synopsis_, X, Workload(kind, k), n_queries=4000, random_state=0)
    assert exact > 0 and drawn == pytest.approx(exact, rel=0.1)
    with pytest.raises(TypeError, match="Workload"):
        error_on(view, X, kind)
    with pytest.raises(TypeError, match="Synopsis"):
        error_on(X, X, Workload(kind, k))
