"""The fidelity benchmark: its tables, and every task on a small generated one."""

import json

import pytest

from benchmarks import fidelity
from benchmarks._fidelity_tables import RANGES, stand_in

LABELLED = stand_in("adult")
RANGED = stand_in(RANGES[0])


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
