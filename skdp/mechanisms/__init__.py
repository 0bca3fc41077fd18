"""Noise and private selection: arrays in, arrays out.

The building blocks of every release. They know sensitivity and epsilon, never frames, columns or
estimators, and charge nothing: accounting is left to the caller. Only `SparseVector`, which lives
as long as its stream, takes a ledger.

=================  ===============================================================================
``laplace``        the exact sampler of all noise: discrete Laplace and geometric, by inversion
                   with tables; noise for the largest of many changes (K-norm)
``selection``      which of many random times is the least, decided exactly
``sparse_vector``  sparse vector: find the queries above a threshold, and pay only for those;
                   `sparse_counts`: noisy counts of all cells of a huge domain; the large ones are
                   released; bounds and errors of selections, by the dissertation's measures
=================  ===============================================================================
"""

from .laplace import (
    above_threshold,
    bounded_sum,
    discrete_laplace,
    discrete_laplace_quantile,
    discrete_laplace_variance,
    geometric,
    geometric_variance,
    randomised_response,
    response_counts,
)
from .selection import (
    choose_buckets,
    exponential,
    noisy_max,
    permute_and_flip,
    select_on_line,
    top_k,
)
from .sparse_vector import (
    SparseVector,
    exponential_alpha,
    false_negative_rate,
    least_threshold,
    score_error_rate,
    sparse_counts,
    sparse_vector_alpha,
    sparse_vector_top_k,
)

__all__ = [
    "SparseVector",
    "above_threshold",
    "bounded_sum",
    "choose_buckets",
    "discrete_laplace",
    "discrete_laplace_quantile",
    "discrete_laplace_variance",
    "exponential",
    "exponential_alpha",
    "false_negative_rate",
    "geometric",
    "geometric_variance",
    "least_threshold",
    "noisy_max",
    "permute_and_flip",
    "randomised_response",
    "response_counts",
    "score_error_rate",
    "select_on_line",
    "sparse_counts",
    "sparse_vector_alpha",
    "sparse_vector_top_k",
    "top_k",
]
