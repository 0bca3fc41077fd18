"""What a histogram will measure: tree and budget, from public facts or from released counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .. import hierarchy
from .._random import sampling_generator
from .._validation import check_choice, check_flag, is_word
from ..domain import Categorical, Domain, Numeric, Taxonomy
from ..exceptions import DomainError
from ..hierarchy import Blue, Tree
from ..kernels import lines
from ..rows import list_entries

# --- reading the column and the domain of a histogram


def as_table(X: Any) -> Any:
    """One column as a table; everything else as it is."""
    if hasattr(X, "to_frame") and not hasattr(X, "columns"):
        return X.to_frame()
    if isinstance(X, np.ndarray) and X.ndim == 1:
        return X[:, None]
    if isinstance(X, list | tuple):
        # Entry by entry: a list in the place of a number is an odd value, and no other table.
        lengths = {_length(row) for row in X}
        return X if len(lengths) == 1 and min(lengths) > 1 else list_entries(X)[:, None]
    return X


def _length(row: Any) -> int:
    plain = type(row) in (list, tuple) or (type(row) is np.ndarray and row.ndim == 1)
    return len(row) if plain else 0


def only_attribute(domain: Domain) -> Any:
    """The attribute of a domain that must have just one."""
    if len(domain.names) != 1:
        raise DomainError(
            f"A RangeTreeHistogram has one attribute, but there are {len(domain.names)}: "
            f"{list(domain.names)[:8]}. Select a column, and declare its domain alone."
        )
    return domain.attributes[0]


def declared_attribute(declared: Any) -> Any:
    """The attribute, before there are rows to name it."""
    if isinstance(declared, Domain):
        return only_attribute(declared)
    if isinstance(declared, Numeric | Categorical):
        return declared
    if isinstance(declared, list | tuple) and len(declared) == 1:
        return declared[0]
    raise TypeError(
        f"domain must be a Domain of one column, a Numeric or a Categorical, got {declared!r}."
    )


# --- tree and budget

# Default branching when a budget but no tree is given: near the best of all uniform trees.
_DEFAULT_BRANCHING = 16
PARTITIONS = (None, "dawa", "ahp", "adaptive", "auto")


class Design(NamedTuple):
    """Tree and budget: public, and known before a value is read."""

    tree: Tree
    # Code of the attribute at each position of the tree.
    codes: np.ndarray
    # Share of epsilon of each node, in millionths.
    shares: np.ndarray


@dataclass(frozen=True, eq=False)
class Plan:
    """The parameters of `RangeTreeHistogram` that decide what is measured."""

    tree: Any
    branching: Any
    budget: Any
    workload: Any
    consistency: Any
    non_negative: Any
    partition: Any

    def design_of(self, attribute: Any) -> Design:
        """Tree and budget, from public facts alone; those of a full tree if data divide it."""
        self.partition_of(attribute)
        check_choice(self.consistency, "consistency", ("blue", "iterative", None))
        check_flag(self.non_negative, "non_negative")
        if self.non_negative and self.consistency is None:
            raise ValueError(
                "non_negative=True divides each count among the children, so it needs "
                "consistency='blue' or 'iterative'."
            )
        tree, codes = self.tree_of(attribute)
        shares = self.shares_of(tree)
        if attribute.nullable:
            tree, shares = hierarchy.with_extra_bin(tree, shares)
            codes = np.append(codes, attribute.n_values)
        millionths = hierarchy.exact_shares(tree, shares)
        if self.consistency is None and (millionths[tree.leaves] == 0).any():
            raise ValueError(
                "Without consistency every bin is answered from its own count, so the leaves "
                "need a share of epsilon."
            )
        return Design(tree, codes, millionths)

    def tree_of(self, attribute: Any) -> tuple[Tree, np.ndarray]:
        """Tree over the values of the attribute, and the code at each of its positions."""
        n = attribute.n_values
        # Special values of numbers stand among the bins, where ranges need them.
        codes = attribute.order()[:n] if isinstance(attribute, Numeric) else np.arange(n)
        given = self.tree
        if given is None and isinstance(attribute, Categorical):
            given = attribute.taxonomy
        if given is not None and not is_word(self.branching, "auto"):
            raise ValueError(
                f"branching={self.branching!r} makes a tree, but one is given already: give tree "
                "(or a taxonomy) or branching."
            )
        if isinstance(given, Taxonomy):
            if isinstance(attribute, Categorical):
                # Its leaves are the categories, in the order of the taxonomy.
                given, codes = Categorical(attribute.categories, taxonomy=given).hierarchy()
            tree = Tree.from_parents(given.parents)
        elif isinstance(given, Tree):
            # A checked copy, without cached results, which the caller cannot change.
            tree = Tree(given.parent, given.lower, given.upper, given.order)
        elif given is not None:
            tree = Tree.from_intervals(given)
        elif isinstance(attribute, Categorical) and not attribute.ordered:
            tree = hierarchy.level_tree(n, [n])
        elif not is_word(self.branching, "auto"):
            tree = hierarchy.balanced_tree(n, self.branching)
        elif is_word(self.budget, "auto"):
            tree = hierarchy.level_tree(n, hierarchy.plan_levels(n, self.workload_of(n)).counts)
        else:
            tree = hierarchy.balanced_tree(n, _DEFAULT_BRANCHING)
        if (np.sort(codes) != np.arange(n)).any():
            raise ValueError("The leaves of the taxonomy must be the categories, each once.")
        if tree.n_bins != n:
            raise ValueError(
                f"The tree has {tree.n_bins} bins, but the attribute has {n} values (without the "
                "missing cell, which is added)."
            )
        return tree, codes

    def shares_of(self, tree: Tree) -> np.ndarray:
        """Share of epsilon of each node, from ``budget``."""
        budget = self.budget
        if isinstance(budget, str):
            if budget == "auto":
                return hierarchy.optimal_shares(tree, self.workload_of(tree.n_bins))
            if budget == "uniform":
                return hierarchy.uniform_shares(tree)
            if budget == "geometric":
                return hierarchy.geometric_shares(tree)
            if budget == "cube-root":
                return hierarchy.cube_root_shares(tree, hierarchy.range_usage(tree))
        else:
            shares = np.asarray(budget, dtype=np.float64)
            if shares.shape == (tree.n_levels,):
                return hierarchy.level_shares(tree, shares)
            if shares.shape == (tree.n_nodes,):
                return shares
        raise ValueError(
            "budget must be 'auto', 'uniform', 'geometric', 'cube-root', or hold one share for "
            f"each of the {tree.n_levels} levels or {tree.n_nodes} nodes of the tree, got "
            f"{budget!r}."
        )

    def workload_of(self, n_bins: int) -> hierarchy.Workload:
        """The ranges that "auto" plans for."""
        return hierarchy.as_workload(self.workload, n_bins)

    def partition_of(self, attribute: Any) -> str | None:
        """How the bins are grouped by the data: from the parameters and the attribute alone."""
        check_choice(self.partition, "partition", PARTITIONS)
        ordered = not isinstance(attribute, Categorical) or attribute.ordered
        taxonomy = isinstance(attribute, Categorical) and attribute.taxonomy is not None
        planned = (
            self.tree is None
            and not taxonomy
            and is_word(self.branching, "auto")
            and is_word(self.budget, "auto")
            and is_word(self.consistency, "blue")
        )
        if self.partition == "auto":
            return "adaptive" if ordered and planned else None
        if self.partition is None:
            return None
        if not planned:
            raise ValueError(
                f"partition={self.partition!r} makes the tree and its budget from released counts: "
                "leave tree, branching, budget and consistency at their defaults, and declare "
                "categories without a taxonomy."
            )
        if not ordered and self.partition != "ahp":
            raise ValueError(
                f"partition={self.partition!r} groups neighbouring bins, but these categories have "
                "no order. Declare them with ordered=True if they have one, or use "
                "partition='ahp', which needs none."
            )
        return str(self.partition)

    def release(
        self, kind: str, attribute: Any, counts: np.ndarray, loss: Any, source: Any
    ) -> lines.LineRelease:
        """Buckets and noisy counts that follow the data; ``counts`` are exact, by code."""
        n = attribute.n_values
        codes = attribute.order()[:n] if isinstance(attribute, Numeric) else np.arange(n)
        codes = np.append(codes, n) if attribute.nullable else codes
        exact, epsilon = counts[codes], loss.epsilon
        if kind == "adaptive":
            plan = hierarchy.plan_levels(n, self.workload_of(n))
            found = lines.adaptive_tree(exact, n, epsilon, plan, random_state=source)
        elif kind == "dawa":
            found = lines.dawa(exact, n, loss.parts, self.workload_of, random_state=source)
        else:
            found = lines.ahp(exact, n, loss.parts, random_state=source)
        return found._replace(order=codes[found.order])


def sum_variance(weights: np.ndarray, blue: Blue) -> float:
    """Noise variance of a weighted sum of the noisy counts."""
    used = weights != 0
    return float(weights[used] ** 2 @ blue.noise_variances[used])


def cover_variances(blue: Blue, workload: hierarchy.Workload, n_bins: int) -> np.ndarray:
    """Mean variances without consistency, over some positions for each length."""
    limit = int(np.clip(1_000_000 // blue.tree.n_nodes, 2, 64))
    means = []
    for length in np.minimum(workload.lengths, n_bins).tolist():
        start = workload.positions(length, n_bins, limit)
        weights = blue.tree.overlaps(start, start + length)
        covers = [hierarchy.cover_weights(blue.tree, blue.measured, column) for column in weights.T]
        means.append(np.mean([sum_variance(cover, blue) for cover in covers]))
    return np.array(means)


def _level_budgets(design: Design) -> list[np.ndarray]:
    """Different shares on each level, apart from those of leaves above the last level."""
    tree = design.tree
    early = tree.is_leaf & (tree.depth < tree.n_levels - 1)
    return [
        np.unique(design.shares[(tree.depth == depth) & ~early]) for depth in range(tree.n_levels)
    ]


def budget_parts(design: Design, epsilon: Fraction) -> dict[str, Fraction]:
    """Epsilon by level where each level has one budget, else in one piece."""
    budgets = _level_budgets(design)
    if all(len(shares) == 1 for shares in budgets):
        sizes = np.diff(design.tree.level_starts)
        millionths = {
            f"level {level} ({size} node{'s' if size > 1 else ''})": int(shares[0])
            for level, (size, shares) in enumerate(zip(sizes, budgets, strict=True))
            if shares[0]
        }
        if sum(millionths.values()) == 10**6:
            return {name: epsilon * Fraction(k, 10**6) for name, k in millionths.items()}
    return {"tree": epsilon}


def partition_parts(kind: str, epsilon: Fraction) -> dict[str, Fraction]:
    """Epsilon for choosing buckets and for counting them."""
    if kind == "adaptive":
        return {"tree": epsilon}
    shares = lines.DAWA_SHARES if kind == "dawa" else lines.AHP_SHARES
    return {name: epsilon * share for name, share in shares.items()}


def level_table(design: Design, epsilon: Fraction) -> pd.DataFrame:
    """Nodes, epsilon and noise of each level of the tree."""
    tree = design.tree
    largest = [shares.max() if len(shares) else 0 for shares in _level_budgets(design)]
    with np.errstate(invalid="ignore"):
        std = np.sqrt(hierarchy.measured_variances(np.array(largest), epsilon))
    return pd.DataFrame(
        {
            "level": np.arange(tree.n_levels),
            "nodes": np.diff(tree.level_starts),
            "epsilon": [float(epsilon * Fraction(int(k), 10**6)) for k in largest],
            "noise_std": std,
        }
    )


# --- errors of estimates that are no longer linear in the noisy counts: by simulation

# Repetitions: as many as fit into this many numbers, within these limits.
_NUMBERS = 4_000_000
_FEWEST, _MOST = 12, 200


def simulated_errors(
    blue: Blue, counts: np.ndarray, estimate: Callable[[Blue, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Errors of the leaves if the released estimates were the truth.

    Reads released numbers only, and is the same at each call.

    Parameters
    ----------
    blue : Blue
    counts : ndarray of float64, shape (n_nodes,)
        The released estimates of all nodes.
    estimate : callable
        Estimates of all nodes from noisy counts of them.

    Returns
    -------
    ndarray of float64, shape (n_repetitions, n_leaves)
    """
    generator = sampling_generator(0)
    leaves, measured = blue.tree.leaves, blue.measured
    # The variance of discrete Laplace noise determines its rate.
    variances = blue.noise_variances[measured]
    rates = 2.0 * np.arcsinh(np.sqrt(0.5 / variances))
    success = -np.expm1(-rates)
    repetitions = int(np.clip(_NUMBERS // len(counts), _FEWEST, _MOST))
    errors = np.empty((repetitions, len(leaves)))
    values = np.zeros(len(counts))
    for errors_once in errors:
        noise = generator.geometric(success) - generator.geometric(success)
        values[measured] = counts[measured] + noise
        errors_once[:] = (estimate(blue, values) - counts)[leaves]
    return errors


def placement_variance(tree: Tree, counts: np.ndarray, of_record: np.ndarray) -> float:
    """Variance of an answer if records fall into the bins of their leaf at random.

    Parameters
    ----------
    tree : Tree
    counts : ndarray of float64, shape (n_nodes,)
    of_record : ndarray of float64, shape (n_leaves,)
        Variance of the weight of one record: p (1 - p) where the share p of a leaf counts.
    """
    inside = np.maximum(counts[tree.leaves], 0.0) * (tree.leaf_widths > 1)
    return float(inside @ of_record)
