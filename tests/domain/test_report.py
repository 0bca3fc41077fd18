"""What a domain does to records, and domains as tables."""

import re

import numpy as np
import pandas as pd
import pytest

from skdp import (
    Categorical,
    Date,
    Domain,
    Identifier,
    Numeric,
    PrivacyLeakWarning,
    at_most,
    derived,
    forbid,
)
from skdp.domain.data import editable


def test_check_counts_values_that_are_there_and_not_understood():
    domain = Domain(
        {
            "day": Date("2024-01-01", "2024-12-31", nullable=True),
            "pay": Numeric(0, 10, nullable=True),
            "age": Numeric(0, 99, integer=True),
        }
    )
    frame = pd.DataFrame(
        {
            "day": ["2024-03-01", "01/03/2024", None, "soon"],
            "pay": pd.Series([" ", "?", np.nan, 2], dtype=object),
            "age": pd.Series([30, 31, None, "old"], dtype=object),
        }
    )
    with pytest.warns(PrivacyLeakWarning):
        report = domain.check(frame)
    assert report.columns["not_understood"].tolist() == [2, 1, 1]
    assert report.columns["to_missing"].tolist() == [3, 3, 0]
    assert report.columns["skipped"].tolist() == [0, 0, 2]
    assert not report.clean and "not understood" in repr(report)
    assert "represented as they are: 0 of 3" in repr(report)


def test_report_names_what_changes_with_shares():
    domain = Domain(
        {
            "a": Numeric(0, 9, integer=True),
            "b": Numeric(0, 9, integer=True),
            "c": Categorical(["x", "y"], nullable=True),
        },
        structure=[at_most("a", "b")],
    )
    frame = pd.DataFrame({"a": [1, 5, 3, 20], "b": [2, 3, 4, 30], "c": ["x", None, "z", "y"]})
    with pytest.warns(PrivacyLeakWarning):
        report = domain.check(frame)
    text = repr(report)
    assert "records skipped: 2 of 4 (50%)" in text
    assert "all represented as they are: 0 of 3" in text
    assert "rules that hold in all records: 0 of 1" in text
    assert re.search(r"at_most\('a', 'b'\) +1 \(25%\)", text)
    assert re.search(r"^a +1 \(25%\)", text, re.M) and "missing, kept" in text
    assert not report.clean
    page = report._repr_html_()
    assert "<td" in page and "1 (25%)" in page and "at_most('a'" in page
    with pytest.warns(PrivacyLeakWarning):
        clean = domain.check(frame[:1])
    assert clean.clean and "all represented as they are: 3 of 3" in repr(clean)
    with pytest.warns(PrivacyLeakWarning):
        assert "records skipped: 0 of 0 (0%)" in repr(domain.check(frame[:0]))


def test_structure_is_shown():
    columns = {
        "a": Numeric(0, 9, integer=True),
        "b": Numeric(0, 9, integer=True),
        "g": Categorical(["u", "v"]),
        "s": Categorical(["u1", "v1"]),
        "id": Identifier(),
    }
    rules = [at_most("a", "b"), derived("g", from_="s", map={"u1": "u", "v1": "v"}),
             forbid("a > 3 and s == 'u1'")]  # fmt: skip
    domain = Domain(columns, structure=rules)
    table = domain.describe()
    assert list(table.index) == list(columns)
    assert table.loc["a", "structure"].startswith("at_most('a', 'b'); forbid(")
    assert table.loc["s", "structure"].startswith("derived('g'")
    assert table.loc["b", "structure"] == "at_most('a', 'b')"
    assert table["cells"].tolist() == [10, 10, 0, 2, 0]
    assert Domain.from_json(editable(domain.to_json())) == domain
