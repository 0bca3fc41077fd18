"""Expected errors before anything is spent."""

import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from estimators import CASES, DOMAIN, people
from loops import over

import skdp
from skdp import Domain, Numeric, PrivacyLedger
from skdp.exceptions import DomainError
from skdp.expected import Asked, bar_of, bar_texts, generated_codes

mpl.use("agg")

SYNTHESIZERS = [case.estimator for case in CASES if case.name.endswith("Synthesizer")]
ROWS = people(3_000)


@over("kind", SYNTHESIZERS)
def test_every_synthesizer_states_its_errors_and_spends_nothing(kind):
    ledger = PrivacyLedger(epsilon=0.01)
    estimator = kind(epsilon=1.0, domain=DOMAIN, ledger=ledger)
    before = estimator.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for like in (None, ROWS):
            found = estimator.expected_error(1_000, [0.1, 1.0], like=like, n_tables=1)
            assert list(found.columns) == [0.1, 1.0]
            ranges = ["cell", "one-column range", "two-column range", "three-column range"]
            hdmm = kind is skdp.HDMMSynthesizer
            assert found.index.tolist() == (["workload", "total"] if hdmm else ranges)
            assert (found > 0).all(axis=None)
    assert ledger.spent == 0
    assert estimator.get_params() == before
    assert not hasattr(estimator, "synopsis_")


def test_one_attribute_for_all_columns_is_no_domain():
    with pytest.raises(DomainError, match="lists its columns"):
        skdp.GridSynthesizer(domain=Numeric(0, 1)).expected_error(100)
    with pytest.raises(ValueError, match="of no single questions"):
        skdp.RangeTreeHistogram(domain=(0, 1)).expected_error(500, questions=["age > 3"])


QUESTIONS = [
    "age >= 65 and sex == 'Female'",
    "mean(age)",
    "median(age) where sex == 'Female'",
    "quantile(age, 0.9)",
    "proportion(work == 'none') where age >= 65",
]


def test_error_bars_of_own_questions_are_those_that_a_release_states(monkeypatch):
    ledger = PrivacyLedger(epsilon=0.01)
    made = skdp.MarginalSynthesizer(domain=DOMAIN, ledger=ledger)
    found = made.expected_error(3_000, [0.5, 4], questions=QUESTIONS, like=ROWS)
    assert ledger.spent == 0
    assert list(found.index) == QUESTIONS and list(found) == [0.5, 4]
    release = skdp.MarginalSynthesizer(epsilon=4, domain=DOMAIN).fit(ROWS).synopsis_
    count = release.count(QUESTIONS[0], return_interval=True)
    mean = release.mean("age", return_interval=True)
    for question, told in ((QUESTIONS[0], count), ("mean(age)", mean)):
        assert found.loc[question, 4] == pytest.approx((told.upper - told.lower) / 2, rel=0.3)
    # Of many records few rows are enough, and these are never drawn again.
    draw = "skdp.algorithms.marginals.fit.Population._draw"
    monkeypatch.setattr(draw, lambda *given: pytest.fail("rows were drawn again"))
    found = made.expected_error(3_000, [0.25, 0.5, 1, 2, 4], questions=QUESTIONS, like=ROWS)
    assert (found.diff(axis=1).iloc[:, 1:] <= 0).all(axis=None)
    narrow = made.expected_error(3_000, 4, questions="mean(age)", like=ROWS, level=0.5)
    assert narrow.loc["mean(age)", 4] < found.loc["mean(age)", 4]
    # A median of a value that most records share is certain: no margin promises that.
    alone = skdp.MarginalSynthesizer(domain={"pay": (0.0, 200_000.0), "b": (0, 9)})
    assert (alone.expected_error(3_000, 4, questions="median(pay)", n_tables=4) > 0).all(axis=None)


def test_bars_in_words_have_two_digits_and_the_unit_of_their_answers():
    domain = Domain({"a": (0, 9), "day": skdp.Date("2020-01-01", "2021-12-31")})
    asked = ["a > 3", "proportion(a > 3)", "median(day)", "mean(a)", "correlation(a, a)"]
    bars = pd.DataFrame({1.0: [1234.5, 0.0321, 3.74, 0.123, 0.05]}, index=asked)
    texts = " ".join(bar for [bar] in bar_texts(bars, domain).values())
    assert texts == "\u00b1 1,234 \u00b1 3.2% \u00b1 3.7 days \u00b1 0.12 \u00b1 0.05"


def test_questions_in_words_are_those_of_a_release():
    """Names in quotes, with points and blanks; dates as they are declared; commas in texts."""
    dates = skdp.Date("1990-01-01", "1999-12-31", format="%d.%m.%Y")
    domain = Domain(
        {"a.b": (0, 9), "hours (per week)": (0, 9), "sex": ["F, or", "M)"], "born": dates}
    )
    frame = domain.decode(generated_codes(domain, 500, 0), np.random.default_rng(0))
    release = skdp.MarginalSynthesizer(epsilon=5, domain=domain).fit(frame).synopsis_
    for question, method, *given in (
        ("born > '1995-03-31'", "count", "born > '1995-03-31'"),
        ("count(`a.b` > 3) where sex == 'F, or'", "count", "`a.b` > 3 and sex == 'F, or'"),
        ("mean(a.b)", "mean", "a.b"),
        ("MEAN(`a.b`) WHERE sex == 'M)'", "mean", "a.b", "sex == 'M)'"),
        ("sum('hours (per week)')", "sum", "hours (per week)"),
        ("median(born)", "quantile", "born", 0.5),
        ("correlation(a.b, `hours (per week)`)", "correlation", "a.b", "hours (per week)"),
        ("proportion(sex in ('F, or', 'M)'))", "proportion", "sex in ('F, or', 'M)')"),
    ):
        expected = getattr(release, method)(*given, return_interval=True)
        assert Asked.read(question).answer(release) == expected, question
        assert bar_of(release, question, 0.95) >= 0
    assert Asked.read("count(*) where `where (x` > 3").where == "(`where (x` > 3)"
    refused = ["mean()", "mean(a.b) sex", "mean(a.b", "quantile(a.b, b)", "proportion( )"]
    # Not the name of a column that is unknown.
    for question in (*refused, "avg(a.b)", "mean a.b where sex == 'M)'"):
        with pytest.raises(ValueError, match="cannot be read"):
            Asked.read(question)


def test_what_cannot_be_asked():
    made = skdp.MarginalSynthesizer(domain=DOMAIN)
    for question, message in (("height > 3", "height"), ("correlation(age)", "cannot be read")):
        with pytest.raises(ValueError, match=message):
            made.expected_error(500, questions=[question])
    for name, value in {"n": 0, "epsilon": [], "n_tables": 0}.items():
        with pytest.raises(ValueError, match=name):
            made.expected_error(**{"n": 500, name: value})
