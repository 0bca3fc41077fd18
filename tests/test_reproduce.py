"""The list of figures of the five works, how their findings are judged, and their tables."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loops import over

from skdp._random import noise_source

reproduce = pytest.importorskip("benchmarks.reproduce")
pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")
command = pytest.importorskip("benchmarks.reproduce.__main__")
claims = pytest.importorskip("benchmarks.reproduce.claims")
TIE, UNTESTED = reproduce.TIE, reproduce.UNTESTED


def numbers(name):
    """The numbers of the figures or tables that a name covers: "figures_9_and_10", "3_to_5"."""
    kind, text = re.fullmatch(r"[a-z]+_(figure|table)s?_(.+)", name).groups()
    if "_to_" in text:
        first, last = text.split("_to_")
        return kind, [str(n) for n in range(int(first), int(last) + 1)]
    if "_and_" in text:
        return kind, text.split("_and_")
    return kind, [text.replace("_", ".")]


def drawn(work, kind):
    return [
        number
        for name in command.figures()
        if name.startswith(work + "_") and numbers(name)[0] == kind
        for number in numbers(name)[1]
    ]


def span(first, last, chapter=None):
    return [f"{chapter}.{n}" if chapter else str(n) for n in range(first, last + 1)]


@over(
    "work, kind, expected",
    [
        ("dpcube", "figure", span(3, 16)),
        ("gblue", "figure", span(4, 5)),
        ("hdpview", "figure", span(3, 14)),
        ("hdpview", "table", span(2, 4)),
        ("privpfc", "figure", span(2, 12, 3)),
        ("kmeans", "figure", span(1, 8, 4)),
        ("kmeans", "table", span(3, 5, 4)),
        ("svt", "figure", span(8, 16, 5)),
        ("svt", "table", span(3, 6, 5)),
    ],
)
def test_every_figure_and_table_of_the_works_is_listed_once(work, kind, expected):
    found = drawn(work, kind)
    assert sorted(found) == sorted(expected)


def test_names_begin_with_the_module_so_that_no_two_works_share_a_file():
    for module, work in command.WORKS.items():
        mine = [name for name, (of, _) in command.figures().items() if of == work]
        assert mine and all(name.startswith(f"{module}_") for name in mine)


def test_the_slides_on_cubes_are_all_there():
    names = {name for name in command.figures() if name.startswith("cubes_")}
    parts = {"dimensions", "cuboids", "cardinalities", "time", "time_parts"}
    assert names == {f"cubes_{part}" for part in parts}


def test_names_are_those_of_their_works():
    for name, (work, draw) in command.figures().items():
        module = name.split("_")[0]
        assert command.WORKS[module] == work
        assert callable(draw)


@over(
    "held, verdict",
    [
        ([True, True], "agrees"),
        ([True, False], "agrees in part"),
        ([True, TIE], "agrees in part"),
        ([True, UNTESTED], "agrees in part"),
        ([False, False], "disagrees"),
        ([False, TIE], "disagrees"),
        ([TIE, TIE], "tie"),
        ([TIE, UNTESTED], "tie"),
        ([UNTESTED], "not comparable"),
        ([np.True_, np.bool_(False)], "agrees in part"),
    ],
)
def test_the_rules_decide_the_verdict(held, verdict):
    finding = reproduce.Finding("it is so.", "3 and 4.", dict(zip("ab", held, strict=False)))
    assert finding.verdict == verdict
    said = held[0] if isinstance(held[0], str) else "yes" if held[0] else "no"
    assert f"a: {said}" in finding.rules
    assert verdict in str(finding)


def test_a_finding_without_a_rule_says_why():
    with pytest.raises(ValueError, match="Without a check"):
        reproduce.Finding("it is so.", "it is.", {})
    with pytest.raises(ValueError, match="Without a check"):
        reproduce.Finding("it is so.", "it is.", {"a": True}, "there are no data")
    with pytest.raises(ValueError, match="must be a bool, TIE or UNTESTED"):
        reproduce.Finding("it is so.", "it is.", {"a": "perhaps"})
    finding = reproduce.Finding("it is so.", "it is.", {}, "there are no data")
    assert finding.verdict == "not comparable" and finding.rules == "there are no data"


def test_a_difference_within_two_standard_errors_is_a_tie():
    assert reproduce.compare(0.3, 0.1) is True
    assert reproduce.compare(-0.3, 0.1) is False
    assert reproduce.compare(0.19, 0.1) == reproduce.compare(-0.19, 0.1) == TIE


def test_verdicts_of_one_experiment():
    assert command.together(["agrees", "agrees", "not comparable"]) == "agrees"
    assert command.together(["agrees", "tie"]) == "agrees in part"
    assert command.together(["disagrees", "tie"]) == "disagrees"
    assert command.together(["tie", "tie"]) == "tie"
    assert command.together(["not comparable"]) == "not comparable"


def test_every_figure_has_words_of_its_work_or_none_on_purpose():
    names = set(command.figures())
    assert set(claims.QUOTES) == names
    assert {name for name, words in claims.QUOTES.items() if not words} == {
        "cubes_time_parts",
        "hdpview_table_3",
    }
    grouped = [name for drawn in claims.EXPERIMENTS.values() for name in drawn]
    assert len(grouped) == len(set(grouped)) and set(grouped) <= names
    assert claims.experiment("svt_figure_5_9") == claims.experiment("svt_table_5_6")
    assert claims.experiment("privpfc_figure_3_2") == "privpfc_figure_3_2"


def test_selections_that_all_fail_say_nothing_on_their_order():
    """Figure 5.9 of the dissertation: an order of methods needs cells in which they differ."""
    svt = pytest.importorskip("benchmarks.reproduce.svt")

    def table(errors):
        rows = [
            {"set": "a", "c": c, "setting": "interactive", "method": method, "measure": "ser"}
            | {"mean": error, "std": 0.01, "runs": 100}
            for c in (25, 50, 100)
            for method, error in errors.items()
        ]
        return pd.DataFrame(rows)

    names = ("DPBook", "S 1:1", "S 1:3", "S 1:c", "S 1:c^2/3", "ours")
    for errors, verdict in (
        ((0.99, 0.985, 0.98, 0.96, 0.95, 0.5), "tie"),
        ((0.9, 0.7, 0.5, 0.3, 0.2, 0.1), "agrees"),
        ((0.9, 0.7, 0.2, 0.3, 0.5, 0.1), "agrees in part"),
        ((0.1, 0.2, 0.3, 0.7, 0.8, 0.1), "disagrees"),
    ):
        found = svt._finding(table(dict(zip(names, errors, strict=True))), "interactive", ["ser"])
        assert found.verdict == verdict, errors


def test_findings_are_replaced_by_later_ones_and_published_by_work(tmp_path):
    path = tmp_path / "out" / "findings.csv"
    path.parent.mkdir()
    first = reproduce.Finding("sweeps take longer.", "9 and 3.", {"9 > 3": True})
    other = reproduce.Finding("sweeps take longer.", "2 * 3 | 3.", {"2 > 3": False})
    command.add(path, "gblue_figure_4", True, first, 1.0, 2.0)
    command.add(path, "gblue_figure_4", True, other, 1.0, 2.0)
    command.add(path, "gblue_figure_5", True, first, 1.0, 2.0)
    command.add(path, "gblue_figure_5", False, first, 61.0, 70.0)
    command.add(path, "dpcube_figures_9_and_10", False, first, 5.0, 5.0)
    for name in ("svt_figure_5_9", "svt_figure_5_10"):
        command.add(path, name, True, first, 5.0, 5.0)
    table = pd.read_csv(path)
    assert list(table.columns) == command.COLUMNS
    assert len(table) == 6
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 255, (900, 900, 3), dtype=np.uint8))
    noise.save(path.parent / "gblue_figure_5.png")
    docs = tmp_path / "docs"
    command.publish(path.parent, docs)
    (picture,) = docs.glob("*.png")
    assert max(Image.open(picture).size) == 640
    shown = (docs / "pictures.txt").read_text()
    assert shown.count(".. figure::") == 1 and "GBLUE figure 5: agrees" in shown
    gblue = (docs / "gblue.txt").read_text()
    assert "Figure 4: **disagrees** (quick run, 1 CPU s)" in gblue
    # The full run takes the place of the quick one.
    assert "Figure 5: **agrees** (full run, 61 CPU s)" in gblue
    assert "*Here.* 2 \\* 3 \\| 3." in gblue
    totals = pd.read_csv(docs / "summary.csv", index_col="work")
    assert totals.loc["GBLUE"].tolist() == [2, 2, 1, 0, 1, 0, 0]
    # Two drawings, one experiment.
    assert totals.loc["all"].tolist() == [5, 4, 3, 0, 1, 0, 0]
    verdicts = pd.read_csv(docs / "verdicts.csv").set_index("Figure")
    assert verdicts.loc["figure 5.9, 5.10", "Verdict"] == "**agrees**"
    assert "2 > 3: no" in verdicts.loc["figure 4", "Its parts here"]
    assert "Figure 5.9: " in (docs / "svt.txt").read_text()
    assert "Figures 9 and 10: " in (docs / "dpcube.txt").read_text()
    # Later findings take the place of those that are published; the others stay.
    later = tmp_path / "later"
    later.mkdir()
    command.add(later / "findings.csv", "gblue_figure_4", False, first, 1.0, 2.0)
    command.publish(later, docs)
    assert "Figure 4: **agrees** (full run" in (docs / "gblue.txt").read_text()
    assert pd.read_csv(docs / "summary.csv", index_col="work").loc["GBLUE"].tolist()[2] == 2
    assert picture.exists()


def test_findings_of_the_documentation_are_those_of_the_figures():
    folder = Path(__file__).parent.parent / "docs" / "_static" / "reproduction"
    found = pd.read_csv(folder / "findings.csv")
    assert sorted(found["figure"]) == sorted(command.figures())
    assert set(found["verdict"]) <= set(command.VERDICTS)
    for picture in folder.glob("*.png"):
        assert picture.stat().st_size < 60_000, picture.name


def test_a_figure_writes_its_picture_and_its_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv",
        ["reproduce", "--figure", "privpfc_figure_3_2", "--quick", "--out", str(tmp_path)],
    )
    command.main()
    assert "1.0891" in capsys.readouterr().out
    assert (tmp_path / "privpfc_figure_3_2.png").stat().st_size > 10_000
    findings = pd.read_csv(tmp_path / "findings.csv")
    assert findings["verdict"].tolist() == ["agrees"]


def settings(**errors):
    """Runs of methods, a list of errors of each in each of several settings."""
    return pd.DataFrame(
        [
            ("adult", setting, method, repetition, error)
            for method, listed in errors.items()
            for setting, runs in enumerate(listed)
            for repetition, error in enumerate(runs)
        ],
        columns=["table", "epsilon", "method", "repetition", "misclassification"],
    )


def test_the_order_of_two_methods_needs_a_difference_beyond_their_noise():
    classification = pytest.importorskip("benchmarks.reproduce.classification")
    frame = settings(
        good=[[0.10, 0.11, 0.12], [0.30, 0.31, 0.30]],
        bad=[[0.15, 0.16, 0.16], [0.36, 0.35, 0.35]],
        unclear=[[0.10, 0.20, 0.05], [0.20, 0.50, 0.30]],
    )
    assert classification.before(frame, "good", "bad") is True
    assert classification.before(frame, "bad", "good") is False
    assert classification.before(frame, "good", "unclear") == TIE
    # Settings differ much more than their runs do; only the runs are noise.
    assert frame.groupby("method")["misclassification"].std()["good"] > 0.05
    assert classification.steadier(frame, "good", ["unclear"]) is True
    assert classification.steadier(frame, "unclear", ["good", "bad"]) is False


def test_runs_that_are_kept_are_drawn_and_not_run_again(tmp_path, monkeypatch):
    classification = pytest.importorskip("benchmarks.reproduce.classification")
    kinds = ("tree", "logistic")
    asked = []

    def cell(problem, epsilon, repetition, kinds):
        asked.append((epsilon, repetition))
        names = [*classification.RELEASES, "PrivLocal", "PrivGene"]
        if not np.isfinite(epsilon):
            names = classification.BASELINES
        return {
            kind: {
                name: 0.1 + 0.01 * place + 0.001 * repetition for place, name in enumerate(names)
            }
            for kind in kinds
        }

    experiment = classification.Experiment({"adult, marital status": lambda: None}, kinds)
    monkeypatch.setattr(classification, "_cell", cell)
    monkeypatch.setattr(classification, "THREE_CLASSES", experiment)
    first = classification.measure(tmp_path, True, experiment)
    assert sorted(asked) == [(0.1, 0), (0.1, 1), (1.0, 0), (1.0, 1), (np.inf, 0), (np.inf, 1)]
    finding = classification.FIGURES["privpfc_figure_3_7"](tmp_path, True)
    assert len(asked) == 6
    assert (tmp_path / "privpfc_figure_3_7.png").stat().st_size > 10_000
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "privpfc_figure_3_7.csv"), first)
    # The library's own PrivPfC is better here, and no rival in the dissertation's figure.
    assert finding.verdict == "agrees"
    assert "in 2 of 2 settings" in finding.found


def test_every_method_of_the_figures_runs():
    classification = pytest.importorskip("benchmarks.reproduce.classification")
    tables = pytest.importorskip("benchmarks.privpfc")
    from skdp import Categorical, Domain, Numeric

    rng = np.random.default_rng(0)
    x, colour = rng.uniform(0, 1, 400), rng.choice(["red", "blue"], 400)
    label = np.where(x + (colour == "red") > 0.8, "a", np.where(x > 0.5, "b", "c"))
    rows = pd.DataFrame({"x": x, "colour": colour, "label": label})
    domain = Domain(
        {
            "x": Numeric(0, 1, bins=8),
            "colour": Categorical(["red", "blue"]),
            "label": Categorical(["a", "b", "c"]),
        }
    )
    problem = tables.Problem("rows", rows, domain)
    kinds = ("tree", "svm", "logistic")
    with pytest.warns(UserWarning):
        found = classification._cell(problem, 50.0, 0, kinds)
    assert set(found["svm"]) == {
        *classification.RELEASES, *classification.CLASSIFIERS["svm"], "PrivateERM"
    }  # fmt: skip
    assert set(found["tree"]) == {*classification.RELEASES, *classification.CLASSIFIERS["tree"]}
    lines = classification._cell(problem, np.inf, 0, kinds)
    for kind in kinds:
        assert lines[kind]["true rows"] < 0.2 < lines[kind]["majority"]
        assert found[kind]["PrivPfC"] < 0.2
    features = classification.features(domain.select(["x", "colour"]), rows)
    assert features.shape == (400, 3) and abs(features).max() <= 1
    assert np.array_equal(features[:, 1:].sum(axis=1), np.ones(400))


background = pytest.importorskip("benchmarks.reproduce.background")


@over("epsilon", [0.1, 1.0, 4.0])
def test_randomised_response_has_the_law_of_its_epsilon(epsilon):
    k, n = 5, 200_000
    truth = background.truth_share(epsilon, k)
    lie = (1 - truth) / (k - 1)
    assert truth / lie == pytest.approx(np.exp(epsilon))
    rng = np.random.default_rng(0)
    told = background.randomised_response(np.full(n, 2), k, epsilon, rng)
    # Each share within five standard errors: a false alarm in a million for a code.
    for code, share in enumerate(np.bincount(told, minlength=k) / n):
        expected = truth if code == 2 else lie
        assert abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / n)
    codes = np.repeat(np.arange(k), [50, 100, 0, 500, 350])
    found = np.mean(
        [background.randomised_counts(codes, k, epsilon, rng) for _ in range(2_000)], axis=0
    )
    spread = np.sqrt(len(codes) * lie * (1 - lie)) / (truth - lie) + np.sqrt(500)
    assert np.abs(found - np.bincount(codes, minlength=k)).max() <= 5 * spread / np.sqrt(2_000)


def teller(counts, threshold=10, cutoff=3, epsilon=1000):
    return background.History(
        np.array(counts), sum(counts), Fraction(epsilon), threshold, cutoff, noise_source(0)
    )


def test_a_history_pays_only_for_what_it_cannot_answer():
    # Almost no noise. The flat guess is right for halves of an even histogram.
    even = teller([100] * 4)
    for query in ([True, True, False, False], [False, True, True, False]):
        assert even.answer(np.array(query)) == 200
    assert even.left == 3
    # Off by 150: the first query is paid for, and answered from then on.
    uneven = teller([250, 50, 50, 50])
    first = np.array([True, False, False, False])
    assert uneven.answer(first) == 250 and uneven.left == 2
    assert uneven.guess.round().tolist() == [250, 50, 50, 50]
    assert uneven.answer(first) == 250 and uneven.left == 2
    assert uneven.answer(np.array([False, True, True, False])) == 100 and uneven.left == 2


def test_a_history_ends_with_its_budget_and_spends_epsilon(monkeypatch):
    spent = []

    class Watched(background.SparseVector):
        def __init__(self, epsilon, *args, **kwargs):
            spent.append(epsilon)
            super().__init__(epsilon, *args, **kwargs)

    def watch(value, epsilon, **kwargs):
        spent.append(epsilon)
        return 0 if value else 400

    monkeypatch.setattr(background, "SparseVector", Watched)
    monkeypatch.setattr(background, "discrete_laplace", watch)
    # Answers that are always wrong: every query is paid for, until nothing is left.
    wrong = teller([400, 0, 0, 0])
    for place in range(8):
        wrong.answer(np.arange(4) == place % 2)
    assert wrong.left == 0 and sum(spent) == 1000 and len(spent) == 4


def test_a_record_moves_what_a_history_tests_by_one():
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.integers(0, 30, size=6)
        other = counts + np.eye(6, dtype=int)[rng.integers(6)]
        query, guess = rng.random(6) < 0.5, int(rng.integers(100))
        change = abs(int(other[query].sum()) - guess) - abs(int(counts[query].sum()) - guess)
        assert abs(change) <= 1


def test_the_enhanced_mechanism_has_the_smaller_range():
    from skdp.algorithms.additive import UNIT
    from skdp.algorithms.linear import TUNING

    for rounds in (8, 30, 120):
        steps = np.geomspace(TUNING.first, TUNING.last, rounds)
        # No loss of a record is larger, and no two candidates of a round differ by as much.
        assert background.loss_range(rounds) >= UNIT * np.logaddexp(0, steps.sum()) - 1
        assert background.loss_range(rounds) > 2 * UNIT * steps.max()
    calls = []

    def choose(scores, epsilon, score_range, *, random_state):
        calls.append((epsilon, score_range))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background, "exponential", choose)
        background._with_losses(1.0, np.zeros(3), Fraction(1, 9), 5, random_state=None)
    assert calls == [(Fraction(1, 9), background.loss_range(9))]


erm = pytest.importorskip("benchmarks.reproduce.private_erm")


def two_clouds(n=500, size=3):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, n)
    return rng.normal(size=(n, size)) + 0.5 * labels[:, None], labels


@over("name", ["logistic", "huber"])
def test_constants_of_the_losses(name):
    loss = erm.LOSSES[name]
    margins = np.linspace(-5, 5, 100_001)
    losses, slopes = loss.at(margins)
    assert slopes.min() >= -1 and slopes.max() <= 0
    np.testing.assert_allclose(np.gradient(losses, margins)[1:-1], slopes[1:-1], atol=2e-4)
    curvature = np.diff(slopes) / np.diff(margins)
    assert curvature.max() == pytest.approx(loss.curvature, rel=1e-6) and curvature.min() >= 0


def test_the_huber_loss_is_the_hinge_away_from_its_corner():
    losses, _ = erm.LOSSES["huber"].at(np.array([-3.0, 0.5, 1.0, 1.5, 4.0]))
    # In the middle h / 4, with the h of 1/2.
    np.testing.assert_allclose(losses, [4, 0.5, 0.125, 0, 0])


def test_noise_and_curvature_share_epsilon():
    for penalty in (0.01, 1.0, 100.0):
        for curvature in (0.25, 1.0):
            rate, raised = erm.scales(0.5, curvature, penalty)
            assert rate + np.log1p(curvature / raised) == pytest.approx(0.5)
            assert raised >= penalty and rate >= 0.25


def test_at_half_of_epsilon_the_constants_are_those_of_the_paper():
    """Algorithm 2 for a mean of n losses, where a record is replaced."""
    n, epsilon, curvature = 1_000, 0.4, 0.25
    weight = 0.01
    left = epsilon - np.log(1 + 2 * curvature / (n * weight) + (curvature / (n * weight)) ** 2)
    assert left > 0
    rate, penalty = erm.scales(epsilon / 2, curvature, n * weight)
    assert rate == pytest.approx(left / 2) and penalty == n * weight
    small = 1e-6
    extra = curvature / (n * np.expm1(epsilon / 4)) - small
    rate, penalty = erm.scales(epsilon / 2, curvature, n * small)
    assert rate == pytest.approx(epsilon / 4) and penalty == pytest.approx(n * (small + extra))


def test_the_norm_of_the_noise_is_gamma_and_its_direction_uniform():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(2)
    drawn = np.stack([erm.noise(4, 0.5, rng) for _ in range(4_000)])
    # The seed is fixed: these pass or fail for good.
    norms = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(norms, stats.gamma(4, scale=2).cdf).pvalue > 0.01
    directions = drawn / norms[:, None]
    assert abs(directions.mean(axis=0)).max() < 4 * (1 / 4 / 4_000) ** 0.5


@over("name", ["logistic", "huber"])
def test_one_record_changes_the_density_of_a_model_by_at_most_epsilon(name):
    """Of the noise that makes a vector the minimum, times the determinant of the curvature."""
    loss, epsilon = erm.LOSSES[name], 0.3
    rate, penalty = erm.scales(epsilon, loss.curvature, 5.0)
    features, labels = two_clouds(40)
    signed = erm.unit_rows(features) * (2 * labels - 1)[:, None]

    def log_density(rows, weights):
        _, slopes = loss.at(rows @ weights)
        step = 1e-5
        after, before = (loss.at(rows @ weights + each)[1] for each in (step, -step))
        curved = (rows * ((after - before) / (2 * step))[:, None]).T @ rows
        noise = slopes @ rows + penalty * weights
        return (
            -rate * np.linalg.norm(noise)
            + np.linalg.slogdet(curved + penalty * np.eye(len(weights)))[1]
        )

    rng = np.random.default_rng(3)
    largest = 0.0
    for _ in range(300):
        weights = rng.normal(size=4) * rng.exponential(2)
        change = log_density(signed, weights) - log_density(signed[1:], weights)
        largest = max(largest, abs(change))
    assert epsilon / 3 < largest <= epsilon + 1e-6


def test_with_a_large_epsilon_the_model_is_the_regularised_minimum():
    linear = pytest.importorskip("sklearn.linear_model")
    features, labels = two_clouds()
    found = erm.PrivateERM(1e9, [0, 1], penalty=2.0).fit(features, labels)
    plain = linear.LogisticRegression(C=1 / 2, fit_intercept=False, tol=1e-8)
    plain.fit(erm.unit_rows(features), labels)
    np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-3)
    assert np.mean(found.predict(features) == labels) > 0.6

    found = erm.PrivateERM(1e9, [0, 1], loss="huber", penalty=2.0).fit(features, labels)
    signed = erm.unit_rows(features) * (2 * labels - 1)[:, None]
    _, slopes = erm.LOSSES["huber"].at(signed @ found.coef_[0])
    np.testing.assert_allclose(slopes @ signed + 2 * found.coef_[0], 0, atol=1e-2)


def test_classes_share_epsilon(monkeypatch):
    features, labels = two_clouds(60)
    paid = []
    inner = erm.scales

    def scales(epsilon, *others):
        paid.append(epsilon)
        return inner(epsilon, *others)

    monkeypatch.setattr(erm, "scales", scales)
    three = erm.PrivateERM(0.6, ["x", "y", "z"]).fit(features, np.array(["x", "z"])[labels])
    assert three.coef_.shape == (3, 4) and set(three.predict(features)) <= {"x", "y", "z"}
    two = erm.PrivateERM(0.6, [1, 0]).fit(features, labels)
    assert two.coef_.shape == (1, 4)
    assert paid == [pytest.approx(0.2), 0.6]


def test_rows_lie_in_the_unit_ball():
    rows = erm.unit_rows([[3.0, 4.0], [0.0, 0.0], [-1e9, 1e-3]])
    assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12
    np.testing.assert_allclose(rows[1], [1, 0, 0])


def test_errors_of_hdmm_are_those_of_its_strategies():
    """Against explicit matrices."""
    hdmm = pytest.importorskip("benchmarks.reproduce.hdmm")
    for kind, queries in {
        "ranges": [(a, b) for a in range(4) for b in range(a, 4)],
        "prefixes": [(0, b) for b in range(4)],
        "marginals": [(a, a) for a in range(4)],
        "random ranges": [(min(u, v), max(u, v)) for u in range(4) for v in range(4)],
    }.items():
        rows = np.array([[a <= i <= b for i in range(4)] for a, b in queries], dtype=float)
        np.testing.assert_allclose(hdmm.GRAMS[kind](4), rows.T @ rows / len(rows))
    gram = hdmm.GRAMS["ranges"](64)
    error, inverse = hdmm.p_identity(gram)
    assert error == pytest.approx((gram * inverse).sum(), rel=1e-4)
    # The trace is the error where every cell is counted.
    assert error < 0.9 * np.trace(gram)
    # Each search stops where it is flat; how near the minimum depends on SciPy's version.
    assert hdmm.product([gram], 1) == pytest.approx(error, rel=1e-3)

    grams = [hdmm.GRAMS["ranges"](3), hdmm.GRAMS["prefixes"](2)]
    sums = [np.ones((3, 3)), np.ones((2, 2))]
    asked = (np.kron(grams[0], sums[1]) + np.kron(sums[0], grams[1])) / 2
    kept = [np.ones((6, 6)), np.kron(np.eye(3), sums[1]), np.kron(sums[0], np.eye(2))]
    shares = np.linspace(0.05, 0.9, 35)
    trials = [(1 - a - b, a, b) for a in shares for b in shares if a + b <= 1]
    best = min(
        np.trace(asked @ np.linalg.pinv(sum(w * w * q for w, q in zip(trial, kept, strict=True))))
        for trial in trials
    )
    assert hdmm.marginals(grams, 1) <= best * (1 + 1e-9)
    assert hdmm.marginals(grams, 1) == pytest.approx(best, rel=0.01)


def test_dawa_flattens_a_square_along_neighbours():
    figures = pytest.importorskip("benchmarks.reproduce.hdpview")
    order = figures.hilbert(8)
    assert sorted(order) == list(range(64))
    places = np.stack(np.divmod(order, 8), axis=1)
    assert (np.abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()


def test_squared_errors_of_all_queries_are_those_of_every_query():
    figures = pytest.importorskip("benchmarks.reproduce.hdpview")
    rng = np.random.default_rng(0)
    table = figures.CountTable.from_codes(rng.integers(0, (3, 4, 2), size=(50, 3)), (3, 4, 2))
    model = figures.Dense(rng.normal(size=(3, 4, 2)))
    error = model.cells - table.dense()
    squares = []
    for pair in itertools.combinations(range(3), 2):
        (left,) = {0, 1, 2} - set(pair)
        part = error.sum(axis=left)
        ends = [[(a, b) for b in range(n + 1) for a in range(b)] for n in part.shape]
        squares.append(np.mean([part[a:b, c:d].sum() ** 2 for a, b in ends[0] for c, d in ends[1]]))
    found = figures.view_errors(model, table, ["ranges"])["ranges"]
    assert found == pytest.approx(np.sqrt(np.mean(squares)))


def test_cells_of_the_dissertation_stand_beside_ours():
    svt = pytest.importorskip("benchmarks.reproduce.svt")
    assert svt._paper("zipf", 0.1, 50, "EM") == 0.082
    assert np.isnan(svt._paper("zipf", 0.5, 50, "S 1:c^2/3"))
    assert np.isnan(svt._paper("retail", 0.1, 50, "EM"))
    rows = pd.DataFrame({"set": "zipf", "paper": [0.9, 0.5], "mean": [0.901, 0.5]})
    for std, same in ((0.01, True), (0.0, False)):
        (held,) = svt._beside(rows.assign(std=std, runs=100))[1].values()
        assert held == same
