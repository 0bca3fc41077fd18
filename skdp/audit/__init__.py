"""Audits: lower bounds on the privacy loss of a mechanism, by experiment or by enumeration."""

from ._audit import AuditResult, assert_epsilon, audit, reachable_epsilon
from ._enumerate import (
    ExactEpsilon,
    enumerate_law,
    exact_epsilon,
    geometric_law,
    sparse_vector_law,
    sparse_vector_probability,
)
from ._neighbours import NeighbourPair, answer_pairs, find_neighbours, record_pairs, score_pairs

__all__ = [
    "AuditResult",
    "ExactEpsilon",
    "NeighbourPair",
    "answer_pairs",
    "assert_epsilon",
    "audit",
    "enumerate_law",
    "exact_epsilon",
    "find_neighbours",
    "geometric_law",
    "reachable_epsilon",
    "record_pairs",
    "score_pairs",
    "sparse_vector_law",
    "sparse_vector_probability",
]
