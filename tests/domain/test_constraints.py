"""Rules between columns: what they mean, for codes and values, in memory and in engines."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loops import over
from ruled import RULED, lawful_rows, violations

import skdp
from skdp import Categorical, Domain, DomainError, Numeric, at_most, derived, forbid
from skdp.domain import Zeros
from skdp.release import parse

#: Every kind of rule at once.
LOANS = Domain(RULED, structure=[forbid("state == 'B' and amount >= 900")])


def test_measured_columns_are_those_that_follow_from_nothing():
    assert LOANS.columns[:3] == ("id", "amount", "balance") and len(LOANS.columns) == 10
    measured = [name for name in LOANS.columns if name not in ("id", "state", "old")]
    assert LOANS.names == tuple(measured)
    with pytest.raises(DomainError, match="not measured: it follows from other columns"):
        LOANS.index("state")
    plain = LOANS.without_structure()
    assert plain.names == LOANS.columns[1:] and not plain.structure.rules


def test_a_record_that_breaks_a_rule_is_skipped_and_nothing_raises():
    frame = lawful_rows(500, LOANS)
    codes = LOANS.encode(frame)
    assert tuple(frame.columns) == LOANS.columns and codes.min() >= 0 and violations(frame) == 0
    with pytest.warns(Warning, match="not private"):
        assert LOANS.check(frame).clean
    broken = frame.copy()
    broken.loc[0, ["city", "state", "amount", "balance"]] = ["a1", "A", 10.0, 20.0]
    broken.loc[1, ["type", "joint"]] = ["single", 3.0]
    broken.loc[2, "state"] = "nonsense"  # not looked at
    kept = (LOANS.encode(broken) >= 0).all(axis=1)
    assert (LOANS.encode(broken)[:2] == -1).all() and kept[2:].all()
    with pytest.warns(Warning, match="not private"):
        report = LOANS.check(broken)
    assert report.n_skipped == 2 and not report.clean
    assert report.rules["breaks"].to_list() == [1, 1, 0, 0]


def test_derived_columns_and_identifiers_may_be_absent():
    frame = lawful_rows(200, LOANS)
    codes = LOANS.encode(frame)
    measured, array = frame[list(LOANS.names)], frame.to_numpy(dtype=object)
    for rows in (measured, frame.drop(columns="state"), array, measured.to_numpy(dtype=object)):
        assert np.array_equal(LOANS.encode(rows), codes)
    with pytest.raises(DomainError, match=r"9 columns without names, but the domain declares 7"):
        LOANS.check_schema(array[:, :-1])


def test_select_keeps_rules_whose_columns_are_there():
    part = LOANS.select(["state", "amount", "balance"])
    assert part.names == ("state", "amount", "balance")
    assert part.structure.rules == (at_most("balance", "amount"), LOANS.structure.rules[-1])
    assert LOANS.select(["city", "state"]).names == ("city",)
    assert LOANS.follow_from(["city", "joint"]) == ["state"]


# -- what rules mean, compared with an evaluator that knows values only


COLUMNS = {
    "x": Numeric(0, 12, bins=6),
    "y": Numeric(0, 12, bins=4, nullable=True),
    "z": Numeric(0, 12, bins=12),
    "i": Numeric(0, 11, integer=True, bins=4),
    "j": Numeric(0, 12, integer=True, special=[-1], nullable=True),
    "m": Numeric(0, 12, bins=3, decimals=1, special=[0]),
    "d": Categorical([0, 5, 9]),
    "c": Categorical(["p", "q", "r"], nullable=True),
    "start": skdp.Date("2020-01-01", "2021-12-31", unit="month"),
    "paid": skdp.Date("2020-01-01", "2022-12-31", unit="month", nullable=True),
}
JULY = pd.Timestamp("2021-07-01")
# Conditions, and what they say of values; those of the second list cut bins.
WHOLE = [
    ("x >= 8 and c == 'p'", lambda f: (f.x >= 8) & (f.c == "p")),
    ("c != 'q' and z > 6", lambda f: (f.c != "q") & (f.z > 6)),
    ("j == -1", lambda f: f.j == -1),
    ("i <= 2 and d == 9", lambda f: (f.i <= 2) & (f.d == 9)),
    ("y == None and x > 6", lambda f: f.y.isna() & (f.x > 6)),
    ("y != None and j == None", lambda f: f.y.notna() & f.j.isna()),
    ("start >= '2021-07-01' and paid == None", lambda f: (f.start >= JULY) & f.paid.isna()),
]
CUTTING = [
    ("x > 1 and x < 11 and c == 'p'", lambda f: (f.x > 1) & (f.x < 11) & (f.c == "p")),
    ("i not in [3, 6] and y < 6", lambda f: ~f.i.isin([3, 6]) & (f.y < 6)),
    ("m > 0.3 and i >= 2", lambda f: (f.m > 0.3) & (f.i >= 2)),
    ("y < 5 and c == 'p'", lambda f: (f.y < 5) & (f.c == "p")),
    ("x < 5 or x >= 5 and c == 'q'", lambda f: (f.x < 5) | (f.c == "q")),
    ("x < 11.9999", lambda f: f.x < 11.9999),
]


def truth(mask):
    return np.asarray(mask.fillna(False) if hasattr(mask, "fillna") else mask, dtype=bool)


def ordered(one, other):
    return at_most(one, other), lambda f: truth(f[one] > f[other])


def forbidden(text, holds):
    return forbid(text), lambda f: truth(holds(f))


def test_bins_are_divided_where_rules_cut_them():
    columns = {
        "x": Numeric(0, 12, bins=6),
        "age": Numeric(0, 99, integer=True, bins=10),
        "pay": Numeric(0, 1000),
        "band": Categorical(["child", "adult"]),
    }
    banded = derived("band", "age", {(0, 17): "child", (17, None): "adult"})
    rules = [forbid("x < 5 and pay > 123.4"), banded]
    domain = Domain(columns, structure=rules)
    assert domain["x"].edges.tolist() == [0, 2, 4, 5, 6, 8, 10, 12]
    assert domain["age"].edges.tolist()[:4] == [0, 10, 17, 20]
    # So are the finer codes of columns by themselves, and the bins of "auto" that others have.
    for each, own in zip(domain.fine.attributes, domain.attributes, strict=True):
        assert each.declared.labels() == own.labels()
        assert set(each.labels_of.tolist()) == set(range(own.size))
    assert domain.fine.coarse == domain and domain.fine["x"].size > 500


# Rules that allow a cell each by itself, and no value of it together.
PARTS = {
    "p": Numeric(0, 10, bins=2),
    "q": Numeric(0, 10, bins=4, nullable=True),
    "r": Numeric(edges=[0, 3.5, 10]),
    "i": Numeric(0, 11, integer=True, bins=4),
    "j": Numeric(0, 11, integer=True, bins=4, special=[7]),
    "k": Numeric(5, 9, integer=True, nullable=True),
    "l": Numeric(5, 9, integer=True),
    "c": Categorical(["u", "v"]),
    "d": Categorical([0, 3, 9]),
}
TOGETHER = [
    [ordered("p", "q"), forbidden("p < 3", lambda f: f.p < 3)],
    [
        forbidden("p < 3 and c == 'u'", lambda f: (f.p < 3) & (f.c == "u")),
        forbidden("3 <= p < 5 and d == 0", lambda f: f.p.between(3, 5, "left") & (f.d == 0)),
    ],
    [
        *(ordered("q", "p"), ordered("p", "r")),
        forbidden("p > 1 and p < 4", lambda f: f.p.between(1, 4, "neither")),
    ],
    [
        *(ordered("i", "l"), ordered("i", "j")),
        forbidden("i in [0, 2, 7]", lambda f: f.i.isin([0, 2, 7])),
        forbidden("i == 8 or i < 6 and c == 'v'", lambda f: (f.i == 8) | (f.i < 6) & (f.c == "v")),
    ],
    # 7 is no value of the bin of j that holds 6 and 8.
    [ordered("k", "j"), ordered("j", "l")],
]


@over(
    "columns, rules",
    [
        *((COLUMNS, [forbidden(*each)]) for each in WHOLE + CUTTING),
        *((PARTS, rules) for rules in TOGETHER),
    ],
)
def test_a_cell_is_forbidden_where_no_value_of_it_is_allowed(columns, rules):
    """Cells by brute force over values; drawn values keep the rules inside of cut bins."""
    texts = " ".join(repr(rule) for rule, _ in rules)
    named = {name: each for name, each in columns.items() if re.search(rf"\b{name}\b", texts)}
    domain = Domain(named, structure=[rule for rule, _ in rules])
    plain = Domain(domain.items())
    codes = np.stack(np.unravel_index(np.arange(plain.size), plain.shape), axis=1)
    many = np.repeat(codes, 300, axis=0)

    def broken_in(frame):
        return np.logical_or.reduce([breaks(frame) for _, breaks in rules])

    allowed = ~broken_in(plain.decode(many, 0)).reshape(len(codes), -1).all(axis=1)
    broken = domain.structure.zeros.breaks(codes)
    # A cell may be allowed for so few values that none was drawn, but never the other way round.
    assert not (broken & allowed).any()
    assert np.array_equal(broken, ~allowed) or "x < 11.9999" in texts
    lawful_ones = many[~np.repeat(broken, 300)]
    # With limits from outside too, which give way.
    within = {name: (4.2, 4.4) for name in "pqr" if name in named}
    for drawn in (domain.decode(lawful_ones, 0), domain.decode(lawful_ones, 0, within=within)):
        assert not broken_in(drawn).any()
        assert np.array_equal(plain.encode(drawn), lawful_ones)


#: A rule, and a function that says which rows of values break it.
RULES = st.one_of(
    st.permutations("xyzijm").map(lambda names: ordered(*names[:2])),
    st.just(ordered("start", "paid")),
    st.sampled_from(WHOLE + CUTTING).map(lambda each: forbidden(*each)),
)
# Cut bins and chains at once.
CHAIN = [ordered("x", "z"), ordered("z", "y"), *(forbidden(*each) for each in CUTTING[3:5])]


@settings(max_examples=50, deadline=None)
@example(CHAIN, 0)
@given(st.lists(RULES, min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_rows_that_break_a_rule_are_skipped_and_never_drawn(rules, seed):
    try:
        domain = Domain(COLUMNS, structure=[rule for rule, _ in rules])
    except DomainError as error:
        assert re.search("contradict|circle|grid", str(error))  # noqa: PT017
        return
    rng = np.random.default_rng(seed)
    anything = np.stack([rng.integers(0, size, 2_000) for size in domain.shape], axis=1)
    some = domain.structure.zeros.mended(anything[:200])
    codes = np.concatenate([anything[~domain.structure.zeros.breaks(anything)], some])
    assert not domain.structure.zeros.breaks(codes).any()
    assert len(np.unique(some, axis=0)) > 1 or len(codes) == len(some)
    frame = domain.decode(codes, seed)
    for rule, breaks in rules:
        assert not breaks(frame).any(), rule
    assert np.array_equal(domain.encode(frame), codes)
    # Values that satisfy all rules are never skipped; those that are skipped break one.
    frame = Domain(domain.items()).decode(anything, seed)
    broken = np.logical_or.reduce([breaks(frame) for _, breaks in rules])
    skipped = (domain.encode(frame) < 0).any(axis=1)
    pairs = domain.structure.pairs
    if not {column for column, _ in pairs} & {bound for _, bound in pairs}:
        # A chain also holds where its middle is missing.
        assert not (skipped & ~broken).any()


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
    found = Zeros.of(tables.items())
    assert (found is not None) == expected.any()
    if found is not None:
        assert np.array_equal(found.breaks(rows), ~expected)
        assert not found.breaks(found.mended(rows)).any()
        assert np.array_equal(found.mended(rows)[expected], rows[expected])
        row = found.nearest(dict(enumerate(rows[expected][0])), {})
        assert all(code == rows[expected][0][axis] for axis, code in row.items())
        # Combinations that no row of some table has are forbidden by tables of their own.
        for axes, allowed in tables.items():
            for part in itertools.chain(*(itertools.combinations(axes, n) for n in (1, 2))):
                others = tuple(place for place, axis in enumerate(axes) if axis not in part)
                margin = allowed.any(axis=others)
                for cell in np.argwhere(~margin):
                    broken = np.full((1, len(shape)), -1)
                    broken[:, part] = cell
                    assert found.breaks(broken).all()


# -- numbers


def test_derived_columns():
    # Where entries overlap, the later one counts.
    bands = {(0, 18): "child", (18, 65): "adult", (65, 99): "old", 98: "child"}
    years = {("2020-01-01", "2021-01-01"): "20", ("2021-01-01", None): "21"}
    domain = Domain(
        {
            "age": Numeric(0, 99, integer=True, nullable=True),
            "band": Categorical(["child", "adult", "old"], nullable=True),
            "vote": Categorical([False, True]),
            "start": skdp.Date("2020-01-01", "2021-12-31", unit="month"),
            "year": Categorical(["20", "21"]),
        },
        structure=[
            derived("vote", "band", {"child": False, "adult": True, "old": True, None: False}),
            derived("band", "age", bands),
            derived("year", "start", years),
        ],
    )
    frame = domain.decode([[17, 0], [18, 11], [64, 12], [65, 23], [99, 0], [98, 0], [100, 0]])
    assert frame["band"].to_list()[:6] == ["child", "adult", "adult", "old", "old", "child"]
    assert frame["band"].isna().to_list()[6] and frame["vote"].to_list()[::6] == [False, False]
    assert frame["year"].to_list()[:4] == ["20", "20", "21", "21"]
    assert parse("vote == True and age < 20", domain).products[0][0].sum() == 2


# -- queries and releases


def test_answers_and_rows_of_a_release():
    frame = lawful_rows(9_000, LOANS)
    how = {"target": "type", "privacy_id": "id", "max_rows_per_id": 1}
    estimator = skdp.MarginalSynthesizer(domain=LOANS, epsilon=50, **how).fit(frame)
    # Identifiers are no features.
    X, y, _ = estimator.make_training_set(50, random_state=0)
    assert set(X.columns) == {*LOANS.columns} - {"id", "type"} and set(y) <= {"single", "joint"}
    mean = estimator.synopsis_.mean("age", "state == 'B'", return_interval=True)
    assert mean.value == pytest.approx(frame["age"][frame["state"] == "B"].mean(), abs=1)
    assert "records that satisfy the rules" in mean.guarantee
    for target, message in [("state", "follows from other columns"), ("id", "not a column")]:
        with pytest.raises(DomainError, match=message):
            skdp.MarginalSynthesizer(domain=LOANS, epsilon=1, target=target).fit(frame)


# -- bins that rules cut


@over(
    "x, rules, forbidden_codes",
    [
        # The edge is the next float after 0.3.
        (Numeric(0, 0.4, bins=4), [forbid("x < 0.3 and c == 'u'")], [0, 1, 2]),
        # 1.5 and what is next to it are one edge.
        (Numeric(0, 4, bins=4), [forbid("x<1.5 and c=='v' or x<1.5000000005 and c=='u'")], [0, 1]),
        # No tenth lies from the edge 5/3 up to 1.7.
        (Numeric(0, 5, bins=3, decimals=1), [forbid("1.7 <= x <= 3.3 and c == 'u'")], [1]),
    ],
)
def test_a_bin_is_forbidden_where_only_rounding_leaves_a_part_of_it(x, rules, forbidden_codes):
    columns = {"x": x, "c": Categorical(["u", "v"]), "y": Numeric(0, 10, bins=1)}
    domain = Domain(columns, structure=rules)
    codes = np.zeros((domain.shape[0], 3), dtype=int)
    codes[:, 0] = np.arange(len(codes))
    assert np.flatnonzero(domain.structure.zeros.breaks(codes)).tolist() == forbidden_codes
