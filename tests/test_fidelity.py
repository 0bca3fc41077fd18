"""The fidelity benchmark on a small generated table."""

import json

from benchmarks import _question_tables, fidelity
from benchmarks._fidelity_tables import subsample


def test_rows_of_a_release_score(tmp_path, monkeypatch):
    out = tmp_path / "results.json"
    table = subsample(_question_tables.skewed(), 1_500, 0)
    monkeypatch.setattr(fidelity, "load", lambda name: table)
    results = fidelity.main(["--runs", "2", "--epsilon", "100", "--out", str(out)])
    assert len(results) == 2 and min(each.value for each in results) > 800
    written = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert [each["value"] for each in written] == [each.value for each in results]
