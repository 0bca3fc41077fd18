"""The quality report: distances and training, exact, labelled as not private."""

from __future__ import annotations

import io
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people
from scipy import stats

import skdp
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric, synthesis
from skdp.exceptions import PrivacyLeakWarning
from skdp.quality import PrivateQualityReport, QualityReport, compare, quality_report
from skdp.quality._marginals import displacement, imbalance, wasserstein

ROWS = people(1500)
SYNTHESIZERS = [
    getattr(synthesis, name) for name in synthesis.__all__ if name.endswith("Synthesizer")
]
pytestmark = [
    pytest.mark.filterwarnings("ignore:quality_report compares"),
    pytest.mark.filterwarnings("ignore:Domain.infer reads"),
]


@pytest.mark.parametrize("synthesizer", SYNTHESIZERS, ids=lambda cls: cls.__name__)
def test_every_synthesizer_reports_and_stores_nothing(synthesizer):
    ledger = skdp.PrivacyLedger(1)
    domain = DOMAIN.select(["age", "sex", "income"])
    view = synthesizer(1.0, domain=domain, target="income", ledger=ledger)
    rows = ROWS[list(domain.names)]
    view.fit(rows)
    before = set(vars(view))
    with pytest.warns(PrivacyLeakWarning, match="not private"):
        report = view.quality_report(rows, target=None, random_state=0)
    assert set(vars(view)) == before and ledger.spent == 1
    assert list(report.columns["column"]) == list(domain.names)
    assert len(report.pairs) == 3
    assert report.columns["distance"].between(0, 1).all()
    assert report.pairs["distance"].between(0, 1).all()
    assert repr(report).startswith("NOT PRIVATE")
    assert "Not private" in report._repr_html_() and report.learners is None


def test_synthetic_rows_teach_nearly_what_records_do():
    rows = ROWS[["age", "sex", "income"]]
    view = MarginalSynthesizer(1.0, domain=DOMAIN.select(rows.columns), target="income").fit(rows)
    report = view.quality_report(rows, random_state=0)
    table = report.learners.set_index("learner")
    accuracy = table.loc["boosted trees"]
    most = table.loc["most frequent label", "trained on records"]
    # The label follows the age.
    assert accuracy["trained on records"] > most + 0.1
    assert accuracy["trained on synthetic rows"] > most + 0.05
    assert "trained on records" in repr(report)


def test_labels_may_come_apart():
    view = MarginalSynthesizer(1.0, domain=DOMAIN, target="income").fit(ROWS)
    X, y = ROWS.drop(columns="income"), ROWS["income"]
    apart = view.quality_report(X[:300], y[:300], random_state=3)
    together = view.quality_report(ROWS[:300], random_state=3)
    pd.testing.assert_frame_equal(apart.pairs, together.pairs)
    pd.testing.assert_frame_equal(apart.learners, together.learners)
    assert view.quality_report(ROWS[:300], target=None).learners is None
    assert view.quality_report(ROWS[:15], target="sex").target == "sex"


def test_distances_by_hand():
    domain = Domain({"a": Numeric(0, 31, integer=True), "b": Categorical(["p", "q"])})
    records = np.array([[0, 0], [1, 0], [31, 1], [31, 1]])
    synthetic = np.array([[0, 0], [0, 1], [31, 1], [30, 1]])
    report = compare(records, synthetic, domain)
    # a: shares (1/4, 1/4, .., 0, 1/2) and (1/2, 0, .., 1/4, 1/4); b: (1/2, 1/2) and (1/4, 3/4).
    assert report.columns["distance"].tolist() == [0.5, 0.25]
    # In pairs the 32 codes of a are 20 groups, 0-1 the first: (0, p) 1/2 and 1/4, (0, q) 0 and 1/4,
    # (18, q) 0 and 1/4, (19, q) 1/2 and 1/4.
    assert report.pairs["distance"].tolist() == [0.5]
    assert report.scores["2-way k-marginal"] == 500
    # a: one record in four moves from 1 to 0, and one from 31 to 30.
    assert report.columns["wasserstein"][0] == pytest.approx(2 / 4 / 31)
    assert np.isnan(report.columns["wasserstein"][1])
    same = compare(records, records, domain)
    assert not same.columns["distance"].any() and not same.pairs["distance"].any()
    far = compare(records[:2], records[2:], domain)
    assert far.columns["distance"].tolist() == [1, 1] and far.pairs["distance"].tolist() == [1]


def test_many_pairs_are_drawn_and_distances_tell_better_from_worse():
    rng = np.random.default_rng(0)
    domain = Domain({f"x{k}": Numeric(0, 4, integer=True) for k in range(50)})
    records = rng.integers(0, 5, (400, 50))
    report = compare(records, rng.integers(0, 5, (400, 50)), domain, random_state=0)
    worse = compare(records, rng.integers(0, 2, (400, 50)), domain, random_state=0)
    assert len(report.pairs) == 1000
    assert worse.pairs["distance"].min() > report.pairs["distance"].max()


def test_odd_records():
    domain = Domain({"a": Numeric(0, 1, bins=30), "b": Categorical(["p", "q"])})
    view = MarginalSynthesizer(1.0, domain=domain, target="b")
    empty = pd.DataFrame({"a": [0.5], "b": ["p"]}).iloc[:0]
    report = view.fit(empty).quality_report(empty)
    assert report.learners is None and report.columns["distance"].between(0, 1).all()
    one = pd.DataFrame({"a": [0.1] * 40, "b": ["p"] * 40})
    report = view.fit(one).quality_report(one)
    assert report.learners["trained on records"].iloc[-1] == 1
    strange = pd.DataFrame({"a": [0.1, np.nan, 7.0], "b": ["p", "q", "unknown"]})
    assert len(view.quality_report(strange).pairs) == 1
    single = MarginalSynthesizer(domain=domain.select(["a"])).fit(one[["a"]])
    report = single.quality_report(one[["a"]])
    assert len(report.pairs) == 0 and "NOT PRIVATE" in repr(report)


def test_a_target_that_cannot_be_predicted_is_refused():
    domain = Domain({"a": Numeric(0, 1, bins=30), "b": Categorical(["p", "q"])})
    rows = pd.DataFrame({"a": [0.1] * 40, "b": ["p"] * 40})
    view = MarginalSynthesizer(domain=domain).fit(rows)
    assert view.quality_report(rows).learners is None
    with pytest.raises(ValueError, match="30 codes"):
        view.quality_report(rows, target="a")
    with pytest.raises((ValueError, KeyError), match="c"):
        view.quality_report(rows, target="c")


# --- measures of the field


CODED = Domain(
    {
        "a": Numeric(0, 5, integer=True),
        "b": Numeric(0, 3, integer=True),
        "c": Numeric(0, 1, integer=True),
    }
)


def coded(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.minimum(rng.poisson((2, 1, 0.4), (n, 3)), (5, 3, 1)).astype(np.int32)


def test_scores_against_brute_force():
    left, right = coded(300), coded(70, 1)
    report = compare(left, right, CODED, random_state=0)
    for order in (2, 3):
        distances = []
        for axes in itertools.combinations(range(3), order):
            shares = [
                pd.DataFrame(codes[:, axes]).value_counts(normalize=True) for codes in (left, right)
            ]
            distances.append(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)
        expected = 1000 * (1 - np.mean(distances))
        assert report.scores[f"{order}-way k-marginal"] == pytest.approx(expected)
    for axis, size in enumerate((6, 4, 2)):
        moved = stats.wasserstein_distance(left[:, axis], right[:, axis]) / (size - 1)
        assert report.columns["wasserstein"][axis] == pytest.approx(moved)
    tables = [stats.spearmanr(codes).statistic for codes in (left, right)]
    # The last column has two values: it has no ranks to compare.
    assert report.scores["correlation difference"] == pytest.approx(
        abs(tables[0] - tables[1])[0, 1]
    )


def test_missing_values_lie_at_the_upper_end():
    known, missing = np.array([0, 1, 2]), np.array([0, 1, 3])
    assert wasserstein(known, missing, 3) == 0
    assert wasserstein(known, np.array([3, 3, 3]), 3) == pytest.approx(0.5)


def test_propensity_tells_equal_from_different():
    same = compare(coded(2000), coded(2000, 1), CODED, random_state=0)
    other = compare(coded(2000), coded(2000, 1)[:, [0, 1, 0]] // (1, 1, 3), CODED, random_state=0)
    assert same.scores["propensity MSE"] < 0.005 < 0.03 < other.scores["propensity MSE"] <= 0.25


def test_five_learners_in_any_library():
    polars = pytest.importorskip("polars")
    rows, synthetic = ROWS[:1000], people(1000, 5)
    report = quality_report(
        rows, polars.from_pandas(synthetic), domain=DOMAIN, target="income", random_state=0
    )
    table = report.learners.set_index("learner")
    assert len(table) == 6 and "boosted trees" in table.index
    good = table.drop(index="most frequent label")["trained on synthetic rows"]
    assert (good > table.loc["most frequent label", "trained on records"] + 0.1).all()
    assert "logistic regression" in repr(report) and "naive Bayes" in report._repr_html_()
    # Without a domain it is read from the records.
    inferred = quality_report(rows, synthetic, random_state=0)
    assert inferred.scores["2-way k-marginal"] > 900


def test_many_columns_are_drawn():
    rng = np.random.default_rng(0)
    domain = Domain({f"x{k}": Numeric(0, 1, integer=True) for k in range(60)})
    report = compare(*(rng.integers(0, 2, (50, 60)) for _ in range(2)), domain, random_state=0)
    assert len(report.pairs.drop_duplicates(["first", "second"])) == 1000


def test_nist_score_of_a_subsample():
    tables = pytest.importorskip("benchmarks._fidelity_tables")
    nist = tables.load("nist")
    if nist.generated:
        pytest.skip("the excerpt is not here")
    from skdp.quality import k_marginal

    codes = nist.codes
    part = codes[np.random.default_rng(0).permutation(len(codes))[: int(0.3 * len(codes))]]
    # SDNist's own score of such a subsample is 984.
    assert abs(k_marginal(codes, part, nist.domain.shape) - 984) < 3


# --- with noise


def test_a_private_report_is_near_the_exact_one():
    rows, synthetic = people(20_000), people(5_000, 9)
    exact = quality_report(rows, synthetic, domain=DOMAIN, random_state=0)
    ledger = skdp.PrivacyLedger(3)
    report = quality_report(
        rows, synthetic, domain=DOMAIN, target="income", epsilon=2, level=0.9999, ledger=ledger
    )
    assert isinstance(report, PrivateQualityReport) and ledger.spent == 2
    assert sum(report.privacy_loss.parts.values()) == 2
    scores = report.scores.set_index("score")
    for name, row in scores.iterrows():
        assert row["lower"] <= exact.scores[name] <= row["upper"] < row["lower"] + 20, name
    near = (report.columns["distance"] - exact.columns["distance"]).abs()
    assert near.max() < 0.02
    assert np.array_equal(report.columns["wasserstein"].isna(), exact.columns["wasserstein"].isna())
    assert (
        report.learners["accuracy"]
        .between(report.learners["lower"], report.learners["upper"])
        .all()
    )
    assert "epsilon = 2" in repr(report) and "boosted trees" in report._repr_html_()
    pickle.dump(report, io.BytesIO())


def test_coverage_of_intervals():
    records, synthetic = coded(400), coded(300, 1)
    exact = compare(records, synthetic, CODED).scores["2-way k-marginal"]
    names = list(CODED)
    tables = [pd.DataFrame(codes, columns=names) for codes in (records, synthetic)]
    inside = []
    for _ in range(60):
        found = quality_report(*tables, domain=CODED, epsilon=1, level=0.8).scores.iloc[0]
        inside.append(found["lower"] <= exact <= found["upper"])
    # Below 0.6 with a probability of 1e-4 if it were 0.8.
    assert np.mean(inside) > 0.6


@pytest.mark.parametrize("axes", [(0,), (0, 1), (0, 1, 2)])
def test_sensitivities(axes):
    synthetic, records = coded(7, 1), coded(30)
    m, shape = len(synthetic), (6, 4, 2)
    before = imbalance(records, synthetic, shape, axes)
    changes = []
    for cell in itertools.product(*map(range, shape)):
        more = np.concatenate([records, np.array([cell], dtype=np.int32)])
        changes.append(abs(imbalance(more, synthetic, shape, axes) - before))
        moved = [displacement(rows[:, 0], synthetic[:, 0], 6) for rows in (records, more)]
        assert abs(moved[0] - moved[1]) <= 5 * m
    assert max(changes) <= 2 * m
    # Reached by the first record, in a cell without synthetic rows.
    none = records[:0]
    first = imbalance(np.array([[5, 3, 1]], dtype=np.int32), synthetic, shape, axes)
    assert first - imbalance(none, synthetic, shape, axes) == 2 * m


def test_methods_of_synthesizers_are_private_with_epsilon(recwarn):
    ledger = skdp.PrivacyLedger(2)
    view = MarginalSynthesizer(1.0, domain=DOMAIN, target="income", ledger=ledger).fit(ROWS)
    report = view.quality_report(ROWS, epsilon=0.5)
    assert ledger.spent == 1.5 and report.target == "income"
    assert not [one for one in recwarn if issubclass(one.category, PrivacyLeakWarning)]
    with pytest.raises(skdp.BudgetExceededError):
        view.quality_report(ROWS, epsilon=1)


def test_nothing_is_spent_on_wrong_parameters():
    ledger = skdp.PrivacyLedger(1)
    rows = ROWS[:50]
    given = {"domain": DOMAIN, "epsilon": 1, "ledger": ledger}
    for wrong, error in [
        ({"domain": None}, skdp.DomainError),
        ({"domain": Domain.infer(rows)}, skdp.DomainError),
        ({"epsilon": 0}, ValueError),
        ({"level": 1.0}, ValueError),
        ({"target": "nobody"}, ValueError),
    ]:
        with pytest.raises(error):
            quality_report(rows, rows, **{**given, **wrong})
    with pytest.raises(ValueError, match="nothing to compare"):
        quality_report(rows, rows.assign(sex="martian"), **given)
    wide = Domain({"a": Numeric(0, 30, integer=True), "b": Numeric(0, 1, integer=True)})
    table = pd.DataFrame({"a": [1, 2], "b": [0, 1]})
    with pytest.raises(ValueError, match="31 codes"):
        quality_report(table, table, domain=wide, target="a", epsilon=1, ledger=ledger)
    assert ledger.spent == 0


@pytest.mark.parametrize("n_rows", [0, 1, 3])
def test_private_reports_of_hardly_anybody(n_rows):
    report = quality_report(ROWS[:n_rows], ROWS[:40], domain=DOMAIN, target="income", epsilon=0.1)
    for table in (report.scores, report.learners):
        assert (table["lower"] <= table["upper"]).all()
    one = Domain({"sex": DOMAIN["sex"]})
    alone = quality_report(
        ROWS[["sex"]][:n_rows], ROWS[["sex"]], domain=one, target="sex", epsilon=1
    )
    assert not len(alone.scores) and len(alone.learners) == 6


def test_picture():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    columns = pd.DataFrame({"column": ["a", "b", "c"], "distance": [0.1, 0.2, 0.3]})
    pairs = pd.DataFrame([("a", "b", 0.5)], columns=["first", "second", "distance"])
    ax = QualityReport(columns, pairs).plot()
    shown = ax.images[0].get_array()
    assert shown[0, 0] == 0.1 and shown[0, 1] == shown[1, 0] == 0.5
    assert shown.mask[0, 2] and "Not private" in ax.get_title()
    matplotlib.pyplot.close("all")


def test_values_that_no_synthetic_row_has_raise_nothing_and_warn_of_nothing():
    kinds = [f"k{i}" for i in range(9)]
    domain = Domain(
        {
            "a": skdp.Categorical(kinds, nullable=True),
            "x": Numeric(0, 4, integer=True, nullable=True),
            "s": Categorical(["p", "q", "r"]),
        }
    )
    synthetic = pd.DataFrame({"a": ["k0", "k1"] * 30, "x": [0.0, 2.0] * 30, "s": ["p", "q"] * 30})
    records = pd.DataFrame({"a": ["k8", None, "martian"], "x": [4.0, np.nan, 9.0], "s": [*"rrp"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = quality_report(records, synthetic, domain=domain, target="s", epsilon=1)
    assert len(report.learners) == 6
