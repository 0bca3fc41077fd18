"""The quality report: distances and training, exact, labelled as not private."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people

import skdp
from skdp import Categorical, Domain, Numeric, PairViewSynthesizer, synthesis
from skdp.exceptions import PrivacyLeakWarning
from skdp.quality import QualityReport, compare

ROWS = people(3000)
SYNTHESIZERS = [
    getattr(synthesis, name) for name in synthesis.__all__ if name.endswith("Synthesizer")
]
pytestmark = pytest.mark.filterwarnings("ignore:quality_report compares")


@pytest.mark.parametrize("synthesizer", SYNTHESIZERS, ids=lambda cls: cls.__name__)
def test_every_synthesizer_reports_and_stores_nothing(synthesizer):
    ledger = skdp.PrivacyLedger(1)
    domain = DOMAIN.select(["age", "sex", "income"])
    view = synthesizer(1.0, domain=domain, target="income", ledger=ledger)
    rows = ROWS[list(domain.names)]
    view.fit(rows)
    before = set(vars(view))
    with pytest.warns(PrivacyLeakWarning, match="not private"):
        report = view.quality_report(rows, random_state=0)
    assert set(vars(view)) == before and ledger.spent == 1
    assert list(report.columns["column"]) == list(domain.names)
    assert len(report.pairs) == 3
    assert report.columns["distance"].between(0, 1).all()
    assert report.pairs["distance"].between(0, 1).all()
    accuracy = report.training
    # The label follows the age: records teach it, and so do the synthetic rows, nearly.
    assert accuracy["trained on records"] > accuracy["most frequent label"] + 0.1
    assert accuracy["trained on synthetic rows"] > accuracy["most frequent label"] + 0.05
    assert repr(report).startswith("NOT PRIVATE")
    assert "Not private" in report._repr_html_() and "trained on records" in repr(report)


def test_labels_may_come_apart():
    view = PairViewSynthesizer(1.0, domain=DOMAIN, target="income").fit(ROWS)
    X, y = ROWS.drop(columns="income"), ROWS["income"]
    apart = view.quality_report(X, y, random_state=3)
    together = view.quality_report(ROWS, random_state=3)
    pd.testing.assert_frame_equal(apart.pairs, together.pairs)
    assert apart.training == together.training
    assert view.quality_report(ROWS, target=None).training is None
    assert view.quality_report(ROWS, target="sex").target == "sex"


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
    records = rng.integers(0, 5, (2000, 50))
    report = compare(records, rng.integers(0, 5, (2000, 50)), domain, random_state=0)
    worse = compare(records, rng.integers(0, 2, (2000, 50)), domain, random_state=0)
    assert len(report.pairs) == 1000
    assert worse.pairs["distance"].min() > report.pairs["distance"].max()


def test_odd_records():
    domain = Domain({"a": Numeric(0, 1, bins=30), "b": Categorical(["p", "q"])})
    view = PairViewSynthesizer(1.0, domain=domain, target="b")
    empty = pd.DataFrame({"a": [0.5], "b": ["p"]}).iloc[:0]
    report = view.fit(empty).quality_report(empty)
    assert report.training is None and report.columns["distance"].between(0, 1).all()
    one = pd.DataFrame({"a": [0.1] * 40, "b": ["p"] * 40})
    report = view.fit(one).quality_report(one)
    assert report.training["most frequent label"] == 1
    strange = pd.DataFrame({"a": [0.1, np.nan, 7.0], "b": ["p", "q", "unknown"]})
    assert len(view.quality_report(strange).pairs) == 1
    single = PairViewSynthesizer(domain=domain.select(["a"])).fit(one[["a"]])
    report = single.quality_report(one[["a"]])
    assert len(report.pairs) == 0 and "NOT PRIVATE" in repr(report)


def test_a_target_that_cannot_be_predicted_is_refused():
    domain = Domain({"a": Numeric(0, 1, bins=30), "b": Categorical(["p", "q"])})
    rows = pd.DataFrame({"a": [0.1] * 40, "b": ["p"] * 40})
    view = PairViewSynthesizer(domain=domain).fit(rows)
    assert view.quality_report(rows).training is None
    with pytest.raises(ValueError, match="30 codes"):
        view.quality_report(rows, target="a")
    with pytest.raises((ValueError, KeyError), match="c"):
        view.quality_report(rows, target="c")


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
