"""What all models of a label share: match, charge, count, fit, and read rows to predict."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from .._base import (
    PrivateEstimator,
    RefusesWeights,
    feature_rows,
    label_classes,
    match_labelled,
    refuse_beside_rows,
    warn_of_emptiness,
    without_label,
)
from .._validation import as_epsilon, as_integer
from ..exceptions import DomainError
from ..kernels.additive import Logit, Records, additive_parts, released_total
from ..rows import Frame, read_rows, weighted_rows
from .grouping import group_values
from .targets import declared_range, middle_and_half, number_link

__all__ = [
    "ModelOfClasses",
    "ModelOfGroups",
    "ModelOfLabels",
    "ModelOfNumbers",
    "grouped_records",
    "plain",
]

# With less for one row, noise of a fit might not fit into the 64 bits of its integers: the moments
# of weights of additive models have a scale of at most 3.3e8 / epsilon, and 2**50 fits.
_LEAST_EPSILON = Fraction(3, 10**7)


class ModelOfLabels(RefusesWeights, PrivateEstimator):
    """A model of a label given other columns, each of which is divided into public groups.

    A subclass says which groups there are and what is learnt from the counts of distinct records.
    """

    def fit(self, X, y=None, **fit_params):
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
        refuse_beside_rows(type(self).__name__, fit_params)
        read = read_rows(X)
        rows, domain, target = match_labelled(
            self, read, y, self._declared_label(), *self._shorthand
        )
        names = [name for name in domain.names if name != target]
        if not names:
            raise DomainError(
                f"The domain has no column except the label {target!r}. Declare at least one "
                "predictor."
            )
        link, label_of = self._link(domain, target)
        columns = self._plan(domain.select(names))
        parts = self._parts()
        self._check_noise(columns, link, parts["model"])
        self._warn_of_size(rows, domain)
        loss, source = self._spend(parts)

        bound = self._contributions(loss, source, rows, domain)
        coded = weighted_rows(rows, domain.select([*names, target]), bound)
        records = grouped_records(*coded, self._groups(columns), label_of)
        model, total, std = self._release(records, columns, link, loss.of_record.parts, source)
        if y is None and isinstance(read, Frame):
            # The label is a column of X; the features are the others.
            X = without_label(X, read, domain, target)
        self._remember_columns(X, rows, target)
        self.domain_ = domain
        self.target_ = target
        self.privacy_loss_ = loss
        self._publish(model, columns)
        warn_of_emptiness(self, total, std)
        return self

    # What the parameter holds that declares the label, and its name.
    _shorthand: tuple[str, str]

    def _declared_label(self):
        """Declaration of the label by a parameter, or None."""
        raise NotImplementedError

    def _link(self, domain, target):
        """How scores and labels belong together, and the label of each code."""
        raise NotImplementedError

    def _plan(self, domain):
        """What is public about each column; checks the parameters."""
        raise NotImplementedError

    def _groups(self, columns):
        """Of each column the group of each code, and the number of groups."""
        raise NotImplementedError

    def _parts(self):
        """Parts of the budget of one row: "total" and "model"."""
        return additive_parts(self._record_epsilon())

    def _check_noise(self, columns, link, epsilon):
        """Refuse noise that does not fit into integers; ``epsilon`` is the part "model" of a row.

        Raises
        ------
        ValueError
            If epsilon is too small.
        """
        least = _LEAST_EPSILON * (self._max_contributions() or 1)
        if as_epsilon(self.epsilon) < least:
            raise ValueError(
                f"epsilon must be at least {float(least):g}, got {self.epsilon!r}: the noise of "
                "less might not fit into 64-bit integers."
            )

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
        rows = feature_rows(self, X, self.unit)
        absent = [name for name in names if name not in rows.names]
        if absent:
            raise DomainError(f"The rows lack the columns {absent} of the model.")
        return self.domain_.without_structure().select(names).encode(rows.select(names))


class ModelOfGroups(ModelOfLabels):
    """A model of a label that knows of each column its group, and nothing else."""

    def _plan(self, domain):
        max_groups = as_integer(self.max_groups, "max_groups", 2)
        return {name: group_values(domain[name], max_groups) for name in domain.names}

    def _groups(self, groupings):
        return [(each.groups, len(each.labels)) for each in groupings.values()]


class ModelOfClasses(ClassifierMixin, ModelOfLabels):
    """A model of a label that is one of a public list."""

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # On the few rows of a small table the noise dominates.
        tags.classifier_tags.poor_score = True
        return tags


class ModelOfNumbers(RegressorMixin, ModelOfLabels):
    """A model of a number within a public range."""

    _shorthand = ("its public range in", "target_range=")

    def _declared_label(self):
        return declared_range(self.target_range)

    def _link(self, domain, target):
        return number_link(domain, target)

    def _units(self):
        middle, half = middle_and_half(self.domain_[self.target_])
        return half, middle

    def _within(self, scores):
        """Scores, cut to the declared range."""
        half, middle = self._units()
        return np.clip(scores, middle - half, middle + half)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # On the few rows of a small table the noise dominates.
        tags.regressor_tags.poor_score = True
        return tags


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
