"""The lattice, and consistent cuboids against dense least squares and linear programs."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cubes import aggregation, measured, noise_of
from hypothesis import given, settings
from loops import over
from scipy.optimize import linprog

from skdp._random import noise_source
from skdp.algorithms.cuboids import (
    MAX_SOURCE_CELLS,
    Functional,
    best_sources,
    blue_variances,
    box_variances,
    consistency_bound,
    consistent_l2,
    consistent_lp,
    derive,
    dimensions_of,
    interaction_variances,
    lattice,
    plan_all,
    plan_bmax,
    plan_optimized,
)
from skdp.algorithms.cuboids.consistency import with_dimension
from skdp.mechanisms import discrete_laplace

# --- the lattice --------------------------------------------------------------------------------


def test_lattice():
    cube = lattice((3, 4, 2))
    assert list(cube.masks) == [0, 1, 2, 4, 3, 5, 6, 7]
    assert cube.published.all()
    assert list(cube.cells) == [1, 3, 4, 2, 12, 6, 8, 24]
    assert list(cube.freedom) == [1, 2, 3, 1, 6, 2, 3, 6]
    assert cube.shape(0b101) == (3, 2)
    for small, big in itertools.product(range(8), repeat=2):
        places = cube.position[small], cube.position[big]
        assert cube.above.toarray()[places] == (small & big == small)
    assert set(cube.masks[cube.below_of(cube.position[6])]) == {0, 2, 4, 6}
    assert dimensions_of(0b1011) == (0, 1, 3)
    # Without dimensions, or with trivial ones.
    assert list(lattice(()).masks) == [0]
    assert plan_optimized(lattice(())).masks == (0,)
    assert plan_optimized(lattice((1, 1))).shares == (Fraction(1),)


def test_larger_cuboids_may_be_sources_but_are_not_published():
    cube = lattice((2, 2, 2), 1)
    assert len(cube) == 8 and list(cube.masks[cube.published]) == [0, 1, 2, 4]
    # Largest variance in units of that of one source: 8 for the base, 4 * 2 for {1, 6}, but the
    # base is better on average; 16 for everything published.
    assert plan_bmax(cube).masks == (7,) and set(plan_all(cube).masks) == {0, 1, 2, 4}
    # Those that cannot be held are left out.
    wide = lattice((200,) * 10, 2)
    assert max(len(dimensions_of(mask)) for mask in wide.masks) == 3
    assert wide.cells.max() <= MAX_SOURCE_CELLS


# ------------------------------------------------------------------------------------------------
# Consistency.


def draw_tables(cube, masks, rng):
    return {mask: rng.normal(100, 50, cube.shape(mask)) for mask in masks}


# --- variances and least squares against dense matrices ------------------------------------------


@settings(max_examples=60)
@given(measured())
def test_least_squares_against_dense(case):
    sizes, variances, seed = case
    cube = lattice(sizes)
    noise = noise_of(cube, variances)
    rng = np.random.default_rng(seed)
    tables = draw_tables(cube, variances, rng)
    design = np.vstack([aggregation(sizes, mask) for mask in variances])
    weight = np.concatenate(
        [np.full(tables[mask].size, variance**-0.5) for mask, variance in variances.items()]
    )
    observed = np.concatenate([tables[mask].ravel() for mask in variances])
    inverse = np.linalg.pinv(weight[:, None] * design)
    base = inverse @ (weight * observed)
    row_space = inverse @ (weight[:, None] * design)
    result = consistent_l2(cube, tables, noise)
    predicted = blue_variances(cube, noise)
    for mask, place in cube.position.items():
        wanted = aggregation(sizes, mask)
        estimable = np.allclose(wanted @ row_space, wanted, atol=1e-8)
        assert (mask in result) == estimable == bool(np.isfinite(predicted[place]))
        if estimable:
            np.testing.assert_allclose(result[mask].ravel(), wanted @ base, rtol=0, atol=1e-7)
            covariance = wanted @ inverse @ inverse.T @ wanted.T
            np.testing.assert_allclose(np.diag(covariance), predicted[place], rtol=1e-8)
            sets = [rng.uniform(-1, 1, (2, sizes[i])) for i in dimensions_of(mask)]
            found = box_variances(cube, mask, interaction_variances(cube, noise), sets)
            for chosen in itertools.product((0, 1), repeat=len(sets)):
                vectors = [vectors[k] for vectors, k in zip(sets, chosen, strict=True)]
                weights = functools.reduce(np.multiply.outer, vectors, np.ones(())).ravel()
                expected = weights @ covariance @ weights
                assert found[chosen] == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_derive_sums_the_best_source():
    cube = lattice((2, 3), 1)
    tables = {3: np.arange(6.0).reshape(2, 3), 1: np.array([1.0, 2.0])}
    result = derive(cube, tables, noise_of(cube, {3: 1.0, 1: 2.5}))
    # The total: 6 * 1 from the base, 2 * 2.5 from the row sums.
    assert result[0] == 3.0
    np.testing.assert_array_equal(result[1], [1.0, 2.0])
    np.testing.assert_array_equal(result[2], [3.0, 5.0, 7.0])
    assert set(result) == {0, 1, 2}
    assert set(derive(cube, {1: tables[1]}, noise_of(cube, {1: 1.0}))) == {0, 1}


# --- linear programs ------------------------------------------------------------------------------


def dense_lp(sizes, tables, scales, norm):
    """Least distance of the tables to those of any base cuboid, by a program over its cells."""
    design = np.vstack([aggregation(sizes, mask) / scales[mask] for mask in tables])
    y = np.concatenate([tables[mask].ravel() / scales[mask] for mask in tables])
    n, cells = design.shape[1], len(y)
    slack = -np.eye(cells) if norm == "l1" else -np.ones((cells, 1))
    matrix = np.block([[design, slack], [-design, slack]])
    cost = np.concatenate([np.zeros(n), np.ones(slack.shape[1])])
    bounds = [(None, None)] * n + [(0, None)] * slack.shape[1]
    return linprog(cost, A_ub=matrix, b_ub=np.concatenate([y, -y]), bounds=bounds).fun


@over("norm", ["l1", "linf"])
@settings(max_examples=15)
@given(case=measured())
def test_linear_programs_against_dense(norm, case):
    sizes, variances, seed = case
    cube = lattice(sizes)
    tables = draw_tables(cube, variances, np.random.default_rng(seed))
    scales = {mask: (variance / 2) ** 0.5 for mask, variance in variances.items()}
    result = consistent_lp(cube, tables, scales, norm)
    residuals = [np.abs(result[m] - tables[m]).ravel() / scales[m] for m in tables]
    found = np.concatenate(residuals).sum() if norm == "l1" else np.concatenate(residuals).max()
    assert found == pytest.approx(dense_lp(sizes, tables, scales, norm), rel=1e-6, abs=1e-6)
    for big, small in itertools.permutations(result, 2):
        if big & small == small:
            axes = tuple(a for a, i in enumerate(dimensions_of(big)) if not small >> i & 1)
            np.testing.assert_allclose(result[big].sum(axes), result[small], rtol=0, atol=1e-9)


@over("norm, n_sources", [("l1", 1), ("l1", 3), ("linf", 1), ("linf", 3)])
def test_errors_stay_below_their_bounds_as_often_as_these_say(norm, n_sources):
    n, epsilon, delta, runs = 40, 0.9, 0.1, 4_000
    bound = consistency_bound(n, n_sources, epsilon, norm, delta)
    noise = discrete_laplace(
        np.zeros((runs, n), dtype=int), epsilon / n_sources, random_state=noise_source(0)
    )
    # Twice the noise is the most that consistency may be off.
    worst = 2 * np.abs(noise).sum(axis=1) if norm == "l1" else 2 * n * np.abs(noise).max(axis=1)
    # Four standard errors more than the largest share that there may be.
    assert (worst > bound.tight).mean() <= delta + 4 * np.sqrt(delta * (1 - delta) / runs)
    assert (worst > 0.75 * bound.tight).mean() > delta / 5
    # The published ones are those of continuous noise of the same rate.
    eta = bound.published / (n * n_sources / epsilon)
    if norm == "l1":
        assert (eta / (2 * np.exp(eta / 2 - 1))) ** n == pytest.approx(delta)
    else:
        assert n / np.exp(eta / 2) == pytest.approx(delta)


def test_each_cuboid_is_visited_once_for_each_of_its_dimensions():
    pairs = [1 << i | 1 << j for i in range(60) for j in range(i)]
    found = with_dimension(pairs)
    assert sum(map(len, found.values())) == 2 * len(pairs)
    assert all(mask >> i & 1 for i, masks in found.items() for mask in masks)
    assert dimensions_of(1 << 61 | 5) == (0, 2, 61) and dimensions_of(0) == ()


# ------------------------------------------------------------------------------------------------
# Variances.


@settings(max_examples=30)
@given(measured())
def test_least_squares_is_never_worse_than_one_source(case):
    sizes, variances, _ = case
    cube = lattice(sizes)
    noise = noise_of(cube, variances)
    single, source = best_sources(cube, noise)
    assert (blue_variances(cube, noise) <= single * (1 + 1e-12)).all()
    for place, variance in enumerate(single):
        options = {
            variances[mask] * cube.cells[cube.position[mask]] / cube.cells[place]: mask
            for mask in variances
            if mask & int(cube.masks[place]) == int(cube.masks[place])
        }
        assert variance == pytest.approx(min(options, default=math.inf))
        assert (source[place] < 0) == (not options)


def asked(cube, parts, factors, tables):
    """The answer of `Functional`, from tables of every cuboid."""
    total = 0.0
    for factor, part in zip(factors, parts, strict=True):
        table = tables[sum(1 << axis for axis in part)]
        for axis in sorted(part):
            table = np.tensordot(part[axis], table, axes=(0, 0))
        total += factor * float(table)
    return total


@over("consistent", [True, False])
def test_noise_of_a_weighted_sum_is_that_of_its_cells(consistent):
    rng = np.random.default_rng(4)
    cube = lattice((2, 3, 4))
    noise = np.full(len(cube), np.inf)
    # The sources determine all but the table over all dimensions.
    for mask, variance in ((0b011, 3.0), (0b101, 7.0), (0b110, 2.0), (0b010, 5.0)):
        noise[cube.position[mask]] = variance
    sources = [int(cube.masks[place]) for place in np.flatnonzero(np.isfinite(noise))]
    parts = [
        {0: rng.normal(size=2), 1: np.array([1.0, 0, 1])},
        {1: np.array([0.0, 1, 0]), 2: np.array([1.0, 1, 0, 0.5])},
        {},
    ]
    factors = [1.5, 1.0, -0.25]
    direct = []
    for source in sources:
        for cell in np.ndindex(cube.shape(source)):
            tables = {mask: np.zeros(cube.shape(mask)) for mask in sources}
            tables[source][cell] = 1.0
            combine = consistent_l2 if consistent else derive
            weight = asked(cube, parts, factors, combine(cube, tables, noise))
            direct.append((weight, noise[cube.position[source]]))
    question = Functional(cube, parts, factors)
    interactions = interaction_variances(cube, noise)
    if consistent:
        terms = question.terms(noise, interactions)
    else:
        _, nearest = best_sources(cube, noise)
        own = [sum(1 << axis for axis in part) for part in parts]
        terms = question.terms_of_sources(noise, [int(nearest[cube.position[m]]) for m in own])
    for power in (1, 2, 4):
        expected = sum(variance * weight**power for weight, variance in direct)
        assert terms.times @ (terms.variance * terms.weight**power) == pytest.approx(expected)
    if consistent:
        assert terms.times.sum() == len(direct)
        assert question.cells(sources) == len(terms.weight)
        assert question.variance(interactions) == pytest.approx(terms.total)
