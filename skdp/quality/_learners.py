"""Five learners that are trained on synthetic rows and tested on records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from .._types import IntArray
from ..domain import Categorical, Domain

__all__ = ["BASELINE", "Contest", "categorical_axes", "training_rows"]

_MOST_LABELS = 20
BASELINE = "most frequent label"
_MOST_CATEGORIES = 255
_MOST_TRAINED = 20_000


def categorical_axes(domain: Domain) -> list[bool]:
    """Which columns trees split by category: those without order that are not too large."""
    return [
        isinstance(attribute, Categorical) and not attribute.ordered and size <= _MOST_CATEGORIES
        for attribute, size in zip(domain.attributes, domain.shape, strict=True)
    ]


def _check_label(domain: Domain, target: str) -> int:
    """Position of the label; ValueError if it has too many codes."""
    label = domain.index(target)
    if domain.shape[label] > _MOST_LABELS:
        raise ValueError(
            f"The column {target!r} has {domain.shape[label]} codes; learners are trained to "
            f"predict at most {_MOST_LABELS}. Name another column in target=, or None to leave "
            "training out."
        )
    return label


def training_rows(codes: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.integer]:
    """At most 20,000 of the rows, at random."""
    if len(codes) <= _MOST_TRAINED:
        return codes
    return codes[rng.permutation(len(codes))[:_MOST_TRAINED]]


class Contest:
    """Five learners and a baseline that predict a column of codes from the others.

    Parameters
    ----------
    domain : Domain
    target : str
        Column with at most 20 codes.
    seed : int
        Seed of the learners.

    Attributes
    ----------
    names : tuple of str
        The learners, and the baseline last.
    """

    def __init__(self, domain: Domain, target: str, seed: int) -> None:
        self.label = _check_label(domain, target)
        kinds = categorical_axes(domain)
        del kinds[self.label]
        sizes = [size for axis, size in enumerate(domain.shape) if axis != self.label]
        places = list(range(len(sizes)))
        encoded = ColumnTransformer(
            [
                (
                    "categories",
                    OneHotEncoder(handle_unknown="ignore"),
                    [place for place in places if kinds[place]],
                ),
                ("numbers", StandardScaler(), [place for place in places if not kinds[place]]),
            ]
        )
        self._learners: dict[str, Any] = {
            "boosted trees": HistGradientBoostingClassifier(
                max_iter=60, categorical_features=kinds, random_state=seed
            ),
            "random forest": RandomForestClassifier(50, min_samples_leaf=2, random_state=seed),
            "decision tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=seed),
            # Products with sparse rows are summed row by row: a prediction never depends, not even
            # in its last bit, on the rows that are predicted with it.
            "logistic regression": make_pipeline(
                encoded, FunctionTransformer(csr_matrix), LogisticRegression(max_iter=300)
            ),
            "naive Bayes": CategoricalNB(min_categories=sizes),
            BASELINE: DummyClassifier(strategy="most_frequent"),
        }
        self.names = tuple(self._learners)

    def right(self, train: NDArray[np.integer], test: NDArray[np.integer]) -> IntArray:
        """How many rows of ``test`` each learner predicts correctly."""
        return np.array(
            [int((self._predicted(name, train, test) == test[:, self.label]).sum())
             for name in self.names],
            dtype=np.int64,
        )  # fmt: skip

    def _predicted(
        self, name: str, train: NDArray[np.integer], test: NDArray[np.integer]
    ) -> NDArray[np.integer]:
        labels = train[:, self.label]
        features = [np.delete(codes, self.label, axis=1) for codes in (train, test)]
        if len(train) == 0 or (labels == labels[0]).all() or not features[0].shape[1]:
            # Nothing to learn: the most frequent label, without rows the first of the domain.
            answer = np.bincount(labels).argmax() if len(train) else 0
            return np.full(len(test), answer, dtype=np.int64)
        if not len(test):
            return np.zeros(0, dtype=np.int64)
        return self._learners[name].fit(features[0], labels).predict(features[1])

    def compared(
        self,
        records: NDArray[np.integer],
        synthetic: NDArray[np.integer],
        rng: np.random.Generator,
    ) -> pd.DataFrame:
        """Exact accuracy on records of all learners, trained on synthetic rows and on records.

        On records it is that of two halves, each tested on the other.
        """
        half = np.zeros(len(records), dtype=bool)
        half[rng.permutation(len(records))[: len(records) // 2]] = True
        halves = [records[half], records[~half]]
        learned = sum(self.right(training_rows(halves[i], rng), halves[1 - i]) for i in (0, 1))
        of_synthetic = self.right(training_rows(synthetic, rng), records)
        return pd.DataFrame(
            {
                "learner": self.names,
                "trained on synthetic rows": of_synthetic / len(records),
                "trained on records": np.asarray(learned) / len(records),
            }
        )
