"""Audits and replays: the privacy loss of a mechanism by experiment or replay.

================  ==================================================================================
``_replay``       `replay`: the exact loss of one run on two data sets, or any two compared
``_tapes``        what answers mechanisms in a replay and counts the loss
``_released``     what a run has released, and where two runs differ
``_neighbours``   pairs of neighbours: their records, and the check that one differs
``_lower_bound``  `audit`: a lower bound of epsilon from many runs of a mechanism
``_library``      replays each estimator of this library, and writes a report
================  ==================================================================================
"""

from ..exceptions import ReplayError
from ._library import REPLAYS, replay_library
from ._lower_bound import AuditResult, audit, reachable_epsilon
from ._replay import ReplayResult, replay

__all__ = [
    "REPLAYS",
    "AuditResult",
    "ReplayError",
    "ReplayResult",
    "audit",
    "reachable_epsilon",
    "replay",
    "replay_library",
]
