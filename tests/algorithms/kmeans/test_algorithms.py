"""Rounds of DPLloyd, and the share of Hybrid."""

import numpy as np
from clustered import Exact, make_task

from skdp.algorithms.kmeans import algorithms
from skdp.algorithms.kmeans.algorithms import hybrid_share, lloyd_rounds

# --- rounds and shares


def test_every_round_freezes_its_centroids(monkeypatch):
    """A record between two centroids is counted once, although the first one moves away."""
    recorder = Exact()
    monkeypatch.setattr(algorithms, "discrete_laplace", recorder)
    points = np.array([[45], [0], [0]], dtype=np.int32)
    init = np.array([[0.0], [100.0]])
    task = make_task(points, (101,), 2, "lloyd", n_rounds=1, init=init)
    algorithms.lloyd(task)
    assert recorder.calls[0][0].tolist() == [3, 0]


def test_rounds_follow_the_corrected_rule():
    # Least budgets of a round on two data sets of the dissertation, r = 1.
    assert lloyd_rounds(0.0106 * 5.2, 107_091, 5, 2) == 5
    assert lloyd_rounds(0.0106 * 4.8, 107_091, 5, 2) == 4
    assert lloyd_rounds(0.0962 * 3.1, 48_841, 5, 6) == 3
    assert lloyd_rounds(0.0962 * 2.9, 48_841, 5, 6) == 2
    assert lloyd_rounds(1e-9, 1, 5, 6) == 2 and lloyd_rounds(1e9, 10**6, 5, 6) == 7


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
