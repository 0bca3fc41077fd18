"""Small cubes of which some cuboids were measured."""

import numpy as np
from hypothesis import strategies as st

ADULT = (9, 16, 7, 15, 6, 5, 2, 2)


def noise_of(cube, variances):
    noise = np.full(len(cube), np.inf)
    for mask, variance in variances.items():
        noise[cube.position[mask]] = variance
    return noise


def plan_noise(cube, plan):
    """Variances at epsilon 1 as the planners count them, 2 / epsilon_C**2."""
    pairs = zip(plan.masks, plan.shares, strict=True)
    return noise_of(cube, {mask: 2 / float(share) ** 2 for mask, share in pairs})


@st.composite
def measured(draw, max_dims=3):
    """A small cube, some measured cuboids with variances, and a seed."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=max_dims)))
    every = range(1 << len(sizes))
    masks = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    variances = {mask: draw(st.floats(0.1, 50)) for mask in masks}
    return sizes, variances, draw(st.integers(0, 2**31))
