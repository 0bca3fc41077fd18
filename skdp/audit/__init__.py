"""Audits and replays: the privacy loss of a mechanism by experiment or replay.

================  ==================================================================================
``_replay``       `replay`: the exact loss of one run on two data sets, or any two compared
``_tapes``        what answers mechanisms in a replay and counts the loss
``_released``     what a run has released, and where two runs differ
``_neighbours``   pairs of neighbours: their records, and the check that one differs
``_lower_bound``  `audit`: a lower bound of epsilon from many runs of a mechanism
``_cases``        a case of each estimator of this library
``_library``      audits or replays all cases, and the reports as files
================  ==================================================================================
"""

from ..exceptions import ReplayError
from ._cases import AUDITS, AuditCase
from ._library import replay_library, run_library
from ._lower_bound import AuditResult, audit, reachable_epsilon
from ._replay import ReplayResult, replay

__all__ = [
    "AUDITS",
    "AuditCase",
    "AuditResult",
    "ReplayError",
    "ReplayResult",
    "audit",
    "reachable_epsilon",
    "replay",
    "replay_library",
    "run_library",
]
