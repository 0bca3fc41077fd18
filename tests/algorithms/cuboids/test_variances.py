"""Variances of cuboids and of weighted sums, against those of single cells."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from loops import over
from measured_cubes import measured, noise_of

from skdp.algorithms.cuboids import (
    Functional,
    best_sources,
    blue_variances,
    consistent_l2,
    derive,
    interaction_variances,
    lattice,
)


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
