"""Errors of estimates that are no longer linear in the noisy counts: by simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._arrays import running_sums
from .._random import sampling_generator
from ..hierarchy import Blue, Tree

__all__ = ["placement_variance", "range_errors", "simulated_errors"]

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


def range_errors(errors: np.ndarray, tree: Tree, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Root mean square errors of ranges of bins, from errors of the leaves."""
    width = tree.leaf_widths
    squares = np.zeros(len(start))
    for leaf_errors in errors:
        running = running_sums(np.repeat(leaf_errors / width, width))
        at = np.arange(len(running))
        squares += (np.interp(stop, at, running) - np.interp(start, at, running)) ** 2
    return np.sqrt(squares / len(errors))


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
