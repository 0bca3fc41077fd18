"""Rounds of DPLloyd."""

import numpy as np
from clustered import Exact, make_task

from skdp.algorithms.kmeans import dplloyd
from skdp.algorithms.kmeans.dplloyd import lloyd_rounds


def test_every_round_freezes_its_centroids(monkeypatch):
    """A record between two centroids is counted once, although the first one moves away."""
    recorder = Exact()
    monkeypatch.setattr(dplloyd, "discrete_laplace", recorder)
    points = np.array([[45], [0], [0]], dtype=np.int32)
    init = np.array([[0.0], [100.0]])
    task = make_task(points, (101,), 2, "lloyd", n_rounds=1, init=init)
    dplloyd.lloyd(task)
    assert recorder.calls[0][0].tolist() == [3, 0]


def test_rounds_follow_the_corrected_rule():
    # Least budgets of a round on two data sets of the dissertation, r = 1.
    assert lloyd_rounds(0.0106 * 5.2, 107_091, 5, 2) == 5
    assert lloyd_rounds(0.0106 * 4.8, 107_091, 5, 2) == 4
    assert lloyd_rounds(0.0962 * 3.1, 48_841, 5, 6) == 3
    assert lloyd_rounds(0.0962 * 2.9, 48_841, 5, 6) == 2
    assert lloyd_rounds(1e-9, 1, 5, 6) == 2 and lloyd_rounds(1e9, 10**6, 5, 6) == 7
