"""Sizes of grids follow the noisy number of records."""

import numpy as np
import pandas as pd
from boxed import WIDE

import skdp
from skdp.algorithms.dpcube import MOST_CELLS


def boxes_of_grid(rule, **params):
    rows = np.random.default_rng(0).random((10_000, 2))
    domain = skdp.Numeric(0, 1, bins=1000)
    grid = skdp.GridSynthesizer(epsilon=1, domain=domain, rule=rule, **params)
    return len(grid.fit(rows).synopsis_.model.boxes)


def test_the_rules_follow_the_noisy_number_of_records():
    # N epsilon / 10 = 980 cells, in two columns the extended rule is the same; 10000 / 3.03.
    assert 31**2 <= boxes_of_grid("uniform") <= 33**2
    assert 31**2 <= boxes_of_grid("extended") <= 33**2
    assert 56**2 <= boxes_of_grid("m-estimator") <= 60**2
    # theta is the records times epsilon of a box.
    for theta, low, high in ((100, 9, 11), (1, 97, 101)):
        for rule in ("uniform", "extended"):
            assert low**2 <= boxes_of_grid(rule, theta=theta) <= high**2
    # Of wide domains they stay small.
    rows = pd.DataFrame(np.random.default_rng(0).random((20_000, 12)), columns=WIDE.names)
    for rule in ("uniform", "extended", "m-estimator", 2):
        view = skdp.GridSynthesizer(epsilon=50, domain=WIDE, rule=rule).fit(rows)
        assert len(view.synopsis_.model.boxes) <= MOST_CELLS
