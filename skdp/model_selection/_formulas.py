"""Scores of classifiers as formulas of counts: no noise and no rows here.

Counts of scores have bins in increasing order of the score as their last axis, and confusion
matrices true labels in their last axis but one and predicted labels in their last, which may have
more entries for labels that are not declared. All other axes are looped over. Noisy counts may be
negative; denominators are at least 1.
"""

from __future__ import annotations

import numpy as np

from .._types import FloatArray

__all__ = [
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "confusion",
    "f1",
    "f1_macro",
    "rates",
    "roc_auc",
]


def _at_least_one(counts: FloatArray) -> FloatArray:
    return np.maximum(counts, 1.0)


def roc_auc(negatives: FloatArray, positives: FloatArray) -> FloatArray:
    """Share of pairs that are in order; pairs in one bin count half."""
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    pairs = _at_least_one(negatives.sum(-1)) * _at_least_one(positives.sum(-1))
    return np.asarray((below * positives).sum(-1) / pairs)


def average_precision(negatives: FloatArray, positives: FloatArray) -> FloatArray:
    """Mean over the positives of the precision at their bin."""
    right = np.cumsum(positives[..., ::-1], axis=-1)
    wrong = np.cumsum(negatives[..., ::-1], axis=-1)
    precision = np.clip(right / np.maximum(right + wrong, 1e-9), 0.0, 1.0)
    total = _at_least_one(positives.sum(-1))
    return np.asarray((positives[..., ::-1] * precision).sum(-1) / total)


def rates(counts: FloatArray) -> FloatArray:
    """Share of records above each end of a bin, from the last end to the first: 0 to 1."""
    above = np.cumsum(counts[..., ::-1], axis=-1)
    share = above / _at_least_one(counts.sum(-1))[..., None]
    start = np.zeros((*share.shape[:-1], 1))
    return np.concatenate([start, share], axis=-1)


def confusion(negatives: FloatArray, positives: FloatArray, cut: int) -> FloatArray:
    """Matrix of two labels: bins from ``cut`` on are predicted positive."""
    cells = [
        [counts[..., :cut].sum(-1), counts[..., cut:].sum(-1)] for counts in (negatives, positives)
    ]
    return np.moveaxis(np.array(cells, dtype=np.float64), (0, 1), (-2, -1))


def accuracy(matrix: FloatArray) -> FloatArray:
    """Share of the diagonal."""
    right = np.trace(matrix, axis1=-2, axis2=-1)
    return np.asarray(right / _at_least_one(matrix.sum((-2, -1))))


def balanced_accuracy(matrix: FloatArray) -> FloatArray:
    """Mean over the true labels of the share that was predicted."""
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    recall = np.clip(right / _at_least_one(matrix.sum(-1)), 0.0, 1.0)
    return np.asarray(recall.mean(-1))


def f1(matrix: FloatArray) -> FloatArray:
    """F1 of the second of two labels; of more labels the mean over all."""
    each = _each_f1(matrix)
    return np.asarray(each[..., 1] if each.shape[-1] == 2 else each.mean(-1))


def f1_macro(matrix: FloatArray) -> FloatArray:
    """Mean over the labels of F1."""
    return np.asarray(_each_f1(matrix).mean(-1))


def _each_f1(matrix: FloatArray) -> FloatArray:
    right = np.diagonal(matrix, axis1=-2, axis2=-1)
    predicted = matrix.sum(-2)[..., : right.shape[-1]]
    found = 2.0 * right / _at_least_one(matrix.sum(-1) + predicted)
    return np.clip(found, 0.0, 1.0)
