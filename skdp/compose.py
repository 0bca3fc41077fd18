"""Meta-estimators that train ordinary scikit-learn estimators on a private release."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ._models import (
    CUTTING,
    ModelOfClasses,
    cut_domain,
    fine_domain,
    number_link,
)
from ._random import sampling_generator
from ._validation import BoolArray, FloatArray, as_sample_size, reraise_interrupts, split_epsilon
from .additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from .algorithms.additive import mean_size
from .base import (
    ExactScore,
    Published,
    ShowsPrivacy,
    declare_label,
    full_domain,
    label_classes,
    match_labelled,
    match_rows,
    refuse_beside_rows,
    require_y,
)
from .classification import PrivPfCClassifier
from .domain import Domain, Numeric
from .exceptions import DomainError, TrainingError
from .inspection import Step, child, price, trained, walk
from .mechanisms import discrete_laplace
from .synthesis import MarginalSynthesizer
from .tables import Frame, Layout, as_frame, count_rows, take_rows

__all__ = [
    "PrivateClassifier",
    "PrivateRegressor",
]

# ------------------------------------------------------------------------------------------------
# What the classifier and the regressor share: release, train on the release, predict.


# --- training an estimator on the rows of a release, which may be weighted or without a label


def fit_clone(
    estimator: Any, X: Any, y: NDArray[Any], weight: FloatArray | None, known: BoolArray, rng: Any
) -> Any:
    """Fit a clone of ``estimator`` to the rows with a known label.

    Weights go to estimators that take them; for others rows are drawn in proportion to them.
    """
    estimator, chosen = clone(estimator), np.flatnonzero(known)
    if weight is not None:
        if has_fit_parameter(estimator, "sample_weight"):
            return estimator.fit(X, y, sample_weight=weight)
        n_rows = max(1, round(weight.sum()))
        chosen = rng.choice(len(y), size=n_rows, p=weight / weight.sum())
    # Where some are missing, they are objects.
    labels = pd.Series(y[chosen]).infer_objects().to_numpy()
    return estimator.fit(take_rows(X, chosen), labels)


# --- what both wrappers share

# Parameters of the default release, or of the default model.
_OWN = ("epsilon", "domain", "target", "max_rows_per_id", "privacy_id", "ledger")


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

    # Parameter that declares the label, in words, and its name.
    _shorthand: ClassVar[str]
    _label: ClassVar[str]
    # The private model that is fitted where no estimator is given, and what is fitted to the only
    # prediction.
    _default: ClassVar[Any]
    _constant: ClassVar[Any]
    # Fewest labels that an estimator is trained on.
    _fewest: ClassVar[int]
    # What refuses a declared label that does not fit the task.
    _check_label: ClassVar[Any]

    def _reader(self) -> Any:
        """What reads the true rows: the synthesizer, the default one, or the default model."""
        params = {name: getattr(self, name) for name in _OWN}
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
                    + " Without a synthesizer give epsilon, domain and the label."
                )
            return self.synthesizer
        if self.epsilon is None:
            raise ValueError(
                f"{type(self).__name__} needs epsilon=, the privacy budget of a fit, or a "
                "synthesizer that has its own."
            )
        if self.estimator is None:
            return self._default(**params, **{self._label: getattr(self, self._label)})
        return MarginalSynthesizer(**params, verbose=self.verbose)

    def _label_attribute(self) -> Any:
        """Declaration of the label, or None where the synthesizer declares it."""
        return getattr(self, self._label)

    def _answers(self, domain: Domain, target: str) -> Any:
        """What may be predicted where the release shows too few labels."""
        raise NotImplementedError

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
            return self._train_frozen(reader.estimator, X)
        release = self._declared_release(reader, as_frame(X))
        # Rules that the release cannot honour are left to its own fit, which names it.
        rows, domain = match_rows(X, y, release.domain, release.target, structure=True, of=release)
        self._rehearse(hasattr(release, "page"), domain, release.target, Layout(X, rows, domain))
        return self._train_release(release.fit(X, y), X)

    def _fit_default(self, model: Any, X: Any, y: Any) -> Self:
        """Fit the default model, which charges and reads by itself."""
        # No parameter of the models by themselves.
        model.verbose = self.verbose
        model.fit(X, y)
        self._forget()
        self.estimator_ = model
        for name in ("classes_", "n_features_in_", "feature_names_in_", "privacy_loss_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self

    def _forget(self) -> None:
        """Drop what an earlier fit released."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _declared_release(self, reader: Any, rows: Frame) -> Any:
        """A clone of the synthesizer whose domain declares the label."""
        release, name = clone(reader), type(self).__name__
        if getattr(release, "privacy_id", None) is not None:
            raise ValueError(
                f"The synthesizer's privacy_id={release.privacy_id!r} is a column that X has for "
                "training, but new rows do not have. Fit the synthesizer first, and give it to "
                f"{name} as FrozenEstimator(synthesizer)."
            )
        label = self._label_attribute()
        if getattr(release, "classes", None) is not None:
            if label is not None:
                raise ValueError(f"Both this {name} and its synthesizer have classes=. Give one.")
            label = release.classes
            release.set_params(classes=None)
        domain, target = declare_label(release.domain, rows, release.target, label)
        if target is None:
            raise DomainError(
                "No column is declared as the label: give the synthesizer a target= (a column of "
                f"its domain), or {name} {self._shorthand}."
            )
        domain = full_domain(domain, rows)
        self._check_label(domain, target)
        return release.set_params(domain=domain, target=target)

    def _train_frozen(self, release: Any, X: Any) -> Self:
        """Train on a release that was made and paid for earlier."""
        check_is_fitted(release)
        if self._label_attribute() is not None or getattr(release, "target", None) is None:
            raise ValueError(
                "A frozen release already has its label, in the column that its target= names: "
                f"fit it with a target, and give {type(self).__name__} no label of its own."
            )
        self._check_label(release.domain_, release.target)
        return self._train_release(copy.copy(release), X)

    def _train_on(self, fitted: Self, X: Any) -> Self:
        """Train on the release that ``fitted`` made, as if a fit had drawn the same one."""
        return self._train_release(copy.copy(fitted.synthesizer_), X)

    def _train_release(self, release: Any, X: Any) -> Self:
        # From here on everything is post-processing of the release, which has been charged. It is
        # kept even if training fails, and an error of training depends on the release only.
        self._forget()
        self.synthesizer_, self.privacy_loss_ = release, release.privacy_loss_
        validate_data(self, X, skip_check_array=True)
        try:
            rng = sampling_generator(self.random_state)
            drawn, y, weight = release.make_training_set(self.n_samples, random_state=rng)
            known, answers = ~pd.isna(y), self._answers(release.domain_, release.target)
            shown = pd.unique(y[known]).tolist()
            if len(shown) >= self._fewest:
                self.estimator_ = fit_clone(self.estimator, drawn, y, weight, known, rng)
            else:
                self.estimator_ = self._constant().fit([[0.0]], [*shown, *answers][:1])
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
        drawn = domain.decode(domain.structure.zeros.mended(codes), rng)
        names = [name for name in layout.given if name != target and name in drawn]
        X = layout.build({name: drawn[name] for name in names}) if draws else codes[:, :4] % 2
        y = drawn[target].astype(object).to_numpy()
        # Private estimators within it would charge their ledgers.
        inner = clone(self.estimator)
        ledgers = [key for key in inner.get_params() if key.rpartition("__")[2] == "ledger"]
        inner.set_params(**dict.fromkeys(ledgers))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit_clone(inner, X, y, None, np.ones(n, dtype=bool), rng).predict(X)
        except Exception as error:
            raise ValueError(
                f"{type(self.estimator).__name__} cannot be trained on rows of this domain. Tried "
                f"on {n:,} rows drawn from the declared domain, with every label and, in nullable "
                f"columns, with gaps, it raised {type(error).__name__}: {error}\nNothing was read "
                "or spent. Text and dates need an encoder, and gaps an imputer, inside the "
                "estimator. If it needs other rows than these, fit the synthesizer first, and pass "
                "it as FrozenEstimator(synthesizer)."
            ) from error

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
        return self.synthesizer_.prepare(X)

    def _privacy_steps(self, name: str) -> list[Step]:
        # Only the release reads the true rows; what is trained reads only the release.
        reader = self._reader()
        made = getattr(self, "estimator_" if self.estimator is None else "synthesizer_", None)
        # When a fitted model is stored, its seed is left out, but the fact that there was one is
        # kept. A domain that is declared after the fit does not undo what was released before.
        flawed = made is not None and made.privacy_loss_.seeded
        place = name if self.estimator is None else child(name, "synthesizer")
        steps = walk(made if flawed else reader, place)
        if self.synthesizer is None:
            # The default reader is made anew by each fit: whose ledger it charges is this one's.
            steps = [replace(step, estimator=self) for step in steps]
        if self.estimator is None:
            return steps
        return [*steps, trained(self.estimator, child(name, "estimator"))]

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

# Up to so many records times epsilon for each class it is PrivPfC alone, then a blend with an
# additive model. That has this share of epsilon; and of each so much counts in a sum of logarithms,
# which were pulled to the overall shares. Chosen on 18 labels of ``benchmarks/models.py``, the
# factor for each class on five more labels of 4 to 15 classes.
_ALONE, _ADDITIVE, _WEIGHTS = 1_000.0, Fraction(4, 5), (0.4, 0.8)
# Where the scores of the additive model vary by less than this share of those of the cells, because
# columns say something together only, the cells count in full.
_SILENT = 1 / 12


class _DefaultClassifier(ModelOfClasses):
    """PrivPfC, and where records times epsilon pay for it an additive model.

    PrivPfC finds combinations of columns and is rarely worse than the most frequent label, but its
    cells rank rows coarsely. The additive model ranks finely and misses combinations. Both are in
    ``models_``.
    """

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Charge all of epsilon, then release the models."""
        rows, domain, target, features = match_labelled(
            self, X, y, fit_params, self.classes, *self._shorthand
        )
        classes, _ = label_classes(domain, target)
        fine, wide = fine_domain(domain, target)
        groups = {"groups": self._record_epsilon() * CUTTING} if wide else {}
        rest = self._record_epsilon() - sum(groups.values())
        loss, source = self._spend(rows, groups | split_epsilon(rest, {"rows": 1, "models": 49}))
        # Privacy. Released: the number of records (a record changes it by 1, part "rows"), edges
        # of groups of numbers (part "groups", see `cut_domain`), and, by sequential composition,
        # models whose epsilons sum to the part "models". Which ones and with what follows from the
        # released number; all of epsilon has been charged before, whatever it is. Each model of
        # persons draws their rows by itself, and pays for as many.
        noise, most = loss.of_record.parts, self._max_rows_per_id() or 1
        bound = self._contributions(loss, source, rows, fine)
        self._progress("labels, and groups of numbers")
        table = count_rows(rows, fine.plain([target, *wide]), bound, together=(1,))
        n = discrete_laplace(int(table.dense([0]).sum()), noise["rows"], random_state=source)
        if wide:
            exact = {name: table.dense([place]) for place, name in enumerate(wide, 1)}
            domain = cut_domain(fine, exact, noise["groups"], source)
        kinds: Any = {PrivPfCClassifier: Fraction(1)}
        if int(n) * float(noise["models"]) > _ALONE * len(classes):
            kinds = {PrivPfCClassifier: 1 - _ADDITIVE, PrivateAdditiveClassifier: _ADDITIVE}
        given = self.get_params(deep=False) | {"ledger": None, "random_state": source}
        names = [name for name in domain.columns if self.classes is None or name != target]
        given["domain"] = domain.select(names)
        models = []
        for kind, share in kinds.items():
            model = kind(**given | {"epsilon": noise["models"] * most * share})
            # Its groups are those of the domain.
            model._cuts = False
            self._progress(f"{kind.__name__}, {float(share):.0%} of the rest of epsilon")
            models.append(model.fit(X, y).set_params(random_state=None))
        self._remember_columns(features, rows, target)
        self.classes_ = classes
        self.domain_ = domain
        self.target_ = target
        self.models_ = models
        self.privacy_loss_ = loss
        self._weights = _WEIGHTS if len(models) > 1 and _adds(*models) else (1.0, _WEIGHTS[1])
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        check_is_fitted(self)
        X = self._without_person(X)
        parts = [model.predict_proba(X) for model in self.models_]
        if len(parts) == 1:
            return np.asarray(parts[0])
        # Together about the overall shares of PrivPfC.
        overall = np.log(self.models_[0].shares_)
        cells, additive = (np.log(np.maximum(part, 1e-9)) - overall for part in parts)
        both = np.exp(overall + self._weights[0] * cells + self._weights[1] * additive)
        return np.asarray(both / both.sum(axis=1, keepdims=True))


def _adds(cells: Any, additive: Any) -> bool:
    """Whether an additive model separates classes as cells do, by what was released."""
    shares = cells.smoothed_ / cells.smoothed_.sum(axis=-1, keepdims=True)
    logs = cells.evidence_ * np.log(shares / cells.shares_).reshape(-1, len(cells.shares_))
    sizes = cells.histogram_.reshape(len(logs), -1).sum(axis=1)
    functions = additive.shape_functions_.values()
    added = sum(mean_size(each.scores**2, each.sizes) for each in functions)
    # One score of two classes moves the logarithm of either by half.
    added *= 0.25 if len(cells.shares_) == 2 else 1.0
    return added >= _SILENT * mean_size(logs**2, sizes)


# What a user made, in ledgers and messages.
_DefaultClassifier.__name__ = "PrivateClassifier"


# --- the wrapper


def _offers_probabilities(self: Any) -> bool:
    fitted = getattr(self, "estimator_", self.estimator)
    # Where there is no estimator, the default model has them.
    return fitted is None or hasattr(fitted, "predict_proba")


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateClassifier(ExactScore, ClassifierMixin, TrainedOnRelease):
    """A private classifier: the best one known for the table, or any, trained on a release.

    Without an estimator, a twentieth of epsilon first cuts numbers with more than 32 bins into
    groups of about equally many records, and a fiftieth of the rest releases how many records there
    are. This decides what the rest pays for: PrivPfC alone up to 1,000 records times epsilon for
    each class, then together with an additive model, which has four fifths. Where it says next to
    nothing, PrivPfC counts in full. All of epsilon is charged beforehand.

    With an estimator, the training data are released privately, and it is trained on the release:
    by default that of `MarginalSynthesizer`.

    Then only the release reads the true rows and labels. ``estimator`` is trained on synthetic (or
    weighted) rows, so whatever it stores is post-processing of an epsilon-DP release and costs
    nothing more. Prediction reads the rows that it is given and releases nothing about the training
    data.

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
        Column of the data, not of the domain, that identifies the person a row belongs to. Only
        without an estimator.
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

    _shorthand = "the list of classes="
    _label = "classes"
    _default = _DefaultClassifier
    _constant, _fewest = DummyClassifier, 2
    _check_label = staticmethod(label_classes)

    def _answers(self, domain: Domain, target: str) -> Any:
        self.classes_ = label_classes(domain, target)[0]
        return self.classes_

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
        rows = self._test_rows(X)
        shown = self.estimator_.predict_proba(rows)
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
        Column of the data, not of the domain, that identifies the person a row belongs to. Only
        without an estimator.
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

    _shorthand = "its target_range=(low, high)"
    _label = "target_range"
    _default = PrivateAdditiveRegressor
    _constant, _fewest = DummyRegressor, 1
    _check_label = staticmethod(number_link)

    def _label_attribute(self) -> Numeric | None:
        return None if self.target_range is None else Numeric(*self.target_range)

    def _answers(self, domain: Domain, target: str) -> Any:
        attribute = cast(Any, domain[target])
        return [float(attribute.lower) / 2 + float(attribute.upper) / 2]
