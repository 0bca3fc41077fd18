"""How close synthetic rows are to the records: exact, not private, for the data owner only."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from .._random import sampling_generator
from .._types import IntArray
from ..domain import Categorical, Domain
from ._marginals import chosen_axes, grouped, is_ordered, marginal_distance, wasserstein

Codes: TypeAlias = NDArray[np.integer]

# --- five learners that are trained on synthetic rows and tested on records

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


def some_rows(codes: Any, rng: np.random.Generator, most: int = _MOST_TRAINED) -> Any:
    """At most so many of the rows, at random."""
    return codes if len(codes) <= most else codes[rng.permutation(len(codes))[:most]]


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

    def right(self, train: Codes, test: Codes) -> IntArray:
        """How many rows of ``test`` each learner predicts correctly."""
        answers = np.stack([self._predicted(name, train, test) for name in self.names])
        return np.asarray((answers == test[:, self.label]).sum(axis=1))

    def _predicted(self, name: str, train: Codes, test: Codes) -> Codes:
        labels = train[:, self.label]
        features = [np.delete(codes, self.label, axis=1) for codes in (train, test)]
        if len(train) == 0 or (labels == labels[0]).all() or not features[0].shape[1]:
            # Nothing to learn: the most frequent label, without rows the first of the domain.
            answer = np.bincount(labels).argmax() if len(train) else 0
            return np.full(len(test), answer, dtype=np.int64)
        if not len(test):
            return np.zeros(0, dtype=np.int64)
        return self._learners[name].fit(features[0], labels).predict(features[1])

    def compared(self, records: Codes, synthetic: Codes, rng: np.random.Generator) -> pd.DataFrame:
        """Exact accuracy on records of all learners, trained on synthetic rows and on records.

        On records it is that of two halves, each tested on the other.
        """
        half = np.zeros(len(records), dtype=bool)
        half[rng.permutation(len(records))[: len(records) // 2]] = True
        halves = [records[half], records[~half]]
        learned = sum(self.right(some_rows(halves[i], rng), halves[1 - i]) for i in (0, 1))
        of_synthetic = self.right(some_rows(synthetic, rng), records)
        return pd.DataFrame(
            {
                "learner": self.names,
                "trained on synthetic rows": of_synthetic / len(records),
                "trained on records": np.asarray(learned) / len(records),
            }
        )


# --- how well records can be told from synthetic rows

_MOST_ROWS, _FOLDS = 10_000, 3


def _propensity_mse(
    records: Codes,
    synthetic: Codes,
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


# --- differences of rank correlations


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


# --- the report

_LEAST_ROWS = 20


@dataclass(eq=False, repr=False)
class QualityReport:
    """Distances between records and synthetic rows. Exact: NOT private, for the data owner only.

    Attributes
    ----------
    columns : pandas.DataFrame
        One row for each column: ``column``, ``distance``, and ``wasserstein``, the mean distance
        that values would have to move, as a share of the declared range, in bins (NaN for
        categories without order).
    pairs : pandas.DataFrame
        One row for each pair of columns: ``first``, ``second`` and ``distance``, over at most 20
        groups of codes of a number and 100 of a category. If there are more than 1,000 pairs, a
        random 1,000 of them.
    scores : dict of str to float
        ``2-way k-marginal`` and ``3-way k-marginal``: NIST's score, 1,000 for equal tables, on the
        same groups (over at most 300 random triples). ``correlation difference``: mean absolute
        difference of Spearman's rank correlations of ordered columns. ``propensity MSE``: 0 if
        boosted trees cannot tell records from synthetic rows, 0.25 if they always can. Scores that
        are not defined, for want of columns or rows, are left out.
    learners : pandas.DataFrame or None
        One row for each of five learners that predict the target, and the most frequent label:
        ``learner``, and accuracy on records ``trained on synthetic rows`` and ``trained on
        records`` (on one half, tested on the other, both ways). At most 20,000 rows train each.
    target : str or None
        Column that was predicted.

    Notes
    -----
    A distance is the total variation distance, half of the sum of absolute differences between two
    tables of shares: 0 if they are equal, 1 if they have no cell in common. Two finite samples of
    the same distribution differ too; the fewer records, the more.
    """

    columns: pd.DataFrame
    pairs: pd.DataFrame
    target: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    learners: pd.DataFrame | None = None

    def __repr__(self) -> str:
        lines = ["NOT PRIVATE: computed from the exact records, for the data owner only"]
        lines += [f"{name}: {_text(value)}" for name, value in self.scores.items()]
        lines.append("distance of single columns (0 equal, 1 disjoint)")
        lines.append(self.columns.to_string(index=False, float_format="{:.3f}".format))
        if len(self.pairs):
            lines.append(
                f"distance of {len(self.pairs):,} pairs of columns: median "
                f"{self.pairs['distance'].median():.3f}, the furthest"
            )
            lines.append(self._furthest().to_string(index=False, float_format="{:.3f}".format))
        if self.learners is not None:
            lines.append(f"accuracy on records of learners that predict {self.target!r}")
            lines.append(self.learners.to_string(index=False, float_format="{:.3f}".format))
        return "\n".join(lines)

    def _furthest(self) -> pd.DataFrame:
        return self.pairs.sort_values("distance", ascending=False).head(5)

    def _repr_html_(self) -> str:
        number = "{:.3f}".format
        parts = [
            "<p><b>Not private</b>: computed from the exact records, for the data owner only.</p>",
            "<ul>"
            + "".join(
                f"<li>{html.escape(name)}: {_text(value)}</li>"
                for name, value in self.scores.items()
            )
            + "</ul>",
            self.columns.to_html(index=False, float_format=number),
        ]
        if len(self.pairs):
            parts.append(self._furthest().to_html(index=False, float_format=number))
        if self.learners is not None:
            parts.append(
                f"<p>accuracy on records of learners that predict {html.escape(str(self.target))}"
                f"</p>{self.learners.to_html(index=False, float_format=number)}"
            )
        return "".join(parts)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the distances of all pairs, with those of single columns on the diagonal.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        from ..plotting import plot_distances

        names = list(self.columns["column"])
        at = {name: i for i, name in enumerate(names)}
        matrix = np.full((len(names), len(names)), np.nan)
        np.fill_diagonal(matrix, self.columns["distance"])
        for first, second, distance in self.pairs.itertuples(index=False):
            matrix[at[first], at[second]] = matrix[at[second], at[first]] = distance
        return plot_distances(matrix, names, title="Not private: distance to the records", ax=ax)


def _text(value: float) -> str:
    """Scores of up to 1,000 with one decimal, shares with four."""
    return f"{value:.1f}" if abs(value) > 2 else f"{value:.4f}"


def compare(
    records: Codes,
    synthetic: Codes,
    domain: Domain,
    target: str | None = None,
    random_state: Any = None,
) -> QualityReport:
    """Compare codes of records with codes of synthetic rows.

    Parameters
    ----------
    records, synthetic : ndarray of int, shape (n_rows, n_attributes)
        Codes, all of them inside the domain.
    domain : Domain
    target : str, default=None
        Column that learners predict; it must have at most 20 codes.
    random_state : int, Generator or None, default=None

    Returns
    -------
    QualityReport

    Raises
    ------
    ValueError
        If the target has too many codes.
    """
    rng = sampling_generator(random_state)
    contest = None if target is None else Contest(domain, target, int(rng.integers(2**31)))
    learners = None
    if contest is not None and len(records) >= _LEAST_ROWS:
        learners = contest.compared(records, synthetic, rng)
    left, right = (grouped(codes, domain) for codes in (records, synthetic))
    rows = [
        (domain.names[a], domain.names[b], marginal_distance(left[0], right[0], left[1], (a, b)))
        for a, b in chosen_axes(len(domain), 2, rng)
    ]
    pairs = pd.DataFrame(rows, columns=["first", "second", "distance"])
    scores = _scores(left[0], right[0], left[1], pairs, rng)
    # Over codes of ordered columns.
    axes = [axis for axis in range(len(domain)) if is_ordered(domain, axis)]
    sizes = [domain.attributes[axis].n_values for axis in axes]
    tables = [pd.DataFrame(codes[:, axes]) for codes in (records, synthetic)]
    known = [codes.where(codes < sizes) for codes in tables]
    scores["correlation difference"] = spearman_difference(*known)
    scores["propensity MSE"] = _propensity_mse(records, synthetic, categorical_axes(domain), rng)
    return QualityReport(
        _columns(records, synthetic, domain),
        pairs,
        target,
        scores={name: value for name, value in scores.items() if not np.isnan(value)},
        learners=learners,
    )


def _columns(records: Codes, synthetic: Codes, domain: Domain) -> pd.DataFrame:
    axes = range(len(domain))
    return pd.DataFrame(
        {
            "column": list(domain.names),
            "distance": [
                marginal_distance(records, synthetic, domain.shape, [axis]) for axis in axes
            ],
            "wasserstein": [
                wasserstein(records[:, axis], synthetic[:, axis], domain.attributes[axis].n_values)
                if is_ordered(domain, axis)
                else np.nan
                for axis in axes
            ],
        }
    )


def _scores(
    records: Codes,
    synthetic: Codes,
    shape: tuple[int, ...],
    pairs: pd.DataFrame,
    rng: np.random.Generator,
) -> dict[str, float]:
    """k-marginal scores of the pairs, and of triples."""
    scores = {}
    if len(pairs):
        scores["2-way k-marginal"] = 1000 * (1 - float(pairs["distance"].mean()))
    triples = chosen_axes(len(shape), 3, rng)
    if triples:
        distances = [marginal_distance(records, synthetic, shape, axes) for axes in triples]
        scores["3-way k-marginal"] = 1000 * (1 - float(np.mean(distances)))
    return scores
