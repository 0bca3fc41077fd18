"""The fidelity benchmark: every task on a small generated table."""

import json

import numpy as np
import pytest

import skdp
from benchmarks import (
    _fidelity_curves,
    _fidelity_learners,
    _fidelity_speed,
    fidelity,
    scores,
)
from benchmarks._fidelity_learners import LEARNERS, folds, naive_bayes, score, trained
from benchmarks._fidelity_releases import BASELINES, Unsupported, attempts, release
from benchmarks._fidelity_results import Options, ratio_of, result_of
from benchmarks._fidelity_tables import RANGES, TABLES, load, stand_in, subsample

LABELLED = stand_in("adult")
RANGED = stand_in(RANGES[0])


def test_a_generated_table_fits_its_domain():
    for table in (LABELLED, RANGED):
        assert table.generated
        assert table.codes.min() == 0
        assert tuple(table.codes.max(axis=0) < table.domain.shape) == (True,) * 4
    assert RANGED.ranges.counts.sum() == len(RANGED.rows)
    assert (RANGED.ranges.true_answers() <= len(RANGED.rows)).all()


def test_part_of_a_table_has_the_counts_of_its_rows():
    some = subsample(RANGED, 100, seed=0)
    assert len(some.rows) == some.ranges.counts.sum() == 100
    assert (some.ranges.true_answers() <= 100).all()


def test_a_table_without_a_file_is_replaced_and_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("benchmarks._data.ROOT", tmp_path)
    load.cache_clear()
    try:
        assert load("nist").generated
    finally:
        load.cache_clear()
    assert "national2019.csv.gz" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["MarginalSynthesizer", *BASELINES])
def test_releases_agree_with_the_truth_at_a_large_epsilon(name):
    if name == "privtree":
        with pytest.raises(Unsupported, match="two columns"):
            release(name, LABELLED, 1.0, 0)
        return
    made = release(name, LABELLED, 1000.0, 0)
    codes = made.codes(1)
    assert codes.shape[1] == 4 and abs(len(codes) - len(LABELLED.rows)) <= 1
    assert list(made.frame(1, 10).columns) == list(LABELLED.rows.columns)
    total = made.answer([{0: np.ones(20)}])[0]
    assert abs(total - len(LABELLED.rows)) <= 1
    assert abs(made.view([0, 1]).sum() - total) <= 1e-6 * total
    if name in ("true", "cells"):
        exact = release("true", LABELLED, 1.0, 0).view([0, 3])
        np.testing.assert_allclose(made.view([0, 3]), exact)


def test_a_bootstrap_differs_from_the_rows_and_between_seeds():
    truth, shape = LABELLED.codes, LABELLED.domain.shape
    drawn = [release("bootstrap", LABELLED, 1.0, seed).codes(0) for seed in (0, 1)]
    assert not np.array_equal(*drawn)
    assert 900 < scores.k_marginal(truth, drawn[0], shape) < 1000


def test_methods_have_parameters_and_unknown_ones_are_named():
    made = release("MarginalSynthesizer(max_order=2)", LABELLED, 1.0, 0)
    assert made.estimator.max_order == 2
    with pytest.raises(SystemExit, match="no synthesizer 'TripleSynthesizer'.*independent"):
        release("TripleSynthesizer", LABELLED, 1.0, 0)
    with pytest.raises(SystemExit, match="not understood"):
        release("MarginalSynthesizer(max_order=", LABELLED, 1.0, 0)


def test_what_is_refused_is_left_out(capsys):
    assert list(attempts("privtree", LABELLED, 1.0, 3)) == []
    assert "left out" in capsys.readouterr().out


@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_learn_from_the_rows_and_from_a_release(learner):
    train, test = next(folds(LABELLED, 1))
    assert len(train.rows) + len(test.rows) == len(LABELLED.rows)
    for name in ("true", "MarginalSynthesizer"):
        made = release(name, train, 100.0, 0, target="class")
        found = score(trained(learner, made, 0), test)
        assert found.error < 0.25 and found.auc > 0.75


def test_middles_of_bins_stand_for_all_of_their_values():
    table = load("adult", small=True)
    declared = dict(zip(table.domain.names, table.domain.attributes, strict=True))
    coarse = skdp.Domain({**declared, "size": skdp.Numeric(0, 20, bins=4)})
    table = table._replace(domain=coarse)
    found = _fidelity_learners._in_middles(table, release("true", table, 1.0, 0).frame(0))
    assert sorted(found["size"].unique()) == [2.5, 7.5, 12.5, 17.5]
    np.testing.assert_array_equal(coarse.encode(found), table.codes)


def test_class_histograms_classify():
    train, test = next(folds(LABELLED, 1))
    found = score(naive_bayes(train, 10.0, 0), test)
    assert found.error < 0.25 and found.auc > 0.75


def test_results_compare_with_their_targets():
    real = LABELLED._replace(generated=False)
    high = result_of("nist", real, "m", 1.0, "score", [900, 902], 901, higher_is_better=True)
    assert high.value == 901 and high.standard_error == 1 and high.met
    assert not result_of("ranges", real, "m", 1.0, "error", [900, 902], 900).met
    assert result_of("ranges", LABELLED, "m", 1.0, "error", [900, 902], 900).met is None
    ratio = ratio_of("single", real, "m", 1.0, "ratio", [3.0, 5.0], [2.0, 2.0], 1.0)
    assert ratio.value == 2 and ratio.standard_error == 0.5 and not ratio.met
    assert ratio_of("s", real, "m", 1.0, "r", [3.0, 5.0], [2.0, 2.0], 1.0, allowed_errors=2).met
    assert ratio_of("s", real, "m", 1.0, "r", [0.0], [0.0], 1.0).met


QUICK = {
    "nist": [],
    "adult": [],
    "label": ["--table", "phoneme"],
    "ranges": ["--table", "hdpview/small", "hdpview/adult"],
    "single": ["--table", "nist"],
    "convergence": ["--table", "nist"],
    "dominance": ["--table", "phoneme", "hdpview/small"],
    "curves": ["--table", "hdpview/small"],
    "speed": ["--table", "adult"],
}


@pytest.mark.parametrize("task", fidelity.TASKS)
def test_every_task_runs_and_adds_to_a_file(task, tmp_path, monkeypatch):
    # A process of its own spends seconds on imports.
    monkeypatch.setattr(_fidelity_speed, "_in_a_process", _fidelity_speed.cost)
    out = tmp_path / "results.json"
    given = [task, "--small", "--runs", "2", "--folds", "2", "--epsilon", "1", "--out", str(out)]
    results = fidelity.main([*given, *QUICK[task]])
    assert results and {each.task for each in results} == {task}
    assert all(each.generated and np.isfinite(each.value) for each in results)
    first = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert [each["value"] for each in first] == [each.value for each in results]
    if task == "nist":
        fidelity.main(given)
        assert len(json.loads(out.read_text(encoding="utf-8"))["results"]) == 2 * len(first)


@pytest.mark.slow
def test_costs_are_measured_in_a_process_of_their_own():
    (fit, *_) = fidelity.main(["speed", "--small", "--runs", "1", "--table", "wide"])
    assert fit.measure == "fit, CPU s" and 0 < fit.value < 60


def test_curves_are_drawn(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    over_epsilon = list(_fidelity_curves.points(RANGED, ["independent", "cells"], [0.1, 1.0], 2))
    assert len(over_epsilon) == 4
    path = _fidelity_curves.draw("a/b", over_epsilon, over_epsilon[:2], ["cells"], tmp_path)
    assert path.name == "fidelity-a-b.png" and path.stat().st_size > 1000


def test_unknown_tasks_and_tables_are_refused(capsys):
    for wrong in (["nothing"], ["nist", "--table", "nothing"]):
        with pytest.raises(SystemExit):
            fidelity.main(wrong)
    assert "nothing" in capsys.readouterr().err
    assert fidelity.main(["nist", "--small", "--table", "adult"]) == []
    assert "nothing was measured" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no table 'nothing'"):
        load("nothing")
    assert Options(tables=("adult",)).names(list(TABLES)) == ["adult"]
