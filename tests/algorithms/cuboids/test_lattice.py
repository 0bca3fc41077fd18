"""The lattice of cuboids."""

import itertools
from fractions import Fraction

import pytest
from loops import over

from skdp.algorithms.cuboids import (
    MAX_SOURCE_CELLS,
    dimensions_of,
    lattice,
    plan_all,
    plan_base,
    plan_bmax,
    plan_optimized,
)

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
    assert len(cube) == 8
    assert list(cube.masks[cube.published]) == [0, 1, 2, 4]
    # Largest variance in units of that of one source: 8 for the base, 4 * 2 for {1, 6}, but the
    # base is better on average; 16 for everything published.
    assert plan_bmax(cube).masks == (7,)
    assert set(plan_all(cube).masks) == {0, 1, 2, 4}


def test_sources_that_cannot_be_held_are_left_out():
    wide = lattice((200,) * 10, 2)
    orders = [len(dimensions_of(mask)) for mask in wide.masks]
    assert max(orders) == 3
    assert wide.cells.max() <= MAX_SOURCE_CELLS
    with pytest.raises(ValueError, match="strategy='base' measures"):
        plan_base(wide)


@over(
    "sizes, order, match",
    [
        ((2,) * 30, None, "1,073,741,824 cuboids .* max_order=2 publishes"),
        ((2,) * 13, None, "8,192 cuboids .* max_order=6"),
        ((300,) * 4, None, "max_order=2"),
        ((10**9,), None, "Remedies: choose fewer dimensions; or coarser bins"),
        ((2,) * 70, 1, "62 dimensions"),
    ],
)
def test_too_large(sizes, order, match):
    with pytest.raises(ValueError, match=match):
        lattice(sizes, order)
