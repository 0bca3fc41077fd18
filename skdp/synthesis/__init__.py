"""Synthesizers: release a private synopsis of a table, query it, draw synthetic rows from it.

==============  ===================================================================================
``base``        what all synthesizers do: ``fit``, ``sample``, ``make_training_set``, queries
``boxes``       counts of boxes: HDPView, PrivTree, kd-trees, grids (`GridSynthesizer`), HDMM
``marginals``   `MarginalSynthesizer`: single columns and selected sets, joined; priors, workloads
``privbayes``   `PrivBayesSynthesizer`: a Bayesian network of the columns
==============  ===================================================================================

The algorithms are in `skdp.algorithms`; a synthesizer checks its parameters,
divides epsilon and wraps what was measured into a `Synopsis`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .boxes import (
        GridSynthesizer,
        HDMMSynthesizer,
        HDPViewSynthesizer,
        KDTreeSynthesizer,
        PrivTreeSynthesizer,
    )
    from .marginals import MarginalSynthesizer
    from .privbayes import PrivBayesSynthesizer

__all__ = [
    "GridSynthesizer", "HDMMSynthesizer", "HDPViewSynthesizer", "KDTreeSynthesizer",
    "MarginalSynthesizer", "PrivBayesSynthesizer", "PrivTreeSynthesizer",
]  # fmt: skip
# Who asks for one does not load the kernels of all.
_HOMES = {"MarginalSynthesizer": "marginals", "PrivBayesSynthesizer": "privbayes"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES.get(name, 'boxes')}", __name__), name)
