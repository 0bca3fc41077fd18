"""What is refused, and with what words: the table in `refused.toml`. A refusal spends nothing."""

import math
import tomllib
from pathlib import Path

import numpy as np
import polars as pl  # noqa: F401
import pytest
import searched
import sklearn.dummy
from cubes import ROWS as RECORDS
from cubes import make as cube
from estimators import DOMAIN, people
from ruled import RULED, lawful_rows  # noqa: F401
from sklearn.pipeline import make_pipeline  # noqa: F401
from sklearn.preprocessing import StandardScaler  # noqa: F401

import skdp
from skdp import (  # noqa: F401
    hierarchy,
    inspection,
    mechanisms,
    model_selection,
    release,
    tables,
)
from skdp.algorithms import cuboids, dpcube, privbayes  # noqa: F401
from skdp.app.csv import Form, columns_of, open_source
from skdp.release import Boxes, BoxModel, LeafErrorBound
from skdp.release.network import Conditional, NetworkModel

TABLE = tomllib.loads(Path(__file__).with_name("refused.toml").read_text(encoding="utf-8"))
LEDGER = skdp.PrivacyLedger()
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
COLUMNS = {
    **dict.fromkeys("ab", skdp.Numeric(0, 10, bins=5)),
    "n": skdp.Numeric(0, 9, integer=True),
    **dict.fromkeys("ce", skdp.Categorical(["p", "q"])),
    "t": skdp.Categorical(["u", "v"], nullable=True),
    "id": skdp.Identifier(),
    "day": skdp.Date("2020-01-01", "2020-12-31"),
    **dict.fromkeys(["wide", "wide2"], skdp.Numeric(0, 10, bins=10_000)),
}
PERSONS = {"privacy_id": "who", "max_rows_per_id": 2}
NARROW = DOMAIN.select(["age", "sex"])
OWNED = people(30)[["age", "sex"]].assign(who=range(30))
FORK, CUBE = hierarchy.perfect_tree(2, 1), cube().fit(RECORDS)


def book(text):
    """A domain of a code book."""
    Path("book.csv").write_text(text, encoding="utf-8")
    return skdp.Domain.from_schema(Path("book.csv"))


def csv(content, **form):
    """The records of a file."""
    Path("table.csv").write_bytes(content)
    with open_source("table.csv", columns_of(NARROW), Form(**form)) as source:
        return source.rows()


def edited(old, new):
    """A domain of JSON in which something is changed."""
    assert JSON.count(old) == 1
    return skdp.Domain.from_json(JSON.replace(old, new))


def ruled(*rules):
    return skdp.Domain(COLUMNS, structure=[*rules])


def equal(names):
    """Two columns are not the first two of four values together, nor the last two."""
    return skdp.forbid("{0}=='{2}' and {1}=='{3}' or {0}=='{4}' and {1}=='{5}'".format(*names))


def line(law=None, columns="xz", bins=10):
    """A release of one box."""
    domain = skdp.Domain(dict.fromkeys(columns, skdp.Numeric(0, 10, bins)))
    box = Boxes([[0] * len(domain)], [domain.shape])
    return skdp.Synopsis(domain, BoxModel(box, [5], domain.shape, law))


LINE = line()


def two_boxes(lower=((0,), (2,)), upper=((2,), (4,)), counts=(1, 2), law=None):
    return BoxModel(Boxes(lower, upper), counts, (4,), law)


def errors(**changed):
    facts = {"theta": 1, "delta": 1, "lam": 1, "depth": [1], "test_number": [1], "step": 0.0}
    return LeafErrorBound(**{**facts, **changed})


def node(axis, parents, rows=2):
    return Conditional(axis, parents, (None,) * len(parents), np.ones((rows, 2)) / 2)


def network(*nodes):
    return NetworkModel((2, 2), nodes, 1.0)


def fit(estimator, *data):
    return estimator.set_params(ledger=LEDGER).fit(*(data or (people(30),)))


def validated(estimator, X=searched.X, y=searched.Y, **how):
    given = {"epsilon": 1, "ledger": LEDGER, **how}
    return model_selection.private_cross_val_score(estimator, X, y, **given)


def score(*given, **how):
    return model_selection.private_score(*given, **{"epsilon": 1, "ledger": LEDGER, **how})


def quantiles(**changed):
    given = {"values": [1, 2], "quantiles": 0.5, "epsilon": 0.5, "domain": (0, 9), "step": 1}
    return skdp.private_quantiles(**given | changed, ledger=LEDGER)


def items(baskets, k=1, **how):
    given = {"epsilon": 1, "max_items": 2, "ledger": LEDGER, **how}
    return skdp.most_frequent_items(baskets, k, ["a", "b"], **given)


LINE_OF_9 = skdp.Numeric(0, 9, bins=9)
PUBLIC = {name: getattr(skdp, name) for name in skdp.__all__}
MODULES = [vars(each) for each in (math, tables, release, model_selection, sklearn.dummy, searched)]
NAMES = {name: held for each in (*MODULES, PUBLIC, globals()) for name, held in each.items()}


@pytest.mark.parametrize("kind", TABLE)
def test_what_is_refused_says_what_is_wrong(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for expression, message in TABLE[kind]:
        with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
            pytest.fail(f"nothing refuses {expression}: {eval(expression, NAMES)!r:.200}")
    assert LEDGER.spent == 0
