"""``bins="auto"``: the fine public lattice; the few bins and the fine ones of a declaration."""

import hashlib
import json

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp import Categorical, Date, Datetime, DomainError, Identifier, Numeric, derived
from skdp.domain import Domain

RANGES = [
    *((0, 1), (0, 1000), (0, 365), (0, 2e5), (-500, 2000), (-1, 1), (18, 90), (1, 1e5)),
    *((-1000, 0), (0, 0.001), (17.3, 90.04), (1e6, 1e6 + 1), (1e-300, 1e300)),
]


def digest(arrays):
    return hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in arrays)).hexdigest()[:16]


def test_edges_of_a_range_never_change():
    # A release says "auto" and holds counts by code: other edges would give them other meanings.
    text = Domain({"x": Numeric(0, 1000)}).to_json()
    assert json.loads(text)["attributes"][0]["bins"] == "auto" and len(text) < 500
    assert digest(Numeric(*each).edges for each in RANGES) == "cb2ef430a5888393"
    grids = [
        Numeric(0, 1000, decimals=2),
        Numeric(0, 10**7, "auto", integer=True),
        Numeric(0, 5e4, decimals=1, special=[0, 0.3]),
        Numeric(0, 5e4, scale="log", decimals=0),
    ]
    assert digest(each.edges for each in grids) == "2b74b87c21000c37"


finite = st.floats(-1e12, 1e12)


@given(finite, finite)
@settings(max_examples=40, deadline=None)
def test_the_lattice_is_fine_and_increases(one, other):
    low, high = sorted([one, other])
    try:
        attribute = Numeric(low, high)
    except DomainError:
        return  # too narrow for any bins
    edges, largest = attribute.edges, max(abs(low), abs(high))
    assert (edges[0], edges[-1]) == (low, high) and 100 <= attribute.bins <= 1024
    widths = np.diff(edges)
    assert (widths > 0).all()
    # Two percent of the value, a share of the range near zero, and slivers merged at the ends.
    middle = np.abs(edges[:-1] + edges[1:]) / 2
    limit = np.maximum(0.0203 * middle, 0.0021 * largest)
    assert (widths[1:-1] <= limit[1:-1]).all()
    assert widths.max() <= (high - low) / 50


@over(
    "attribute",
    [
        Numeric(0, 1000),
        Numeric(1e6, 1e6 + 1),
        Numeric(edges=[0, 1e-300, 0.5, np.nextafter(0.5, 1), 3]),
        Numeric(-4, 4, bins=65_536),
        Numeric(5, 1e9, bins=3_000),
    ],
)
def test_many_numbers_have_the_bins_of_few(attribute):
    rng = np.random.default_rng(0)
    edges = np.asarray(attribute.edges, dtype=np.float64)
    near = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    even = rng.uniform(edges[0], edges[-1], 40_000)
    x = np.concatenate([near, even, edges[0] + rng.exponential(np.ptp(edges) / 99, 40_000)])
    x = np.clip(x, edges[0], edges[-1])
    wanted = np.searchsorted(edges[1:-1], x, side="right")
    assert (Domain({"x": attribute}).encode(pd.DataFrame({"x": x}))[:, 0] == wanted).all()


def test_few_bins_are_those_that_a_number_declares():
    assert Numeric(0, 2, decimals=1).resolved(32) == Numeric(0, 2, 21, decimals=1)
    # A bin for each tenth would leave that of the special 0 empty.
    assert Numeric(0, 3, decimals=1, special=[0]).resolved(32).bins == 29
    for same in (Numeric(0, 1, 2000), Date("2020-01", "2020-12", "month")):
        assert same.resolved(32) is same
    rule = derived("adult", from_="age", map={(0, 18): "no", (18, 96): "yes"})
    columns = {"id": Identifier(), "age": Numeric(0, 96), "adult": Categorical(["no", "yes"])}
    few = Domain(columns, structure=[rule]).resolved(32)
    assert few.shape == (32,) and few.columns == tuple(columns)
    assert few.structure.rules == (rule,) and few.resolved(32) is few


def test_what_is_measured_of_a_column_does_not_depend_on_bins():
    for bins in (None, 1, 5, 20):
        assert Numeric(0, 19, bins, integer=True).fine.size == 20
    assert Numeric(0, 19, 5, integer=True).fine.labels_of.tolist() == sorted([*range(5)] * 4)
    for one, same in (
        (Numeric(0, 1000, 10), Numeric(0, 1000)),
        (Numeric(edges=[0, 7, 1000], integer=True), Numeric(0, 1000, "auto", integer=True)),
        (Date("2021-01-01", "2021-12-31", bins=12), Date("2021-01-01", "2021-12-31")),
    ):
        fine = one.fine
        assert fine.edges.tolist() == same.edges.tolist()
        assert fine.fine is fine and fine.declared is one and one.declared is one
    flag = Categorical(["a", "b"], nullable=True)
    assert flag.fine is flag and flag.labels_of.tolist() == [0, 1, 2]


@over(
    "attribute",
    [
        Numeric(0, 100, 2000),
        Numeric(0, 99, 5, integer=True, special=[20, 999], nullable=True),
        Numeric(edges=[0, 1 / 3, 10, 100], special=[0, 50]),
        Numeric(0, 5e4, 4, scale="log", decimals=2, special=[0]),
        Date("2010-01-01", "2019-12-31", bins=120, special=["2015-01-01"], nullable=True),
        Datetime("2021-01-01", "2021-12-31", unit="hour", bins=52),
    ],
)
def test_fine_codes_lie_in_the_declared_ones(attribute):
    fine, groups = attribute.fine, attribute.fine.labels_of
    assert attribute.size < fine.size <= max(1.3 * 1024, 1.3 * attribute.size)
    assert len(groups) == fine.size and set(groups.tolist()) == set(range(attribute.size))
    rows = pd.DataFrame(
        {"x": attribute.decode(np.arange(attribute.size).repeat(50), np.random.default_rng(0))}
    )
    codes, finer = (Domain({"x": each}).encode(rows)[:, 0] for each in (attribute, fine))
    assert (groups[finer] == codes).all()
    assert len(fine.labels()) == len(set(fine.labels())) == fine.size
    again = Domain.from_json(Domain({"x": fine}).to_json())["x"]
    assert again == fine != attribute and again.declared == attribute
    assert fine.edges.tolist() == again.edges.tolist()
