"""The whole measurement of PrivBayes, from a table of counts to a released network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._random import NoiseSource, noise_source, sampling_generator
from ..._types import FloatArray, IntArray
from ..._validation import as_share
from ...hierarchy import project_to_simplex
from ...mechanisms import discrete_laplace
from ...release import Conditional, NetworkDensity, NetworkModel
from ...rows import Counts
from .network import Levels, Node, exact_counts, learn_network
from .scores import SCORES

__all__ = [
    "NEGATIVES",
    "check_parts",
    "conditional",
    "largest_table",
    "privbayes",
    "privbayes_parts",
    "used_attributes",
]

# --- the budget of PrivBayes, and how large a table may be to be useful (theta-usefulness)

# Share of epsilon for the number of records.
_TOTAL_SHARE = Fraction(2, 100)
# The least rate of noise that fits into 64-bit integers is 2**-50; a budget is rounded down by less
# than half before noise is drawn.
_LEAST_RATE = Fraction(1, 2**49)


def used_attributes(shape: Sequence[int]) -> list[int]:
    """Attributes with more than one code; the others carry no information."""
    return [axis for axis, size in enumerate(shape) if size > 1]


def privbayes_parts(epsilon: Fraction, shape: Sequence[int], beta: Any) -> dict[str, Fraction]:
    """Divide epsilon between the number of records, the network and its tables.

    Parameters
    ----------
    epsilon : Fraction
    shape : sequence of int
        Number of codes of each attribute.
    beta : number
        Share of epsilon for the network, from 0.001 to 0.979.

    Returns
    -------
    dict of str to Fraction
        "total" (2%), "network" and "tables"; they sum to epsilon. With fewer than three
        attributes that have a choice there is only one network, and it costs nothing.

    Raises
    ------
    TypeError, ValueError
        If ``beta`` is not such a number.
    """
    told = "it chooses the network. The total takes 0.02 and the tables the rest; 0.3 is usual."
    share = as_share(beta, "beta", Fraction(979, 1000), meaning=told)
    total = epsilon * _TOTAL_SHARE
    if len(used_attributes(shape)) < 3:
        return {"total": total, "tables": epsilon - total}
    network = epsilon * share
    return {"total": total, "network": network, "tables": epsilon - total - network}


def check_parts(parts: Mapping[str, Fraction], n_attributes: int, score_range: int) -> None:
    """Refuse parts whose noise might not fit into integers, before anything is spent.

    Parameters
    ----------
    parts : mapping of str to Fraction
        From `privbayes_parts`.
    n_attributes : int
        Those with more than one code.
    score_range : int
        The largest that the score can have.

    Raises
    ------
    ValueError
        If a part is too little to be divided among what it pays for.
    """
    least = {
        "total": _LEAST_RATE,
        "network": _LEAST_RATE * score_range * max(n_attributes - 1, 1),
        "tables": _LEAST_RATE * max(n_attributes, 1),
    }
    for name, part in parts.items():
        if part < least[name]:
            raise ValueError(
                f"The part {name!r} of epsilon is {float(part):.3g} for one row, and with "
                f"{n_attributes} columns it needs {float(least[name]):.3g}: noise would not fit "
                "into 64-bit integers. Use a larger epsilon"
                + (", a larger beta, or score_function='R'." if name == "network" else ".")
            )


def largest_table(
    total: int, tables: Fraction, n_tables: int, theta: Fraction, max_cells: int
) -> int:
    """Largest number of cells of a theta-useful table.

    A table of m cells with noise of scale b is theta-useful if its mean count, n / m, is at least
    theta times b. Here b is ``n_tables / tables``: one record changes one cell of each table by
    one. (In the paper one record is replaced by another, which changes two cells, so that its
    scale is twice as large and its tables are half as large.)

    Parameters
    ----------
    total : int
        The released number of records, never the true one; negative counts as zero.
    tables : Fraction
        Budget of all tables together.
    n_tables : int
    theta : Fraction
    max_cells : int
        Public limit.
    """
    return min(max_cells, int(max(total, 0) * tables / (n_tables * theta)))


# --- the measurement


def privbayes(
    table: Counts,
    parts: dict[str, Fraction],
    *,
    levels: Levels | None = None,
    score_function: str = "R",
    theta: Fraction = Fraction(4),
    max_candidates: int = 200,
    max_cells: int = 1 << 16,
    negatives: str = "project",
    random_state: NoiseSource | int | None = None,
) -> NetworkModel:
    """Choose and measure a Bayesian network within the parts of `privbayes_parts`.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    parts : dict of str to Fraction
    levels : Levels, default=None
        For each attribute the groups of its codes at which it can be a parent, the finest first;
        None: its codes only.
    score_function : {"R", "F", "mutual_information"}, default="R"
        "F" needs attributes of two codes.
    theta : Fraction, default=4
        Mean count of a table's cells in units of the scale of their noise, at least.
    max_candidates, max_cells : int
        See `learn_network` and `largest_table`.
    negatives : {"project", "zero"}, default="project"
        See `conditional`.
    random_state : None, int or NoiseSource, default=None
    """
    # Privacy. The total (sensitivity 1), the selections of the network, and the tables compose one
    # after the other; their parts sum to epsilon. The limit on the size of tables is computed from
    # the released total, and only that decides how many parents there may be.
    source = noise_source(random_state)
    total = int(discrete_laplace(table.n, parts["total"], random_state=source))
    axes = used_attributes(table.shape)
    if levels is None:
        levels = [[None] for _ in table.shape]
    nodes = [Node(axis, ()) for axis in range(len(table.shape)) if axis not in axes]
    laws = [np.ones((1, 1)) for _ in nodes]
    if axes:
        chosen = learn_network(
            table,
            axes,
            levels,
            SCORES[score_function](total),
            parts.get("network", Fraction(0)),
            largest_table(total, parts["tables"], len(axes), theta, max_cells),
            max_candidates,
            sampling_generator(source),
            source,
        )
        noisy = measure_tables(table, chosen, levels, parts["tables"], source)
        nodes += chosen
        laws += [conditional(counts, total, negatives) for counts in noisy]
    density = NetworkDensity(
        table.shape,
        [
            Conditional(
                node.axis,
                tuple(axis for axis, _ in node.parents),
                tuple(levels[axis][level] for axis, level in node.parents),
                law,
            )
            for node, law in zip(nodes, laws, strict=True)
        ],
    )
    return NetworkModel(density, float(total))


def measure_tables(
    table: Counts, nodes: Sequence[Node], levels: Levels, epsilon: Fraction, source: NoiseSource
) -> list[IntArray]:
    """Noisy joint counts of every attribute and its parents, (n_groups, size) each."""
    # Privacy. Released: the counts of one table for each node. A record is in one cell of each, so
    # the sensitivity of all of them together is their number. Cells that are empty get noise like
    # the others. Which tables there are was selected before.
    exact = list(exact_counts(table, nodes, levels))
    flat = np.concatenate([each.ravel() for each in exact])
    noisy = discrete_laplace(flat, epsilon, len(nodes), random_state=source)
    ends = np.cumsum([each.size for each in exact])
    parts = np.split(noisy, ends[:-1])
    return [part.reshape(each.shape) for each, part in zip(exact, parts, strict=True)]


# --- from noisy joint counts to conditional probabilities

NEGATIVES = ("project", "zero")


def conditional(noisy: IntArray, total: int, negatives: str) -> FloatArray:
    """Probabilities of an attribute's codes for each combination of its parents.

    Parameters
    ----------
    noisy : ndarray of int64, shape (n_groups, size)
        Released joint counts.
    total : int
        Released number of records.
    negatives : {"project", "zero"}
        How negative counts are removed: by the nearest counts that are not negative and sum to the
        total, or by setting them to zero, as the paper does.

    Returns
    -------
    ndarray of float64, shape (n_groups, size)
        Rows sum to 1. Where no record is left, a row is the mean of the others.

    Examples
    --------
    >>> conditional(np.array([[30, 10], [-4, 0]]), 40, "zero").tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    if negatives == "project":
        counts = project_to_simplex(noisy.ravel(), max(float(total), 0.0)).reshape(noisy.shape)
    else:
        counts = np.maximum(noisy, 0).astype(np.float64)
    overall = counts.sum(axis=0)
    overall = overall if overall.sum() > 0 else np.ones(noisy.shape[1])
    mass = counts.sum(axis=1, keepdims=True)
    rows = np.where(mass > 0, counts, overall)
    result: FloatArray = rows / rows.sum(axis=1, keepdims=True)
    return result
