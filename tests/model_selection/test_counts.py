"""Formulas of metrics are those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as exact

from skdp.model_selection import (
    _counts,
)


def test_formulas_are_those_of_scikit_learn():
    places = np.random.default_rng(1).integers(0, 9, 500)
    truth = np.random.default_rng(2).integers(0, 2, 500)
    counts = [np.bincount(places[truth == label], minlength=9).astype(float) for label in (0, 1)]
    assert _counts.roc_auc(*counts) == pytest.approx(exact.roc_auc_score(truth, places))
    found = _counts.average_precision(*counts)
    assert found == pytest.approx(exact.average_precision_score(truth, places))
    # Axes in front are looped over.
    many = np.stack([exact.confusion_matrix(truth, places >= 4)] * 3)
    assert _counts.f1(many).tolist() == [pytest.approx(exact.f1_score(truth, places >= 4))] * 3
