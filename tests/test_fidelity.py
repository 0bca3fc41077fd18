"""The fidelity benchmark: its tables, and every task on a small generated one."""

import json

import pytest

from benchmarks import fidelity
from benchmarks._fidelity_tables import RANGES, stand_in

LABELLED = stand_in("adult")
RANGED = stand_in(RANGES[0])


def test_a_generated_table_fits_its_domain():
    for table in (LABELLED, RANGED):
        assert table.generated
        assert table.codes.min() == 0
        assert tuple(table.codes.max(axis=0) < table.domain.shape) == (True,) * 4
    assert RANGED.ranges.counts.sum() == len(RANGED.rows)
    assert (RANGED.ranges.true_answers() <= len(RANGED.rows)).all()


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
