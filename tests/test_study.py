"""The report of a whole study: its parts, their verdicts, and the ledger beside."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skdp import Categorical, Domain, MarginalSynthesizer, Numeric, PrivacyLedger, PrivateClassifier
from skdp.attacks import attack_report
from skdp.inspection import model_card, study_report
from skdp.model_selection import private_score, private_score_report

DOMAIN = Domain({"x": Numeric(0, 4, bins=4), "y": Categorical([0, 1])})


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.uniform(0, 4, 600), "y": rng.integers(0, 2, 600)})
    ledger = PrivacyLedger(10)
    model = PrivateClassifier(
        DecisionTreeClassifier(max_depth=2, random_state=0),
        MarginalSynthesizer(1, domain=DOMAIN, target="y", ledger=ledger),
    ).fit(rows[["x"]], rows["y"])
    scores = private_score_report(model, rows[["x"]], rows["y"], epsilon=0.5, ledger=ledger)
    one = private_score(
        rows["y"], model.predict(rows[["x"]]), "accuracy", epsilon=0.25, ledger=ledger
    )
    release = MarginalSynthesizer(1, domain=DOMAIN).fit(rows[:300])
    attack = attack_report(release, rows[:300], rows[300:])
    return {"model": model, "scores": scores, "accuracy": one}, attack, ledger


def test_parts_and_ledger_add_up(study):
    parts, _, ledger = study
    report = study_report(parts, ledger=ledger)
    assert report.private and report.reasons == []
    # A single score does not know what it cost; the ledger does.
    assert report.epsilon is None and float(report.spent) == 1.75
    frame = report.to_frame()
    assert frame["part"].tolist() == ["model", "scores", "accuracy"]
    assert frame["epsilon"].tolist()[:2] == [1.0, 0.5] and np.isnan(frame["epsilon"][2])
    assert len(report.charges()) == 3
    text = repr(report)
    assert "has 0.25 more" in text and "accuracy do not know" in text
    assert "1.75 in 3 charges" in report._repr_html_()
    assert report.reports["model"].private


def test_without_a_ledger_that_is_said(study):
    parts, _, _ = study
    report = study_report({"model": parts["model"], "scores": parts["scores"]})
    assert float(report.epsilon) == 1.5 and report.spent is None and report.charges().empty
    assert "Give ledger=" in repr(report)


def test_what_is_for_the_owner_alone_is_no_publication(study):
    parts, attack, ledger = study
    report = study_report({**parts, "attack": attack}, ledger=ledger)
    assert not report.private
    assert report.to_frame()["verdict"].tolist()[-1] == "data owner only"
    assert "attack: holds exact facts" in report.reasons[0]


def test_leaks_and_seeds_are_named(study):
    parts, _, ledger = study
    seeded = MarginalSynthesizer(1, domain=DOMAIN, random_state=0)
    report = study_report({"scaler": StandardScaler(), "seeded": seeded, **parts}, ledger=ledger)
    assert not report.private and [r.split(":")[0] for r in report.reasons] == ["scaler", "seeded"]
    assert "less than these parts" in repr(report)


def test_a_card_lists_the_scores_of_a_report(study):
    parts, _, ledger = study
    card = model_card(parts["model"], scores={"held out": parts["scores"]}, ledger=ledger)
    text = card.to_markdown()
    assert "held out: brier" in text and "held out: f1" in text and card.publishable


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="needs a mapping"):
        study_report([StandardScaler()])
    with pytest.raises(TypeError, match="'rows' is a DataFrame"):
        study_report({"rows": pd.DataFrame({"a": [1]})})
    with pytest.raises(TypeError, match="class"):
        study_report({"scaler": StandardScaler})
