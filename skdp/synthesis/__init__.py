"""Synthesizers: release a private synopsis of a table, query it, draw synthetic rows from it.

==============  ===================================================================================
``base``        what all synthesizers do: ``fit``, ``sample``, ``make_training_set``, queries
``hdpview``     `HDPViewSynthesizer`: recursive bisection of wide tables
``privtree``    `PrivTreeSynthesizer`: boxes that are halved where there are many records
``kdtree``      `KDTreeSynthesizer`: a kd-tree on noisy cells or on the records, or all cells
``grid``        `GridSynthesizer`: every column cut into parts of equal width
``marginals``   `MarginalSynthesizer`: single columns and selected sets, joined; priors, workloads
``privbayes``   `PrivBayesSynthesizer`: a Bayesian network of the columns
==============  ===================================================================================

The algorithms are in `skdp.kernels`; a synthesizer checks its parameters,
divides epsilon and wraps what was measured into a `Synopsis`.
"""

from importlib import import_module
from typing import Any

# Where each synthesizer is. Who asks for one does not load the kernels of all.
_HOMES = {
    "GridSynthesizer": "grid",
    "HDPViewSynthesizer": "hdpview",
    "KDTreeSynthesizer": "kdtree",
    "MarginalSynthesizer": "marginals",
    "PrivBayesSynthesizer": "privbayes",
    "PrivTreeSynthesizer": "privtree",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
