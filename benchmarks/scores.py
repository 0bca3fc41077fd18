"""Scores that several benchmarks share: how close synthetic rows are to the records.

All of them are exact and not private.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from skdp.quality import k_marginal, total_variation

__all__ = ["joint_codes", "k_marginal", "observer_auc", "spearman_difference", "total_variation"]

# Numbers are compared in this many bins of equal width.
BINS = 16
_OBSERVED_ROWS = 20_000


def spearman_difference(records: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    """Mean absolute difference of the rank correlations of all pairs of columns of numbers.

    Missing values are left out pair by pair; a correlation that is not defined counts as 0.

    Parameters
    ----------
    records, synthetic : DataFrame
        Columns of numbers with more than two distinct values among the records are compared.

    Returns
    -------
    float
        0 to 2; NaN with fewer than two such columns.
    """
    names = [
        name
        for name in records.columns
        if pd.api.types.is_numeric_dtype(records[name]) and records[name].nunique() > 2
    ]
    if len(names) < 2:
        return float("nan")
    tables = [
        frame[names].astype(float).corr(method="spearman").fillna(0.0).to_numpy()
        for frame in (records, synthetic)
    ]
    upper = np.triu_indices(len(names), 1)
    return float(np.abs(tables[0] - tables[1])[upper].mean())


def joint_codes(
    records: pd.DataFrame,
    synthetic: pd.DataFrame,
    bins: int = BINS,
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[int, ...]]:
    """Both tables as codes: categories as they are, numbers in bins of the range of the records.

    Parameters
    ----------
    records, synthetic : DataFrame with the same columns
    bins : int, default=16
        Bins of equal width for columns of numbers with more than ``bins`` distinct values.
    ranges : mapping of str to (low, high), default=None
        Ends of the bins of columns, which then have bins however few values there are; by
        default those of the records.

    Returns
    -------
    codes of records, codes of synthetic rows : ndarray of shape (n, d)
        A missing value has a code of its own.
    shape : tuple of int
        Number of codes of each column.
    """
    sides: list[list[NDArray[np.int64]]] = [[], []]
    sizes = []
    for name in records.columns:
        both = [frame[name] for frame in (records, synthetic)]
        numeric = all(
            pd.api.types.is_numeric_dtype(one) or pd.api.types.is_datetime64_any_dtype(one)
            for one in both
        )
        declared = ranges is not None and name in ranges
        if numeric and (declared or records[name].nunique() > bins):
            numbers = [_numbers(one) for one in both]
            ends = np.nanmin(numbers[0]), np.nanmax(numbers[0])
            low, high = ends if ranges is None else ranges.get(name, ends)
            cut = [np.floor((x - low) / (high - low) * bins) for x in numbers]
            codes = [np.where(np.isnan(x), bins, np.clip(x, 0, bins - 1)) for x in cut]
            sizes.append(bins + 1)
        else:
            whole = pd.concat([one.astype(object) for one in both], ignore_index=True)
            found, values = pd.factorize(whole.where(whole.notna(), None), use_na_sentinel=False)
            codes = [found[: len(records)], found[len(records) :]]
            sizes.append(len(values))
        for side, code in zip(sides, codes, strict=True):
            side.append(code.astype(np.int64))
    left, right = (np.column_stack(side) for side in sides)
    return left, right, tuple(sizes)


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    if pd.api.types.is_datetime64_any_dtype(column):
        column = (column - pd.Timestamp(0, tz=column.dt.tz)) / pd.Timedelta(days=1)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def observer_auc(records: pd.DataFrame, synthetic: pd.DataFrame, seed: int = 0) -> float:
    """AUC of boosted trees that tell records from synthetic rows: 0.5 where they cannot.

    Out-of-fold predictions over three folds, on at most 20,000 rows of each, equally many.
    """
    n = min(len(records), len(synthetic), _OBSERVED_ROWS)
    both = [frame.sample(n, random_state=seed) for frame in (records, synthetic)]
    X = np.column_stack([_observed(*(one[name] for one in both)) for name in records.columns])
    y = np.repeat([0, 1], n)
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    trees = HistGradientBoostingClassifier(max_iter=100, random_state=seed)
    scores = cross_val_predict(trees, X, y, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(y, scores))


def _observed(left: pd.Series, right: pd.Series) -> NDArray[np.float64]:
    """A column of both tables as numbers: as they are, or the frequency rank of a category."""
    if all(
        pd.api.types.is_numeric_dtype(one) or pd.api.types.is_datetime64_any_dtype(one)
        for one in (left, right)
    ):
        return np.concatenate([_numbers(left), _numbers(right)])
    texts = pd.concat([left, right], ignore_index=True).astype(object)
    ranks = texts.map({value: rank for rank, value in enumerate(texts.value_counts().index)})
    return ranks.to_numpy(dtype=np.float64)
