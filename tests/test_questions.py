"""The benchmark of questions: which are asked, their true answers, and how bars are judged."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import _question_tables, questions
from benchmarks._fidelity_tables import subsample
from benchmarks.questions import Question, judged, over_questions


@pytest.fixture(scope="module")
def table():
    """Journeys: whole and other numbers, with and without bins, some missing, and categories."""
    some = subsample(_question_tables.delays(), 1_500, 0)
    some.rows.loc[:9, "waiting"] = np.nan
    return some


def test_true_counts_are_those_of_pandas(table):
    for kind in ("cells", "mixed", "threes", "rare", "equals", "declared"):
        some = questions.questions(table, kind, 20)
        counts = [len(table.rows.query(each.query)) for each in some]
        assert [each.truth(table.rows) for each in some] == counts and counts, kind
    assert all(questions.questions(table, kind, 1) for kind in questions.KINDS)


def test_true_answers_are_those_of_the_rows(table):
    rows = table.rows
    mean = Question((("carrier", "==", "b"),), "mean", "waiting")
    assert mean.truth(rows) == pytest.approx(rows.waiting[rows.carrier == "b"].mean())
    there = rows.waiting.dropna().sort_values()
    median = Question((), "quantile", "waiting", 0.5)
    assert median.truth(rows) == there.iloc[(len(there) + 1) // 2 - 1]
    # Of the records that have both.
    correlation = Question((), "correlation", "arrival", other="waiting")
    assert correlation.truth(rows) == pytest.approx(rows.arrival.corr(rows.waiting))
    assert (mean.unit(rows), correlation.unit(rows)) == (pytest.approx(there.std(ddof=0)), 1.0)


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
