"""Comparison with other libraries: every method has a peer and a worker."""

from pathlib import Path

import pytest

command = pytest.importorskip("benchmarks.peers.__main__")
from benchmarks.peers import _environments, _tasks  # noqa: E402

PEERS = Path(command.__file__).parent


def test_every_method_has_a_peer_and_a_worker_and_versions_are_exact():
    for method in _tasks.METHODS:
        worker = PEERS / str(_environments.PEERS[method.peer].worker)
        name = method.name.lower() if method.peer == "SmartNoise" else method.name
        name = name.removesuffix(", sampled")
        assert f'"{name}"' in worker.read_text().replace(f"{method.task}/", "")
    for peer in _environments.PEERS.values():
        if peer.package != "skdp":
            assert all("==" in each for each in peer.requirements)
