"""Rules between columns: what they mean, for codes and values, in memory and in engines."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from loops import over

from skdp import (
    Categorical,
    Date,
    Domain,
    DomainError,
    GridSynthesizer,
    Identifier,
    MarginalSynthesizer,
    Numeric,
    PrivPfCClassifier,
    Synopsis,
    Text,
    at_most,
    derived,
    forbid,
)
from skdp.domain import structure_from_data
from skdp.domain.constraints import allowed_row, possible_codes
from skdp.release import parse
from skdp.tables import count_rows, read_rows

GRADES = {"A1": "A", "A2": "A", "B1": "B"}


def loans():
    """Every kind of rule at once."""
    return Domain(
        {
            "id": Identifier("C{:04d}"),
            "sub_grade": Categorical(list(GRADES)),
            "grade": Categorical(["A", "B"]),
            "amount": Numeric(0, 100, bins=10),
            "balance": Numeric(0, 100, bins=20),
            "kind": Categorical(["single", "joint"]),
            "joint_income": Numeric(0, 50, bins=5, nullable=True),
            "joint_job": Categorical(["cook", "clerk"], nullable=True),
            "fee": Numeric(0, 10, bins=2),
        },
        structure=[
            derived("grade", "sub_grade", GRADES),
            at_most("balance", "amount"),
            forbid("joint_income != None and kind != 'joint'"),
            forbid("joint_income == None and joint_job != None"),
            forbid("joint_income != None and joint_job == None"),
            forbid("grade == 'B' and amount >= 50"),
        ],
    )


def lawful(domain, n, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n) for size in domain.shape], axis=1)
    return codes[~domain.structure.breaks(codes)]


def test_measured_columns_are_those_that_follow_from_nothing():
    domain = loans()
    assert domain.columns[:3] == ("id", "sub_grade", "grade") and len(domain.columns) == 9
    assert domain.names == tuple(name for name in domain.columns if name not in ("id", "grade"))
    assert "grade" in domain and "id" not in domain
    assert domain["grade"] == domain.declared("grade") == Categorical(["A", "B"])
    assert domain.declared("id") == Identifier("C{:04d}")
    with pytest.raises(DomainError, match="not measured: it follows from other columns"):
        domain.index("grade")
    with pytest.raises(DomainError, match="not in the domain"):
        domain["id"]
    plain = domain.without_structure()
    assert plain.names == domain.columns[1:] and not plain.structure


def test_rows_satisfy_all_rules():
    domain = loans()
    codes = lawful(domain, 20_000)
    frame = domain.decode(codes, 0)
    assert tuple(frame.columns) == domain.columns
    assert (frame["grade"] == frame["sub_grade"].map(GRADES)).all()
    assert (frame["balance"] <= frame["amount"]).all()
    assert frame["joint_income"].isna()[frame["kind"] == "single"].all()
    assert (frame["joint_income"].isna() == frame["joint_job"].isna()).all()
    assert not ((frame["grade"] == "B") & (frame["amount"] >= 50)).any()
    assert frame["id"].iloc[0] == "C0001" and frame["id"].is_unique
    assert np.array_equal(domain.encode(frame), codes)
    with pytest.warns(Warning, match="not private"):
        assert domain.check(frame).clean


def test_decode_refuses_codes_in_empty_cells():
    domain = loans()
    everything = np.zeros((1, len(domain)), dtype=int)
    everything[0, domain.index("balance")] = 19
    with pytest.raises(ValueError, match=r"1 of 1 rows are in cells that are declared empty"):
        domain.decode(everything)


def test_a_record_that_breaks_a_rule_is_skipped_and_nothing_raises():
    domain = loans()
    frame = domain.decode(lawful(domain, 500), 0)
    broken = frame.copy()
    broken.loc[0, "balance"] = 99.0
    broken.loc[1, "joint_job"] = None
    broken.loc[1, "joint_income"] = 3.0
    broken.loc[2, "grade"] = "nonsense"  # not looked at
    kept = (domain.encode(broken) >= 0).all(axis=1)
    assert (domain.encode(broken)[:2] == -1).all() and kept[2:].all()
    with pytest.warns(Warning, match="not private"):
        report = domain.check(broken)
    assert report.n_skipped == 2 and not report.clean
    assert report.rules["breaks"].to_list() == [1, 0, 0, 1, 0, 0]
    assert report.rules["differs"].sum() == 1


def test_derived_columns_and_identifiers_may_be_absent():
    domain = loans()
    frame = domain.decode(lawful(domain, 200), 0)
    codes = domain.encode(frame)
    assert np.array_equal(domain.encode(frame[list(domain.names)]), codes)
    assert np.array_equal(domain.encode(frame.drop(columns="grade")), codes)
    array = frame.to_numpy(dtype=object)
    assert np.array_equal(domain.encode(array), codes)
    assert np.array_equal(domain.encode(frame[list(domain.names)].to_numpy(dtype=object)), codes)
    with pytest.raises(DomainError, match=r"8 columns without names, but the domain declares 7"):
        domain.check_schema(array[:, :-1])
    with pytest.raises(DomainError, match="Not declared: 'other'"):
        domain.check_schema(frame.assign(other=1))


def test_a_domain_with_a_structure_travels():
    domain = loans()
    for again in (Domain.from_json(domain.to_json()), pickle.loads(pickle.dumps(domain))):
        assert again == domain and hash(again) == hash(domain)
    assert "at_most('balance', 'amount')" in repr(domain)
    assert domain != domain.without_structure()
    more = domain.with_attribute("more", Numeric(0, 1))
    assert more.structure == domain.structure and more.columns[-1] == "more"
    added = Domain(domain, structure=[at_most("fee", "amount")])
    assert added.structure.rules[-1] == at_most("fee", "amount")


def test_select_keeps_rules_whose_columns_are_there():
    domain = loans()
    part = domain.select(["grade", "amount", "balance"])
    assert part.names == ("grade", "amount", "balance")
    assert part.structure.rules == (
        at_most("balance", "amount"),
        forbid("grade == 'B' and amount >= 50"),
    )
    assert domain.select(["sub_grade", "grade"]).names == ("sub_grade",)
    assert domain.follow_from(["sub_grade", "fee"]) == ["grade"]


# -- what rules mean, compared with an evaluator that knows values only


NUMBERS = {
    "x": Numeric(0, 12, bins=6),
    "y": Numeric(0, 12, bins=4, nullable=True),
    "z": Numeric(0, 12, bins=12),
    "i": Numeric(0, 11, integer=True, bins=4),
    "j": Numeric(0, 12, integer=True, special=[-1], nullable=True),
    "m": Numeric(0, 12, bins=3, decimals=1, special=[0]),
    "c": Categorical(["p", "q", "r"], nullable=True),
    "d": Categorical([0, 5, 9]),
}
CONDITIONS = [
    ("x < 4", lambda f: f.x < 4),
    ("x >= 8 and c == 'p'", lambda f: (f.x >= 8) & (f.c == "p")),
    ("y < 6", lambda f: f.y < 6),
    ("c in ['p', None]", lambda f: f.c.isna() | (f.c == "p")),
    ("c != 'q' and z > 6", lambda f: (f.c != "q") & (f.z > 6)),
    ("d == 5", lambda f: f.d == 5),
    ("j == -1", lambda f: f.j == -1),
    ("m == 0", lambda f: f.m == 0),
    ("i <= 2 and d == 9", lambda f: (f.i <= 2) & (f.d == 9)),
    ("y == None and x > 6", lambda f: f.y.isna() & (f.x > 6)),
    ("j >= 6", lambda f: f.j >= 6),
]


def truth(mask):
    return np.asarray(mask.fillna(False) if hasattr(mask, "fillna") else mask, dtype=bool)


@st.composite
def ruled(draw):
    """A rule, and a function that says which rows of values break it."""
    kind = draw(st.sampled_from(["at_most", "forbid", "missing"]))
    if kind == "at_most":
        one, other = draw(st.permutations([n for n in NUMBERS if n != "c"]))[:2]
        return at_most(one, other), lambda f: truth(f[one] > f[other])
    if kind == "missing":
        one, other = draw(st.permutations(["y", "j", "c"]))[:2]
        gone = f"{one} == None and {other} != None"
        return forbid(gone), lambda f: np.asarray(f[one].isna() & f[other].notna())
    text, holds = draw(st.sampled_from(CONDITIONS))
    return forbid(text), lambda f: truth(holds(f))


@settings(max_examples=40, deadline=None)
@given(st.lists(ruled(), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_drawn_rows_never_break_a_rule(rules, seed):
    try:
        domain = Domain(NUMBERS, structure=[rule for rule, _ in rules])
    except DomainError as error:
        assert any(  # noqa: PT017
            word in str(error) for word in ("contradict", "circle", "grid")
        )
        return
    codes = lawful(domain, 3_000, seed)
    extra = domain.structure.lawful_codes(
        np.stack([np.random.default_rng(seed).integers(0, n, 200) for n in domain.shape], axis=1)
    )
    codes = np.concatenate([codes, extra])
    assert not domain.structure.breaks(codes).any()
    assert len(np.unique(extra, axis=0)) > 1 or len(codes) == len(extra)
    frame = domain.decode(codes, seed)
    for rule, breaks in rules:
        assert not breaks(frame).any(), rule
    assert np.array_equal(domain.encode(frame), codes)


@settings(max_examples=25, deadline=None)
@given(st.lists(ruled(), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_only_rows_that_break_a_rule_are_skipped(rules, seed):
    """Values that satisfy all rules are never skipped; those that are skipped break one."""
    try:
        domain = Domain(NUMBERS, structure=[rule for rule, _ in rules])
    except DomainError:
        assume(False)
    rng = np.random.default_rng(seed)
    plain = domain.without_structure()
    codes = np.stack([rng.integers(0, size, 2_000) for size in domain.shape], axis=1)
    frame = plain.decode(codes, seed)
    broken = np.logical_or.reduce([breaks(frame) for _, breaks in rules])
    skipped = (domain.encode(frame) < 0).any(axis=1)
    chains = {rule.column for rule, _ in rules if rule.kind == "at_most"} & {
        rule.bound for rule, _ in rules if rule.kind == "at_most"
    }
    if not chains:  # a chain also holds where its middle is missing
        assert not (skipped & ~broken).any()
    exact = [b for rule, b in rules if rule.kind != "at_most"]
    if exact:
        assert skipped[np.logical_or.reduce([breaks(frame) for breaks in exact])].all()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_tables_are_narrowed_to_what_rows_can_have(data):
    shape = data.draw(st.lists(st.integers(1, 3), min_size=3, max_size=4))
    tables = {}
    for _ in range(data.draw(st.integers(1, 4))):
        axes = tuple(
            sorted(data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, 3))])
        )
        bits = data.draw(st.lists(st.booleans(), min_size=27, max_size=27))
        sizes = [shape[axis] for axis in axes]
        tables[axes] = np.array(bits[: int(np.prod(sizes))]).reshape(sizes)
    rows = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    expected = np.logical_and.reduce(
        [allowed[tuple(rows[:, axis] for axis in axes)] for axes, allowed in tables.items()]
    )
    row = allowed_row(tables)
    assert (row is not None) == expected.any()
    if row is not None:
        assert all(allowed[tuple(row[axis] for axis in axes)] for axes, allowed in tables.items())
        possible = possible_codes(tables)
        for axis, codes in possible.items():
            assert codes[np.unique(rows[expected, axis])].all()


# -- bins that a condition cuts


CUT = {
    "x": Numeric(0, 12, bins=3),
    "i": Numeric(0, 11, integer=True, bins=3, nullable=True),
    "d": Numeric(0, 3, bins=2, decimals=1, special=[1]),
    "c": Categorical(["p", "q"]),
}


@over(
    "condition, holds",
    [
        ("x > 1 and x < 11 and c == 'p'", lambda f: (f.x > 1) & (f.x < 11) & (f.c == "p")),
        ("i in [0, 1, 2, 5, 9]", lambda f: f.i.isin([0, 1, 2, 5, 9])),
        ("i not in [3, 6] and x < 6", lambda f: (~f.i.isin([3, 6]) | f.i.isna()) & (f.x < 6)),
        ("d > 0.3 and i >= 2", lambda f: (f.d > 0.3) & (f.i >= 2)),
        ("x < 5 or i < 6", lambda f: (f.x < 5) | (f.i < 6)),
        ("x < 5 or x >= 5 and c == 'q'", lambda f: (f.x < 5) | (f.c == "q")),
        ("x < 11.9999", lambda f: f.x < 11.9999),
    ],
)
def test_a_cell_is_forbidden_where_no_value_of_it_is_allowed(condition, holds):
    """Cells by brute force over values; drawn values keep the rule inside of cut bins."""
    plain, domain = Domain(CUT), Domain(CUT, structure=[forbid(condition)])
    codes = np.stack(np.unravel_index(np.arange(plain.size), plain.shape), axis=1)
    many = np.repeat(codes, 300, axis=0)
    values = plain.decode(many, 0)
    some_allowed = (~truth(holds(values))).reshape(len(codes), -1).any(axis=1)
    broken = domain.structure.breaks(codes)
    # A cell may be allowed for so few values that none was drawn, but never the other way round.
    assert not (broken & some_allowed).any()
    if condition != "x < 11.9999":
        assert np.array_equal(broken, ~some_allowed)
    frame = domain.decode(many[~np.repeat(broken, 300)], 0)
    assert not truth(holds(frame)).any()
    assert np.array_equal(plain.encode(frame), many[~np.repeat(broken, 300)])


def test_drawn_values_keep_cut_bins_and_chains_at_once():
    domain = Domain(
        {"a": Numeric(0, 10, bins=2), "b": Numeric(0, 10, bins=2), "c": Categorical(["p", "q"])},
        structure=[at_most("a", "b"), forbid("b < 3 and c == 'p'"), forbid("a > 8")],
    )
    frame = domain.decode(lawful(domain, 5_000), 0)
    assert (frame["a"] <= frame["b"]).all() and (frame["a"] <= 8).all()
    assert not ((frame["b"] < 3) & (frame["c"] == "p")).any()


# -- numbers


def test_bounds_of_decode_hold_unless_a_rule_would_break():
    columns = {name: Numeric(0, 10, bins=2) for name in "abc"}
    domain = Domain(columns, structure=[at_most("a", "b")])
    codes = np.zeros((1000, 3), dtype=int)
    frame = domain.decode(codes, 0, within={"a": (2, None), "c": (1, np.full(1000, 3.0))})
    assert (frame["a"] >= 2).all() and (frame["a"] <= frame["b"]).all()
    assert frame["c"].between(1, 3).all()
    frame = domain.decode(codes, 0, within={"a": (4, None), "b": (None, 3)})
    assert (frame["a"] <= frame["b"]).all()
    with pytest.raises(ValueError, match="within= is for numbers"):
        Domain({"c": Categorical([1, 2])}).decode([[0]], within={"c": (0, 1)})


def test_chains_of_at_most():
    bins = {"a": 3, "b": 10, "c": 4, "d": 7}
    domain = Domain(
        {name: Numeric(0, 10, bins=n) for name, n in bins.items()},
        structure=[at_most("a", "b"), at_most("b", "c"), at_most("b", "d")],
    )
    frame = domain.decode(lawful(domain, 20_000), 0)
    assert (frame["a"] <= frame["b"]).all()
    assert (frame["b"] <= frame[["c", "d"]].min(axis=1)).all()
    with pytest.raises(DomainError, match="circle"):
        Domain(domain, structure=[at_most("c", "a")])


def test_dates():
    years = {("2020-01-01", "2021-01-01"): "20", ("2021-01-01", None): "21"}
    domain = Domain(
        {
            "start": Date("2020-01-01", "2021-12-31", unit="month"),
            "paid": Date("2020-01-01", "2022-12-31", unit="month", nullable=True),
            "year": Categorical(["20", "21"]),
        },
        structure=[
            at_most("start", "paid"),
            derived("year", "start", years),
            forbid("start >= '2021-07-01' and paid == None"),
        ],
    )
    frame = domain.decode(lawful(domain, 5_000), 0)
    assert ((frame["start"] <= frame["paid"]) | frame["paid"].isna()).all()
    assert (frame["start"].dt.strftime("%y") == frame["year"]).all()
    assert frame["paid"].notna()[frame["start"] >= "2021-07-01"].all()
    assert Domain.from_json(domain.to_json()) == domain


def test_derived_from_numbers():
    bands = {(0, 18): "child", (18, 65): "adult", (65, 99): "old"}
    domain = Domain(
        {
            "age": Numeric(0, 99, integer=True, nullable=True),
            "band": Categorical(["child", "adult", "old"], nullable=True),
            "vote": Categorical([False, True]),
        },
        structure=[
            derived("band", "age", bands),
            derived("vote", "band", {"child": False, "adult": True, "old": True, None: False}),
        ],
    )
    frame = domain.decode([[17], [18], [64], [65], [99], [100]])
    assert frame["band"].to_list()[:5] == ["child", "adult", "adult", "old", "old"]
    assert frame["band"].isna().to_list()[5] and frame["vote"].to_list()[::5] == [False, False]
    assert parse("vote == True and age < 20", domain).products[0][0].sum() == 2


# -- queries and releases


def release(seed=0, **parameters):
    domain = loans()
    frame = domain.decode(lawful(domain, 40_000, seed), seed)
    parameters = {"epsilon": 50, "random_state": 0, **parameters}
    with pytest.warns(UserWarning):
        return frame, MarginalSynthesizer(domain=domain, **parameters).fit(frame)


def test_answers_and_rows_of_a_release(tmp_path):
    frame, estimator = release(privacy_id="id", max_rows_per_id=1)
    rows = estimator.sample(2_000, random_state=1)
    assert rows.columns.to_list() == frame.columns.to_list()
    assert rows["id"].to_list()[:3] == ["C0001", "C0002", "C0003"]
    assert (estimator.domain_.encode(rows) >= 0).all()
    synopsis = estimator.synopsis_
    inside = frame["grade"] == "B"
    assert synopsis.count("grade == 'B'") == pytest.approx(inside.sum(), abs=20)
    assert synopsis.count("grade == 'B'") == synopsis.count("sub_grade == 'B1'")
    assert synopsis.count("grade == 'A' and sub_grade in ['A1', 'B1']") == pytest.approx(
        synopsis.count("sub_grade == 'A1'")
    )
    assert synopsis.count("grade == 'B' and amount >= 50") == 0
    mean = synopsis.mean("fee", "grade == 'B'", return_interval=True)
    assert float(mean) == pytest.approx(frame["fee"][inside].mean(), rel=0.05)
    assert "records that satisfy the rules" in mean.guarantee
    table = synopsis.aggregate(["grade", "kind"], "fee")
    assert table["sum"].sum() == pytest.approx(synopsis.sum("fee"), rel=1e-4)
    view = synopsis.view(["grade", "sub_grade"])
    assert view.shape == (2, 3) and (view[[0, 0, 1], [2, 2, 0]] == 0).all()
    assert np.allclose(view.sum(axis=1), synopsis.view("grade"))
    with pytest.raises(ValueError, match="Column 'id' is an Identifier"):
        synopsis.count({"id": "C0001"})
    synopsis.save(tmp_path / "release.zip")
    assert Synopsis.load(tmp_path / "release.zip").domain == estimator.domain_


def test_identifiers_are_no_features():
    frame, estimator = release(target="kind")
    X, y, _ = estimator.make_training_set(50, random_state=0)
    assert X.columns.to_list() == [c for c in frame.columns if c not in ("id", "kind")]
    assert set(y) <= {"single", "joint"}
    for target, message in [("grade", "follows from other columns"), ("id", "not a column")]:
        with pytest.raises(DomainError, match=message):
            MarginalSynthesizer(domain=loans(), epsilon=1, target=target).fit(frame)


def test_other_releases_take_derived_columns_and_refuse_empty_cells():
    frame = pd.DataFrame({"x": [0, 1, 2, 3] * 50, "g": [0, 0, 1, 1] * 50, "id": range(200)})
    domain = Domain(
        {
            "id": Identifier(),
            "x": Numeric(0, 3, integer=True),
            "g": Categorical([0, 1]),
            "y": Categorical(["n", "p"]),
        },
        structure=[derived("g", "x", {0: 0, 1: 0, 2: 1, 3: 1})],
    )
    y = np.array(["n", "p"] * 100)
    model = PrivPfCClassifier(domain=domain, target="y", epsilon=1, random_state=0).fit(frame, y)
    assert model.predict(frame).shape == (200,)
    full = frame[["id", "x", "g"]].assign(y=y)
    rows = GridSynthesizer(domain=domain, epsilon=1, random_state=0).fit(full).sample(20)
    assert (rows["g"] == rows["x"] // 2).all()
    ruled_ = Domain(domain, structure=[forbid("x == 3 and y == 'n'")])
    with pytest.raises(DomainError, match="MarginalSynthesizer"):
        GridSynthesizer(domain=ruled_, epsilon=1).fit(full)


LAZY = {
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame).lazy(),
    "duckdb": lambda frame: pytest.importorskip("duckdb").from_df(frame),
    "dask": lambda frame: pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3),
}


@pytest.mark.parametrize("engine", LAZY)
def test_engines_skip_the_same_rows(engine):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.uniform(-1, 11, 400),
            "b": rng.uniform(-1, 11, 400),
            "c": rng.choice(np.array(["x", "y", "z", None], dtype=object), 400),
            "d": np.where(rng.random(400) < 0.1, np.nan, rng.integers(-1, 9, 400)),
            "e": rng.integers(0, 5, 400),
            "id": rng.integers(0, 300, 400),
        }
    )
    domain = Domain(
        {
            "a": Numeric(0, 10, bins=4),
            "b": Numeric(0, 10, bins=100),
            "c": Categorical(["x", "y", "z"], nullable=True),
            "d": Numeric(0, 8, integer=True, nullable=True),
            "e": Categorical([0, 1]),
            "id": Identifier(),
        },
        structure=[
            at_most("a", "b"),
            forbid("d != None and c != 'x'"),
            forbid("a >= 2.5 and a < 5 and b >= 5 and d in [1, 5, 7] and c in ['x', 'z']"),
            derived("e", "c", {"x": 0, "y": 1, "z": 1, None: 1}),
        ],
    )
    expected = count_rows(read_rows(frame), domain)
    found = count_rows(read_rows(LAZY[engine](frame)).select(domain.names), domain)
    assert np.array_equal(found.codes, expected.codes)
    assert np.array_equal(found.counts, expected.counts)
    assert 0 < expected.n < 400


# -- declarations that are refused


BASE = {
    "a": Numeric(0, 10, bins=5),
    "b": Numeric(0, 10, bins=5),
    "n": Numeric(0, 9, integer=True),
    "c": Categorical(["p", "q"]),
    "e": Categorical(["p", "q"]),
    "t": Categorical(["u", "v"], nullable=True),
    "id": Identifier(),
    "day": Date("2020-01-01", "2020-12-31"),
    "wide": Numeric(0, 10, bins=10_000),
}
SAME = {"p": "p", "q": "q"}


@over(
    "rules, message",
    [
        ([at_most("a", "zz")], "no column 'zz'"),
        ([at_most("a", "c")], "hold text"),
        ([at_most("a", "id")], "'id' is an Identifier"),
        ([at_most("a", "day")], "different number lines"),
        ([at_most("a", "n"), at_most("n", "b")], "not on one grid"),
        ([at_most("wide", "wide2")], r"100,000,000 cells together.*fewer bins"),
        ([forbid("a > 20")], "covers no cell"),
        ([forbid("a >= 0")], r"contradict each other.*forbid\('a >= 0'\)"),
        ([forbid("a <")], "ends too early"),
        ([forbid("c == 'p' and n < 5"), forbid("c == 'q'"), forbid("n >= 5")], "contradict"),
        ([derived("c", "t", {"u": "p"})], "gaps: the map has no entry for v, missing"),
        ([derived("c", "t", {"u": "p", "v": "p", "w": "q", None: "p"})], "not a declared value"),
        ([derived("c", "n", {(0, 5): "p", (6, None): "q"})], "gaps: the map has no entry for 5"),
        ([derived("c", "n", {(0, 5): "p", (4, None): "q"})], "overlaps"),
        ([derived("c", "n", {(0, 5): "p", (5, None): "x"})], "not a declared value"),
        ([derived("c", "a", {(0, 5): "p", (5, None): "q"})], r"cuts the bin \[4, 6\)"),
        ([derived("c", "day", {("soon", None): "p"})], "'day' must be a date, got 'soon'"),
        ([derived("c", "id", {1: "p"})], "Identifier"),
        ([derived("c", "e", SAME), derived("e", "c", SAME)], "circle: '.' from '.' from"),
        ([derived("c", "e", SAME), derived("c", "n", {(0, None): "p"})], "follows from two rules"),
        ("at_most('a', 'b')", "list of rules"),
        ([{"rule": "at_most"}], "list of rules"),
    ],
)
def test_structures_that_are_refused(rules, message):
    with pytest.raises(DomainError, match=message):
        Domain({**BASE, "wide2": BASE["wide"]}, structure=rules)


@over(
    "make, message",
    [
        (lambda: at_most("a", 5), "name of another column"),
        (lambda: derived("a", "a", {1: 1}), "name of another column"),
        (lambda: derived("a", "b", {}), "and a map"),
        (lambda: derived("a", "b", {(1, 2, 3): 1}), "pair"),
        (lambda: forbid({"a": 3}), "must be a query as text"),
        (lambda: at_most(3, "a"), "name of a column"),
        (lambda: Identifier("x"), "same id"),
        (lambda: Identifier("{:q}"), "cannot write a number"),
        (lambda: Domain({"a": Text()}), "free text"),
        (lambda: Domain({"a": Identifier()}), "no column to measure"),
        (lambda: structure_from_data({}), "list of rules"),
        (lambda: structure_from_data(["at_most"]), "Entry 1 of the structure is no rule"),
        (lambda: structure_from_data([{"rule": "at_most", "column": "a"}]), "'bound'"),
        (lambda: structure_from_data([{"rule": "forbid", "condition": "a", "x": 1}]), "'x'"),
        (lambda: structure_from_data([{"rule": "only_if", "column": "a"}]), "one of at_most, "),
    ],
)
def test_rules_that_are_refused(make, message):
    with pytest.raises(DomainError, match=message):
        make()
