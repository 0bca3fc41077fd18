"""The benchmark of questions: which are asked, their true answers, and how bars are judged."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import questions
from benchmarks._fidelity_tables import Table
from benchmarks.questions import Question, judged, over_questions
from skdp import Categorical, Domain, Numeric

N_ROWS = 1_500


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    one = rng.gamma(2, 20, N_ROWS).clip(0, 199)
    columns = {
        "one": (one, Numeric(0, 200, bins=16)),
        "two": (
            (one + rng.normal(0, 20, N_ROWS)).clip(0, 199),
            Numeric(0, 200, bins=16, nullable=True),
        ),
        "whole": (rng.integers(0, 30, N_ROWS), Numeric(0, 29, integer=True)),
        "plain": (rng.normal(50, 10, N_ROWS).clip(0, 100), Numeric(0, 100)),
        "group": (rng.choice(["a", "b"], N_ROWS), Categorical(["a", "b"])),
        "place": (
            rng.choice(list("pqrs"), N_ROWS, p=[0.6, 0.35, 0.045, 0.005]), Categorical(list("pqrs"))
        ),
    }  # fmt: skip
    rows = pd.DataFrame({name: values for name, (values, _) in columns.items()})
    rows.loc[:9, "two"] = np.nan
    return Table("small", rows, Domain({name: kind for name, (_, kind) in columns.items()}))


def test_true_counts_are_those_of_pandas(table):
    for kind in ("cells", "mixed", "threes", "rare", "equals", "declared"):
        some = questions.questions(table, kind, 20)
        counts = [len(table.rows.query(each.query)) for each in some]
        assert [each.truth(table.rows) for each in some] == counts and counts, kind
    assert all(questions.questions(table, kind, 1) for kind in questions.KINDS)


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
