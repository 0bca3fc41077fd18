"""Naive Bayes: the classes, and the groups of each column in each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..._types import FloatArray
from ..additive import Logit, Prior, Records, first_round, known_share, monotone
from .tuning import TUNING

__all__ = ["NaiveBayesModel", "fit_naive_bayes"]


@dataclass(frozen=True, eq=False)
class NaiveBayesModel:
    """Probabilities, as released.

    Attributes
    ----------
    prior : ndarray of shape (n_classes,)
        Logarithms of the probabilities of the classes.
    groups : tuple of ndarray of shape (n_classes, n_groups)
        Of each column the logarithms of the probabilities of its groups in each class.
    std : tuple of ndarray of shape (n_outputs, n_groups)
        Standard errors from the noise: with two classes of the difference of both, with more of
        each class.
    calibration : (ndarray, ndarray) or None
        With two classes points of a rising line that calibrates: logits of the second class by the
        probabilities above, and what they mean.
    """

    prior: FloatArray
    groups: tuple[FloatArray, ...]
    std: tuple[FloatArray, ...]
    calibration: tuple[FloatArray, FloatArray] | None


def fit_naive_bayes(
    records: Records,
    priors: Sequence[Prior],
    link: Logit,
    epsilon: Fraction,
    total: float,
    random_state: Any,
) -> NaiveBayesModel:
    """Learn the classes and each column given the class.

    Parameters
    ----------
    records : Records
    priors : sequence of Prior
        What the score of a class may look like along the groups of each column.
    link : Logit
    epsilon : Fraction
    total : float
        Released number of records.
    random_state : NoiseSource
    """
    # Privacy. Released: the histograms of the first round of an additive model, and with two
    # classes that of the scores which it gives; sequential composition. The rest is computed from
    # them.
    part = known_share(epsilon, link, total)
    draft = first_round(records, link, priors, epsilon - part, total, random_state)
    prior = np.log(link.probabilities(draft.intercept[None])[0])
    model = draft.finished()
    found = []
    for shape, sizes in zip(model.shapes, model.sizes, strict=True):
        # By Bayes' theorem, from the classes of each group and the sizes of the groups.
        classes = link.probabilities(draft.intercept + shape)
        joint = np.maximum(sizes, TUNING.records)[:, None] * np.maximum(classes, 1e-12)
        found.append(np.log(joint / joint.sum(axis=0)).T.copy())
    calibration = None
    if part:
        scores, logits = monotone(records, draft, part, random_state)
        # Scores and probabilities of a row differ by a constant in each column.
        for shape, table in zip(model.shapes, found, strict=True):
            scores = scores + (table[1, 0] - table[0, 0] - shape[0, 0])
        calibration = scores, logits
    errors = tuple(each.T.copy() for each in model.std_errors)
    return NaiveBayesModel(prior, tuple(found), errors, calibration)
