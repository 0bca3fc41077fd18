"""Additive models: a function of each column and of some pairs, fitted with noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ._models import ModelOfClasses, ModelOfGroups, ModelOfNumbers, plain
from ._validation import CodeArray, FloatArray, IntArray, as_integer, check_choice
from .algorithms.additive import PairPlan, Prior, fit_additive
from .algorithms.additive.model import mean_size
from .domain import Date, Datetime
from .exceptions import DomainError

__all__ = [
    "PairFunction",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "ShapeFunction",
    "merged_labels",
]


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """What one column adds to the score, for each group of its values.

    Attributes
    ----------
    groups : ndarray of shape (n_codes,)
        Group of each code of the column.
    labels : tuple of str
        One for each group.
    scores : ndarray of shape (n_groups,), or (n_groups, n_classes) with more than two classes
        In logits for classifiers, in units of the target for regressors. The mean over the
        records is about 0.
    std_errors : ndarray like ``scores``
        How far off they may be: standard deviations given what was released, which noise, chance
        and shrinkage leave open, as if columns were independent.
    sizes : ndarray of shape (n_groups,)
        Released number of records of each group.
    edges : ndarray or None
        Borders of the groups of a number; special and missing values are the groups after them.
    chain : tuple of int or None
        The groups in their order; None for categories without one.
    """

    groups: IntArray
    labels: tuple[str, ...]
    scores: FloatArray
    std_errors: FloatArray
    sizes: FloatArray
    edges: FloatArray | None
    chain: tuple[int, ...] | None

    def at(self, codes: CodeArray) -> FloatArray:
        """Scores of records by their codes; a negative code adds 0.

        Parameters
        ----------
        codes : ndarray of shape (n,)
        """
        known = self.scores[np.append(self.groups, 0)[codes]]
        missing = codes < 0
        known[missing] = 0.0
        return known

    @property
    def importance(self) -> float:
        """Mean absolute score over the released records."""
        return mean_size(self.scores, self.sizes)

    def to_frame(self) -> pd.DataFrame:
        """One row for each group.

        Returns
        -------
        pandas.DataFrame
            Columns "group", "score" and "std_error" (with more than two classes "score_0" and so
            on), and "records".
        """
        columns: dict[str, object] = {"group": list(self.labels)}
        ends = [""] if self.scores.ndim == 1 else [f"_{k}" for k in range(self.scores.shape[1])]
        each = (np.atleast_2d(values.T) for values in (self.scores, self.std_errors))
        for end, score, error in zip(ends, *each, strict=True):
            columns |= {f"score{end}": score, f"std_error{end}": error}
        return pd.DataFrame(columns | {"records": np.round(self.sizes)})


@dataclass(frozen=True, eq=False)
class PairFunction:
    """What two columns together add to the score, beyond what each adds alone.

    Attributes
    ----------
    columns : (str, str)
    groups : tuple of two ndarray of shape (n_codes,)
        Group of each code of either column.
    labels : tuple of two tuple of str
        One for each group of either column.
    scores : ndarray of shape (n_first, n_second), or with a last axis of classes
        As in `ShapeFunction`. The mean along each axis is about 0.
    std_errors : ndarray like ``scores``
    sizes : ndarray of shape (n_first, n_second)
        Records of each cell if the columns were independent, from released numbers.
    """

    columns: tuple[str, str]
    groups: tuple[IntArray, IntArray]
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    scores: FloatArray
    std_errors: FloatArray
    sizes: FloatArray

    def at(self, first: CodeArray, second: CodeArray) -> FloatArray:
        """Scores of records by their codes; a negative code adds 0.

        Parameters
        ----------
        first, second : ndarray of shape (n,)
        """
        rows, columns = (
            np.append(groups, 0)[codes]
            for groups, codes in zip(self.groups, (first, second), strict=True)
        )
        known = self.scores[rows, columns]
        known[(first < 0) | (second < 0)] = 0.0
        return known

    @property
    def importance(self) -> float:
        """Mean absolute score over the released records."""
        flat = self.scores.reshape(self.sizes.size, -1)
        return mean_size(flat, self.sizes.ravel())


def _run(first, last):
    """From one category, or run of them, to another."""
    return f"{first.split(' .. ')[0]} to {last.split(' .. ')[-1]}"


def _span(first, last):
    """From one label of numbers or dates to another, as a single bin is written."""
    if first.startswith("["):
        return f"{first.split(', ')[0]}, {last.split(', ')[1]}"
    return f"{first.split(' to ')[0]} to {last.split(' to ')[-1]}"


def merged_labels(
    labels: Sequence[str],
    places: IntArray,
    n_ordered: int,
    span: Callable[[str, str], str] = _run,
) -> list[str]:
    """Labels of groups of groups: from the first to the last where there is an order.

    Parameters
    ----------
    labels : sequence of str
    places : ndarray of shape (n_groups,)
        Where each group went.
    n_ordered : int
        So many places, the first, hold neighbours.
    span : callable (first, last) -> str
        The label of neighbours.
    """
    found = []
    for place in range(int(places.max()) + 1):
        inside = [label for label, other in zip(labels, places, strict=True) if other == place]
        if len(inside) == 1:
            found.append(inside[0])
        else:
            found.append(span(inside[0], inside[-1]) if place < n_ordered else "others")
    return found


# ------------------------------------------------------------------------------------------------
# Additive models: an intercept and a function of each column.


@dataclass(eq=False, repr=False, kw_only=True)
class _Additive(ModelOfGroups):
    """Fitting, reading and editing; subclasses define the label and the predictions."""

    max_groups: Any = None
    interactions: Any = "auto"

    def _plan(self, domain):
        groupings = super()._plan(domain)
        self._pairs(groupings)
        return groupings

    def _pairs(self, groupings):
        """The functions of two columns that the parameter asks for; checks it."""
        chains = [each.chain for each in groupings.values()]
        if isinstance(self.interactions, str):
            check_choice(self.interactions, "interactions", ("auto",))
            return PairPlan(chains)
        if np.ndim(self.interactions) == 0:
            return PairPlan(chains, n_pairs=as_integer(self.interactions, "interactions", 0))
        return PairPlan(chains, _positions(self.interactions, list(groupings)))

    def _learn(self, records, groupings, link, epsilon, total, source):
        priors = [Prior(len(each.labels), each.chain) for each in groupings.values()]
        return fit_additive(records, link, priors, epsilon, total, source, self._pairs(groupings))

    def _publish(self, model, groupings):
        """Set the released attributes, in the units that users see."""
        scale, shift = self._units()
        self.intercept_ = plain(model.intercept[None] * scale + shift)[0]
        functions = {
            name: ShapeFunction(
                grouping.groups,
                tuple(grouping.labels),
                plain(term.scores * scale),
                plain(term.std_errors * scale),
                term.sizes,
                grouping.edges,
                None if grouping.chain is None else tuple(grouping.chain),
            )
            for (name, grouping), term in zip(groupings.items(), model.terms, strict=False)
        }
        for term in model.terms[len(groupings) :]:
            function = _pair_function(term, groupings, scale)
            name = " x ".join(function.columns)
            while name in functions:
                name += "'"
            functions[name] = function
        self._keep(functions)

    def _keep(self, functions):
        """Set the functions and what follows from them."""
        self.shape_functions_ = functions
        single = self._columns()
        importances = {name: functions[name].importance for name in single}
        for name in functions.keys() - single.keys():
            for column in functions[name].columns:
                importances[column] += functions[name].importance / 2
        self.feature_importances_ = np.array(list(importances.values()))

    def _columns(self):
        """Position of each column that has a function."""
        single = [
            name for name, each in self.shape_functions_.items() if isinstance(each, ShapeFunction)
        ]
        return {name: position for position, name in enumerate(single)}

    def _added(self, X):
        """What each function adds to the scores of the rows."""
        check_is_fitted(self)
        places = self._columns()
        codes = self._codes(X, list(places))
        found = []
        for name, function in self.shape_functions_.items():
            columns = [name] if name in places else function.columns
            found.append(function.at(*(codes[:, places[column]] for column in columns)))
        return codes, found

    def explain(self, X) -> np.ndarray:
        """What each column, and each pair, adds to the score of each row; post-processing.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_functions)
            With more than two classes (n_rows, n_functions, n_classes). In the order of
            ``shape_functions_``: columns, then pairs. With ``intercept_`` they sum to the score. A
            value that the domain cannot represent adds 0.
        """
        return np.stack(self._added(X)[1], axis=1)

    def set_shape(self, column, scores) -> Self:
        """Replace the function of a column or pair; free, and the next ``fit`` forgets it.

        Parameters
        ----------
        column : str
            As in ``shape_functions_``, a pair like "age x hours".
        scores : array-like like ``shape_functions_[column].scores``
            New scores of the groups, in the same units.

        Returns
        -------
        self
        """
        shape = self._shape(column)
        scores = np.array(scores, dtype=np.float64)
        if scores.shape != shape.scores.shape:
            raise ValueError(
                f"Column {column!r} needs scores of shape {shape.scores.shape}, one for each "
                f"group, got {scores.shape}."
            )
        if not np.isfinite(scores).all():
            raise ValueError(f"scores of column {column!r} must be finite.")
        # A new dict: copies of the estimator keep theirs.
        self._keep({**self.shape_functions_, column: replace(shape, scores=scores)})
        return self

    def plot(self, columns=None, *, level=0.95) -> Any:
        """Draw the functions of some columns, with bands of what is not known, and of pairs.

        Parameters
        ----------
        columns : list of str, default=None
            Names as in ``shape_functions_``. A pair is a map of colours (with more than two classes
            of the last class). None: the six functions that add most to scores. Special and
            missing values of a number are not drawn; ``shape_functions_`` has their scores.
        level : float, default=0.95
            Of the bands, which take errors as normal.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from .plotting import loss_title, plot_shapes

        check_is_fitted(self)
        if columns is None:
            sizes = {name: each.importance for name, each in self.shape_functions_.items()}
            columns = sorted(sizes, key=lambda name: -sizes[name])[:6]
        shapes = {name: self._shape(name) for name in columns}
        title = loss_title(f"{100 * level:g}% bands", self.privacy_loss_)
        dates = {
            name: replace(shapes[name], edges=each.days(shapes[name].edges))
            for name, each in self.domain_.items()
            if name in shapes and isinstance(each, Date | Datetime)
        }
        return plot_shapes(
            {**shapes, **dates},
            self._score_text(),
            level=level,
            title=title,
            outputs=self._score_names(),
            dates=dates,
        )

    def _shape(self, column):
        check_is_fitted(self)
        if column not in self.shape_functions_:
            raise DomainError(
                f"The model has no column {column!r}; it has {list(self.shape_functions_)}."
            )
        return self.shape_functions_[column]

    def _scores(self, X):
        """Sum of the intercept and the functions of all columns."""
        codes, parts = self._added(X)
        result = np.tile(self.intercept_, (len(codes), 1))
        result = result[:, 0] if np.ndim(self.intercept_) == 0 else result
        for part in parts:
            result = result + part
        return result


def _positions(pairs, names):
    """Positions of the columns of pairs of names, each pair once."""
    asked = "interactions takes 'auto', a number, or a list of pairs of columns"
    found = []
    for pair in pairs:
        if isinstance(pair, str) or np.shape(pair) != (2,):
            raise ValueError(f"{asked}; {pair!r} is no pair.")
        absent = [name for name in pair if name not in names]
        if absent:
            raise DomainError(f"{asked}; the predictors {names} do not have {absent}.")
        found.append(tuple(sorted(names.index(name) for name in pair)))
        if found[-1][0] == found[-1][1] or found[-1] in found[:-1]:
            raise ValueError(f"{asked}, all different; {tuple(pair)} repeats.")
    return tuple(found)


def _pair_function(term, groupings, scale):
    """A released function of two columns, in the units and by the codes that users see."""
    names = tuple(groupings)
    columns = tuple(names[column] for column in term.columns)
    sides = [_merged(groupings[name], axis) for name, axis in zip(columns, term.axes, strict=True)]
    groups, labels = zip(*sides, strict=True)
    shape = tuple(axis.n_groups for axis in term.axes)
    scores, errors = (
        plain((values * scale).reshape(*shape, -1)) for values in (term.scores, term.std_errors)
    )
    return PairFunction(columns, groups, labels, scores, errors, term.sizes.reshape(shape))


def _merged(grouping, axis):
    """Group of each code of a column on an axis of a pair, and the labels of these groups."""
    span = _run if grouping.edges is None else _span
    labels = merged_labels(grouping.labels, axis.groups, axis.n_ordered, span)
    return axis.groups[grouping.groups], tuple(labels)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateAdditiveClassifier(_Additive, ModelOfClasses):
    """Generalised additive model of class probabilities: glass-box, exact noise, pure epsilon.

    The score of a class is an intercept plus a function of each column, which can be read, drawn
    and edited after the fit. It is learnt from few noisy sums: one histogram of each
    column and the label; and, where records times epsilon pay for it, rounds of sums of residuals,
    one column after the other, so that columns that say the same do not count twice, and functions
    of two columns together, which are chosen privately. A histogram of the scores that the model
    gives the records calibrates it.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label. Giving both this
        and ``target`` is an error.
    max_groups : int, default=None
        Most groups of an ordered column. Numbers are cut where released counts are about equal.
        None: 32; of numbers up to 128 where there are many records times epsilon.
    interactions : "auto", int, or list of (str, str), default="auto"
        Functions of two columns together. "auto": those that pay, at most six, and none where
        records times epsilon are few. An int: so many, chosen privately among the pairs of the
        twelve columns whose functions are largest. A list: these pairs; nothing is spent on a
        choice. They take a quarter of the budget, or nothing if there are none.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Attributes
    ----------
    shape_functions_ : dict of str to ShapeFunction or PairFunction
        What each column adds to the score: with two classes the logit of the second, with more
        one score for each class. Then what pairs add, under names like "age x hours".
    intercept_ : float or ndarray of shape (n_classes,)
    feature_importances_ : ndarray of shape (n_columns,)
        Mean absolute contribution of each column, and half of that of each pair it is in.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted. They never come from ``y``.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "groups" (counts of numbers with more than 32 bins), "total" (number
        of records), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: the noisy
    number of records; for each column the counts of groups and classes (sensitivity 1, with a
    public share of the budget); sums of residuals by group of each column (sensitivity 1, with more
    than two classes 2); chosen pairs (scores that a record moves by as much, up or down) and their
    sums of residuals (as those of columns); the counts of scores and classes (sensitivity 1), with
    more than two classes of differences of scores, and those of the classes (sensitivity 1 each).
    *Cost*: sequential composition; how the part "model" is divided follows from the released
    number of records and from released choices. Reading, editing and predicting are
    post-processing.

    References
    ----------
    Y. Lou, R. Caruana and J. Gehrke, "Intelligible models for classification and regression",
    KDD 2012; H. Nori, R. Caruana, Z. Bu, J. Shen and J. Kulkarni, "Accuracy, interpretability, and
    differential privacy via explainable boosting", ICML 2021 (with delta and many rounds).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateAdditiveClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> model = PrivateAdditiveClassifier(domain=Numeric(0, 1, bins=4), classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    def _publish(self, model, groupings):
        self.classes_ = self._declared_classes()
        super()._publish(model, groupings)

    def _score_text(self):
        if len(self.classes_) > 2:
            return "score of each class"
        return f"adds to the logit of {self.classes_[-1]}"

    def _score_names(self):
        return [str(label) for label in self.classes_]

    def predict_proba(self, X) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns as in ``classes_``.
        """
        return self._shares(self._scores(X))


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateAdditiveRegressor(_Additive, ModelOfNumbers):
    """Additive model of a number: glass-box, exact noise, pure epsilon.

    Like `PrivateAdditiveClassifier`; the functions add to the expected value of the target.

    Parameters
    ----------
    epsilon, domain, target, max_groups, interactions, max_rows_per_id, unit, ledger, random_state
        As for `PrivateAdditiveClassifier`. The column ``target`` is a `Numeric`.
    target_range : (low, high), default=None
        The public range of the target, where the domain has no column for it. It is divided into
        256 bins. Giving both this and ``target`` is an error.

    Attributes
    ----------
    shape_functions_ : dict of str to ShapeFunction or PairFunction
        What each column, or pair, adds to the prediction, in units of the target.
    intercept_ : float
    feature_importances_ : ndarray of shape (n_columns,)
        Mean absolute contribution of each column, and half of that of each pair it is in.
    domain_ : Domain
    target_ : str
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "groups" (counts of numbers with more than 32 bins), "total" (number
        of records), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    As for `PrivateAdditiveClassifier`; instead of counts of classes, the counts of groups and the
    sums of targets are released, and before them the part of the range that holds the median of the
    target, a distance from it beyond which few records are, and the means of what is within. All
    else is in units of the released spread, so that a range may be declared far too wide. Targets
    are clipped to the range, and stand in the middle of their bin.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateAdditiveRegressor
    >>> X = np.linspace(0, 1, 20_000)[:, None]
    >>> y = 10 * X[:, 0]
    >>> model = PrivateAdditiveRegressor(epsilon=2.0, domain=Numeric(0, 1), target_range=(0, 10))
    >>> model = model.fit(X, y)
    >>> bool(abs(model.predict([[0.5]])[0] - 5) < 0.5)
    True
    """

    def _score_text(self):
        return f"adds to {self.target_}"

    def _score_names(self):
        return []
