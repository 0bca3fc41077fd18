"""privacy_report: what passes, what does not, and what both cost."""

import copy
import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest
import searched
from estimators import CASES, DOMAIN
from loops import over
from pipelines import ROWS, Changed, X, Y, applied, clip, model, numbers, release, texts
from silent import SILENT_STEPS, outcomes, tables
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import skdp
from skdp.inspection import assert_private, privacy_report
from skdp.model_selection import PrivateGridSearchCV, PrivateKFold
from skdp.preprocessing import as_numbers, as_texts

NUMBERS = X[["age"]].to_numpy()
RAW = LogisticRegression().fit(NUMBERS, Y)
HIDDEN = FrozenEstimator(RAW)
AGES = skdp.HDPViewSynthesizer(epsilon=100, domain=skdp.Numeric(0, 120))
private_scaler = skdp.PrivateStandardScaler(epsilon=0.5, domain=(0, 100))
fitted = model(DummyClassifier(), 2).fit(X, Y)
released = release().fit(X, Y)


def front(step):
    return make_pipeline(step, model())


def plain(*steps):
    return make_pipeline(numbers(), *steps, model())


# What passes, and what a fit of it costs.
PRIVATE = {
    "a fitted model, pickled": (pickle.loads(pickle.dumps(fitted)), 2),
    "blocks": (
        skdp.SampleAggregate(
            make_pipeline(StandardScaler(), SVC()), epsilon=1.0, output_range=(0, 1)
        ),
        1,
    ),
    # in front of a release
    "passed through": (Pipeline([("a", "passthrough"), ("b", None), ("c", model())]), 1),
    "columns, each in its way": (
        front(
            make_column_transformer(
                (make_pipeline(numbers(), clip(0, 120)), ["age"]), remainder=texts()
            )
        ),
        1,
    ),
    "the same column twice": (make_union(private_scaler, private_scaler), 1),
    # behind a release
    "columns behind, searched": (
        model(
            GridSearchCV(
                make_pipeline(
                    make_column_transformer(
                        (make_pipeline(SimpleImputer(), MinMaxScaler()), ["age"]),
                        (OneHotEncoder(handle_unknown="ignore"), ["sex", "work"]),
                        ("drop", make_column_selector(dtype_include="number")),
                    ),
                    LogisticRegression(class_weight={"low": 1, "high": 2}),
                ),
                {"logisticregression__C": np.logspace(-3, 3, 4)},
                cv=StratifiedKFold(3),
                scoring="roc_auc",
            )
        ),
        1,
    ),
    # frozen
    "frozen": (FrozenEstimator(pickle.loads(pickle.dumps(released))), 0),
    "on a frozen release": (
        skdp.PrivateClassifier(LogisticRegression(), FrozenEstimator(released)),
        0,
    ),
    # searches of our own
    "private search of pipelines": (
        PrivateGridSearchCV(
            front("passthrough"), {"privateclassifier__estimator__C": [1, 2]}, epsilon=0.25
        ),
        2.25,
    ),
}


@over("name", PRIVATE)
def test_what_passes(name):
    estimator, epsilon = PRIVATE[name]
    report = privacy_report(estimator)
    assert report.private and not report.reasons, report
    assert report.epsilon == Fraction(str(epsilon))
    assert {step.verdict for step in report.steps} <= {"private", "public", "post-processing"}
    # Nor does a look change anything.
    assert_private(copy.deepcopy(estimator))


# --- what does not pass


def patched(estimator, name="fit"):
    setattr(estimator, name, lambda *args, **kwargs: estimator)
    return estimator


class Subclass(FunctionTransformer):
    """A transformer on the list, which keeps what it reads."""

    def fit(self, X, y=None):
        self.rows_ = X
        return super().fit(X, y)


class Borrowed(StandardScaler):
    """It says that it is scikit-learn's."""


Borrowed.__module__, Borrowed.__qualname__ = "sklearn.preprocessing", "FunctionTransformer"


class Own(ClassifierMixin, TransformerMixin, BaseEstimator):
    """A class of a user's own."""

    rows = NUMBERS

    def fit(self, X, y=None):
        return self


class Steps(list):
    """A list that is another one for those who look."""

    def __iter__(self):
        return iter(())


class Hides(dict):
    def items(self):
        return []


class Word(str):
    """A text that may equal anything."""


class Kind(skdp.Categorical):
    """Categories that see every value."""


def shifted(X):
    return X + 1


def of_the_raw(X):
    return X - NUMBERS.mean()


refitted = model(DummyClassifier(), random_state=0).fit(X, Y)
refitted.set_params(synthesizer__domain=DOMAIN)
# A pickle has no seed, and says that there was one.
travelled = pickle.loads(pickle.dumps(refitted))


NOT_PRIVATE = {
    # steps that learn, sum, or raise on a value
    "it learns": plain(StandardScaler()),
    "a function of one's own": plain(applied(shifted)),
    "numbers as they came": front(clip(0, 1)),
    "an array as a bound": plain(clip(NUMBERS, 90)),
    "options that hide": plain(applied(np.clip, kw_args=Hides(a_min=0, a_max=1))),
    "options of what has none": front(applied(as_texts, kw_args={"a": 1})),
    "columns that were selected": make_pipeline(
        skdp.DPTopKSelector(1, epsilon=1, domain=(0, 1)), clip(0, 1), model()
    ),
    "numbers and texts": make_pipeline(make_union(numbers(), texts()), clip(0, 1), model()),
    "an inverse": plain(applied(np.nan_to_num, inverse_func=of_the_raw)),
    "a word that is asked": front(numbers().set_params(feature_names_out=Word("one-to-one"))),
    "as they came, the rest": front(
        make_column_transformer((numbers(), ["age"]), remainder="passthrough")
    ),
    "columns by a function": front(make_column_transformer((numbers(), lambda Z: ["age"]))),
    "weights": plain(FeatureUnion([("a", "passthrough")], transformer_weights={"a": 1e300})),
    "a cache": Pipeline([("a", numbers()), ("b", model())], memory="/tmp/x"),
    # what other libraries do with records
    "no private step": make_pipeline(numbers(), "passthrough"),
    "a search": GridSearchCV(model(), {"estimator__C": [1]}, cv=PrivateKFold(3)),
    # classes and instances that are not what they seem
    "a subclass": front(Subclass(as_numbers)),
    "a borrowed name": front(Borrowed()),
    "a patched fit": front(patched(numbers())),
    "a patched release": skdp.PrivateClassifier(LogisticRegression(), patched(release())),
    "a changed release": Changed(epsilon=1, domain=DOMAIN, target="income"),
    "steps that hide": front(Pipeline(Steps([("a", StandardScaler())]))),
    "categories of a class of one's own": skdp.GridSynthesizer(epsilon=1, domain=Kind(["a", "b"])),
    "labels that are asked": skdp.PrivateClassifier(SVC(), AGES, classes=[Word("high"), "low"]),
    # rows and models that are carried behind a release
    "a frozen model": model(StackingClassifier([("a", SVC())], final_estimator=HIDDEN)),
    "goes on from what it learned": model(SGDClassifier(warm_start=True).fit(NUMBERS, Y)),
    "a release of a release": model(model(epsilon=2)),
    "a patched fit behind": model(patched(SVC())),
    "a function behind": model(make_pipeline(applied(of_the_raw), SVC())),
    **{
        f"among parameters: {name}": model(SGDClassifier(class_weight=value))
        for name, value in {
            "a frame": X,
            "lists of rows": {k: X[30 * k : 30 * k + 30].to_numpy().tolist() for k in range(4)},
        }.items()
    },
    "blocks with a class of one's own": skdp.SampleAggregate(
        Own(), epsilon=1.0, output_range=(0, 1)
    ),
    # frozen
    "frozen, never fitted": FrozenEstimator(release()),
    "frozen, with a method of one's own": patched(FrozenEstimator(released), "transform"),
    "frozen, of a seed": FrozenEstimator(travelled.synthesizer_),
    "frozen, a model": FrozenEstimator(fitted),
    # seeds, candidates
    "seeded": model(random_state=0),
    "seeded when it was fitted": refitted,
    "candidates that change": PrivateGridSearchCV(model(), {"estimator__C": Steps([1, 2])}),
    "a candidate leaks": PrivateGridSearchCV(
        Pipeline([("m", model())]), {"m": [model(), front(StandardScaler())]}
    ),
    "a candidate with a seed": PrivateGridSearchCV(
        model(), {"synthesizer__random_state": [None, 3]}
    ),
}


@over("name", NOT_PRIVATE)
def test_what_does_not_pass(name):
    report = privacy_report(NOT_PRIVATE[name])
    assert not report.private and report.reasons, report
    assert all(step.sound or step.remedy for step in report.steps)
    with pytest.raises(AssertionError, match="is not private") as caught:
        assert_private(NOT_PRIVATE[name])
    assert all(reason in str(caught.value) for reason in report.reasons)


def test_what_a_declaration_keeps_of_itself_is_its_own():
    age = skdp.Numeric(0, 1, bins=4)
    one = skdp.MarginalSynthesizer(epsilon=1, domain={"age": age})
    assert age.contents and "contents" in vars(age)
    assert_private(one)
    # What a user writes there is given values, or stands for what was declared.
    for name in ("contents", "coding"):
        other = skdp.Numeric(0, 1, bins=4)
        vars(other)[name] = lambda: 1
        for domain in ({"age": other}, skdp.Domain({"age": other})):
            assert not privacy_report(one.set_params(domain=domain)).private


def test_every_reason_has_a_step():
    (reason,) = privacy_report(plain(StandardScaler())).reasons
    assert "standardscaler" in reason and "inside PrivateClassifier" in reason
    (reason,) = privacy_report(model(OneVsRestClassifier(HIDDEN))).reasons
    assert "may carry a FrozenEstimator" in reason
    with pytest.raises(ValueError, match="epsilon must be positive"):
        privacy_report(release(epsilon=-1))
    with pytest.raises(TypeError, match="instance of a class with a fit, got LogisticRegression"):
        privacy_report(LogisticRegression)


@over("prior", [X, released.synopsis_.domain, release(random_state=0), skdp.PublicTable])
def test_rows_to_start_from_are_public_or_released(prior):
    one = skdp.MarginalSynthesizer(epsilon=1, domain=DOMAIN, prior=prior)
    assert "without a guarantee, in prior=" in privacy_report(one).reasons[0]
    for fine in (skdp.PublicTable(X), released.synopsis_):
        assert_private(skdp.MarginalSynthesizer(epsilon=1, domain=DOMAIN, prior=fine))


# --- what passes is silent, and treats each row by itself


@over("place, name", list(enumerate(SILENT_STEPS)))
def test_what_passes_is_silent_on_odd_values(place, name):
    step, types = SILENT_STEPS[name], list(tables())[place % 5 :: 5]
    if "ColumnTransformer" in name:
        # scikit-learn 1.6 takes no tables of Arrow, whatever is in them.
        types = [each for each in types if not each.startswith("Arrow")]
    assert privacy_report(make_pipeline(step, model())).private
    with_odd, without = (outcomes(step, types, odd) for odd in (True, False))
    assert len(without) > 20 and not any(isinstance(each, str) for each in without.values())
    # Texts, in which NaN equals itself.
    assert {k: str(v) for k, v in with_odd.items()} == {k: str(v) for k, v in without.items()}


@over("name", SILENT_STEPS)
def test_what_passes_treats_each_row_by_itself(name):
    step, rng = SILENT_STEPS[name], random.Random(0)
    # In blocks of vector units a place decides which instruction computes a number.
    column = np.array([math.nan, 1e-320, *(rng.uniform(-2, 2) for _ in range(69))])[:, None]
    together = np.asarray(step.fit_transform(column))
    for n_rows in (1, 2, 7, 33, len(column) - 1):
        for part in (slice(n_rows), slice(-n_rows, None)):
            alone = np.asarray(step.fit_transform(np.asfortranarray(column[part])))
            assert alone.dtype == together.dtype
            assert alone.tolist().__repr__() == together[part].tolist().__repr__()


@over(
    "step, n_columns",
    [
        # Matrices so large that their product is computed in blocks.
        (skdp.PrivatePCA(50, epsilon=50, domain=skdp.Numeric(-1, 1)), 200),
        (skdp.DPKMeans(3, epsilon=50, domain=(-1, 1)), 9),
        (skdp.PrivateStandardScaler(epsilon=50, domain=(-1, 1)), 9),
        (skdp.PrivateQuantileClipper(epsilon=50, domain=(-1, 1)), 9),
    ],
)
def test_private_steps_hand_on_each_row_by_itself(step, n_columns):
    rows = np.random.default_rng(0).uniform(-1, 1, (3_000, n_columns))
    together = step.fit(rows).transform(rows)
    for n_rows in (1, 2, 3, 17, 100, 999, 2_999):
        assert (step.transform(rows[:n_rows]) == together[:n_rows]).all()


# A selector hands on columns as they came.
TRANSFORMERS = [
    case
    for case in CASES
    if hasattr(case.estimator, "transform") and not hasattr(case.estimator, "get_support")
]


@over("case", TRANSFORMERS)
def test_private_steps_hand_on_numbers(case):
    step, rows = case.fit(case.make(), ROWS), case.rows(X)
    types = {step.transform(each).dtype for each in (rows, rows.astype(object), rows[:0])}
    assert len(types) == 1 and types <= {np.dtype(float), np.dtype(np.int64)}


# --- the report


def test_whom_a_report_says_is_protected():
    made = skdp.HDPViewSynthesizer(
        epsilon=2, domain=DOMAIN, target="income", max_rows_per_id=2, privacy_id="who"
    ).fit(X.assign(who=np.arange(len(X)) // 2), Y)
    trained = skdp.PrivateClassifier(DummyClassifier(), FrozenEstimator(made)).fit(X, Y)
    for one in (made, trained, FrozenEstimator(made)):
        assert any("one person (at most 2" in note for note in privacy_report(one).notes)
    both = privacy_report(
        make_pipeline(private_scaler, release(max_rows_per_id=2, privacy_id="who"))
    )
    assert any("the sum neither" in note for note in both.notes)
    assert any("no ledger" in note for note in both.notes)


# --- the forecast is what the ledger sees


@over("epsilon, other", [(0.1, 0.25), (0.3, 1), (2, 0.3)])
def test_the_ledger_sees_what_was_forecast(epsilon, other):
    ledger = skdp.PrivacyLedger()
    own = searched.model(epsilon, ledger=ledger)
    scaler = skdp.PrivateStandardScaler(epsilon=other, domain=(0, 1), ledger=ledger)
    wide = {"synthesizer__domain": [skdp.Numeric(-99, 99, bins=4)] * 2}
    for estimator in (
        make_pipeline("passthrough", None, own),
        make_pipeline(numbers(), make_union(scaler), clone(own).set_params(**wide)),
        PrivateGridSearchCV(own, {"estimator__max_depth": [1, 2]}, epsilon=0.5),
        PrivateGridSearchCV(own, {"synthesizer__epsilon": [other, epsilon]}, epsilon=other),
        PrivateGridSearchCV(searched.model(epsilon), {"estimator__max_depth": [1]}, ledger=ledger),
    ):
        before, report = ledger.spent, privacy_report(estimator)
        assert ledger.spent == before and len(report.notes) == 1
        estimator.fit(searched.X[:40], searched.Y[:40])
        assert ledger.spent - before == report.epsilon > 0
