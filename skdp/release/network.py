"""NetworkModel: a released Bayesian network as a model of the records.

Queries are answered exactly as long as eliminating the other attributes needs tables of affordable
size (`NetworkDensity.joint`). Beyond that, they are answered from 131,072 records drawn from the
network (`DrawsRecords`): a share p then has a standard deviation of at most 0.0014 of the records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import CodeArray, FloatArray, IntArray
from ..domain.query import Query
from .basis import by_attributes, under
from .density import Conditional, NetworkDensity
from .files import as_probabilities, demand, packed, unpacked
from .model import Covariances, Weights, added, product_of_weights
from .rows import DrawsRecords

__all__ = ["NetworkModel"]

# --- NetworkModel

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


class NetworkModel(DrawsRecords, Covariances):
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
        rows = self.drawn[0]
        return float(product_of_weights(rows.codes, rows.weights, weights).sum())

    @property
    def covers(self) -> str:
        """Refuse: nothing in the release says how far the network is from the records."""
        raise ValueError(_NO_ERRORS)

    def covariances(self, blocks: Sequence[Sequence[Query]]) -> FloatArray:
        """Refuse, as `covers`."""
        raise ValueError(_NO_ERRORS)

    def from_uniform(self, u: FloatArray) -> tuple[CodeArray, list[IntArray]]:
        """Records, and the cell of each in the tables of attributes with parents."""
        codes, cells = self.density.from_uniform(u), []
        for axis, node in self.density.nodes.items():
            if node.parents:
                place = self.density.rows_of(node, codes) * self.shape[axis]
                cells.append(place + codes[:, axis])
        return codes, cells

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Expected counts for every combination of the codes of some attributes."""
        joint = self.density.joint(axes)
        return self.total * (self.drawn[0].table(axes) if joint is None else joint)

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
