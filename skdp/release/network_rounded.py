"""Records of a Bayesian network with rounded counts: each column within its parents' codes."""

from __future__ import annotations

import numpy as np

from .._types import CodeArray, IntArray
from .network_density import NetworkDensity
from .rounding import round_line, round_table
from .strata import deal, share_of, sort_within

__all__ = ["round_network"]


def round_network(
    density: NetworkDensity, n_samples: int, generator: np.random.Generator
) -> CodeArray:
    """Records whose counts are the expected ones, rounded; in random order.

    The codes of an attribute are rounded as a table within each combination of its parents' groups
    that was drawn, and dealt evenly there along an order of the attributes drawn before.

    Parameters
    ----------
    density : NetworkDensity
    n_samples : int
    generator : numpy.random.Generator

    Returns
    -------
    ndarray of int32, shape (n_samples, n_attributes)
    """
    codes = np.zeros((n_samples, len(density.shape)), dtype=np.int32, order="F")
    rows: IntArray = generator.permutation(n_samples)
    for number, (axis, node) in enumerate(density.nodes.items()):
        if node.parents:
            drawn, stratum = np.unique(density.rows_of(node, codes), return_inverse=True)
            rows = sort_within(rows, stratum)
            sizes = np.bincount(stratum, minlength=len(drawn))
            counts = round_table(node.table[drawn] * sizes[:, None], sizes, generator)
        else:
            sizes = np.array([n_samples])
            counts = round_line(node.table[0], n_samples, generator)[None]
        values = np.tile(np.arange(counts.shape[1], dtype=np.int32), len(counts))
        line = np.repeat(values, counts.ravel())
        codes[rows, axis] = deal(line, sizes, share_of(number), generator)
    return codes
