"""How close synthetic rows are to the records: exact, not private, for the data owner only."""

from __future__ import annotations

import html
import itertools
import math

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from ._random import sampling_generator
from .domain import Categorical

__all__ = ["QualityReport", "compare"]

# Comparisons of pairs, and of the label, join codes into at most this many groups.
_GROUPS = 16
_LABELS = 20
# If there are more pairs of columns than this, a random subset of this size is compared.
_MOST_PAIRS = 1000
_MOST_CATEGORIES = 255
_LEAST_ROWS = 20


class QualityReport:
    """Distances between records and synthetic rows. Exact: NOT private, for the data owner only.

    Attributes
    ----------
    columns : pandas.DataFrame
        One row for each column: ``column`` and ``distance``.
    pairs : pandas.DataFrame
        One row for each pair of columns: ``first``, ``second`` and ``distance``, over at most 16
        groups of codes of each. If there are more than 1,000 pairs, a random 1,000 of them.
    training : dict of str to float, or None
        Accuracy on records of boosted trees that predict the target: ``trained on synthetic rows``
        and ``trained on records`` (on one half, tested on the other, both ways), and
        ``most frequent label``. None without a target.
    target : str or None
        Column that was predicted.

    Notes
    -----
    A distance is the total variation distance, half of the sum of absolute differences between two
    tables of shares: 0 if they are equal, 1 if they have no cell in common. Two finite samples of
    the same distribution differ too; the fewer records, the more.
    """

    def __init__(self, columns, pairs, training=None, target=None):
        self.columns = columns
        self.pairs = pairs
        self.training = training
        self.target = target

    def __repr__(self):
        lines = ["NOT PRIVATE: computed from the exact records, for the data owner only"]
        lines.append("distance of single columns (0 equal, 1 disjoint)")
        lines.append(self.columns.to_string(index=False, float_format="{:.3f}".format))
        if len(self.pairs):
            lines.append(
                f"distance of {len(self.pairs):,} pairs of columns: median "
                f"{self.pairs['distance'].median():.3f}, the furthest"
            )
            lines.append(self._furthest().to_string(index=False, float_format="{:.3f}".format))
        if self.training is not None:
            lines.append(f"accuracy on records of trees that predict {self.target!r}")
            lines += [f"  {name}: {value:.3f}" for name, value in self.training.items()]
        return "\n".join(lines)

    def _furthest(self):
        return self.pairs.sort_values("distance", ascending=False).head(5)

    def _repr_html_(self):
        number = "{:.3f}".format
        parts = [
            "<p><b>Not private</b>: computed from the exact records, for the data owner only.</p>",
            self.columns.to_html(index=False, float_format=number),
        ]
        if len(self.pairs):
            parts.append(self._furthest().to_html(index=False, float_format=number))
        if self.training is not None:
            rows = "".join(
                f"<li>{html.escape(name)}: {value:.3f}</li>"
                for name, value in self.training.items()
            )
            parts.append(
                f"<p>accuracy on records of trees that predict {html.escape(self.target)}</p>"
                f"<ul>{rows}</ul>"
            )
        return "".join(parts)

    def plot(self, *, ax=None):
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
        from .plotting import plot_distances

        names = list(self.columns["column"])
        at = {name: i for i, name in enumerate(names)}
        matrix = np.full((len(names), len(names)), np.nan)
        np.fill_diagonal(matrix, self.columns["distance"])
        for first, second, distance in self.pairs.itertuples(index=False):
            matrix[at[first], at[second]] = matrix[at[second], at[first]] = distance
        return plot_distances(matrix, names, title="Not private: distance to the records", ax=ax)


def compare(records, synthetic, domain, target=None, random_state=None):
    """Compare codes of records with codes of synthetic rows.

    Parameters
    ----------
    records, synthetic : ndarray of int, shape (n_rows, n_attributes)
        Codes, all of them inside the domain.
    domain : Domain
    target : str, default=None
        Column that trees learn to predict; it must have at most 20 codes.
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
    names, shape = domain.names, domain.shape
    columns = pd.DataFrame(
        {
            "column": list(names),
            "distance": [
                _distance(records[:, axis], synthetic[:, axis], size)
                for axis, size in enumerate(shape)
            ],
        }
    )
    parts = [min(size, _GROUPS) for size in shape]
    coarse = [
        [codes[:, axis].astype(np.int64) * parts[axis] // size for axis, size in enumerate(shape)]
        for codes in (records, synthetic)
    ]
    n_pairs = math.comb(len(names), 2)
    chosen = np.arange(n_pairs)
    if n_pairs > _MOST_PAIRS:
        chosen = np.sort(rng.choice(n_pairs, _MOST_PAIRS, replace=False))
    everything = list(itertools.combinations(range(len(names)), 2))
    rows = []
    for a, b in (everything[i] for i in chosen):
        left, right = (each[a] * parts[b] + each[b] for each in coarse)
        rows.append((names[a], names[b], _distance(left, right, parts[a] * parts[b])))
    pairs = pd.DataFrame(rows, columns=["first", "second", "distance"])
    training = None if target is None else _training(records, synthetic, domain, target, rng)
    return QualityReport(columns, pairs, training, target)


def _distance(left, right, size):
    """Half of the sum of absolute differences of two tables of shares."""
    shares = [np.bincount(codes, minlength=size) / max(len(codes), 1) for codes in (left, right)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _training(records, synthetic, domain, target, rng):
    """Accuracy on records of trees, trained on synthetic rows and on the other half of records."""
    label = domain.index(target)
    if domain.shape[label] > _LABELS:
        raise ValueError(
            f"The column {target!r} has {domain.shape[label]} codes; trees are trained to predict "
            f"at most {_LABELS}. Name another column in target=, or None to leave training out."
        )
    if len(records) < _LEAST_ROWS:
        return None
    kinds = [
        isinstance(attribute, Categorical) and not attribute.ordered and size <= _MOST_CATEGORIES
        for attribute, size in zip(domain.attributes, domain.shape, strict=True)
    ]
    del kinds[label]
    seed = int(rng.integers(2**31))
    half = np.zeros(len(records), dtype=bool)
    half[rng.permutation(len(records))[: len(records) // 2]] = True

    def right(train, test):
        labels = train[:, label]
        if len(train) == 0 or (labels == labels[0]).all():
            # Nothing to learn: the only label, or with no rows at all the first of the domain.
            answer = labels[0] if len(train) else 0
            return int((test[:, label] == answer).sum())
        trees = HistGradientBoostingClassifier(
            max_iter=60, categorical_features=kinds, random_state=seed
        )
        trees.fit(np.delete(train, label, axis=1), labels)
        return int((trees.predict(np.delete(test, label, axis=1)) == test[:, label]).sum())

    halves = [records[half], records[~half]]
    learned = sum(right(halves[i], halves[1 - i]) for i in (0, 1))
    return {
        "trained on synthetic rows": right(synthetic, records) / len(records),
        "trained on records": learned / len(records),
        "most frequent label": float(np.bincount(records[:, label]).max() / len(records)),
    }
