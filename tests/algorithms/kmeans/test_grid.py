"""Hybrid divides epsilon between a grid and a round."""

import numpy as np

from skdp.algorithms.kmeans.grid import hybrid_share


def test_hybrid_compares_what_can_be_compared():
    assert hybrid_share(1e-3, 1000, 5, 2, 10) is None
    assert hybrid_share(0.05, 5_000, 15, 2, 10) is None
    share = hybrid_share(1.0, 48_842, 5, 6, 10)
    assert share is not None and 0.5 <= share < 1
    # The share minimises .14 V(f eps) + .42 R((1 - f) eps), here by hand on [-1, 1]^6.
    c = (4 * 6 * 0.225**2) ** (1 / 3)

    def error(f):
        grid = 12 * 5 ** (4 / 6) / (3 * 10**1.5 * (48_842 * f) ** 0.5)
        return 0.14 * grid + 0.42 * 2 * 25 * (6 + c) ** 3 / (48_842 * (1 - f)) ** 2

    assert float(share) == min(np.arange(1, 20) / 20, key=error)
