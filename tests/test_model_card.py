"""Model cards: what is on them, in both languages, and what may not be."""

import re

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

import skdp
from skdp import MarginalSynthesizer
from skdp.attacks import attack_report, canary_audit
from skdp.inspection import model_card
from skdp.model_selection import private_score
from skdp.quality import quality_report

ROWS = people(400)
pytestmark = [
    pytest.mark.filterwarnings("ignore:attack_report reads"),
    pytest.mark.filterwarnings("ignore:quality_report compares"),
]


@pytest.fixture(scope="module")
def view():
    ledger = skdp.PrivacyLedger(4, name="secret")
    return MarginalSynthesizer(1.0, domain=DOMAIN, target="income", ledger=ledger).fit(ROWS)


def test_what_a_card_says(view):
    card = model_card(view, title="People", intended_use="For teaching.", ledger=view.ledger)
    text, page = card.to_markdown(), card.to_html()
    assert card.publishable and repr(card) == text
    for said in (
        "MarginalSynthesizer",
        "For teaching.",
        "epsilon = 1",
        "add or remove one record",
        "17 to 90",
        "Female, Male",
        "views",
    ):
        assert said in text and said in page, said
    assert text.startswith("# People\n") and "NOT PRIVATE" not in text
    assert page.startswith("<!DOCTYPE html>") and "default-src 'none'" in page
    assert "<script" not in page and "http:" not in page and "https:" not in page
    assert text.count("| total | 1 |") == 1
    assert "<h1>People</h1>" in card._repr_html_()


def test_tables_are_whole_and_nothing_is_interpreted(view):
    card = model_card(
        view, title="<b>*x*</b> | y", intended_use="a | b\n# c <script>alert(1)</script>"
    )
    text, page = card.to_markdown(), card.to_html()
    assert "<b>" not in page.split("<title>")[1] and "<script" not in page
    assert "\n# c" not in text and "a \\| b" in text
    blocks = [block for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) >= 3
    for block in blocks:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block


def test_scores(view):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500)
    private = private_score(truth, truth, "accuracy", epsilon=1)
    quality = quality_report(ROWS, ROWS[:100], domain=DOMAIN, target="income", epsilon=5)
    scores = {"accuracy": private, "quality": quality, "other": 0.25, "triple": (0.5, 0.4, 0.6)}
    text = model_card(view, scores=scores).to_markdown()
    assert "| accuracy | 0.99" in text or "| accuracy | 1 |" in text
    assert "quality: 2-way k-marginal" in text and "quality: random forest" in text
    assert "| other | 0.25 |  | as given; its privacy is not known |" in text
    assert "| triple | 0.5 | 0.4 to 0.6 |" in text
    with pytest.raises(TypeError, match="A score must be"):
        model_card(view, scores={"x": "high"})


def test_what_is_not_private_needs_the_owner(view):
    attacked = attack_report(view, ROWS, people(400, 3), max_rows=50, secrets=[])
    exact = quality_report(ROWS, ROWS[:100], domain=DOMAIN)
    for given in ({"attacks": [attacked]}, {"scores": {"exact": exact}}):
        with pytest.raises(ValueError, match="refuses to be published"):
            model_card(view, **given)
    card = model_card(view, attacks=[attacked], scores={"exact": exact}, owner_only=True)
    assert not card.publishable
    for text in (card.to_markdown(), card.to_html(), card._repr_html_()):
        assert "NOT PRIVATE" in text and "likelihood ratio" in text
    audit = canary_audit(MarginalSynthesizer(1.0, domain=DOMAIN), n_canaries=40)
    card = model_card(view, attacks=[audit])
    assert card.publishable and "CanaryAudit" in card.to_markdown()


def test_no_guarantee_is_said_first():
    seeded = MarginalSynthesizer(1.0, domain=DOMAIN, random_state=0)
    with pytest.warns(skdp.InsecureSeedWarning):
        text = model_card(seeded.fit(ROWS)).to_markdown()
    assert "There is no guarantee" in text
    with pytest.warns(skdp.PrivacyLeakWarning):
        inferred = skdp.Domain.infer(ROWS)
    leaky = MarginalSynthesizer(1.0, domain=inferred).fit(ROWS)
    with pytest.raises(ValueError, match="owner_only"):
        model_card(leaky)
    text = model_card(leaky, owner_only=True).to_markdown()
    assert "There is no guarantee" in text and "read from the records" in text


def test_composed_estimators_and_others():
    release = MarginalSynthesizer(1.0, domain=DOMAIN, target="income")
    model = skdp.PrivateClassifier(
        make_pipeline(OrdinalEncoder(), SimpleImputer(), DecisionTreeClassifier()), release
    )
    X, y = ROWS.drop(columns="income"), ROWS["income"]
    with pytest.raises(NotFittedError):
        model_card(model)
    card = model_card(model.fit(X, y)).to_markdown()
    assert "17 to 90" in card and "epsilon = 1" in card
    clusters = skdp.DPKMeans(2, 1, bounds=(0, 1)).fit(np.random.default_rng(0).random((50, 2)))
    assert "bounds" in model_card(clusters).to_markdown()
    with pytest.raises(TypeError):
        model_card(pd.DataFrame())


def test_files(view, tmp_path):
    card = model_card(view)
    for ending, start in ((".md", "# Marginal"), (".html", "<!DOCTYPE")):
        card.save(tmp_path / f"card{ending}")
        assert (tmp_path / f"card{ending}").read_text(encoding="utf-8").startswith(start)
    with pytest.raises(ValueError, match="must end in"):
        card.save(tmp_path / "card.pdf")
