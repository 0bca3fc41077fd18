"""Groups of records by measured and derived columns, and views of such columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from .._types import FloatArray, IntArray
from ..domain import Domain
from .model import Model, Weights
from .queries import parse

__all__ = ["Groups", "view_of"]


class Groups:
    """All combinations of the codes of some columns.

    Parameters
    ----------
    names : sequence of str
        Measured or derived columns.
    domain : Domain

    Raises
    ------
    ValueError
        If a column is unknown, or a total.
    """

    def __init__(self, names: Sequence[str], domain: Domain) -> None:
        for name in names:
            parse({name: []}, domain)  # explains an unknown name
        structure = domain.structure
        bases = [structure.base_of(name) for name in names]
        self.axes = [domain.index(base) for base in bases]
        self.sizes = [domain[name].size for name in names]
        # Code of each column for each code of the measured column that decides it.
        self.codes: list[IntArray] = [
            np.arange(domain[name].size) if base == name else structure.codes_of(name)
            for name, base in zip(names, bases, strict=True)
        ]

    @property
    def number(self) -> int:
        """Number of combinations."""
        return math.prod(self.sizes)

    def within(self, base: Weights) -> Iterator[Weights]:
        """Weights of each combination among the records of a query, in lexicographic order."""
        for group in np.ndindex(*self.sizes):
            weights = dict(base)
            for axis, codes, code in zip(self.axes, self.codes, group, strict=True):
                only = (codes == code).astype(np.float64)
                weights[axis] = weights[axis] * only if axis in weights else only
            yield weights


def view_of(model: Model, groups: Groups) -> FloatArray:
    """Expected counts for every combination of the codes of one or two columns.

    Parameters
    ----------
    model : Model
    groups : Groups
    """
    axes = list(dict.fromkeys(groups.axes))
    table = model.view(axes)
    if len(axes) == len(groups.axes) and table.shape == tuple(groups.sizes):
        whole = [np.array_equal(codes, np.arange(len(codes))) for codes in groups.codes]
        if all(whole):
            return table
    places = [
        codes.reshape([-1 if axes[place] == axis else 1 for place in range(len(axes))])
        for axis, codes in zip(groups.axes, groups.codes, strict=True)
    ]
    view = np.zeros(groups.sizes)
    np.add.at(view, tuple(np.broadcast_to(place, table.shape) for place in places), table)
    return view
