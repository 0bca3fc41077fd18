"""Differences of rank correlations."""

from __future__ import annotations

import numpy as np
import pandas as pd

__all__ = ["spearman_difference"]


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

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.quality import spearman_difference
    >>> up = pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]})
    >>> spearman_difference(up, up.assign(b=[3, 2, 1]))
    2.0
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
