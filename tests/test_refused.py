"""What is refused, and with what words: the table in `refused.toml`."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import skdp
from skdp.release import Boxes, BoxModel, Intervals, LeafErrorBound, parse
from skdp.release.network import Conditional, NetworkModel
from skdp.tables import CountTable, as_frame

TABLE = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))
WIDE = skdp.Domain(
    {
        "age": skdp.Numeric(17, 90, integer=True),
        "hours": skdp.Numeric(-3, 20, bins=5, integer=True),
        "sex": skdp.Categorical(["Female", "Male"]),
        "day": skdp.Date("2021-01-01", "2021-12-31"),
    }
)
TREE = skdp.Categorical(["a"], taxonomy=skdp.Taxonomy.from_tree(["a"]))
JSON = skdp.Domain({"n": (0.0, 9.0), "c": TREE}).to_json()
RULED = {
    **dict.fromkeys("ab", skdp.Numeric(0, 10, bins=5)),
    "n": skdp.Numeric(0, 9, integer=True),
    **dict.fromkeys("ce", skdp.Categorical(["p", "q"])),
    "t": skdp.Categorical(["u", "v"], nullable=True),
    "id": skdp.Identifier(),
    "day": skdp.Date("2020-01-01", "2020-12-31"),
    **dict.fromkeys(["wide", "wide2"], skdp.Numeric(0, 10, bins=10_000)),
}


def ruled(*rules):
    return skdp.Domain(RULED, structure=[*rules])


def equal(names):
    """Two columns are not the first two of four values together, nor the last two."""
    return skdp.forbid("{0}=='{2}' and {1}=='{3}' or {0}=='{4}' and {1}=='{5}'".format(*names))


def edited(old, new):
    assert JSON.count(old) == 1
    return skdp.Domain.from_json(JSON.replace(old, new))


def line(law=None, columns="xz", bins=10):
    """A release of one box."""
    domain = skdp.Domain(dict.fromkeys(columns, skdp.Numeric(0, 10, bins)))
    box = Boxes([[0] * len(domain)], [domain.shape])
    return skdp.Synopsis(domain, BoxModel(box, [5], domain.shape, law))


def two_boxes(lower=((0,), (2,)), upper=((2,), (4,)), counts=(1, 2), law=None):
    return BoxModel(Boxes(lower, upper), counts, (4,), law)


def errors(**changed):
    facts = {"theta": 1, "delta": 1, "lam": 1, "depth": [1], "test_number": [1], "step": 0.0}
    return LeafErrorBound(**{**facts, **changed})


def node(axis, parents, rows=2):
    return Conditional(axis, parents, (None,) * len(parents), np.ones((rows, 2)) / 2)


def network(*nodes):
    return NetworkModel((2, 2), nodes, 1.0)


NAMES = {name: getattr(skdp, name) for name in skdp.__all__}
NAMES |= {"np": np, "pd": pd, "pl": pl, "inf": math.inf, "nan": math.nan, "read": as_frame}
NAMES |= {"CountTable": CountTable, "Intervals": Intervals, "parse": parse, "WIDE": WIDE}
NAMES |= {"SAME": {"p": "p", "q": "q"}}
NAMES |= {each.__name__: each for each in (ruled, equal, edited, line, two_boxes, errors)}
NAMES |= {each.__name__: each for each in (node, network)}


@pytest.mark.parametrize("kind", TABLE)
def test_what_is_refused_says_what_is_wrong(kind, tmp_path):
    def book(text):
        (tmp_path / "book.csv").write_text(text, encoding="utf-8")
        return skdp.Domain.from_schema(tmp_path / "book.csv")

    known = NAMES | {"book": book}
    for expression, message in TABLE[kind]:
        with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
            pytest.fail(f"nothing refuses {expression}: {eval(expression, known)!r:.200}")
