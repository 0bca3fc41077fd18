"""A table with a label of two classes, and logistic regression on its true rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from benchmarks import _fidelity_tables
from skdp import Domain

__all__ = ["Task", "load", "true"]


class Task(NamedTuple):
    """Rows, labels as booleans, and the domain of both."""

    X: pd.DataFrame
    y: np.ndarray
    domain: Domain


def load(name: str) -> Task:
    """A table of the fidelity benchmark: its most frequent label against the others."""
    table = _fidelity_tables.load(name)
    rows, target = table.rows, table.target
    if name == "adult":
        rows = rows[~(rows == "?").any(axis=1)]
    y = (rows[target] != rows[target].value_counts().index[0]).to_numpy()
    domain = table.domain.select([column for column in table.domain.names if column != target])
    return Task(rows.drop(columns=target).reset_index(drop=True), y, domain)


def true(task: Task, epsilon: float, seed: int) -> Any:
    """Logistic regression on the rows themselves, in the declared bins."""
    codes = FunctionTransformer(task.domain.encode)
    encoder = OneHotEncoder(handle_unknown="ignore", min_frequency=10)
    return make_pipeline(codes, encoder, LogisticRegression(max_iter=500))
