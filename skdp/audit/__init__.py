"""Audits and replays: the privacy loss of a mechanism by experiment or replay.

================  ==================================================================================
``_replay``       `replay`: the exact loss of one run on two data sets; one case of each estimator
``_tapes``        what answers mechanisms in a replay and counts the loss
``_released``     pairs of neighbours and their records; what runs released, and where they differ
``_lower_bound``  `audit`: a lower bound of epsilon from many runs of a mechanism
================  ==================================================================================
"""

from ..exceptions import ReplayError
from ._lower_bound import AuditResult, audit, reachable_epsilon
from ._replay import REPLAYS, ReplayResult, replay, replay_library

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
