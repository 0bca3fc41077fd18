"""The benchmark of questions: which are asked, their true answers, and how bars are judged."""

import numpy as np
import pandas as pd
import pytest
from loops import over

from benchmarks import questions
from benchmarks._fidelity_tables import Table
from benchmarks.questions import KINDS, Question, judged, over_questions
from skdp import Categorical, Domain, Numeric

N_ROWS = 1_500


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    one = rng.gamma(2, 20, N_ROWS).clip(0, 199)
    rows = pd.DataFrame(
        {
            "one": one,
            "two": (one + rng.normal(0, 20, N_ROWS)).clip(0, 199),
            "whole": rng.integers(0, 30, N_ROWS),
            "group": rng.choice(["a", "b"], N_ROWS),
            "plain": rng.normal(50, 10, N_ROWS).clip(0, 100),
            "place": rng.choice(list("pqrs"), N_ROWS, p=[0.6, 0.35, 0.045, 0.005]),
        }
    )
    rows.loc[:9, "two"] = np.nan
    domain = Domain(
        {
            "one": Numeric(0, 200, bins=16),
            "two": Numeric(0, 200, bins=16, nullable=True),
            "whole": Numeric(0, 29, integer=True),
            "group": Categorical(["a", "b"]),
            "plain": Numeric(0, 100),
            "place": Categorical(list("pqrs")),
        }
    )
    return Table("small", rows, domain)


@pytest.fixture(scope="module")
def every(table):
    return {kind: questions.questions(table, kind, 1_000) for kind in KINDS}


@over("kind", ["cells", "mixed", "threes", "rare", "equals", "declared"])
def test_true_counts_are_those_of_pandas(table, every, kind):
    some = every[kind][:20]
    assert [each.truth(table.rows) for each in some] == [
        len(table.rows.query(each.query)) for each in some
    ]


def test_true_answers_are_those_of_the_rows(table):
    rows = table.rows
    both = Question((("one", ">=", 50), ("two", "<", 62.5), ("group", "==", "a")))
    expected = rows.query("one >= 50 and two < 62.5 and group == 'a'")
    assert both.truth(rows) == len(expected) > 0
    mean = Question((("group", "==", "b"),), "mean", "two")
    assert mean.truth(rows) == pytest.approx(rows.two[rows.group == "b"].mean())
    median = Question((), "quantile", "two", 0.5)
    assert median.truth(rows) == rows.two.dropna().sort_values().iloc[(N_ROWS - 10) // 2 - 1]
    assert (mean.unit(rows), both.unit(rows)) == (pytest.approx(rows.two.std(ddof=0)), 1.0)
    correlation = Question((), "correlation", "one", other="two")
    # Of the records that have both.
    assert correlation.truth(rows) == pytest.approx(rows.one.corr(rows.two))
    assert (str(correlation), correlation.unit(rows)) == ("correlation one two", 1.0)


def test_bars_are_judged_question_by_question():
    truth = 100.0
    answers = truth + np.array([[3.0, -1.0, 7.0], [5.0, 0.0, 10.0], [4.0, 1.0, 61.0]])
    one = judged(answers[:, None], np.array([truth]), np.ones(1), np.array([True])).iloc[0]
    assert one["rms"] == pytest.approx(np.sqrt(50 / 3))
    assert (one["holds"], one["half"]) == (pytest.approx(2 / 3), pytest.approx(13))
    # The last bar is wider than half of the count.
    assert one["useless"] == pytest.approx(1 / 3)
    rare = judged(answers[:, None], np.array([truth]), np.ones(1), np.array([False])).iloc[0]
    assert np.isnan(rare["useless"]) and rare["holds"] == one["holds"]
    every = pd.DataFrame([dict(one), {**one, "rms": 2.0, "half": 3.0, "holds": 1.0}, dict(rare)])
    over = over_questions(every)
    assert over["rms"] == pytest.approx(one["rms"]) and over["useless"] == pytest.approx(1 / 3)
    assert over["over"] == pytest.approx(13 / 1.96 / one["rms"])
    assert over["holds"] == pytest.approx(7 / 9)
