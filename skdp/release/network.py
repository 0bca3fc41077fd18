"""NetworkModel: a released Bayesian network as a model of the records.

Queries are answered exactly as long as eliminating the other attributes needs tables of affordable
size (`NetworkDensity.joint`). Beyond that, they are answered from `_ROWS` records drawn from the
network with a fixed public seed: a share p then has a standard deviation of sqrt(p (1 - p) /
_ROWS), at most 0.0012 of the records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._random import sampling_generator
from .._validation import CodeArray, FloatArray, IntArray
from ..domain import Domain
from ..domain.query import Query
from .basis import by_attributes, under
from .density import Conditional, NetworkDensity
from .files import Cutter, demand
from .model import (
    Covariances,
    Weights,
    added,
    product_of_weights,
    warn_of_zero,
)
from .result import labels_of_groups
from .rounding import (
    deal,
    round_table,
    share_of,
)

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
        self._rows: CodeArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": None}

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
        rows = self._drawn()
        return float(product_of_weights(rows, np.ones(len(rows)), weights).mean())

    def _drawn(self) -> CodeArray:
        """Records drawn with a fixed seed, so that equal questions have equal answers."""
        if self._rows is None:
            self._rows = self.sample_codes(_ROWS, sampling_generator(0))
        return self._rows

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
        """Draw independent records from the network.

        Under weights they follow the conditional distribution, exactly where elimination is
        affordable. Where its probability is zero, rows have as few codes of probability zero as it
        allows, and a warning says so.
        """
        codes, impossible = self.density.sample(n_samples, generator, weights or {})
        if impossible.any():
            warn_of_zero("their other columns follow the network only roughly")
        return codes

    def round_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Records whose counts are the expected ones, rounded; independent ones under weights."""
        if weights:
            return self.sample_codes(n_samples, generator, weights)
        return _rounded(self.density, n_samples, generator)

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Expected counts for every combination of the codes of some attributes."""
        joint = self.density.joint(axes)
        if joint is None:
            joint = np.zeros([self.shape[axis] for axis in axes])
            np.add.at(joint, tuple(self._drawn()[:, axis] for axis in axes), 1.0 / _ROWS)
        return self.total * joint

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
        nodes = list(self.density.nodes.values())
        groups = [group for node in nodes for group in node.groups if group is not None]
        facts = {
            "total": self.total,
            "nodes": [
                {
                    "axis": node.axis,
                    "parents": list(node.parents),
                    "grouped": [group is not None for group in node.groups],
                }
                for node in nodes
            ],
        }
        arrays: dict[str, NDArray[Any]] = {
            "tables": np.concatenate([node.table.ravel() for node in nodes])
        }
        if groups:
            arrays["groups"] = np.concatenate(groups)
        return facts, arrays

    @classmethod
    def from_arrays(
        cls,
        shape: tuple[int, ...],
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> NetworkModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        total = float(facts["total"])
        demand(math.isfinite(total), "the total is not finite")
        tables = Cutter(arrays["tables"])
        groups = Cutter(arrays.get("groups", np.zeros(0, dtype=np.int64)))
        nodes = []
        for node in facts["nodes"]:
            axis, parents = int(node["axis"]), tuple(node["parents"])
            known = all(0 <= each < len(shape) for each in (axis, *parents))
            demand(known, f"there are no attributes {(axis, *parents)}")
            told = tuple(
                groups.take_groups(shape[parent]) if grouped else None
                for parent, grouped in zip(parents, node["grouped"], strict=True)
            )
            empty = Conditional(axis, parents, told, np.zeros((0, 0)))
            rows = math.prod(empty.sizes(shape))
            table = tables.take_probabilities(rows, shape[axis], each_row=True)
            nodes.append(replace(empty, table=table))
        tables.finish()
        groups.finish()
        return cls(NetworkDensity(shape, nodes), total)


def _rounded(density: NetworkDensity, n_samples: int, generator: np.random.Generator) -> CodeArray:
    """Records whose counts are the expected ones, rounded; in random order.

    The codes of an attribute are rounded as a table within each combination of its parents'
    groups that was drawn, and dealt evenly there along an order of the attributes drawn before.
    """
    codes = np.zeros((n_samples, len(density.shape)), dtype=np.int32, order="F")
    rows: IntArray = generator.permutation(n_samples)
    last: Conditional | None = None
    for number, (axis, node) in enumerate(density.nodes.items()):
        if last is not None and last.parents == node.parents:
            # Nor may the children of an attribute be dealt along the same order.
            rows = rows[np.argsort(codes[rows, last.axis], kind="stable")]
        last = node
        drawn, stratum = np.unique(density.rows_of(node, codes), return_inverse=True)
        rows = rows[np.argsort(stratum[rows], kind="stable")]
        sizes = np.bincount(stratum, minlength=len(drawn))
        counts = round_table(node.table[drawn] * sizes[:, None], sizes, generator)
        values = np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts))
        line = np.repeat(values, counts.ravel())
        codes[rows, axis] = deal(line, sizes, share_of(number), generator)
    return codes
