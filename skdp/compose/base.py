"""What the classifier and the regressor share: release, train on the release, predict."""

from __future__ import annotations

import copy
import warnings
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from .._base import Published, ShowsPrivacy, declare_label, full_domain, match_rows, require_y
from .._foreign import reraise_interrupts
from .._pipelines import Rows, Step, child, is_inferred, price, released_by, walk
from .._random import sampling_generator
from .._types import BoolArray, FloatArray
from .._validation import as_sample_size
from ..domain import Attribute, Domain
from ..exceptions import DomainError, TrainingError
from ..rows import Frame, Layout, as_frame, select_columns, take_rows
from ..synthesis import MarginalSynthesizer

# --- training an estimator on the rows of a release, which may be weighted or without a label

# Parameters of estimators that compare with a number of rows, whatever their weights.
_COUNT_ROWS = ("min_samples_leaf", "min_samples_split", "min_child_samples")
# Rows that weighted rows are expanded to, roughly, at most.
_MOST_EXPANDED = 200_000


def usable_rows(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weight: FloatArray | None,
    known: BoolArray,
    rng: np.random.Generator,
) -> tuple[Any, NDArray[Any], FloatArray | None]:
    """The rows with a label; drawn in proportion to weights that the estimator cannot take.

    An estimator that takes weights but counts rows, as trees do against ``min_samples_leaf``, gets
    each row as many times as it weighs, each copy with an equal share of its weight.
    """
    if known.all() and (weight is None or has_fit_parameter(estimator, "sample_weight")):
        if weight is None or not _counts_rows(estimator):
            return X, y, weight
        scale = min(1.0, _MOST_EXPANDED / max(float(weight.sum()), 1.0))
        times = np.maximum(np.ceil(weight * scale), 1).astype(np.int64)
        chosen = np.repeat(np.arange(len(y)), times)
        return take_rows(X, chosen), y[chosen], (weight / times)[chosen]
    if weight is None:
        chosen = np.flatnonzero(known)
    else:
        # Not every estimator takes weights: drawing rows in proportion does the same on average.
        share = known * weight
        n_rows = max(1, round(share.sum()))
        chosen = rng.choice(len(y), size=n_rows, p=share / share.sum())
    return take_rows(X, chosen), y[chosen], None


def _counts_rows(estimator: Any) -> bool:
    """Whether a parameter of the estimator, or of one inside it, is a number of rows above two."""
    for name, value in estimator.get_params().items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Two rows is the least that can be split; a float below one is a share of the rows.
        if name.rpartition("__")[2] in _COUNT_ROWS and is_number and (value > 2 or 0 < value < 1):
            return True
    return False


def fit_clone(estimator: Any, X: Any, y: NDArray[Any], weight: FloatArray | None) -> Any:
    """Fit a clone of ``estimator``."""
    estimator = clone(estimator)
    return estimator.fit(X, y) if weight is None else estimator.fit(X, y, sample_weight=weight)


# --- what both wrappers share

# Parameters of the default release, or of the default model; a synthesizer may take the last.
_OWN = ("epsilon", "domain", "target", "max_contributions", "unit", "ledger")
# Number of public rows on which an estimator is tried before the charge: the least, the number for
# each label, and the most. The second line is for estimators that need many.
_TRIALS = ((64, 10, 2_000), (2_000, 20, 20_000))


class TrainedOnRelease(Published, ShowsPrivacy, MetaEstimatorMixin, BaseEstimator):
    """What the classifier and the regressor share: release, train on the release, predict."""

    estimator: Any
    synthesizer: Any
    n_samples: int | None
    random_state: int | None
    epsilon: Any
    domain: Any
    target: str | None
    max_contributions: int | None
    unit: str | None
    ledger: Any
    # Parameter that declares the label, in words, and its name.
    _shorthand: str
    _label: str

    def _default(self, **params: Any) -> Any:
        """The private model that is fitted where no estimator is given."""
        raise NotImplementedError

    def _reader(self) -> Any:
        """What reads the true rows: the synthesizer, the default one, or the default model."""
        params = {name: getattr(self, name) for name in _OWN}
        if self.synthesizer is not None:
            given = [name for name in _OWN[:-1] if params[name] is not None]
            if given or self.estimator is None:
                raise ValueError(
                    f"{type(self).__name__} got a synthesizer, which reads the rows, and "
                    + (f"{given} beside it: give them to it." if given else "no estimator.")
                    + " Without a synthesizer give epsilon, domain and the label."
                )
            own = getattr(self.synthesizer, "ledger", self.ledger)
            frozen = isinstance(self.synthesizer, FrozenEstimator)
            if self.ledger is None or own is self.ledger or frozen:
                return self.synthesizer
            if own is not None:
                raise ValueError(
                    f"Both {type(self).__name__} and its synthesizer have a ledger. Give one."
                )
            return clone(self.synthesizer).set_params(ledger=self.ledger)
        if self.epsilon is None:
            raise ValueError(
                f"{type(self).__name__} needs epsilon=, the privacy budget of a fit, or a "
                "synthesizer that has its own."
            )
        if self.estimator is None:
            return self._default(**params, **{self._label: getattr(self, self._label)})
        return MarginalSynthesizer(**params)

    def _label_attribute(self) -> Any:
        """Declaration of the label, or None where the synthesizer declares it."""
        raise NotImplementedError

    def _check_label(self, attribute: Attribute, target: str) -> None:
        """Refuse a declared label that does not fit the task."""
        raise NotImplementedError

    def _train(
        self,
        X: Any,
        y: NDArray[Any],
        weight: FloatArray | None,
        attribute: Attribute,
        rng: np.random.Generator,
    ) -> Any:
        """Train a clone of ``estimator`` on rows of a release."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Charge, release, and train on the release.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            None only without an estimator, if ``X`` has the column ``target``.

        Returns
        -------
        self

        Raises
        ------
        DomainError
            If the schema does not fit or the label is not declared; nothing is spent.
        ValueError
            If ``estimator`` cannot be trained on a few rows drawn from the public domain, or
            cannot predict them; nothing is spent.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        TrainingError
            If ``estimator`` cannot be trained on the release; ``synthesizer_`` keeps it.
        """
        # Parameters of the synthetic draw are refused before anything is spent.
        sampling_generator(self.random_state)
        as_sample_size(self.n_samples, 0, 1)
        reader = self._reader()
        if self.estimator is None:
            return self._fit_default(reader, X, y)
        require_y(self, y)
        if isinstance(reader, FrozenEstimator):
            return self._train_frozen(reader.estimator, X)
        release = self._declared_release(as_frame(X))
        # Rows that do not fit the domain are refused as such, not because the trial fails. Rules
        # that the release cannot honour are left to its own fit, which names it.
        rows, domain = match_rows(X, y, release.domain, release.target, structure=True, of=release)
        self._try_out(release, domain, Layout.of(X, rows, domain))
        release.fit(X, y)
        # Paid for, so it is kept whatever happens next.
        self._keep(release)
        validate_data(self, X, skip_check_array=True)
        return self._train_release(release)

    def _fit_default(self, model: Any, X: Any, y: Any) -> Self:
        """Fit the default model, which charges and reads by itself."""
        model.fit(X, y)
        self.__dict__.pop("synthesizer_", None)
        self.estimator_ = model
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self.privacy_loss_ = model.privacy_loss_
        return self

    def _declared_release(self, rows: Frame) -> Any:
        """A clone of the synthesizer whose domain declares the label."""
        release = clone(self._reader())
        if getattr(release, "unit", None) is not None:
            raise ValueError(
                f"The synthesizer's unit={release.unit!r} is a column that X has for training, "
                "but new rows do not have. Fit the synthesizer first, and give it to "
                f"{type(self).__name__} as FrozenEstimator(synthesizer)."
            )
        label = self._label_attribute()
        if getattr(release, "classes", None) is not None:
            if label is not None:
                raise ValueError(
                    f"Both this {type(self).__name__} and its synthesizer declare the label. "
                    "Declare it once."
                )
            label = release.classes
            release.set_params(classes=None)
        domain, target = declare_label(release.domain, rows, release.target, label)
        if target is None:
            raise DomainError(
                "No column is declared as the label: give the synthesizer a target= (a column of "
                f"its domain), or {type(self).__name__} {self._shorthand}."
            )
        domain = full_domain(domain, rows)
        self._check_label(domain[target], target)
        return release.set_params(domain=domain, target=target)

    def _train_frozen(self, release: Any, X: Any) -> Self:
        """Train on a release that was made and paid for earlier."""
        check_is_fitted(release)
        if self._label_attribute() is not None or getattr(release, "target", None) is None:
            raise ValueError(
                "A frozen release already has its label, in the column that its target= names: "
                f"fit it with a target, and give {type(self).__name__} no label of its own."
            )
        self._check_label(release.domain_[release.target], release.target)
        validate_data(self, X, skip_check_array=True)
        return self._train_release(copy.copy(release))

    def _train_on(self, fitted: Self, X: Any) -> Self:
        """Train on the release that ``fitted`` made, as if a fit had drawn the same one."""
        validate_data(self, X, skip_check_array=True)
        return self._train_release(copy.copy(fitted.synthesizer_))

    def _train_release(self, release: Any) -> Self:
        # From here on everything is post-processing of the release, which has been charged. It is
        # kept even if training fails, and an error of training depends on the release only.
        self._keep(release)
        try:
            self.estimator_ = self._train_on_rows_of(release, self.n_samples, self.random_state)
        except BaseException as error:
            reraise_interrupts(error)
            raise TrainingError(
                f"The release was made and paid for, but {type(self.estimator).__name__} could not "
                f"be trained on it: {type(error).__name__}: {error}\nThe release is kept: it is "
                "synthesizer_ of this model and synthesizer of this error. Training on it "
                "again costs nothing: "
                f"{type(self).__name__}(another_estimator, FrozenEstimator(release)).fit(X, y).",
                release,
            ) from error
        return self

    def _keep(self, release: Any) -> None:
        """Keep a fitted release, and drop what was trained on an earlier one."""
        for name in ("estimator_", "classes_"):
            self.__dict__.pop(name, None)
        self.synthesizer_ = release
        self.privacy_loss_ = release.privacy_loss_

    def _train_on_rows_of(self, release: Any, n_samples: int | None, random_state: Any) -> Any:
        rng = sampling_generator(random_state)
        X, y, weight = release.make_training_set(n_samples, random_state=rng)
        return self._train(X, y, weight, release.domain_[release.target], rng)

    def _try_out(self, release: Any, domain: Domain, layout: Layout) -> None:
        """Train and predict on rows of the public domain, before anything is charged.

        No private row is read: an error here follows from the parameters and the domain.
        """
        if not hasattr(release, "_stand_in"):
            return
        public = clone(release)._stand_in(domain, layout)
        twin = copy.copy(self)
        # Private estimators within it would charge their ledgers for training on a release.
        inner = clone(self.estimator)
        books = [key for key in inner.get_params() if key.rpartition("__")[2] == "ledger"]
        twin.estimator = inner.set_params(**dict.fromkeys(books))
        n_labels = domain[release.target].n_values
        failure = None
        for least, each, most in _TRIALS:
            n_rows = min(max(least, each * n_labels), most)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    trained = twin._train_on_rows_of(public, n_rows, 0)
                    trained.predict(public.make_training_set(n_rows, random_state=0)[0])
                return
            except Exception as error:
                failure = error
        raise ValueError(
            f"{type(self.estimator).__name__} cannot be trained on rows of this domain. Tried on "
            f"{n_rows:,} rows drawn from the declared domain, with every label and, in nullable "
            f"columns, with gaps, it raised {type(failure).__name__}: {failure}\nNothing was read "
            "or spent. Text and dates need an encoder, and gaps an imputer, inside the estimator. "
            "If it needs other rows than these, fit the synthesizer first, and pass it as "
            "FrozenEstimator(synthesizer)."
        ) from failure

    def __sklearn_is_fitted__(self) -> bool:
        # A release whose training failed is kept, but predicts nothing.
        return hasattr(self, "estimator_")

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        rows = self._test_rows(X)
        return self.estimator_.predict(rows)

    def _test_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "synthesizer_"):
            # The default model prepares rows by itself.
            return X
        as_frame(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        release = self.synthesizer_
        # In the order of the rows that the model was trained on.
        names = release.domain_.names
        if hasattr(release, "_given_names"):
            names = release._given_names(identifiers=False)
        return release.prepare(select_columns(X, [n for n in names if n != release.target]))

    def _privacy_steps(self, name: str, rows: Rows) -> list[Step]:
        # Only the release reads the true rows; what is trained reads only the release.
        reader = self._reader()
        made = getattr(self, "estimator_" if self.estimator is None else "synthesizer_", None)
        # When a fitted model is stored, its seed is left out, but the fact that there was one is
        # kept. A domain that is declared after the fit does not undo what was released before.
        flawed = made is not None and (
            made.privacy_loss_.seeded or is_inferred(getattr(made, "domain_", None))
        )
        if self.estimator is None:
            return walk(made if flawed else reader, name, rows)
        given = released_by(reader, getattr(self, "classes", None))
        return [
            *walk(made if flawed else reader, child(name, "synthesizer"), rows),
            *walk(self.estimator, child(name, "estimator"), given),
        ]

    def _price(self) -> Fraction | None:
        return price(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = MarginalSynthesizer() if self.synthesizer is None else self.synthesizer
        tags.input_tags = get_tags(inner).input_tags
        tags.non_deterministic = True
        return tags
