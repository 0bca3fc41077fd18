"""The fidelity benchmark: its tables, and every task on a small generated one."""

import json

import numpy as np
import pytest

from benchmarks import fidelity
from benchmarks._fidelity_releases import release
from benchmarks._fidelity_tables import RANGES, load, stand_in, subsample

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


def test_methods_have_parameters_and_unknown_ones_are_named():
    made = release("MarginalSynthesizer(max_order=2)", LABELLED, 1.0, 0)
    assert made.max_order == 2
    assert abs(len(made.sample(random_state=0)) - len(LABELLED.rows)) < 100
    with pytest.raises(SystemExit, match="no synthesizer 'TripleSynthesizer'.*HDPViewSynthesizer"):
        release("TripleSynthesizer", LABELLED, 1.0, 0)
    with pytest.raises(SystemExit, match="not understood"):
        release("MarginalSynthesizer(max_order=", LABELLED, 1.0, 0)


def test_scores_of_a_bootstrap_are_below_those_of_the_records():
    found = list(fidelity.nist(LABELLED, "bootstrap", 1.0, 3))
    assert [each.measure for each in found] == ["2-way score", "3-way score"]
    assert 800 < found[1].value < found[0].value < 1000
    assert 0 < found[0].standard_error < 10


def test_results_have_means_and_standard_errors():
    result = fidelity.Result.of("nist", "m", 1.0, "score", [900, 902])
    assert (result.value, result.standard_error, result.runs) == (901, 1, 2)
    assert np.isnan(fidelity.Result.of("nist", "m", 1.0, "score", [900]).standard_error)


@pytest.mark.parametrize("task", fidelity.TASKS)
def test_every_task_learns_from_a_release(task, tmp_path):
    out = tmp_path / "results.json"
    given = [task, "--small", "--runs", "2", "--epsilon", "100", "--out", str(out)]
    results = fidelity.main(given)
    assert {each.task for each in results} == {task} and len(results) == 2
    written = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert [each["value"] for each in written] == [each.value for each in results]
    if task == "nist":
        assert min(each.value for each in results) > 900
    else:
        assert max(each.value for each in results) < 0.25


def test_unknown_tasks_and_tables_are_refused(capsys):
    with pytest.raises(SystemExit):
        fidelity.main(["nothing"])
    assert "nothing" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="no table 'nothing'"):
        load("nothing")
