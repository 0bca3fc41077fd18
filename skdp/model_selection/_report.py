"""All scores of one model, for all rows and for groups of them, from one release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from .._pipelines import walk
from .._random import NoiseSource
from .._types import FloatArray, IntArray
from .._validation import as_integer, as_number, check_flag
from ..accounting import PrivacyLedger, PrivacyLoss
from ..kernels.binned_scores import BinnedScores
from ..release import QueryResult
from ..rows import as_labels
from ._counts import (
    OF_MATRIX,
    Counts,
    calibration_curve,
    class_counts,
    confusion,
    one_against_others,
    ranking,
    roc_curve,
    row_mean,
)
from ._guard import answers_of, check_model, draw_places, positions_of, true_rows
from ._intervals import Covers, Noisy, with_interval
from ._metrics import (
    charge_score,
    class_positions,
    confusion_frame,
    label_positions,
    matrix_score,
    number_moments,
    number_score,
    numbers_between,
    predicted_counts,
    range_of,
)

_OF_CLASSES = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "roc_auc",
    "average_precision",
    "log_loss",
    "brier_score",
)
_OF_NUMBERS = ("r2", "mean_absolute_error", "mean_squared_error")


@dataclass(frozen=True)
class _Released:
    """What a report holds: noisy numbers of each group, and no other."""

    tables: tuple[BinnedScores, ...] = ()
    # Confusion matrices, shape (n_groups, n_labels, n_labels + 1), of more than two labels.
    matrices: Noisy | None = None
    # Moments of errors and targets, one pair for each group.
    moments: tuple[tuple[Noisy, ...], ...] = ()
    width: float = 0.0


@dataclass(frozen=True)
class ScoreReport:
    """Scores of a model on true rows, each with an interval; made by `private_score_report`.

    Everything is computed from one release, so that reading more of it costs nothing.

    Attributes
    ----------
    metrics : tuple of str
        Names of the scores; ``report["roc_auc"]`` gives one.
    labels : tuple
        Declared labels of a classifier. Of two, the second is the positive one.
    group_labels : tuple
        Declared groups.
    privacy_loss : PrivacyLoss
        What the report cost.
    """

    metrics: tuple[str, ...]
    labels: tuple[Any, ...]
    group_labels: tuple[Any, ...]
    privacy_loss: PrivacyLoss
    _released: _Released = field(repr=False)
    _covers: Covers = field(repr=False)

    def __getitem__(self, name: str) -> QueryResult:
        return self.score(name)

    def score(
        self,
        name: str,
        *,
        group: Any = None,
        level: float | None = None,
        interval: str | None = None,
    ) -> QueryResult:
        """One score.

        Parameters
        ----------
        name : str
            One of ``metrics``.
        group : label, default=None
            A declared group; None for all rows.
        level, interval : optional
            As in `private_score`; by default those of the report.

        Returns
        -------
        QueryResult

        Raises
        ------
        ValueError
            If the score or the group is unknown.
        """
        if name not in self.metrics:
            raise ValueError(f"name must be one of {list(self.metrics)}, got {name!r}.")
        covers = self._asked(level, interval)
        place = self._place(group)
        if self._released.moments:
            return number_score(name, self._moments(place), self._released.width, covers)
        tables = [class_counts(table, place) for table in self._released.tables]
        if name in ("roc_auc", "average_precision"):
            return ranking(name, tables, covers)
        if name in ("log_loss", "brier_score"):
            return row_mean(name, tables, covers)
        return self._matrix_score(name, tables, place, covers)

    def _matrix_score(
        self, name: str, tables: Sequence[Counts], place: int | None, covers: Covers
    ) -> QueryResult:
        if self._released.matrices is not None:
            return matrix_score(name, _of_group(self._released.matrices, place), covers)
        (table,) = tables
        cut = table.binned.cut
        formula = OF_MATRIX[name]

        def statistic(arrays: Sequence[FloatArray]) -> FloatArray:
            return np.asarray(formula(confusion(arrays[0], cut)))

        return with_interval(statistic, [table.noisy], covers, known=table.present)

    def to_frame(self, *, level: float | None = None, interval: str | None = None) -> pd.DataFrame:
        """All scores of all rows and groups.

        Parameters
        ----------
        level, interval : optional
            As in `private_score`; by default those of the report.

        Returns
        -------
        DataFrame
            A row for each group and score, with the columns ``group`` ("all" for all rows),
            ``metric``, ``value``, ``lower``, ``upper``, ``noise_std`` and ``sampling_std``.
        """
        rows = []
        for group in (None, *self.group_labels):
            for name in self.metrics:
                found = self.score(name, group=group, level=level, interval=interval)
                numbers = (found.value, found.lower, found.upper, found.std, found.sampling_std)
                rows.append(("all" if group is None else group, name, *numbers))
        columns = ["group", "metric", "value", "lower", "upper", "noise_std", "sampling_std"]
        return pd.DataFrame(rows, columns=columns)

    def roc_curve(
        self, *, group: Any = None, level: float | None = None, interval: str | None = None
    ) -> pd.DataFrame:
        """ROC curve of two labels, as `private_roc_curve` gives it.

        Parameters
        ----------
        group, level, interval : optional
            As in ``score``.

        Returns
        -------
        DataFrame
        """
        return roc_curve(self._one_table(group), self._asked(level, interval))

    def calibration_curve(
        self,
        n_bins: int = 10,
        *,
        group: Any = None,
        level: float | None = None,
        interval: str | None = None,
    ) -> pd.DataFrame:
        """Calibration curve of two labels, as `private_calibration_curve` gives it.

        Parameters
        ----------
        n_bins : int, default=10
            Largest number of bins.
        group, level, interval : optional
            As in ``score``.

        Returns
        -------
        DataFrame
        """
        bins = as_integer(n_bins, "n_bins", least=1)
        return calibration_curve(self._one_table(group), bins, self._asked(level, interval))

    def confusion_matrix(self, *, group: Any = None) -> pd.DataFrame:
        """Noisy confusion matrix of a classifier.

        Parameters
        ----------
        group : label, default=None
            A declared group; None for all rows.

        Returns
        -------
        DataFrame of shape (n_labels, n_labels)
            True labels in the rows and predicted ones in the columns; counts may be negative.
        """
        place = self._place(group)
        if self._released.matrices is not None:
            matrix = _of_group(self._released.matrices, place).values[:, :-1]
        else:
            counts = self._one_table(group)
            matrix = confusion(counts.noisy.values, counts.binned.cut)
        return confusion_frame(matrix.astype(np.int64), self.labels)

    def _one_table(self, group: Any) -> Counts:
        if len(self._released.tables) != 1:
            raise ValueError("Curves are of classifiers with two labels.")
        return class_counts(self._released.tables[0], self._place(group))

    def _moments(self, place: int | None) -> list[Noisy]:
        groups = self._released.moments
        if place is not None:
            return list(groups[place])
        return [Noisy.total([group[part] for group in groups]) for part in (0, 1)]

    def _place(self, group: Any) -> int | None:
        if group is None:
            return None
        if group not in self.group_labels:
            raise ValueError(f"group must be one of {list(self.group_labels)}, got {group!r}.")
        return self.group_labels.index(group)

    def _asked(self, level: float | None, interval: str | None) -> Covers:
        old = "population" if self._covers.population else "noise"
        return Covers.asked(
            self._covers.level if level is None else level, old if interval is None else interval
        )

    def __repr__(self) -> str:
        lines = [f"ScoreReport, epsilon {float(self.privacy_loss.epsilon):g}"]
        lines += [f"  {name:<18} {self[name]!r}" for name in self.metrics]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False, float_format="{:.4f}".format))


def _of_group(noisy: Noisy, place: int | None) -> Noisy:
    """A group's part of counts with groups in the first axis, or the sum over groups."""
    groups = [Noisy(each, noisy.epsilon, noisy.steps) for each in noisy.values]
    return Noisy.total(groups) if place is None else groups[place]


def private_score_report(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float | Fraction,
    bounds: tuple[float, float] | None = None,
    groups: Any = None,
    group_labels: Any = None,
    threshold: float = 0.5,
    trained_elsewhere: bool = False,
    level: float = 0.95,
    interval: str = "population",
    ledger: PrivacyLedger | None = None,
    random_state: int | None = None,
) -> ScoreReport:
    """Release all scores of a model at once: one payment for metrics, curves and groups.

    Parameters
    ----------
    model : fitted estimator
        A release, such as a fitted `PrivateClassifier`, or a model trained without these rows. A
        classifier needs ``predict_proba``; its ``classes_`` are the declared labels.
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        True labels or numbers. Rows with a label that is not declared are skipped.
    epsilon : number or Fraction
        Privacy parameter of the whole report.
    bounds : (low, high), default=None
        Public range of the target; given for regressors only.
    groups : array-like of shape (n_rows,), default=None
        A column by which scores are also given, such as ``X["sex"]``.
    group_labels : array-like, default=None
        The public list of groups. Rows of other groups count in the scores of all rows only.
    threshold : float, default=0.5
        Rows with a larger probability of the second of two labels are predicted as it. It is moved
        to the nearest end of a public interval, by 0.0003 at most.
    trained_elsewhere : bool, default=False
        Declares that no row of ``X`` was used to train a model that is not private. Without it such
        a model is refused.
    level : float, default=0.95
        Probability that an interval covers its score.
    interval : {"noise", "population"}, default="population"
        As in `private_score`.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before a value is read.
    random_state : None or int, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    ScoreReport
        Of a classifier with ``accuracy``, ``balanced_accuracy``, ``f1``, ``roc_auc``,
        ``average_precision``, ``log_loss`` and ``brier_score``; of a regressor with ``r2``,
        ``mean_absolute_error`` and ``mean_squared_error``.

    Raises
    ------
    TypeError, ValueError
        If the model cannot be scored, or a parameter is out of range; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay.

    Notes
    -----
    Of two labels all scores follow from one release of scores by class, as in `private_score`.
    For k > 2 labels each label has one of its own, and there is a confusion matrix, in equal parts
    of epsilon / (k + 1). With groups every count is taken in each group: a record is in one group,
    so groups cost nothing, but the scores of all rows have the noise of all groups together.

    Errors and warnings of the model on true rows are caught, as `make_private_scorer` describes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp.model_selection import private_score_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 2))
    >>> y = np.where(X[:, 0] + rng.normal(size=20_000) > 0, "yes", "no")
    >>> model = LogisticRegression().fit(X[:10_000], y[:10_000])
    >>> report = private_score_report(
    ...     model, X[10_000:], y[10_000:], epsilon=1.0, trained_elsewhere=True
    ... )
    >>> bool(0.8 < float(report["roc_auc"]) < 0.9)
    True
    >>> report.confusion_matrix().shape
    (2, 2)
    """
    covers = Covers.asked(level, interval)
    if not np.isfinite(as_number(threshold, "threshold")):
        raise ValueError(f"threshold must be finite, got {threshold!r}.")
    check_flag(trained_elsewhere, "trained_elsewhere")
    if not trained_elsewhere:
        _check_release(model)
    check_model(model, X)
    classes = () if bounds is not None else _classes(model)
    ends = range_of(bounds)
    truth, take = true_rows(X, y)
    names, values = _groups(groups, group_labels, len(truth))
    loss, source = charge_score("private_score_report", epsilon, ledger, random_state)
    everyone, places = np.arange(len(truth)), draw_places(len(truth))
    # The last group is that of all rows whose group is not declared.
    group = positions_of(values, {label: place for place, label in enumerate(names)})
    group = np.where(group < 0, len(names), group)
    if ends is not None:
        low, high = float(ends[0]), float(ends[1])
        guess = answers_of(model, "predict", take, everyone, places)
        true, guessed = (numbers_between(each, low, high) for each in (truth, guess))
        # Privacy. A record is in one group: releases of all groups together cost epsilon, empty
        # groups are released as others are.
        moments = tuple(
            tuple(number_moments(true[group == g], guessed[group == g], loss.epsilon, source))
            for g in range(len(names) + 1)
        )
        released = _Released(moments=moments, width=high - low)
        return ScoreReport(_OF_NUMBERS, (), names, loss, released, covers)
    scores = answers_of(model, "predict_proba", take, everyone, places, len(classes))
    found = positions_of(truth, class_positions(classes))
    released = _of_classes(
        scores, found, group, len(names) + 1, loss.epsilon, source, float(threshold)
    )
    return ScoreReport(_OF_CLASSES, classes, names, loss, released, covers)


def _check_release(model: Any) -> None:
    """Refuse a model that may have learned true rows without noise."""
    for step in walk(model):
        if not step.sound:
            raise ValueError(
                f"{step.name or step.kind} is not known to be private: {step.kind} {step.why} Its "
                "scores would reveal rows that it was trained on. Score a private model, or one "
                "that was trained on other rows, and declare that with trained_elsewhere=True."
            )


def _classes(model: Any) -> tuple[Any, ...]:
    """Labels of a classifier."""
    classes = getattr(model, "classes_", None)
    if classes is None or not hasattr(model, "predict_proba"):
        raise TypeError(
            f"{type(model).__name__} has no classes_ or no predict_proba. Of a regressor give "
            "bounds=(low, high), the public range of the target."
        )
    labels = tuple(np.asarray(classes).tolist())
    if len(labels) < 2:
        raise ValueError(f"{type(model).__name__} knows one class only: there is nothing to score.")
    return labels


def _groups(groups: Any, group_labels: Any, n_rows: int) -> tuple[tuple[Any, ...], Any]:
    """Labels of the groups and the column that has them, without looking at a value."""
    if (groups is None) != (group_labels is None):
        raise ValueError("groups and group_labels, the public list of groups, belong together.")
    if groups is None:
        return (), np.zeros(n_rows)
    labels = tuple(label_positions(group_labels, "group_labels"))
    if any(label is None for label in group_labels):
        raise ValueError("group_labels has None, which stands for all rows: give it another name.")
    values = as_labels(groups, "groups")
    if len(values) != n_rows:
        raise ValueError("groups has more or fewer rows than X; how many is private.")
    return labels, values


def _of_classes(
    scores: FloatArray,
    classes: IntArray,
    group: IntArray,
    n_groups: int,
    epsilon: Fraction,
    source: NoiseSource,
    threshold: float,
) -> _Released:
    """Release scores by class, and of more than two classes a confusion matrix."""
    n_labels = scores.shape[1]
    grouped: dict[str, Any] = {"groups": group, "n_groups": n_groups}
    if n_labels == 2:
        grouped["threshold"] = threshold
        return _Released(
            tuple(one_against_others(scores[:, 1:], classes, epsilon, source, **grouped))
        )
    # Privacy. In sequence: the scores of n_labels classes together at n_labels / (n_labels + 1) of
    # epsilon, and a confusion matrix, in which a record is in one cell, at the rest.
    rest = epsilon / (n_labels + 1)
    tables = one_against_others(scores, classes, epsilon - rest, source, **grouped)
    # Row by row, so that no row depends on another.
    guesses = np.where(np.isnan(scores).any(1), -1, np.nan_to_num(scores).argmax(1))
    counts = predicted_counts(classes, guesses, n_labels, rest, source, **grouped)
    return _Released(tuple(tables), Noisy(counts.astype(float), rest))
