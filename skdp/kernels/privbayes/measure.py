"""The whole measurement of PrivBayes, from a table of counts to a released network."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource, noise_source, sampling_generator
from ..._types import IntArray
from ...mechanisms import discrete_laplace
from ...release import Conditional, NetworkDensity, NetworkModel
from ...rows import Counts
from .budget import largest_table, used_attributes
from .conditionals import NEGATIVES, conditional
from .network import Levels, Node, exact_counts, learn_network
from .scores import SCORES

__all__ = ["NEGATIVES", "privbayes"]


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
