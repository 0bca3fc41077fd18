"""How well records can be told from synthetic rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict

__all__ = ["propensity_mse"]

_MOST_ROWS, _FOLDS = 10_000, 3


def propensity_mse(
    records: NDArray[np.integer],
    synthetic: NDArray[np.integer],
    categorical: Sequence[bool],
    rng: np.random.Generator,
) -> float:
    """Mean squared distance from 1/2 of the estimated probability that a row is synthetic.

    Boosted trees estimate it out of fold, on at most 10,000 rows of each table, equally many: 0 if
    nothing can be told, 0.25 if everything can. NaN with too few rows.

    Parameters
    ----------
    records, synthetic : ndarray of int, shape (n, d)
        Codes.
    categorical : sequence of bool
        Whether the codes of each column have no order.
    rng : numpy.random.Generator

    References
    ----------
    J. Snoke, G. M. Raab, B. Nowok, C. Dibben, A. Slavkovic, "General and specific utility measures
    for synthetic data", Journal of the Royal Statistical Society A 181(3), 2018.
    """
    n = min(len(records), len(synthetic), _MOST_ROWS)
    if n < 2 * _FOLDS:
        return float("nan")
    X = np.concatenate([codes[rng.permutation(len(codes))[:n]] for codes in (records, synthetic)])
    y = np.repeat([0, 1], n)
    seed = int(rng.integers(2**31))
    trees = HistGradientBoostingClassifier(
        max_iter=30, categorical_features=list(categorical), random_state=seed
    )
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    chance = cross_val_predict(trees, X, y, cv=folds, method="predict_proba")[:, 1]
    return float(np.mean((chance - 0.5) ** 2))
