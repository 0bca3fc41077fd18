"""NetworkModel: a released Bayesian network as a model of the records.

Queries are answered exactly as long as eliminating the other attributes needs tables of affordable
size (`NetworkDensity.joint`). Beyond that, they are answered from `_ROWS` records drawn from the
network with a fixed public seed: a share p then has a standard deviation of sqrt(p (1 - p) /
_ROWS), at most 0.0012 of the records. Rounded records, and records under a condition, are drawn
among these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._random import sampling_generator
from .._validation import CodeArray, FloatArray
from ..domain import Domain
from ..domain.query import Query
from .basis import by_attributes, under
from .density import Conditional, NetworkDensity
from .files import as_probabilities, demand, packed, unpacked
from .model import Covariances, Weights, added, product_of_weights
from .result import labels_of_groups
from .rows import WeightedRows

__all__ = ["NetworkModel"]

# --- NetworkModel

# Records that answer what cannot be answered exactly.
_ROWS = 200_000
# Numbers held at once while a batch of queries is answered.
_CHUNK = 1 << 21
# Largest number of probabilities that `to_frame` lists.
_MAX_LISTED = 5_000_000


# Why nothing is said of errors.
_WHY = (
    "the noise of its tables is known, but not how far its independence assumptions are from the "
    "records"
)
_NO_ERRORS = (
    f"Answers of a Bayesian network are estimated and have no error bars: {_WHY}. Ask for the "
    "plain count, or release with MarginalSynthesizer, which publishes error bars."
)


class NetworkModel(Covariances):
    """A released Bayesian network as a model of the records; see `Model`.

    Parameters
    ----------
    density : NetworkDensity
    total : float
        Estimated number of records; it may be negative.
    """

    # The name in files.
    kind: ClassVar[str] = "network"
    independent: ClassVar[bool] = False

    def __init__(self, density: NetworkDensity, total: float) -> None:
        self.density = density
        self.shape = density.shape
        self.total = float(total)

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if name != "rows"}

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Attributes of every edge: (parent, child)."""
        nodes = self.density.nodes.values()
        return [(parent, node.axis) for node in nodes for parent in node.parents]

    @property
    def about(self) -> str:
        """What was released, in words."""
        return (
            f"noisy tables of a network with {len(self.pairs):,} links between columns; answers "
            f"are estimated and have no error bars: {_WHY}"
        )

    def answer(self, queries: Sequence[Query]) -> FloatArray:
        """Expected counts under the weights, one for each query."""
        return added(queries, self._answer)

    def _answer(self, queries: Sequence[Weights]) -> FloatArray:
        shares = np.ones(len(queries))
        for axes, members in by_attributes(queries).items():
            joint = self.density.joint(axes) if axes and len(members) > 1 else None
            if joint is None:
                shares[members] = [self._share(queries[place]) for place in members]
                continue
            step = max(1, _CHUNK * len(joint) // joint.size)
            for part in (members[at : at + step] for at in range(0, len(members), step)):
                asked = [np.stack([queries[i][axis] for i in part], axis=1) for axis in axes]
                shares[part] = under(joint, asked)
        return self.total * shares

    def _share(self, weights: Weights) -> float:
        exact = self.density.joint((), weights)
        if exact is not None:
            return float(exact)
        rows = self.rows
        return float(product_of_weights(rows.codes, rows.weights, weights).sum())

    @cached_property
    def rows(self) -> WeightedRows:
        """Records drawn with a fixed seed, so that equal questions have equal answers."""
        codes = self.density.draw(_ROWS, sampling_generator(0))
        return WeightedRows(codes, np.full(_ROWS, 1.0 / _ROWS), self.shape)

    @property
    def covers(self) -> str:
        """Refuse: nothing in the release says how far the network is from the records."""
        raise ValueError(_NO_ERRORS)

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """Refuse, as `covers`."""
        raise ValueError(_NO_ERRORS)

    def sample_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Draw independent records; under weights, from the `rows` (see `WeightedRows.draw`)."""
        if not weights:
            return self.density.draw(n_samples, generator)
        return self.rows.draw(n_samples, generator, weights)

    def round_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Records whose counts, also by the tables, are those of the `rows`, rounded."""
        codes, cells = self.rows.codes, []
        for axis, node in self.density.nodes.items():
            if node.parents:
                place = self.density.rows_of(node, codes) * self.shape[axis]
                cells.append(place + codes[:, axis])
        return self.rows.rounded(n_samples, generator, weights or {}, cells)

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Expected counts for every combination of the codes of some attributes."""
        joint = self.density.joint(axes)
        return self.total * (self.rows.table(axes) if joint is None else joint)

    def to_frame(self, domain: Domain) -> pd.DataFrame:
        """The network: one row for each probability.

        Returns
        -------
        DataFrame
            Columns ``column``, ``given`` (the values of its parents, or ranges of them, in words),
            ``value``, ``probability``.

        Raises
        ------
        ValueError
            If there are too many probabilities to list.
        """
        cells = sum(node.table.size for node in self.density.nodes.values())
        if cells > _MAX_LISTED:
            raise ValueError(
                f"The network has {cells:,} probabilities, more than {_MAX_LISTED:,}: too many for "
                "a readable table. Ask for a view of some columns instead."
            )
        parts = []
        for node in self.density.nodes.values():
            texts = [
                [
                    f"{domain.names[parent]}: {text}"
                    for text in labels_of_groups(domain.attributes[parent].labels(), group)
                ]
                for parent, group in zip(node.parents, node.groups, strict=True)
            ]
            given = [" and ".join(each) for each in itertools.product(*texts)]
            values = domain.attributes[node.axis].labels()
            listed = [[domain.names[node.axis]], given, values]
            index = pd.MultiIndex.from_product(listed, names=["column", "given", "value"])
            parts.append(pd.Series(node.table.ravel(), index, name="probability"))
        return pd.concat(parts).reset_index()

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        nodes = [vars(node) for node in self.density.nodes.values()]
        return packed({"total": self.total, "nodes": nodes})

    @classmethod
    def from_arrays(
        cls,
        shape: tuple[int, ...],
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> NetworkModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        total, nodes = float(facts["total"]), []
        demand(math.isfinite(total), "the total is not finite")
        for node in unpacked(facts["nodes"], arrays):
            axis, parents = int(node["axis"]), tuple(node["parents"])
            known = all(0 <= each < len(shape) for each in (axis, *parents))
            demand(known, f"there are no attributes {(axis, *parents)}")
            for parent, group in zip(parents, node["groups"], strict=True):
                demand(group is None or _are_groups(group, shape[parent]), "groups do not fit")
            table = as_probabilities(node["table"])
            nodes.append(Conditional(axis, parents, tuple(node["groups"]), table))
        return cls(NetworkDensity(shape, nodes), total)


def _are_groups(groups: NDArray[Any], size: int) -> bool:
    """Whether they are groups of so many codes, numbered without gaps."""
    every = np.arange(int(groups.max(initial=-1)) + 1)
    return groups.shape == (size,) and np.array_equal(np.unique(groups), every)
