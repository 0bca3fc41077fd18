"""Noise and private selection: arrays in, arrays out.

The building blocks of every release. They know sensitivity and epsilon, never frames, columns or
estimators, and charge nothing: accounting is left to the caller. Only `SparseVector`, which lives
as long as its stream, takes a ledger.

==================  ================================================================================
``_noise``          discrete Laplace, geometric noise, thresholds, `bounded_sum`; integer answers
``_selection``      noisy maximum, permute-and-flip, exponential mechanism, `top_k`
``_race``           which of many random times is the least, exactly; sets and sequences of `top_k`
``_line``           `select_on_line`: permute-and-flip on up to 2**62 integers
``_buckets``        `choose_buckets`: a partition of a line by noisy costs
``_sparse_vector``  `SparseVector`, and SVT with retraversal (`sparse_vector_top_k`)
``_sparse_counts``  `sparse_counts`: the large noisy counts of a huge table, and its false cells
``_inversion``      the exact sampler of all noise
==================  ================================================================================
"""

from ._buckets import choose_buckets
from ._line import select_on_line
from ._noise import (
    above_threshold,
    bounded_sum,
    discrete_laplace,
    discrete_laplace_quantile,
    discrete_laplace_variance,
    geometric,
    geometric_variance,
)
from ._selection import exponential, noisy_max, permute_and_flip, top_k
from ._sparse_counts import least_threshold, sparse_counts
from ._sparse_vector import SparseVector, sparse_vector_top_k

__all__ = [
    "SparseVector",
    "above_threshold",
    "bounded_sum",
    "choose_buckets",
    "discrete_laplace",
    "discrete_laplace_quantile",
    "discrete_laplace_variance",
    "exponential",
    "geometric",
    "geometric_variance",
    "least_threshold",
    "noisy_max",
    "permute_and_flip",
    "select_on_line",
    "sparse_counts",
    "sparse_vector_top_k",
    "top_k",
]
