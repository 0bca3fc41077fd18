"""The benchmark of questions: which are asked, their true answers, and how bars are judged."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks import _question_tables, questions
from benchmarks._fidelity_tables import Table
from benchmarks.questions import KINDS, Columns, Question, asked, judged, over_questions
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
        }
    )
    rows.loc[:9, "two"] = np.nan
    domain = Domain(
        {
            "one": Numeric(0, 200, bins=16),
            "two": Numeric(0, 200, bins=16, nullable=True),
            "whole": Numeric(0, 29, integer=True),
            "group": Categorical(["a", "b"]),
        }
    )
    return Table("small", rows, domain)


@pytest.fixture(scope="module")
def every(table):
    return {kind: questions.questions(table, kind, 1_000) for kind in KINDS}


def cuts(some):
    return [(name, value) for each in some for name, sign, value in each.conditions if sign != "=="]


def test_questions_are_about_dependent_pairs_at_the_thresholds_of_their_kind(table, every):
    assert Columns(table).pairs == [("one", "two")]
    assert all(every.values())
    edges = set(np.arange(0, 201, 12.5).tolist())
    assert {value for _, value in cuts(every["tails"] + every["triples"])} <= edges
    inside = cuts(every["thresholds"] + every["round-tails"])
    assert inside and not {value for _, value in inside} & edges
    # Every integer of the third column is the edge of a bin.
    assert {name for name, _ in inside} == {"one", "two"}
    signs = {tuple(sign for _, sign, _ in each.conditions) for each in every["tails"]}
    assert signs == {(">=", ">="), ("<", "<"), (">=", "<"), ("<", ">=")}
    assert {each.conditions[2] for each in every["triples"]} == {
        ("group", "==", "a"),
        ("group", "==", "b"),
    }


def test_few_questions_come_from_all_groups(table):
    some = questions.questions(table, "quantiles", 3)
    assert {each.column for each in some} == {"one", "two", "whole"}
    assert some == questions.questions(table, "quantiles", 3)


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


def test_answers_of_a_release_come_with_their_bars(table, every):
    some = [kind[0] for kind in every.values()]
    [found] = questions.measured(table, 1e5, ["means"], [0], 40)
    assert found["n"] == len(every["means"]) and found["fit_s"] > 0 and found["ask_ms"] > 0

    class Release:
        def count(self, query, *, return_interval):
            assert return_interval and isinstance(query, str)
            return SimpleNamespace(value=2.0, lower=1.0, upper=4.0)

        mean = quantile = lambda self, column, *_, return_interval: SimpleNamespace(
            value=np.nan, lower=1.0, upper=4.0
        )

    answers = asked(Release(), some)
    expected = [2.5 if each.column else 2.0 for each in some]
    np.testing.assert_array_equal(answers, [[value, 1.0, 4.0] for value in expected])


def test_bars_are_judged_question_by_question(table):
    asked_for = Question((("one", "<", 50.0),))
    truth = asked_for.truth(table.rows)
    answers = truth + np.array([[3.0, -1.0, 7.0], [5.0, 0.0, 10.0], [4.0, 1.0, 7.0]])
    [one] = judged(table.rows, [asked_for], answers[:, None])
    assert (one["bias"], one["sd"]) == (pytest.approx(4), pytest.approx(1))
    assert one["rms"] == pytest.approx(np.sqrt(50 / 3))
    assert (one["holds"], one["half"]) == (pytest.approx(2 / 3), pytest.approx(4))
    over = over_questions([one, {**one, "bias": -8.0, "holds": 1.0}])
    assert (over["bias"], over["below"]) == (pytest.approx(6), 0.5)
    assert over["holds"] == pytest.approx(5 / 6)


def test_results_are_printed_written_and_compared(monkeypatch, tmp_path, capsys, table):
    monkeypatch.setitem(questions.TABLES, "phoneme", lambda: table)
    out = tmp_path / "out.json"
    line = ["--tables", "phoneme", "--epsilons", "1", "--fits", "2", "--kinds", "tails", "triples"]
    rows = questions.main([*line, "--most-questions", "4", "--out", str(out)])
    assert [(row["kind"], row["n"], row["fits"]) for row in rows] == [
        ("tails", 4, 2),
        ("triples", 4, 2),
    ]
    assert json.loads(out.read_text())["results"] == rows
    capsys.readouterr()
    questions.main([*line[:-1], "--most-questions", "4", "--beside", str(out)])
    said = capsys.readouterr().out
    # The same seeds on the same tree: the same errors.
    assert f"  1.00 of {rows[0]['rms']:.3g}" in said and "ratio" in said


def test_generated_tables_fit_their_domains():
    for make in (_question_tables.skewed, _question_tables.delays, _question_tables.twelve):
        made = make()
        assert made.generated and list(made.rows) == list(made.domain.names)
        for name in made.domain.names:
            attribute = made.domain[name]
            if isinstance(attribute, Numeric):
                assert made.rows[name].between(attribute.lower, attribute.upper).all(), name
    [low, high] = np.quantile(made.rows["x0"], [0.1, 0.9])
    assert high > 5 * low
    edges = _question_tables.edges_of(_question_tables.delays(), "waiting")
    assert len(edges) == 33 and edges[-1] == 1_000
