"""Audits and replays: the privacy loss of a mechanism by experiment, enumeration or replay."""

from ..exceptions import ReplayError
from ._audit import AuditResult, assert_epsilon, audit, reachable_epsilon
from ._cases import AUDITS, AuditCase, audited, synopsis_features
from ._enumerate import (
    ExactEpsilon,
    enumerate_law,
    exact_epsilon,
    geometric_law,
    sparse_vector_law,
    sparse_vector_probability,
)
from ._library import replay_library, run_library
from ._neighbours import NeighbourPair, answer_pairs, find_neighbours, record_pairs, score_pairs
from ._plots import plot_audits, plot_replays
from ._replay import ReplayResult, replay

__all__ = [
    "AUDITS",
    "AuditCase",
    "AuditResult",
    "ExactEpsilon",
    "NeighbourPair",
    "ReplayError",
    "ReplayResult",
    "answer_pairs",
    "assert_epsilon",
    "audit",
    "audited",
    "enumerate_law",
    "exact_epsilon",
    "find_neighbours",
    "geometric_law",
    "plot_audits",
    "plot_replays",
    "reachable_epsilon",
    "record_pairs",
    "replay",
    "replay_library",
    "run_library",
    "score_pairs",
    "sparse_vector_law",
    "sparse_vector_probability",
    "synopsis_features",
]
