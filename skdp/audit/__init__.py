"""Audits and replays: the privacy loss of a mechanism by experiment or replay.

=====================  =============================================================================
``_audit``             `audit`: lower bounds of epsilon from many runs of a mechanism
``_trials``            the runs, and outputs of any kind as codes and numbers
``_readings``          maps from outputs to codes, also of how a number is written
``_events``            the event whose probability differs most: fitted, chosen and bounded
``_neighbours``        pairs of neighbours, checked and searched for
``_replay``            `replay`: the exact loss of one run on two data sets, or any two compared
``_tapes``             what answers mechanisms in a replay and counts the loss
``_released``          what a run has released, and where two runs differ
``_cases``             the table of cases of the audit of this library, with mechanisms
``_cases_estimators``  cases of estimators and private scores
``_library``           audits or replays all cases, and the reports as files
=====================  =============================================================================
"""

from ..exceptions import ReplayError
from ._audit import AuditResult, assert_epsilon, audit, plot_audits, reachable_epsilon
from ._cases import AUDITS, AuditCase, audited, synopsis_features
from ._library import replay_library, run_library
from ._neighbours import NeighbourPair, answer_pairs, find_neighbours, record_pairs, score_pairs
from ._replay import ReplayResult, plot_replays, replay

__all__ = [
    "AUDITS",
    "AuditCase",
    "AuditResult",
    "NeighbourPair",
    "ReplayError",
    "ReplayResult",
    "answer_pairs",
    "assert_epsilon",
    "audit",
    "audited",
    "find_neighbours",
    "plot_audits",
    "plot_replays",
    "reachable_epsilon",
    "record_pairs",
    "replay",
    "replay_library",
    "run_library",
    "score_pairs",
    "synopsis_features",
]
