"""The fidelity benchmark on a small generated table."""

import json

from benchmarks import fidelity


def test_rows_of_a_release_score(tmp_path):
    out = tmp_path / "results.json"
    results = fidelity.main(["--small", "--runs", "2", "--epsilon", "100", "--out", str(out)])
    assert len(results) == 2 and min(each.value for each in results) > 900
    written = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert [each["value"] for each in written] == [each.value for each in results]
