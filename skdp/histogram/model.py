"""HistogramModel: a released range tree, and all that is answered from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from .. import hierarchy
from .._types import FloatArray
from ..domain import Date, Datetime, Domain, Numeric
from ..hierarchy import Blue, Tree
from ..release import Error
from .design import only_attribute, placement_variance, simulated_errors, sum_variance

_LAW = (
    "at least {:g}% for a query fixed before looking at the release, by the exact law of the noise"
)
_UNDETERMINED = "the measured nodes do not determine this count."


def as_conditions(query: Any, name: str) -> Any:
    """A query about the one column, or a list of them, as synopses understand it."""
    if isinstance(query, np.ndarray):
        if query.ndim != 2 or query.shape[1] != 2:
            raise ValueError(
                f"An array of ranges has the shape (m, 2), the ends of each, got {query.shape}. "
                "Give other queries as a list."
            )
        query = [tuple(ends) for ends in query.tolist()]
    if isinstance(query, list):
        return [as_conditions(each, name) for each in query]
    return query if query is None or isinstance(query, str | Mapping) else {name: query}


@dataclass
class HistogramModel:
    """Noisy counts of the nodes of a tree; weights are those of the codes of the one attribute.

    Parameters
    ----------
    domain : Domain
        Of one attribute.
    codes : ndarray of int64, shape (n_codes,)
        Code of the domain at each position of the tree.
    blue : Blue
        The tree and the variances of its noise.
    noisy : ndarray of int64, shape (n_nodes,)
        The release itself; 0 where nothing was measured.
    consistency : {"blue", "iterative"} or None
    non_negative : bool
    kind : {"adaptive", "dawa", "ahp"} or None
        How released counts divided the bins.
    """

    domain: Domain
    codes: np.ndarray
    blue: Blue
    noisy: np.ndarray
    consistency: str | None
    non_negative: bool
    kind: str | None

    def __getstate__(self) -> dict[str, Any]:
        # Computed again where it is needed.
        derived = ("simulation", "positive")
        return {name: value for name, value in vars(self).items() if name not in derived}

    @property
    def tree(self) -> Tree:
        """Its bins are positions."""
        return self.blue.tree

    @property
    def name(self) -> Any:
        """Of the attribute."""
        return self.domain.names[0]

    @property
    def attribute(self) -> Any:
        """The one attribute of the domain."""
        return only_attribute(self.domain)

    @property
    def projected(self) -> bool:
        """Whether the estimates are not those of the unbiased least squares."""
        return self.non_negative or self.kind == "adaptive"

    @cached_property
    def nodes(self) -> np.ndarray:
        """Estimates of all nodes."""
        return self._estimate(self.blue, self.noisy)

    @cached_property
    def positive(self) -> HistogramModel:
        """The same release with estimates that are not negative, for quantiles and rows."""
        return self if self.projected else replace(self, non_negative=True)

    @cached_property
    def simulation(self) -> np.ndarray:
        """Errors of the leaves in repetitions of the release, shape (n_repetitions, n_leaves)."""
        return simulated_errors(self.blue, self.nodes, self._estimate)

    def _estimate(self, blue: Blue, values: np.ndarray) -> np.ndarray:
        if self.projected:
            return hierarchy.non_negative(blue, values, even=self.kind == "adaptive")
        if self.consistency == "blue":
            return blue.estimate(values)
        if self.consistency == "iterative":
            return hierarchy.gblue(blue.tree, values, blue.noise_variances)[0]
        unmeasured = ~blue.measured
        return blue.tree.sum_up(values.astype(np.float64), gain=unmeasured.astype(np.float64))

    # -- what a synopsis asks of a model

    @property
    def total(self) -> float:
        """Estimated number of records."""
        return self.value(np.ones(len(self.tree.leaves)))

    def answer(self, queries: Sequence[Any]) -> FloatArray:
        """Weighted sum of bins, one float for each query."""
        found = [self.value(self._weights_of_leaves(self._codes([each]))) for each in queries]
        return np.array(found, dtype=np.float64)

    def error(self, weights: Any, level: float) -> Error:
        """Error of one answer."""
        return self.error_of_parts([weights], level)

    def error_of_parts(self, parts: Sequence[Any], level: float) -> Error:
        """Error of a sum of answers, whose weights may have any sign."""
        weights = self._codes(parts)[self.codes]
        mean = self.tree.leaf_weights(weights)
        varying = np.maximum(self.tree.leaf_weights(weights**2) - mean**2, 0.0)
        value, std = self.value(mean), self.std(mean, varying)
        if math.isinf(std):
            return Error(std, math.inf, math.inf, _UNDETERMINED)
        least, most, guarantee = mean, mean, _LAW.format(100 * level)
        if len(mean) < len(weights):
            starts = self.tree.lower[self.tree.leaves]
            least, most = (each.reduceat(weights, starts) for each in (np.minimum, np.maximum))
            guarantee += "; records may lie anywhere in the groups of bins that were measured"
        low = self._unbiased_bounds(least, level)[0]
        high = self._unbiased_bounds(most, level)[1]
        if self.projected or self.kind is not None:
            low, high = min(low, value), max(high, value)
            guarantee += "; widened to hold the value"
        if self.projected:
            guarantee += "; the standard error is that of the value, by simulation"
        return Error(std, value - low, high - value, guarantee + ".")

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Estimated counts of all codes."""
        return self.by_code(self.bin_counts())

    def _codes(self, parts: Sequence[Any]) -> FloatArray:
        """Weights of the codes in a sum of answers."""
        ones = np.ones(self.domain.shape[0])
        return np.sum([part.get(0, ones) for part in parts], axis=0)

    # -- counts of bins and of weighted leaves

    def _weights_of_leaves(self, code_weights: np.ndarray) -> np.ndarray:
        """Mean weight of the codes of each leaf."""
        return self.tree.leaf_weights(code_weights[self.codes])

    def _node_weights(self, leaf_weights: np.ndarray) -> np.ndarray:
        """Weight of each noisy count in the unbiased answer."""
        if self.consistency is None:
            return hierarchy.cover_weights(self.tree, self.blue.measured, leaf_weights)
        return self.blue.noise_weights(leaf_weights)

    def value(self, leaf_weights: np.ndarray) -> float:
        """A weighted sum of the leaves."""
        if self.consistency is None:
            return float(self._node_weights(leaf_weights) @ self.noisy)
        return float(self.nodes[self.tree.leaves] @ leaf_weights)

    def unbiased_std(self, leaf_weights: np.ndarray) -> float:
        """Standard error of the unbiased answer."""
        if self.consistency is None:
            return math.sqrt(sum_variance(self._node_weights(leaf_weights), self.blue))
        return math.sqrt(self.blue.query_variance(leaf_weights))

    def std(self, leaf_weights: np.ndarray, of_record: np.ndarray) -> float:
        """Standard error of an answer; ``of_record`` as for `placement_variance`."""
        std = self.unbiased_std(leaf_weights)
        if self.projected and math.isfinite(std):
            std = math.sqrt(np.mean((self.simulation @ leaf_weights) ** 2))
        if self.kind is None:
            return std
        placement = placement_variance(self.tree, self.nodes, of_record)
        return math.hypot(std, math.sqrt(placement))

    def _unbiased_bounds(self, leaf_weights: np.ndarray, level: float) -> tuple[float, float]:
        """An interval by the exact law of the noise."""
        weights = self._node_weights(leaf_weights)
        half = hierarchy.noise_quantile(weights, self.blue.noise_variances, level)
        centre = float(weights @ self.noisy)
        return centre - half, centre + half

    def bin_counts(self) -> np.ndarray:
        """Estimate for each position; a leaf of several bins is spread evenly."""
        widths = self.tree.leaf_widths
        return np.repeat(self.nodes[self.tree.leaves] / widths, widths)

    def bin_errors(self) -> np.ndarray:
        """Standard error of each code."""
        tree = self.tree
        width = tree.leaf_widths
        if self.projected:
            variances = (self.simulation**2).mean(axis=0)
        elif self.consistency is None:
            variances = self.blue.noise_variances[tree.leaves]
        else:
            variances = self.blue.variances[tree.leaves]
        each = variances / width**2
        if self.kind is not None:
            each += np.maximum(self.nodes[tree.leaves], 0.0) / width * (1.0 - 1.0 / width)
        return self.by_code(np.repeat(np.sqrt(each), width))

    def by_code(self, by_position: np.ndarray) -> np.ndarray:
        """Numbers of positions in the order of the codes."""
        out = np.empty(len(by_position))
        out[self.codes] = by_position
        return out

    def bars(self, edges: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimates of consecutive groups of codes, and the ends of their intervals."""
        codes = np.arange(len(self.codes))
        groups = [{0: ((a <= codes) & (codes < b)).astype(float)} for a, b in pairwise(edges)]
        counts = self.answer(groups)
        errors = [self.error(group, level) for group in groups]
        below, above = np.array([(each.below, each.above) for each in errors]).T
        return counts, counts - below, counts + above

    def table(self) -> pd.DataFrame:
        """As `RangeTreeHistogram.to_frame`."""
        attribute = self.attribute
        missing = [None] * attribute.nullable
        columns: dict[str, Any]
        if isinstance(attribute, Numeric):
            edges = attribute.edges
            special = np.array(attribute.special, dtype=edges.dtype)
            low: Any
            high: Any
            low, high = (np.append(ends, special) for ends in (edges[:-1], edges[1:]))
            if attribute.nullable:
                low, high = (np.append(ends.astype(float), np.nan) for ends in (low, high))
            if isinstance(attribute, Date | Datetime):
                low, high = attribute.shown(low), attribute.shown(high)
            columns = {"lower": low, "upper": high}
        else:
            columns = {self.name: list(attribute.categories) + missing}
        title = "count" if "count" not in columns else "count_"
        return pd.DataFrame(
            {**columns, title: self.by_code(self.bin_counts()), "std_error": self.bin_errors()}
        )
