"""Synthesizers: release a private synopsis of a table, query it, draw synthetic rows from it.

==============  ===================================================================================
``base``        what all synthesizers do: ``fit``, ``sample``, ``make_training_set``, queries
``boxes``       counts of boxes: HDPView, PrivTree, kd-trees, grids (`GridSynthesizer`)
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
    "GridSynthesizer": "boxes",
    "HDPViewSynthesizer": "boxes",
    "KDTreeSynthesizer": "boxes",
    "MarginalSynthesizer": "marginals",
    "PrivBayesSynthesizer": "privbayes",
    "PrivTreeSynthesizer": "boxes",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
