"""HDPView's workloads, and the error of a release on them."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np

from ._random import caller_level, sampling_generator
from ._validation import as_integer
from .algorithms.hdmm import Workload
from .base import AnswersStatistics, match_rows
from .domain.bins import MAX_BINS
from .exceptions import PrivacyLeakWarning
from .release import Synopsis
from .tables import CountTable

__all__ = ["Workload", "error_on"]


def error_on(
    release: Any,
    rows: Any,
    workload: Workload,
    *,
    n_queries: int | None = None,
    random_state: Any = None,
) -> float:
    """Root mean square error of a release over a workload: HDPView's measure.

    It compares with exact counts, and is NOT private: for public rows, or for the data owner only.

    Parameters
    ----------
    release : Synopsis, or fitted synthesizer or DataCube
    rows : array-like or frame of shape (n_rows, n_features)
        The records.
    workload : Workload
    n_queries : int, default=None
        Draw so many queries of the workload. None: the mean is over all of them, in closed form,
        for which the tables of each ``k`` columns must fit into memory.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the queries.

    Returns
    -------
    float
        In records.

    Raises
    ------
    DomainError, TypeError, ValueError
        If the rows do not have the columns of the release, or a table is too large.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GridSynthesizer, Numeric
    >>> from skdp.workloads import Workload, error_on
    >>> public = np.random.default_rng(0).uniform(0, 1, size=(1000, 2))
    >>> view = GridSynthesizer(domain=Numeric(0, 1, bins=16), rule="identity").fit(public)
    >>> 5 < error_on(view, public, Workload("ranges", 2)) < 20
    True
    """
    known = release._asked() if isinstance(release, AnswersStatistics) else release
    if not isinstance(known, Synopsis):
        raise TypeError(f"release must be a Synopsis or a fitted synthesizer, got {release!r}.")
    if not isinstance(workload, Workload):
        raise TypeError(f"workload must be a skdp.workloads.Workload, got {workload!r}.")
    matched, domain = match_rows(rows, None, known.counted, None, structure=True, spare=True)
    codes = domain.encode_columns(matched)
    table = CountTable.from_codes(codes[(codes >= 0).all(axis=1)], domain.shape)
    warnings.warn(
        "error_on compares with exact counts: its result is not private.",
        PrivacyLeakWarning,
        stacklevel=caller_level(),
    )
    k = min(workload.k, len(domain.shape))
    if n_queries is not None:
        number = as_integer(n_queries, "n_queries", 1)
        queries = workload.draw(domain.shape, number, sampling_generator(random_state))
        errors = known.model.answer(queries) - _exact(table, queries)
        return float(np.sqrt(np.mean(errors**2)))
    squares = []
    for axes in itertools.combinations(range(len(domain.shape)), k):
        if math.prod(domain.shape[axis] for axis in axes) > MAX_BINS:
            raise ValueError(
                f"The columns {[domain.names[axis] for axis in axes]} have too many cells to "
                "compare all: give n_queries=."
            )
        # The mean square of all weighted sums of the errors of cells.
        error = known.model.view(list(axes)) - table.project(axes).dense()
        sums = error
        for place, axis in enumerate(axes):
            gram = workload.gram(domain.shape[axis])
            sums = np.moveaxis(np.tensordot(gram, sums, axes=(1, place)), 0, place)
        squares.append(max(float((sums * error).sum()), 0.0))
    return math.sqrt(float(np.mean(squares)))


def _exact(table: CountTable, queries: Any) -> Any:
    """Exact counts of queries that are one product."""
    found = []
    for query in queries:
        inside = table.counts.astype(np.float64)
        for axis, weights in query.products[0].items():
            inside = inside * weights[table.codes[:, axis]]
        found.append(inside.sum())
    return np.array(found)
