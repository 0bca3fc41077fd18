"""Exact counts drawn beside a release: NOT private, for the data owner only."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._random import caller_level
from ..domain import Domain
from ..exceptions import PrivacyLeakWarning
from ..release import Synopsis
from ..release.pictures import plot_parts
from ._frames import valid_codes

__all__ = ["plot_with_records"]


def plot_with_records(
    synopsis: Synopsis,
    rows: Any,
    domain: Domain,
    columns: Any = None,
    *,
    ax: Any = None,
    blocks: bool = False,
    norm: Any = None,
) -> Any:
    """Draw records whose schema was checked, and a release of them, over one or two columns.

    Parameters
    ----------
    synopsis : Synopsis
    rows : table of the records
        With the columns of ``domain``, that of the synopsis.
    domain : Domain
    columns, ax, blocks, norm
        As in :meth:`skdp.Synopsis.plot`; ``ax`` is a pair of axes.

    Returns
    -------
    ndarray of two matplotlib Axes

    Warns
    -----
    PrivacyLeakWarning
        Always.
    """
    from ..plotting import plot_beside

    picture = plot_parts(synopsis, columns, blocks)
    warnings.warn(
        "plot with records= draws exact counts: the picture is not private and must stay with the "
        "data owner.",
        PrivacyLeakWarning,
        stacklevel=caller_level(),
    )
    released = picture.pop("table")
    sides = [domain.index(axis.name) for axis in picture["axes"]]
    codes = valid_codes(rows, domain)[:, sides]
    cells = np.ravel_multi_index(tuple(codes.T), released.shape)
    exact = np.bincount(cells, minlength=released.size).reshape(released.shape).astype(float)
    return plot_beside(exact, released, ax=ax, norm=norm, **picture)
