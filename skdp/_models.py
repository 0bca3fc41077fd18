"""What models of a label share: match, charge, count, fit; numbers that stand for columns.

What all models of a label share: match, charge, count, fit, and read rows to predict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from ._random import NoiseSource
from ._validation import FloatArray, IntArray, as_integer, check_choice, integer_sums
from .algorithms.additive import UNIT, Identity, Logit, Records, additive_parts, released_total
from .algorithms.linear import Column, Design
from .algorithms.quantiles import equal_groups, line_counts
from .base import (
    ExactScore,
    PrivateEstimator,
    RefusesWeights,
    feature_codes,
    label_classes,
    match_labelled,
    warn_of_emptiness,
)
from .domain import FEW_BINS, Attribute, Domain, Numeric
from .exceptions import DomainError
from .tables import weighted_rows

# --- a target that is a number: its declaration, and its values as shares of half its range


def _declared_range(target_range: Any) -> Numeric | None:
    """The attribute of a target that ``target_range`` declares; None without one.

    Raises
    ------
    ValueError
        If it is not a pair.
    """
    if target_range is None:
        return None
    try:
        low, high = target_range
    except (TypeError, ValueError):
        raise ValueError(
            f"target_range must be a pair (low, high), got {target_range!r}."
        ) from None
    # As fine as residuals are.
    return Numeric(low, high, bins=2 * UNIT)


def _middle_and_half(attribute: Any) -> tuple[float, float]:
    """Middle and half width of the values of a target; special values may lie outside the range."""
    values = np.append(attribute.means(), [attribute.lower, attribute.upper])
    low, high = values.min(), values.max()
    return low / 2 + high / 2, high / 2 - low / 2


def number_link(domain: Domain, target: str) -> tuple[Identity, IntArray]:
    """How scores and targets belong together, and the label of each code; -1 if it is missing.

    Raises
    ------
    DomainError
        If the target is no number.
    """
    attribute = domain[target]
    if not isinstance(attribute, Numeric) or not attribute.summable:
        raise DomainError(
            f"The target {target!r} is declared as a {type(attribute).__name__}; a regressor "
            "needs a Numeric. For a Categorical take a classifier, such as PrivateClassifier."
        )
    middle, half = _middle_and_half(attribute)
    # A range of one value says nothing: its outcomes are 0.
    values = (attribute.means() - middle) / (half or 1.0)
    outcomes = np.clip(np.rint(values * UNIT), -UNIT, UNIT).astype(np.int64)
    # A missing target is skipped.
    labels = np.append(np.arange(attribute.n_values), -1)[: attribute.size]
    return Identity(outcomes), labels


# --- public groups of the values of a column, and which of them are neighbours


class Grouping(NamedTuple):
    """Groups of the codes of a column.

    Attributes
    ----------
    groups : ndarray of shape (n_codes,)
        Group of each code.
    labels : list of str
    chain : list of int or None
        The groups in an order in which neighbours are similar; None if there is no order. Special
        and missing values are groups of their own, outside the order.
    edges : ndarray of shape (len(chain) + 1,) or None
        Borders of the groups in the order; None for categories.
    """

    groups: IntArray
    labels: list[str]
    chain: list[int] | None
    edges: FloatArray | None


def group_values(attribute: Attribute, max_groups: int | None) -> Grouping:
    """At most ``max_groups`` groups of ordered values; each unordered category alone.

    Parameters
    ----------
    attribute : Attribute
    max_groups : int or None
        None: the bins of numbers, which are cut where records are, and 32 groups of others.
    """
    if isinstance(attribute, Numeric):
        cut = max_groups is None and attribute.summable
        n = attribute.bins if cut else min(attribute.bins, max_groups or FEW_BINS)
        level = attribute.level(np.arange(attribute.bins) * n // attribute.bins)
        bins = level.groups[: attribute.bins]
        starts = np.searchsorted(bins, np.arange(n))
        edges = attribute.edges[np.append(starts, attribute.bins)].astype(np.float64)
        return Grouping(level.groups, level.labels, list(range(n)), edges)
    if attribute.order() is None:
        level = attribute.levels()[-1]
        return Grouping(level.groups, level.labels, None, None)
    # The finest level with at most so many groups, or the next to the coarsest.
    levels, most = attribute.levels(), (max_groups or FEW_BINS) + attribute.nullable
    few = [level for level in levels[1:] if len(level.labels) <= most]
    level = few[-1] if few else levels[min(1, len(levels) - 1)]
    order = np.asarray(attribute.order())[: attribute.n_values]
    chain = list(dict.fromkeys(level.groups[order].tolist()))
    return Grouping(level.groups, level.labels, chain, None)


# --- groups where the records are: numbers are cut where released counts are equal
#
# Ranges are declared honestly wide, and most values lie in a small part of them. So every number
# with many bins is counted on the finest ones, without the label, and cut into groups with about
# equally many records.

# Part of epsilon for these counts; most groups of a number; and the records times epsilon that each
# group of a number takes, from which finer ones lowered the mean log loss of held-out rows
# (``benchmarks/models.py``).
CUTTING = Fraction(1, 20)
_MOST_GROUPS, _SIGNAL = 128, 250.0


def fine_domain(domain: Domain, target: str) -> tuple[Domain, list[str]]:
    """The domain with the finest bins of the numbers that are cut, and the names of these."""
    declared: Any = domain.declared
    fine = {
        name: declared(name).fine
        for name in domain.names
        if name != target and isinstance(domain[name], Numeric) and domain[name].summable
    }
    fine = {name: each for name, each in fine.items() if each.bins > FEW_BINS}
    return _replaced(domain, fine), list(fine)


def cut_domain(
    domain: Domain, exact: Mapping[str, IntArray], epsilon: Fraction, source: NoiseSource
) -> tuple[Domain, dict[str, FloatArray]]:
    """The fine domain with groups of about equally many records as bins of some numbers.

    And the means of these bins: most records of a wide one may lie near one of its ends.

    Parameters
    ----------
    domain : Domain
    exact : mapping of str to ndarray of shape (n_codes,)
        Numbers of records by code of the columns to cut.
    epsilon : Fraction
    source : NoiseSource
    """
    # Privacy. Released: noisy counts of the bins of each number, see `line_counts`; edges and means
    # follow from them. A record is in one bin of each: the numbers share epsilon equally, and are
    # composed one after the other. Special and missing values have public cells of their own.
    each, numbers = epsilon / len(exact), {name: cast(Numeric, domain[name]) for name in exact}
    masses = {
        name: line_counts(counts[: numbers[name].bins], each, source)[0]
        for name, counts in exact.items()
    }
    total = float(np.median([mass.sum() for mass in masses.values()]))
    n_groups = int(np.clip(total * float(each / CUTTING) / _SIGNAL, FEW_BINS, _MOST_GROUPS))
    cut, means = {}, {}
    for name, noisy in masses.items():
        given = numbers[name]
        # Where noise hides the records, bins count alike.
        mass = noisy + max(1.0 / (float(each) * len(noisy)), 1e-300)
        starts = equal_groups(mass, n_groups)
        # A last bin of one point has no width by itself.
        starts = starts[given.edges[starts] < given.edges[-1]]
        # Shares first: a number times a count might be no float, and noise covers no such code.
        whole = np.add.reduceat(mass, starts)
        shares = mass / np.repeat(whole, np.diff(starts, append=len(mass)))
        means[name] = np.add.reduceat(shares * given.means()[: given.bins], starts)
        cut[name] = Numeric(
            edges=[*given.edges[starts].tolist(), given.upper],
            integer=given.integer,
            nullable=given.nullable,
            special=given.special,
            decimals=given.decimals,
        )
    return _replaced(domain, cut), means


def _replaced(domain: Domain, attributes: Mapping[str, Attribute]) -> Domain:
    """The domain with other attributes of some columns; itself if there are none."""
    if not attributes:
        return domain
    columns = {name: attributes.get(name, domain.declared(name)) for name in domain.columns}
    return Domain(columns, structure=domain.structure.rules)


# --- what estimators of models share


@dataclass(eq=False, repr=False, kw_only=True)
class ModelOfLabels(RefusesWeights, PrivateEstimator):
    """A model of a label given other columns, each of which is divided into public groups.

    A subclass says which groups there are and what is learnt from the counts of distinct records.
    """

    domain: Any = None
    target: str | None = None
    max_rows_per_id: int | None = None
    privacy_id: str | None = None

    def fit(self, X, y=None, **fit_params) -> Self:
        """Charge epsilon, then release a model.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            One row per record: NumPy array; pandas, Polars or PyArrow table; or a lazy frame of
            Polars, DuckDB, Dask or PySpark, whose distinct coded rows are counted in its engine.
            Columns are matched to the domain by name, those of an array by position.
        y : array-like of shape (n_rows,), default=None
            The labels. None if ``X`` has the column ``target``; a lazy frame must have it.
        **fit_params
            Refused. A record of ``sample_weight`` w would cost w times its epsilon.

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter is invalid; nothing is spent. Values never raise: numbers
            out of range are clipped, an unknown category becomes `other` where declared, and a
            record that the domain cannot represent, or whose label is missing or not declared, is
            skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        rows, domain, target, features = match_labelled(
            self, X, y, fit_params, self._declared_label(), *self._shorthand
        )
        names = [name for name in domain.names if name != target]
        link, label_of = self._link(domain, target)
        # Groups are finer where records are; until these are known, a plan checks parameters.
        fine, wide = fine_domain(domain, target) if self._cuts else (domain, [])
        columns = self._plan(fine.plain(names), {})
        epsilon = self._record_epsilon()
        cutting = epsilon * CUTTING if wide else Fraction(0)
        parts = self._parts(epsilon - cutting) | ({"groups": cutting} if wide else {})
        self._check_noise(columns, link, parts["model"])
        self._warn_of_size(rows, fine)
        loss, source = self._spend(rows, parts)

        bound, parts = self._contributions(loss, source, rows, fine), loss.of_record.parts
        self._progress("distinct rows")
        codes, counts = weighted_rows(rows, fine.plain([*names, target]), bound)
        domain = fine
        if wide:
            self._progress(f"groups of {len(wide)} columns of numbers")
            exact = {
                name: integer_sums(codes[:, names.index(name)], fine[name].size, counts)
                for name in wide
            }
            domain, means = cut_domain(fine, exact, parts["groups"], source)
            columns = self._plan(domain.plain(names), means)
        groupings = [
            (groups[cast(Any, fine[name]).codes_in(domain[name])] if name in wide else groups, n)
            for name, (groups, n) in zip(names, self._groups(columns), strict=True)
        ]
        records = grouped_records(codes, counts, groupings, label_of)
        self._progress("model")
        model, total, std = self._release(records, columns, link, parts, source)
        self._remember_columns(features, rows, target)
        self.domain_ = domain
        self.target_ = target
        self.privacy_loss_ = loss
        self._publish(model, columns)
        warn_of_emptiness(self, total, std)
        return self

    # What the parameter holds that declares the label, and its name.
    _shorthand: ClassVar[tuple[str, str]]

    # Whether steps of a fit are printed; set by what is around the model.
    verbose: ClassVar[Any] = 0

    # Whether numbers are cut where records are; else they have the declared bins.
    _cuts = True

    @property
    def _most_bins(self):
        return None if self._cuts else FEW_BINS

    def _declared_label(self):
        """Declaration of the label by a parameter, or None."""
        raise NotImplementedError

    def _link(self, domain, target):
        """How scores and labels belong together, and the label of each code."""
        raise NotImplementedError

    def _plan(self, domain, means):
        """What is public about each column, or released: means of bins; checks the parameters."""
        raise NotImplementedError

    def _groups(self, columns):
        """Of each column the group of each code, and the number of groups."""
        raise NotImplementedError

    def _parts(self, epsilon):
        """Parts of the budget of one row, without that of the groups: "total" and "model"."""
        return additive_parts(epsilon)

    def _check_noise(self, columns, link, epsilon):
        """Refuse noise that fits into no integers; ``epsilon`` is the part "model" of a row."""

    def _release(self, records, columns, link, parts, source):
        """The model, the released number of records, and the standard deviation of its noise."""
        # Privacy. Released: the number of records, and what `_learn` releases within the part
        # "model", one after the other.
        total, std = released_total(records, parts["total"], source)
        # Sums are divided by it: a number that noise made small would make them large.
        prudent = total + std**2 / total if total > std else 2 * std
        return self._learn(records, columns, link, parts["model"], prudent, source), total, std

    def _learn(self, records, columns, link, epsilon, total, source):
        """Fit the model, given the released number of records."""
        raise NotImplementedError

    def _publish(self, model, columns):
        """Set the released attributes, in the units that users see."""
        raise NotImplementedError

    def _units(self):
        """Factor and shift from scores of the model to those that users see."""
        return 1.0, 0.0

    def _codes(self, X, names):
        """Code of each row in each column; -1 if the domain has none."""
        # The person is no feature.
        return feature_codes(self, X, names, self.privacy_id)


class ModelOfGroups(ModelOfLabels):
    """A model of a label that knows of each column its group, and nothing else."""

    def _plan(self, domain, means):
        most = self.max_groups
        max_groups = None if most is None else as_integer(most, "max_groups", 2)
        return {name: group_values(domain[name], max_groups) for name in domain.names}

    def _groups(self, groupings):
        return [(each.groups, len(each.labels)) for each in groupings.values()]


@dataclass(eq=False, repr=False, kw_only=True)
class ModelOfClasses(ExactScore, ClassifierMixin, ModelOfLabels):
    """A model of a label that is one of a public list."""

    classes: Any = None

    _shorthand = ("the list of", "classes=")

    def _declared_label(self):
        return self.classes

    def _link(self, domain, target):
        classes, class_of = label_classes(domain, target)
        # A missing label belongs to no class.
        return Logit(max(len(classes), 2)), np.append(class_of, -1)[: domain[target].size]

    def _declared_classes(self):
        """The declared labels, sorted."""
        return label_classes(self.domain_, self.target_)[0]

    def _shares(self, scores):
        """Probabilities of the classes from their scores."""
        link = Logit(max(len(self.classes_), 2))
        shares = link.probabilities(scores if scores.ndim == 2 else scores[:, None])
        return (
            shares[:, : len(self.classes_)] if len(self.classes_) > 1 else np.ones((len(scores), 1))
        )

    def predict(self, X) -> np.ndarray:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        shares = self.predict_proba(X)
        return self.classes_[np.argmax(shares, axis=1)]


@dataclass(eq=False, repr=False, kw_only=True)
class ModelOfNumbers(ExactScore, RegressorMixin, ModelOfLabels):
    """A model of a number within a public range."""

    target_range: Any = None

    _shorthand = ("its public range in", "target_range=")

    def _declared_label(self):
        return _declared_range(self.target_range)

    def _link(self, domain, target):
        return number_link(domain, target)

    def _units(self):
        middle, half = _middle_and_half(self.domain_[self.target_])
        return half, middle

    def _within(self, scores):
        """Scores, cut to the declared range."""
        half, middle = self._units()
        return np.clip(scores, middle - half, middle + half)

    def predict(self, X) -> np.ndarray:
        """Expected target of each row, within the declared range.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._within(self._scores(X))


def plain(values: Any) -> Any:
    """Without the axis of outputs, where there is one output only."""
    return values[..., 0] if values.shape[-1] == 1 else values


def grouped_records(codes: Any, counts: Any, groupings: Any, label_of: Any = None) -> Records:
    """Records by groups and label; those whose label belongs to no class are left out.

    Parameters
    ----------
    codes : ndarray of shape (m, n_columns), int32
        With a label as last column, if there is one.
    counts : ndarray of shape (m,)
    groupings : list of (ndarray of shape (n_codes,), int)
        Of each other column the group of each code, and the number of groups.
    label_of : ndarray of shape (n_codes,), default=None
        Label of each code. None: there is none, and all labels are 0.
    """
    labels = np.zeros(len(codes), np.int64) if label_of is None else label_of[codes[:, -1]]
    kept = labels >= 0
    if not kept.all():
        codes, labels, counts = codes[kept], labels[kept], counts[kept]
    groups, n_groups = zip(*groupings, strict=True)
    return Records.grouped(codes, labels, counts, groups, n_groups)


# ------------------------------------------------------------------------------------------------
# The public features of a linear model: which numbers each column of a domain becomes.


# Tables of a column and of all pairs of features take the square of this many numbers: 128 MB.
_FEATURES_ONCE = 4096


@dataclass(frozen=True, eq=False)
class _FeatureColumn:
    """One column of the domain as features.

    Attributes
    ----------
    name : str
    labels : tuple of str
        Names of the features.
    groups : ndarray of shape (n_codes,)
        Group of each code.
    column : Column
        Features of each group, scaled into [-1, 1].
    codes : ndarray of shape (n_codes, n_features)
        Scaled features of each code, by which rows are predicted.
    shift, scale : ndarray of shape (n_features,)
        A feature in the units of the user is ``shift + scale *`` the scaled one.
    """

    name: str
    labels: tuple[str, ...]
    groups: IntArray
    column: Column
    codes: FloatArray
    shift: FloatArray
    scale: FloatArray


def feature_columns(
    domain: Domain, one_hot: Any, max_groups: int, means: Mapping[str, FloatArray]
) -> list[_FeatureColumn]:
    """Features of all columns of a domain.

    Parameters
    ----------
    domain : Domain
    one_hot : {"categories", "all"}
        Which columns of numbers become indicators too: none, or all.
    max_groups : int
        Most indicators of ordered values.
    means : mapping of str to ndarray of shape (n_bins,)
        Means of the bins of some numbers, see `cut_domain`; of others bins are filled evenly.

    Raises
    ------
    DomainError, ValueError
        If ``one_hot`` is neither, or a column has too many categories.
    """
    check_choice(one_hot, "one_hot", ("categories", "all"))
    for name, attribute in domain.items():
        # Ordered ones are merged.
        if attribute.order() is None and attribute.size > _FEATURES_ONCE:
            raise DomainError(
                f"Column {name!r} has {attribute.size:,} categories, and a linear model needs an "
                f"indicator of each: at most {_FEATURES_ONCE:,}. Declare the frequent ones and "
                "other= for the rest, or a taxonomy, or take PrivateNaiveBayes, a tree or an "
                "additive model."
            )
    return [
        _indicators(name, attribute, max_groups)
        if one_hot == "all" or not _is_number(attribute)
        else _number(name, attribute, means.get(name))
        for name, attribute in domain.items()
    ]


def design_of(columns: Sequence[_FeatureColumn]) -> Design:
    """The features of all columns together."""
    return Design(tuple(each.column for each in columns))


def check_pairs(columns: Sequence[_FeatureColumn]) -> None:
    """Refuse more features than products of all pairs fit into memory.

    Raises
    ------
    DomainError
        If there are too many.
    """
    n_features = sum(len(each.labels) for each in columns)
    if n_features > _FEATURES_ONCE:
        raise DomainError(
            f"The columns have {n_features:,} features, and sums of the products of all pairs are "
            f"measured: at most {_FEATURES_ONCE:,} features. Declare fewer columns or categories, "
            "or take solver='auto' where there is one."
        )


def _is_number(attribute: Attribute) -> bool:
    return isinstance(attribute, Numeric) and attribute.summable


def _indicators(name: str, attribute: Attribute, max_groups: int) -> _FeatureColumn:
    grouping = group_values(attribute, max_groups)
    n = len(grouping.labels)
    column = Column(np.eye(n), True, grouping.chain)
    labels = tuple(f"{name} = {label}" for label in grouping.labels)
    codes = np.eye(n)[grouping.groups]
    return _FeatureColumn(name, labels, grouping.groups, column, codes, np.zeros(n), np.ones(n))


def _number(name: str, attribute: Any, released: FloatArray | None) -> _FeatureColumn:
    """The mean of the bin, and an indicator of each special value and of missing ones."""
    grouping = group_values(attribute, attribute.bins)
    means = attribute.means()[: attribute.bins] if released is None else released
    groups, n_bins = grouping.groups, len(grouping.chain or ())
    n_others = len(grouping.labels) - n_bins
    ends = (attribute.lower, attribute.upper) if released is None else (means[0], means[-1])
    low, high = map(float, ends)
    # A range of one value says nothing: its codes are 0.
    middle, half = low / 2 + high / 2, (high / 2 - low / 2) or 1.0
    codes = np.zeros((len(groups), 1 + n_others))
    codes[: len(means), 0] = np.clip((means - middle) / half, -1.0, 1.0)
    codes[np.arange(len(means), len(groups)), 1 + groups[len(means) :] - n_bins] = 1.0
    sizes = np.bincount(groups, minlength=len(grouping.labels))[:, None]
    sums = np.stack([np.bincount(groups, each, len(sizes)) for each in codes.T], axis=1)
    labels = (name, *(f"{name} = {label}" for label in grouping.labels[n_bins:]))
    return _FeatureColumn(
        name,
        labels,
        groups,
        Column(sums / sizes, False, None, n_bins),
        codes,
        np.array([middle, *np.zeros(n_others)]),
        np.array([half, *np.ones(n_others)]),
    )


def coded_features(columns: Sequence[_FeatureColumn], codes: IntArray) -> Iterator[FloatArray]:
    """Scaled features of rows, column by column; those of an unknown value are 0."""
    for position, each in enumerate(columns):
        found = each.codes[codes[:, position]]
        found[codes[:, position] < 0] = 0.0
        yield found
