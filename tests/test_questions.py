"""The benchmark of questions: which are asked, their true answers, and how bars are judged."""

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks import _question_tables, questions
from benchmarks._fidelity_tables import Table
from benchmarks.questions import (
    KINDS,
    RARE_SHARES,
    Columns,
    Question,
    asked,
    judged,
    over_questions,
    with_errors,
)
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


def cuts(some):
    return [(name, value) for each in some for name, sign, value in each.conditions if sign != "=="]


def test_questions_are_about_dependent_pairs_at_the_thresholds_of_their_kind(table, every):
    assert Columns(table).pairs == [("one", "two")]
    assert all(every.values())
    edges = set(np.arange(0, 201, 12.5).tolist())
    assert {value for _, value in cuts(every["tails"] + every["triples"])} <= edges
    inside = cuts(every["declared"] + every["round-tails"])
    assert inside and not {value for _, value in inside} & edges
    # Every integer of the third column is the edge of a bin.
    assert {name for name, _ in inside} == {"one", "two"}
    assert {name for name, _ in cuts(every["thresholds"])} == {"plain"}
    signs = {tuple(sign for _, sign, _ in each.conditions) for each in every["tails"]}
    assert signs == {(">=", ">="), ("<", "<"), (">=", "<"), ("<", ">=")}
    assert {each.conditions[2] for each in every["triples"]} == {
        *(("group", "==", value) for value in "ab"),
        *(("place", "==", value) for value in "pqr"),
    }


def test_conditions_are_on_the_columns_of_their_kind(table, every):
    columns = {kind: [[c[0] for c in each.conditions] for each in every[kind]] for kind in every}
    texts, numbers = {"group", "place"}, {"one", "two", "whole", "plain"}
    assert len(every["cells"]) == 6 and set(map(tuple, columns["cells"])) == {("group", "place")}
    assert {first for first, _ in columns["mixed"]} == texts
    assert {second for _, second in columns["mixed"]} == numbers
    assert {frozenset(names) for names in columns["threes"]} == {
        frozenset(names) for names in itertools.combinations(table.rows, 3)
    }
    assert {name for [name] in columns["equals"]} == numbers
    values = [each.conditions[0] for each in every["equals"]]
    assert all((table.rows[name] == value).any() for name, _, value in values)
    pairs = {(each.column, each.other) for each in every["correlations"]}
    assert pairs == set(itertools.combinations(table.rows[[*table.domain.names]].columns, 2)) & set(
        itertools.product(numbers, numbers)
    )


def test_rare_cases_are_rare(table, every):
    asked_for = [str(each) for each in every["rare"]]
    assert "count where `place` == 's'" in asked_for
    assert any("group" in text for text in asked_for) and any("one" in text for text in asked_for)
    low, high = (share * N_ROWS for share in RARE_SHARES)
    cases = [each for each in every["rare"] if each.conditions[0][1] == "=="]
    assert all(low <= each.truth(table.rows) <= high for each in cases)


@pytest.mark.parametrize("kind", ["cells", "mixed", "threes", "rare", "equals", "declared"])
def test_true_counts_are_those_of_pandas(table, every, kind):
    some = every[kind][:20]
    assert [each.truth(table.rows) for each in some] == [
        len(table.rows.query(each.query)) for each in some
    ]


def test_few_questions_come_from_all_groups(table):
    some = questions.questions(table, "quantiles", 3)
    assert len({each.column for each in some}) == 3
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
    correlation = Question((), "correlation", "one", other="two")
    # Of the records that have both.
    assert correlation.truth(rows) == pytest.approx(rows.one.corr(rows.two))
    assert (str(correlation), correlation.unit(rows)) == ("correlation one two", 1.0)


def test_answers_of_a_release_come_with_their_bars(table, every):
    some = [kind[0] for kind in every.values()]
    [found] = questions.measured(table, 1e5, {"means": every["means"]}, [0])
    assert found["n"] == len(every["means"]) and found["fit_s"] > 0 and found["ask_ms"] > 0

    class Release:
        def count(self, query, *, return_interval):
            assert return_interval and isinstance(query, str)
            return SimpleNamespace(value=2.0, lower=1.0, upper=4.0)

        mean = quantile = correlation = lambda self, column, *_, return_interval: SimpleNamespace(
            value=np.nan, lower=1.0, upper=4.0
        )

    answers = asked(Release(), some)
    expected = [2.5 if each.column else 2.0 for each in some]
    np.testing.assert_array_equal(answers, [[value, 1.0, 4.0] for value in expected])


def test_what_is_refused_has_no_answer(table):
    class Release:
        def count(self, query, *, return_interval):
            if "==" in query:
                raise ValueError("one value has no share of a bin")
            return SimpleNamespace(value=500.0, lower=400.0, upper=600.0)

    some = [Question((("one", "==", 199.0),)), Question((("one", "<", 50.0),))]
    answers = asked(Release(), some)
    np.testing.assert_array_equal(answers, [[np.nan] * 3, [500, 400, 600]])
    each = judged(answers[None], np.array([20.0, 500.0]), np.ones(2), np.array([True, True]))
    assert each["refused"].tolist() == [1, 0] and each["useless"].tolist() == [1, 0]
    assert each["holds"].tolist() == [0, 1]
    assert over_questions(each)["refused"] == 0.5


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


def test_figures_have_standard_errors():
    rng = np.random.default_rng(0)
    truth, large = np.full(50, 1_000.0), np.ones(50, dtype=bool)
    found = []
    for _ in range(20):
        value = truth + 100 * rng.normal(size=(1, 1)) + rng.normal(size=(30, 50))
        answers = np.stack([value + 100 * rng.normal(size=(30, 1)) + a for a in (0, -196, 196)], 2)
        found.append(with_errors(answers, truth, np.ones(50), large))
    table = pd.DataFrame(found)
    assert 5 < table["rms_se"].median() < 40
    # All bars of a release hold or none, which the least error of a share does not know.
    assert table["holds_se"].max() > 0.02
    alone = with_errors(answers[:1], truth, np.ones(50), large)
    assert np.isnan(alone["rms_se"]) and alone["useless"] == 0 and 0 < alone["useless_se"] < 0.03


def test_results_are_printed_and_written(monkeypatch, tmp_path, capsys, table):
    monkeypatch.setitem(questions.TABLES, "phoneme", lambda: table)
    out = tmp_path / "out.json"
    line = ["--tables", "phoneme", "--epsilons", "1", "--fits", "2", "--kinds", "tails", "triples"]
    rows = questions.main([*line, "--most-questions", "4", "--out", str(out)])
    assert [(row["kind"], row["n"], row["fits"]) for row in rows] == [
        ("tails", 4, 2),
        ("triples", 4, 2),
    ]
    written = json.loads(out.read_text())
    assert len(written["results"]) == 2 and len(written["commit"].rstrip("+")) == 40
    said = capsys.readouterr().out
    assert f"{rows[0]['rms']:10.3g}" in said
    assert said.startswith(f"commit {written['commit'][:8]}, {written['date']}, 2 fits")


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
