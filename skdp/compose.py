"""Meta-estimators that train ordinary scikit-learn estimators on a private release."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ._models import CUTTING, ModelOfClasses, cut_domain, fine_domain, number_link
from ._random import sampling_generator
from ._validation import FloatArray, as_sample_size, reraise_interrupts
from .additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from .base import (
    ExactScore,
    Published,
    ShowsPrivacy,
    declare_label,
    declared_rows,
    full_domain,
    label_classes,
    match_labelled,
    match_rows,
    refuse_beside_rows,
    require_y,
)
from .classification import PrivPfCClassifier, columns_add_up
from .domain import Categorical, Domain, Numeric
from .exceptions import DomainError, TrainingError
from .inspection import Step, child, ledgers, price, trained, walk
from .synthesis import MarginalSynthesizer
from .tables import Frame, Layout, as_frame, build_frame, count_rows, take_rows

__all__ = ["PrivateClassifier", "PrivateRegressor"]

# ------------------------------------------------------------------------------------------------
# What the classifier and the regressor share: release, train on the release, predict.


# --- training an estimator on the rows of a release, which may be weighted or without a label


def fit_clone(estimator: Any, X: Any, y: NDArray[Any], weight: FloatArray | None, rng: Any) -> Any:
    """Fit a clone of ``estimator`` to the rows with a known label.

    Weights go to estimators that take them; for others rows are drawn in proportion to them.
    """
    estimator, chosen = clone(estimator), np.flatnonzero(~pd.isna(y))
    if weight is not None:
        if has_fit_parameter(estimator, "sample_weight"):
            return estimator.fit(X, y, sample_weight=weight)
        n_rows = max(1, round(weight.sum()))
        chosen = rng.choice(len(y), size=n_rows, p=weight / weight.sum())
    # Where some are missing, they are objects.
    labels = pd.Series(y[chosen]).infer_objects().to_numpy()
    return estimator.fit(take_rows(X, chosen), labels)


# --- what both wrappers share


@dataclass(eq=False, repr=False, kw_only=True)
class TrainedOnRelease(Published, ShowsPrivacy, MetaEstimatorMixin, BaseEstimator):
    """What the classifier and the regressor share: release, train on the release, predict."""

    estimator: Any = field(default=None, kw_only=False)
    synthesizer: Any = field(default=None, kw_only=False)
    epsilon: Any = None
    domain: Any = None
    target: str | None = None
    n_samples: int | None = None
    max_rows_per_id: int | None = None
    privacy_id: str | None = None
    ledger: Any = None
    random_state: Any = None
    verbose: Any = 0

    # Parameter that declares the label.
    _label: ClassVar[str]
    # The private model that is fitted where no estimator is given.
    _default: ClassVar[Any]
    # From domain and target what may be predicted; refuses a label that does not fit the task. An
    # estimator is trained where the release shows two of these, or all.
    _answers: ClassVar[Any]

    def _reader(self) -> Any:
        """What reads the true rows: the synthesizer, the default one, or the default model."""
        names = ("epsilon", "domain", "target", "max_rows_per_id", "privacy_id", "ledger")
        params = {name: getattr(self, name) for name in names}
        if self.synthesizer is not None:
            # A search gives its ledger to both.
            if isinstance(self.synthesizer, FrozenEstimator) or (
                self.ledger is getattr(self.synthesizer, "ledger", None)
            ):
                del params["ledger"]
            given = [name for name, value in params.items() if value is not None]
            if given or self.estimator is None:
                raise ValueError(
                    f"{type(self).__name__} got a synthesizer, which reads the rows, and "
                    + (f"{given} beside it: give them to it." if given else "no estimator.")
                )
        if self.estimator is None:
            return self._default(**params, **{self._label: getattr(self, self._label)})
        reader = self.synthesizer
        if reader is None:
            reader = MarginalSynthesizer(**params, verbose=self.verbose)
        person = getattr(reader, "privacy_id", None)
        if person is not None and not isinstance(reader, FrozenEstimator):
            raise ValueError(
                f"The synthesizer's privacy_id={person!r} is a column that X has for training, but "
                "new rows do not have. Fit the synthesizer first, and give it to "
                f"{type(self).__name__} as FrozenEstimator(synthesizer)."
            )
        return reader

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Charge, release, and train on the release.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            None only without an estimator, if ``X`` has the column ``target``.
        **fit_params
            Refused. A record of ``sample_weight`` w would cost w times its epsilon.

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
        refuse_beside_rows(type(self).__name__, fit_params)
        # Parameters of the synthetic draw are refused before anything is spent.
        sampling_generator(self.random_state)
        as_sample_size(self.n_samples, 0, 1)
        reader = self._reader()
        if self.estimator is None:
            return self._fit_default(reader, X, y)
        require_y(self, y)
        if isinstance(reader, FrozenEstimator):
            check_is_fitted(release := reader.estimator)
            if getattr(self, self._label) is not None or getattr(release, "target", None) is None:
                raise ValueError(
                    "A frozen release already has its label, in the column that its target= names: "
                    f"fit it with a target, and give {type(self).__name__} no label of its own."
                )
            self._answers(release.domain_, release.target)
            return self._train_on(release, X)
        release = self._declared_release(reader, as_frame(X))
        # Rules that the release cannot honour are left to its own fit, which names it.
        rows, domain = match_rows(X, y, release.domain, release.target, structure=True, of=release)
        self._rehearse(hasattr(release, "page"), domain, release.target, Layout(X, rows, domain))
        return self._train_on(release.fit(X, y), X)

    def _fit_default(self, model: Any, X: Any, y: Any) -> Self:
        """Fit the default model, which charges and reads by itself."""
        # No parameter of the models by themselves.
        model.verbose = self.verbose
        kept = ("classes_", "n_features_in_", "feature_names_in_", "privacy_loss_")
        released = vars(model.fit(X, y)).items()
        self._replace(estimator_=model, **{name: it for name, it in released if name in kept})
        return self

    def _replace(self, **released: Any) -> None:
        """Drop what an earlier fit released for what this one did."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.__dict__.update(released)

    def _declared_release(self, reader: Any, rows: Frame) -> Any:
        """A clone of the synthesizer whose domain declares the label."""
        release, name = clone(reader), type(self).__name__
        domain, target = release.domain, release.target
        given = {"classes": release.classes} if hasattr(release, "classes") else {}
        label = getattr(self, self._label)
        if isinstance(self, PrivateRegressor) and label is not None:
            label = Numeric(*label)
        for each in (*given.values(), label):
            domain, target = declare_label(domain, rows, target, each)
        if target is None:
            raise DomainError(
                "No column is declared as the label: give the synthesizer a target= (a column of "
                f"its domain), or {name} {self._label}=."
            )
        domain = full_domain(domain, rows)
        self._answers(domain, target)
        return release.set_params(domain=domain, target=target, **dict.fromkeys(given))

    def _train_on(self, release: Any, X: Any) -> Self:
        """Train on a release that has been paid for."""
        # From here on everything is post-processing of the release, which has been charged. It is
        # kept even if training fails, and an error of training depends on the release only.
        release = copy.copy(release)
        self._replace(synthesizer_=release, privacy_loss_=release.privacy_loss_)
        validate_data(self, X, skip_check_array=True)
        try:
            rng = sampling_generator(self.random_state)
            drawn, y, weight = release.make_training_set(self.n_samples, random_state=rng)
            shown = pd.Series(y).dropna().unique().tolist()
            answers = self._answers(release.domain_, release.target)
            if self._label == "classes":
                self.classes_ = answers
            if len(shown) >= min(2, len(answers)):
                self.estimator_ = fit_clone(self.estimator, drawn, y, weight, rng)
            else:
                constant = DummyClassifier() if self._label == "classes" else DummyRegressor()
                self.estimator_ = constant.fit([[0.0]], [*shown, *answers][:1])
        except BaseException as error:
            reraise_interrupts(error)
            raise TrainingError(
                f"{type(self.estimator).__name__} failed: {type(error).__name__}: {error}\nThe "
                "release is paid for, and kept as synthesizer_. Training on it again is free: "
                f"{type(self).__name__}(another_estimator, FrozenEstimator(release)).fit(X, y).",
                release,
            ) from error
        return self

    def _rehearse(self, draws: bool, domain: Domain, target: str, layout: Layout) -> None:
        """Train and predict on rows of the public domain, so that wrong estimators cost nothing.

        Releases that draw no rows are trained on as indicators of groups.
        """
        n_labels = domain[target].n_values
        n, rng = min(max(500, 20 * n_labels), 20_000), sampling_generator(0)
        codes = np.stack([rng.permutation(np.arange(n) % size) for size in domain.shape], axis=1)
        # Some estimators refuse labels that follow from nothing.
        order = codes.sum(axis=1).argsort(kind="stable")
        codes[order, domain.index(target)] = np.arange(n) * n_labels // n
        # What a release draws may lack a category, of more than two the first here.
        rare = [
            name != target and isinstance(each, Categorical) and each.n_values > 2
            for name, each in domain.items()
        ]
        drawn, every = (
            domain.decode(domain.structure.zeros.mended(rows), rng)
            for rows in (np.maximum(codes, rare), codes)
        )
        names = [name for name in layout.given if name != target and name in domain]
        X, asked = (
            build_frame(declared_rows(rows, domain, names, target), layout) if draws else codes % 2
            for rows in (drawn, every)
        )
        y = drawn[target].astype(object).to_numpy()
        # Private estimators within it would charge their ledgers.
        inner = clone(self.estimator)
        inner.set_params(**dict.fromkeys(ledgers(inner)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit_clone(inner, X, y, None, rng).predict(asked)
        except Exception as error:
            raise ValueError(
                f"{type(self.estimator).__name__} cannot be trained on {n:,} rows drawn from the "
                "declared domain, with every label and, in nullable columns, gaps: "
                f"{type(error).__name__}: {error}\nNothing was read or spent. It needs encoders of "
                "text and dates, also for categories that drawn rows may lack (handle_unknown="
                "'ignore', or 'use_encoded_value' with unknown_value=-1), and imputers of gaps. If "
                "it needs other rows, fit the synthesizer first: FrozenEstimator(synthesizer)."
            ) from error

    def __sklearn_is_fitted__(self) -> bool:
        # A release whose training failed is kept, but predicts nothing.
        return hasattr(self, "estimator_")

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label or number of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._predicted("predict", X)

    def _predicted(self, method: str, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        # The default model prepares rows by itself.
        if hasattr(self, "synthesizer_"):
            as_frame(X)
            validate_data(self, X, reset=False, skip_check_array=True)
            X = self.synthesizer_.prepare(X)
        return getattr(self.estimator_, method)(X)

    def _privacy_steps(self, name: str) -> list[Step]:
        # Only the release reads the true rows; what is trained reads only the release.
        reader, default = self._reader(), self.estimator is None
        made = getattr(self, "estimator_" if default else "synthesizer_", None)
        # When a fitted model is stored, its seed is left out, but the fact that there was one is
        # kept. A domain that is declared after the fit does not undo what was released before.
        flawed = made is not None and made.privacy_loss_.seeded
        steps = walk(made if flawed else reader, name if default else child(name, "synthesizer"))
        if self.synthesizer is None:
            # The default reader is made anew by each fit: whose ledger it charges is this one's.
            steps = [replace(step, estimator=self) for step in steps]
        return steps if default else [*steps, trained(self.estimator, child(name, "estimator"))]

    def _price(self) -> Fraction | None:
        return price(walk(self))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = MarginalSynthesizer() if self.synthesizer is None else self.synthesizer
        tags.input_tags = get_tags(inner).input_tags
        tags.non_deterministic = True
        return tags


# ------------------------------------------------------------------------------------------------
# Any classifier, trained on a private release.


# --- the classifier of `PrivateClassifier` without an estimator

# The second model has this share of epsilon. It is an additive one from so many records times
# epsilon for each class; then so much of each counts in a sum of logarithms, which were pulled to
# the overall shares. Chosen on 18 labels of ``benchmarks/models.py``, the factor for each class on
# five more labels of 4 to 15 classes.
_SECOND, _ENOUGH, _WEIGHTS = Fraction(4, 5), 1_000.0, (0.4, 0.8)


class _DefaultClassifier(ModelOfClasses):
    """PrivPfC, then PrivPfC again or an additive model, whichever the first speaks for.

    PrivPfC finds combinations of columns and is rarely worse than the most frequent label, but its
    cells rank rows coarsely. An additive model ranks finely and misses combinations: it is the
    second where records times epsilon pay for it and columns of the cells add up. Both are in
    ``models_``.
    """

    # A fifth of the rest of epsilon is that of a model.
    _least_share = Fraction(1, 10)

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Charge all of epsilon, then release the models."""
        rows, domain, target, features = match_labelled(
            self, X, y, fit_params, self.classes, *self._shorthand
        )
        classes, _ = label_classes(domain, target)
        fine, wide = fine_domain(domain, target)
        shares = {"groups": CUTTING} if wide else {}
        loss, source = self._spend(rows, shares=shares | {"models": 1 - sum(shares.values())})
        # Privacy. Released: edges of groups of numbers (part "groups", see `cut_domain`), and, by
        # sequential composition, two models whose epsilons sum to the part "models". Which the
        # second one is follows from the first; all of epsilon has been charged before. Each model
        # of persons draws their rows by itself, and pays for as many.
        noise, most = loss.of_record.parts, self._max_rows_per_id() or 1
        if wide:
            self._progress(f"groups of {len(wide)} columns of numbers")
            bound = self._contributions(loss, source, rows, fine)
            table = count_rows(rows, fine.plain(wide), bound, together=(1,))
            exact = {name: table.dense([place]) for place, name in enumerate(wide)}
            domain, _ = cut_domain(fine, exact, noise["groups"], source)
        given = self.get_params(deep=False) | {"ledger": None, "random_state": source}
        given |= {"domain": domain, "target": target, "classes": None}

        def fitted(kind: Any, share: Fraction) -> Any:
            self._progress(f"{kind.__name__}, {float(share):.0%} of the rest of epsilon")
            model = kind(**given | {"epsilon": noise["models"] * most * share})
            # Its groups are those of the domain.
            model._cuts = False
            return model.fit(X, y).set_params(random_state=None)

        cells = fitted(PrivPfCClassifier, 1 - _SECOND)
        enough = cells.histogram_.sum() * float(noise["models"]) > _ENOUGH * len(classes)
        blend = enough and columns_add_up(cells)
        second = fitted(PrivateAdditiveClassifier if blend else PrivPfCClassifier, _SECOND)
        self._remember_columns(features, rows, target)
        self.classes_ = classes
        self.domain_ = domain
        self.target_ = target
        self.models_ = [cells, second]
        self.privacy_loss_ = loss
        self._weights = _WEIGHTS if blend else (1 - float(_SECOND), float(_SECOND))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        check_is_fitted(self)
        X = self._without_person(X)
        # Together about the overall shares of PrivPfC.
        scores = overall = np.log(self.models_[0].shares_)
        for weight, model in zip(self._weights, self.models_, strict=True):
            logs = np.log(np.maximum(model.predict_proba(X), 1e-9))
            scores = scores + weight * (logs - overall)
        return np.asarray(softmax(scores, axis=1))


class _DefaultRegressor(PrivateAdditiveRegressor):
    """The additive model."""


# What a user made, in ledgers and messages.
_DefaultClassifier.__name__ = "PrivateClassifier"
_DefaultRegressor.__name__ = "PrivateRegressor"


# --- the wrapper


def _offers_probabilities(self: Any) -> bool:
    fitted = getattr(self, "estimator_", self.estimator)
    # Where there is no estimator, the default model has them.
    return fitted is None or hasattr(fitted, "predict_proba")


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateClassifier(ExactScore, ClassifierMixin, TrainedOnRelease):
    """A private classifier: the best one known for the table, or any, trained on a release.

    Without an estimator, a twentieth of epsilon first cuts numbers with more than 32 bins into
    groups of about equally many records. A fifth of the rest pays for PrivPfC. What it released
    decides the second model, which has four fifths: an additive model where there are over 1,000
    records times epsilon for each class and the columns of its grid add up, else PrivPfC again. All
    of epsilon is charged beforehand.

    With an estimator, the training data are released privately, and it is trained on the release:
    by default that of `MarginalSynthesizer`.

    Then only the release reads the true rows and labels. ``estimator`` is trained on synthetic (or
    weighted) rows, so whatever it stores is post-processing of an epsilon-DP release and costs
    nothing more. Prediction reads the rows that it is given, as a fit does: numbers are clipped,
    unlisted categories are `other`, what the domain cannot represent is missing, or the middle of
    the range of integers. It releases nothing about the training data.

    Parameters
    ----------
    estimator : scikit-learn classifier, default=None
        Trained on the release. It is cloned. For text and dates it must include an encoder, as with
        ordinary data (a ``Pipeline`` is fine). None: the best classifier known.
    synthesizer : release of skdp, default=None
        What releases the training data. None: a `MarginalSynthesizer` of the parameters below. For
        example ``HDPViewSynthesizer(epsilon=1, domain=domain, target="income")``. It is
        cloned; every ``fit`` charges its ledger. A fitted one that has a ``target`` can be given as
        ``FrozenEstimator(release)``: the model is trained on it, and it is not paid for again.
    epsilon : float, default=None
        Privacy budget spent by one call of ``fit``. Required without a synthesizer; this and the
        other parameters of a release are refused beside one.
    domain : Domain, dict, pair, attribute, or list of these, default=None
        Public range or categories of every column; required without a synthesizer.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label and
        the synthesizer has no ``classes`` itself. Giving both this and ``target`` is an error.
    n_samples : int, default=None
        Number of synthetic rows to train on. None: the release's noisy total, never the exact
        number of rows.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. With
        an estimator: fit the release, and give ``FrozenEstimator(release)``.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read. A synthesizer has its own.
    random_state : int or None, default=None
        Seed of the synthetic draw only. The draw is post-processing, so a seed is harmless. The
        noise has none.
    verbose : int, default=0
        Print the steps of a fit of the default model or release to standard error; numbers are
        public or released.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The declared labels, in the declared order when the domain is ordered, else sorted.
        They never come from ``y``.
    estimator_ : estimator
        The classifier trained on the release, a constant one where the release shows fewer than two
        labels; or the default classifier.
    synthesizer_ : estimator
        The fitted release; only with an estimator.
    privacy_loss_ : PrivacyLoss
        What the fit spent, which is the loss of the synthesizer. For a frozen release: what it cost
        when it was made.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the training rows had column names.

    Notes
    -----
    A score computed from true held-out rows (``score``, ``cross_val_score``) is exact and not
    private: it is for the data owner only. Cross-validation fits k releases and charges for each of
    them.

    Before the charge, ``estimator`` is trained on a few rows drawn from the declared domain, so
    that an estimator that cannot be trained costs no epsilon. If training on the release fails, the
    release is kept in ``synthesizer_``.

    Meta-estimators of scikit-learn (voting, stacking, bagging, one-vs-rest) encode the labels as 0,
    1, ... before they fit the inner estimators. Where all declared labels are text, an array of
    whole numbers is taken for such positions, with a warning. With other labels put the
    meta-estimator inside, as ``estimator``, or declare ``classes=range(k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp import HDPViewSynthesizer, Numeric, PrivateClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> release = HDPViewSynthesizer(epsilon=2.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(LogisticRegression(), release, classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    classes: Any = None

    _label = "classes"
    _default = _DefaultClassifier

    def _answers(self, domain: Domain, target: str) -> Any:
        return label_classes(domain, target)[0]

    @available_if(_offers_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probability of each declared label.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns as in ``classes_``; 0 for a label that does not occur in the release.
        """
        shown = self._predicted("predict_proba", X)
        full = np.zeros((len(shown), len(self.classes_)))
        full[:, np.searchsorted(self.classes_, self.estimator_.classes_)] = shown
        return full


# --- any regressor, trained on a private release


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegressor(ExactScore, RegressorMixin, TrainedOnRelease):
    """A private regressor: the best one known, or any, trained on a release.

    Like `PrivateClassifier`, for a number. Without an estimator it fits a
    `PrivateAdditiveRegressor`, which spends epsilon on, in this order: the number of records (a
    fiftieth), the mean and the spread of the target (at most 0.75), functions of each column, and a
    calibration (at most 0.15). With an estimator, only the release reads the true rows and targets,
    and ``estimator`` is trained on synthetic (or weighted) rows.

    Parameters
    ----------
    estimator : scikit-learn regressor, default=None
        Trained on the release. It is cloned. None: the best regressor known.
    synthesizer : release of skdp, default=None
        What releases the training data. None: a `MarginalSynthesizer` of the parameters below. Its
        ``target`` is a `Numeric` column of its domain. It is cloned; every ``fit`` charges its
        ledger. A fitted one can be given as ``FrozenEstimator(release)``: the model is trained on
        it, and it is not paid for again.
    epsilon : float, default=None
        Privacy budget spent by one call of ``fit``. Required without a synthesizer; this and the
        other parameters of a release are refused beside one.
    domain : Domain, dict, pair, attribute, or list of these, default=None
        Public range or categories of every column; required without a synthesizer.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    target_range : (low, high), default=None
        The public range of the target, where the domain has no column for it. Its bins are those
        of ``Numeric(low, high)``, which the synthesizer chooses; without an estimator there are
        2,048. For others put a `Numeric` into the domain. Giving both this and ``target`` is an
        error.
    n_samples : int, default=None
        Number of synthetic rows to train on. None: the release's noisy total, never the exact
        number of rows.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. With
        an estimator: fit the release, and give ``FrozenEstimator(release)``.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read. A synthesizer has its own.
    random_state : int or None, default=None
        Seed of the synthetic draw only. The draw is post-processing, so a seed is harmless. The
        noise has none.
    verbose : int, default=0
        Print the steps of a fit of the default model or release to standard error; numbers are
        public or released.

    Attributes
    ----------
    estimator_ : estimator
        The regressor trained on the release, a constant in the middle of the range where the
        release is empty; or the default regressor.
    synthesizer_ : estimator
        The fitted release; only with an estimator.
    privacy_loss_ : PrivacyLoss
        What the fit spent, which is the loss of the synthesizer. For a frozen release: what it cost
        when it was made.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the training rows had column names.

    Notes
    -----
    ``estimator`` is tried on public rows before the charge, and a release whose training fails is
    kept, as in `PrivateClassifier`. Targets are clipped to the declared range before they are
    counted, and drawn uniformly within their bin. A score computed from true held-out rows is exact
    and not private; `private_score` releases one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skdp import MarginalSynthesizer, Numeric, PrivateRegressor
    >>> X = np.linspace(0, 1, 5_000)[:, None]
    >>> y = 10 * X[:, 0]
    >>> release = MarginalSynthesizer(epsilon=2.0, domain=Numeric(0, 1))
    >>> model = PrivateRegressor(LinearRegression(), release, target_range=(0, 10)).fit(X, y)
    >>> model.predict([[0.5]]).round().tolist()
    [5.0]
    """

    target_range: tuple[float, float] | None = None

    _label = "target_range"
    _default = _DefaultRegressor

    def _answers(self, domain: Domain, target: str) -> Any:
        number_link(domain, target)
        attribute: Any = domain[target]
        return [float(attribute.lower) / 2 + float(attribute.upper) / 2]
