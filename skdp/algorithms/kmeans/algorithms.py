"""The list of the algorithms behind `DPKMeans`: their names, their functions and their budgets.

Every algorithm takes a `Task`, spends exactly ``task.parts`` on its points and returns a
`Clustering`, which holds releases only. `algorithm_parts` gives the parts, which are computed from
public parameters, never from the data. Decisions that depend on the number of records (the size of
a grid, the number of rounds or blocks) use a noisy number, released first, or a public one: the
exact number would show in the shape of the release.

References
----------
D. Su, "Differentially private data publishing for data analysis", Purdue 2016, chapter 4;
A. Blum, C. Dwork, F. McSherry, K. Nissim, "Practical privacy: the SuLQ framework", PODS 2005
(DPLloyd); P. Mohan and others, "GUPT", SIGMOD 2012 (sample and aggregate); J. Zhang and others,
"PrivGene", SIGMOD 2013 (genetic).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ..._validation import split_epsilon
from .auto import auto
from .dplloyd import lloyd, lloyd_improved
from .genetic import genetic, sample_aggregate
from .grid import grid, hybrid
from .projection import MANY_AXES, projected
from .task import Clustering, Task

__all__ = ["ALGORITHMS", "GRID_ALGORITHMS", "algorithm_parts"]

# Share of epsilon for the number of records, where it is not public.
_RECORDS_SHARE = Fraction(1, 50)


def algorithm_parts(
    algorithm: str, epsilon: Fraction, n_records: int | None, n_blocks: int | None = None
) -> dict[str, Fraction]:
    """Parts of the budget, from public parameters alone.

    With a public number of blocks, sample and aggregate need not know that of the records.
    """
    _, shares, needs_total = ALGORITHMS[algorithm]
    sized = n_blocks is not None and algorithm == "sample-aggregate"
    if needs_total and n_records is None and not sized:
        left = 1 - _RECORDS_SHARE
        shares = {name: share * left for name, share in shares.items()}
        shares["records"] = _RECORDS_SHARE
    return split_epsilon(epsilon, shares)


def _auto(task: Task) -> Clustering:
    """The recommended algorithm for the number of axes, which is public."""
    return projected(task) if task.n_axes > MANY_AXES else auto(task)


_ONE = Fraction(1)
_HALF = Fraction(1, 2)
# Name: the algorithm, the shares of its parts, and whether it must know the number of records.
ALGORITHMS: dict[str, tuple[Callable[[Task], Clustering], dict[str, Fraction], bool]] = {
    "auto": (_auto, {"clustering": _ONE}, True),
    "lloyd": (lloyd, {"rounds": _ONE}, False),
    "lloyd-improved": (lloyd_improved, {"rounds": _ONE}, True),
    "uniform-grid": (lambda task: grid(task, "uniform"), {"grid": _ONE}, True),
    "m-estimator": (lambda task: grid(task, "m-estimator"), {"grid": _ONE}, True),
    "extended-grid": (lambda task: grid(task, "extended"), {"grid": _ONE}, True),
    "hybrid": (hybrid, {"clustering": _ONE}, True),
    "sample-aggregate": (sample_aggregate, {"range": _HALF, "centroids": _HALF}, True),
    "genetic": (genetic, {"rounds": _ONE}, True),
}

# Algorithms that release a grid, on which the number of clusters can be chosen.
GRID_ALGORITHMS = ("auto", "uniform-grid", "m-estimator", "extended-grid", "hybrid")
