"""Samples under conditions, samples that complete given columns, and filled gaps."""

from __future__ import annotations

import operator
import warnings
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from skdp import (
    Categorical,
    Date,
    Datetime,
    Domain,
    DomainError,
    HDPViewSynthesizer,
    Identifier,
    MarginalSynthesizer,
    Numeric,
    PrivBayesSynthesizer,
    PrivTreeSynthesizer,
    Synopsis,
    at_most,
    derived,
    forbid,
)
from skdp.release import Boxes, BoxModel

DOMAIN = Domain(
    {
        "age": Numeric(17, 90, bins=10, integer=True),
        "pay": Numeric(0, 1000, bins=20, nullable=True),
        "kids": Numeric(0, 9, integer=True, nullable=True),
        "sex": Categorical(["F", "M"]),
        "job": Categorical(["a", "b", "c"], nullable=True),
        "size": Categorical(["S", "M", "L"], ordered=True),
        "money": Numeric(0, 5000, bins=12, scale="log", special=[0, -1], decimals=2),
        "day": Date("2020-01-01", "2020-12-31", bins=10, nullable=True),
        "time": Datetime("2020-01-01", "2020-01-31", unit="minute", bins=30),
    }
)


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n) for size in DOMAIN.shape], axis=1)
    codes[:, 4] = np.minimum(codes[:, 4], codes[:, 2])
    codes[:, 6] = np.minimum(codes[:, 6], 13 - codes[:, 2])
    return DOMAIN.decode(codes, rng)


ESTIMATORS = {
    "pairs": MarginalSynthesizer(epsilon=3, domain=DOMAIN),
    "pairs by class": MarginalSynthesizer(epsilon=3, domain=DOMAIN, target="sex"),
    "network": PrivBayesSynthesizer(epsilon=3, domain=DOMAIN, theta=1),
    "boxes": PrivTreeSynthesizer(epsilon=3, domain=DOMAIN),
    "boxes without gaps": HDPViewSynthesizer(epsilon=3, domain=DOMAIN),
}


@pytest.fixture(scope="module", params=ESTIMATORS)
def release(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ESTIMATORS[request.param].set_params(random_state=0).fit(people())


COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
NUMBERS = {
    "age": st.one_of(st.integers(15, 92), st.floats(17, 90).map(lambda x: round(x, 2))),
    "pay": st.one_of(st.floats(-1, 1001), st.sampled_from([0, 50, 100.0, 333.3, 1000])),
    "kids": st.integers(-1, 10),
    "money": st.one_of(
        st.sampled_from([0, -1, 0.01, 19.99, 5000]),
        st.integers(0, 500_000).map(lambda cents: cents / 100),
    ),
    "day": st.dates(date(2019, 12, 25), date(2021, 1, 5)).map(str),
    "time": st.datetimes(datetime(2020, 1, 1), datetime(2020, 2, 1)).map(
        lambda moment: str(moment.replace(second=0, microsecond=0))
    ),
}
TEXTS = {"sex": ["F", "M"], "job": ["a", "b", "c"], "size": ["S", "M", "L"]}


@st.composite
def comparisons(draw):
    """A comparison as text, and the function that tells which rows of a frame satisfy it."""
    column = draw(st.sampled_from(DOMAIN.names))
    single = column in ("age", "kids", "money", "day", "time")
    if column in TEXTS:
        values = st.sampled_from(TEXTS[column])
        signs = ["==", "!=", "in", "not in", *(["<", ">="] if column == "size" else [])]
    else:
        values = NUMBERS[column]
        signs = ["<", "<=", ">", ">=", *(["==", "!=", "in", "not in"] if single else [])]
    sign = draw(st.sampled_from(signs))
    if column in ("age", "kids") and sign not in ("<", "<=", ">", ">="):
        values = values.filter(lambda value: value == int(value)).map(int)
    read = pd.Timestamp if column in ("day", "time") else lambda value: value
    if sign in ("in", "not in"):
        listed = draw(st.lists(values, min_size=1, max_size=4))
        known = [read(value) for value in listed]
        return f"{column} {sign} {listed!r}", lambda f: f[column].isin(known) == (sign == "in")
    value = draw(values)

    def holds(frame):
        series = frame[column]
        order = {"S": 0, "M": 1, "L": 2}
        if column == "size" and sign in ("<", ">="):
            return COMPARISONS[sign](series.map(order), order[value])
        found = COMPARISONS[sign](series.astype(object), read(value))
        # Missing values differ from every value, and are in no order.
        return found.where(series.notna(), sign == "!=").astype(bool)

    return f"{column} {sign} {value!r}", holds


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(parts=st.lists(comparisons(), min_size=1, max_size=4), seed=st.integers(0, 100))
def test_every_row_satisfies_the_condition(release, parts, seed):
    query = " and ".join(text for text, _ in parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            rows = release.sample(80, seed, where=query)
        except ValueError as error:
            # Nothing satisfies it: then the query covers no records either.
            assert "No row can satisfy" in str(error)
            assert release.count(query) == 0
            return
    assert len(rows) == 80 and list(rows.columns) == list(DOMAIN.names)
    assert rows.dtypes.equals(release.sample(1).dtypes)
    for text, holds in parts:
        assert holds(rows).all(), text
    # What the domain makes of the rows is what was drawn: values lie in their bins.
    assert (DOMAIN.encode(rows) >= 0).all()


def test_rows_are_as_many_as_the_release_estimates_and_repeat(release):
    query = "age >= 65 and sex == 'F'"
    rows = release.sample(where=query, random_state=4)
    assert len(rows) == round(release.count(query)) > 0
    pd.testing.assert_frame_equal(rows, release.sample(where=query, random_state=4))
    assert not rows.equals(release.sample(where=query, random_state=5))
    assert len(release.sample(0, where=query)) == 0
    codes = release.synopsis_.sample_codes(200, 1, where=query)
    assert (codes[:, 3] == 0).all() and len(codes) == 200
    # An empty condition is none, bit for bit.
    pd.testing.assert_frame_equal(release.sample(50, 1, where={}), release.sample(50, 1))


def test_numbers_in_a_cut_bin_follow_their_law():
    # False alarm 1e-6 each; one column with one box, so that laws are known.
    domain = Domain({"x": Numeric(0, 10, bins=2), "k": Numeric(0, 99, bins=2, integer=True)})
    release = Synopsis(domain, BoxModel(Boxes([[0, 0]], [[2, 2]]), [100], domain.shape))
    rows = release.sample(20_000, 0, where="1 <= x < 9 and k in [3, 7, 40, 60]")
    assert kstest(rows["x"], "uniform", args=(1, 8)).pvalue > 1e-6
    assert chisquare(rows["k"].value_counts().sort_index()).pvalue > 1e-6
    rows = release.sample(20_000, 0, where="k != 4 and k not in [0, 49, 50] and k < 60")
    assert sorted(rows["k"].unique()) == [k for k in range(60) if k not in (0, 4, 49, 50)]
    assert chisquare(rows["k"].value_counts()).pvalue > 1e-6
    rows = release.sample(20_000, 0, where="k < 60")
    assert chisquare(rows["k"].value_counts()).pvalue > 1e-6


@pytest.mark.parametrize(
    "query, column",
    [
        ("age > 80 and age < 20", "age"),
        ({"pay": (2000, 3000)}, "pay"),
        ("job == 'a' and job == 'b'", "job"),
    ],
)
def test_conditions_that_no_value_satisfies_are_refused(release, query, column):
    with pytest.raises(ValueError, match=f"No row can satisfy.*{column!r}"):
        release.sample(5, where=query)
    assert release.sample(5, where={"pay": (7, 7)})["pay"].eq(7).all()


def test_other_conditions_that_are_refused(release):
    with pytest.raises(ValueError, match="no column 'agee'.*'age'"):
        release.sample(5, where="agee > 3")
    known = people(3)[["age"]]
    with pytest.raises(ValueError, match="where has a condition on 'age', which given holds"):
        release.sample(where="age > 3", given=known)
    with pytest.raises(ValueError, match="given has 3 rows"):
        release.sample(10, given=known)
    assert len(release.sample(3, given=known)) == 3
    with pytest.raises(ValueError, match="does not declare: 'colour'"):
        release.sample(given=known.assign(colour=1))
    with pytest.raises(ValueError, match="columns without names"):
        release.sample(given=np.zeros((3, 2)))
    with pytest.raises(DomainError, match="'age' .* holds durations"):
        release.sample(given=pd.DataFrame({"age": pd.Series([1], dtype="m8[s]")}))
    with pytest.raises(ValueError, match="columns names 'size', but frame has 'age'"):
        release.impute(known, columns=["size"])


def test_given_columns_come_back_as_they_were(release):
    known = people(40, seed=3)[["size", "pay", "kids"]]
    known.index = [f"r{i}" for i in range(40)]
    known.loc["r0", "pay"], known.loc["r1", "size"] = 5000.0, "XXL"
    rows = release.sample(given=known, where="sex == 'F' and age < 40", random_state=0)
    assert list(rows.columns) == list(DOMAIN.names)
    pd.testing.assert_frame_equal(rows[known.columns], known)
    assert (rows["sex"] == "F").all() and (rows["age"] < 40).all()
    again = release.sample(given=known, where="sex == 'F' and age < 40", random_state=0)
    pd.testing.assert_frame_equal(rows, again)
    assert len(release.sample(given=known[:0])) == 0


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_other_libraries_keep_their_types(release, make):
    known = people(30, seed=3)[["sex", "pay", "job"]]
    table = make(known)
    rows = release.sample(given=table, random_state=0)
    assert type(rows) is type(table)
    names = [str(name) for name in (rows.columns if make is pl.from_pandas else rows.column_names)]
    assert names == list(DOMAIN.names)
    assert rows.select(["sex", "pay", "job"]).equals(table)
    expected = release.sample(given=known, random_state=0)
    np.testing.assert_array_equal(np.asarray(rows["age"]), expected["age"])
    filled = release.impute(table, random_state=0)
    assert type(filled) is type(table)
    values = filled["job"].to_list() if make is pl.from_pandas else filled["job"].to_pylist()
    assert values == release.impute(known, random_state=0)["job"].tolist()


def test_given_values_decide_the_others():
    # kids 0 means job "a" in these rows; false alarm below 1e-9 by the size of the effect.
    release = MarginalSynthesizer(epsilon=20, domain=DOMAIN, random_state=0).fit(people(8000))
    known = pd.DataFrame({"kids": [0, 9] * 500})
    jobs = release.sample(given=known, random_state=0)["job"]
    assert (jobs[::2] == "a").mean() > 0.95 and (jobs[1::2] == "a").mean() < 0.5


def test_gaps_are_filled_and_nothing_else(release):
    frame = people(200, seed=5)
    frame.loc[::7, "sex"] = None
    filled = release.impute(frame, random_state=0)
    assert not filled.isna().any().any() and list(filled.columns) == list(frame.columns)
    assert filled.dtypes.equals(frame.dtypes)
    there = frame.notna()
    pd.testing.assert_frame_equal(filled.where(there), frame.where(there))
    some = release.impute(frame, columns="sex", random_state=0)
    pd.testing.assert_frame_equal(some.drop(columns="sex"), frame.drop(columns="sex"))
    assert some["sex"].notna().all()
    pd.testing.assert_frame_equal(release.impute(filled), filled)
    pd.testing.assert_frame_equal(release.synopsis_.impute(frame, random_state=0), filled)


def test_gaps_of_other_types_are_filled():
    domain = Domain({"k": Numeric(0, 9, integer=True), "c": Categorical(["a", "b"])})
    release = Synopsis(domain, BoxModel(Boxes([[0, 0]], [[10, 2]]), [100], domain.shape))
    frame = pd.DataFrame({"k": [1.0, np.nan, 3.5], "c": pd.Categorical(["a", None, "z"])})
    filled = release.impute(frame, random_state=0)
    assert filled["k"].dtype == float and filled["k"].iloc[[0, 2]].tolist() == [1.0, 3.5]
    assert filled["c"].iloc[1] in ("a", "b") and filled["c"].iloc[2] == "z"
    # A text that is no number is missing; an undeclared category is a value.
    frame = pd.DataFrame({"k": [1, "much", "2"], "c": ["a", "?", None]}, dtype=object)
    filled = release.impute(frame, random_state=0)
    assert filled["k"].tolist()[::2] == [1, "2"] and 0 <= filled["k"][1] <= 9
    assert filled["c"].tolist()[:2] == ["a", "?"] and filled["c"][2] in ("a", "b")
    array = np.array([[np.nan, 0.5], [3.0, np.nan]])
    unit = Domain({"x": Numeric(0, 1), "y": Numeric(0, 1)})
    view = MarginalSynthesizer(epsilon=1, domain=unit, random_state=0).fit(np.full((50, 2), 0.5))
    assert view.sample(given=array + 1).tolist()[0][1] == 1.5
    filled = view.impute(array)
    assert filled.dtype == float and filled[0, 1] == 0.5 and filled[1, 0] == 3.0
    assert not np.isnan(filled).any()


RULED = Domain(
    {
        "id": Identifier("P{}"),
        "amount": Numeric(0, 5000, bins=12, scale="log", special=[0], decimals=2),
        "balance": Numeric(0, 5000, bins=12, scale="log", special=[0], decimals=2),
        "city": Categorical(["a1", "a2", "b1", "b2"]),
        "state": Categorical(["A", "B"]),
        "age": Numeric(0, 89, integer=True, bins=30),
        "old": Categorical(["young", "old"]),
        "type": Categorical(["single", "joint"]),
        "joint": Numeric(0, 1000, bins=10, nullable=True),
        "married": Categorical(["y", "n"]),
    },
    structure=[
        at_most("balance", "amount"),
        derived("state", "city", {"a1": "A", "a2": "A", "b1": "B", "b2": "B"}),
        derived("old", from_="age", map={(0, 60): "young", (60, 90): "old"}),
        forbid("joint != None and type != 'joint'"),
        forbid("age < 15 and married == 'y'"),
    ],
)


def lawful_rows(n):
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, size, 9 * n) for size in RULED.shape], axis=1)
    return RULED.decode(codes[~RULED.structure.breaks(codes)][:n], rng)


def violations(frame):
    return (
        (frame["balance"] > frame["amount"])
        | (frame["state"] != frame["city"].str[0].str.upper())
        | ((frame["age"] >= 60) != (frame["old"] == "old"))
        | ((frame["type"] == "single") & frame["joint"].notna())
        | ((frame["age"] < 15) & (frame["married"] == "y"))
    ).sum()


@pytest.fixture(scope="module", params=[None, "type"])
def ruled(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synthesizer = MarginalSynthesizer(
            epsilon=3, domain=RULED, target=request.param, random_state=0
        )
        return synthesizer.fit(lawful_rows(2000))


@pytest.mark.parametrize(
    "query",
    [
        "balance >= 900 and amount <= 950",
        "balance == 0 and amount > 0.5",
        "balance in [900.01, 900.02] and amount in [900.01, 900.03, 4000]",
        "state == 'A' and age < 12",
        "old == 'old' and city in ['b1', 'b2'] and married == 'y' and age != 70",
        "type == 'joint' and joint == None and amount < 20",
    ],
)
def test_conditions_and_rules_hold_together(ruled, query):
    rows = ruled.sample(300, 0, where=query)
    assert violations(rows) == 0
    for part in query.split(" and "):
        if "None" not in part:
            assert len(rows.query(part)) == 300, part
    assert rows["joint"].isna().all() or "None" not in query


@pytest.mark.parametrize(
    "query",
    [
        "balance >= 4000 and amount <= 20",
        "balance >= 901 and amount <= 900",
        "married == 'y' and age < 10",
        "joint > 10 and type == 'single'",
        "old == 'old' and age < 60",
        "state == 'A' and city == 'b1'",
    ],
)
def test_conditions_against_the_rules_are_refused(ruled, query):
    with pytest.raises(ValueError, match="No row"):
        ruled.sample(30, 0, where=query)


def test_derived_columns_say_what_they_follow_from(ruled):
    known = lawful_rows(200)[["old", "amount", "id"]]
    known.loc[0, "amount"] = 1e9
    rows = ruled.sample(given=known, where="state == 'B'", random_state=0)
    assert list(rows.columns) == list(RULED.columns)
    pd.testing.assert_frame_equal(rows[known.columns], known)
    assert violations(rows) == 0 and (rows["state"] == "B").all()
    with pytest.raises(ValueError, match="where has a condition on 'age', which given holds"):
        ruled.sample(given=known, where="age > 60")
    rows = ruled.sample(given=known[["id"]], random_state=0)
    assert rows["id"].tolist() == known["id"].tolist() and violations(rows) == 0


def test_filled_rows_keep_the_rules(ruled):
    frame = lawful_rows(400)
    rng = np.random.default_rng(3)
    for name in ("balance", "city", "state", "age", "old", "married"):
        frame.loc[rng.random(400) < 0.15, name] = None
    filled = ruled.impute(frame, random_state=0)
    assert filled.drop(columns="joint").notna().all().all()
    # A single applicant has no joint income; every other gap is filled.
    assert (filled["joint"].isna() == (filled["type"] == "single")).all()
    assert violations(filled) == 0
    there = frame.notna()
    pd.testing.assert_frame_equal(
        filled.where(there).astype(object), frame.where(there).astype(object)
    )


def test_given_rows_that_break_a_rule_count_as_unknown(ruled):
    known = pd.DataFrame({"type": ["single", "joint"], "joint": [500.0, 500.0]})
    rows = ruled.sample(given=known, random_state=0)
    pd.testing.assert_frame_equal(rows[["type", "joint"]], known)
    assert violations(rows) == 1


DATED = Domain(
    {
        "when": Date("2015-01-01", "2020-12-31", bins=24, nullable=True),
        "job": Categorical(["a", "b"]),
        "n": Numeric(0, 100, integer=True),
    }
)


def dated_tables():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, size, 300) for size in DATED.shape], axis=1)
    codes[::3, :2] = [[24, 0]]
    frame = DATED.decode(codes, 0)
    frame.loc[::3, "job"] = None
    table = pl.from_pandas(frame).with_columns(
        pl.col("when").cast(pl.Date), pl.col("job").cast(pl.Enum(["a", "b"]))
    )
    yield frame
    yield frame.assign(job=frame["job"].astype("category"), n=frame["n"].astype("int8"))
    yield frame.assign(when=frame["when"].dt.strftime("%Y-%m-%d"))
    yield frame.convert_dtypes(dtype_backend="pyarrow")
    yield table
    yield table.cast({"job": pl.String}).to_arrow()


@pytest.mark.parametrize("table", list(dated_tables()), ids=lambda table: type(table).__module__)
def test_filled_columns_keep_their_types(table):
    synthesizer = MarginalSynthesizer(epsilon=1, domain=DATED, random_state=0).fit(table)
    filled = synthesizer.impute(table, random_state=0)
    if isinstance(table, pd.DataFrame):
        assert filled.dtypes.equals(table.dtypes) and not filled.isna().any().any()
        there = table.notna()
        pd.testing.assert_frame_equal(filled.where(there), table.where(there))
        known = table[["job"]]
    else:
        assert filled.schema == table.schema
        assert pl.DataFrame(filled).null_count().sum_horizontal()[0] == 0
        known = table.select(["job"])
    assert not synthesizer.synopsis_.impute(table).isna().any().any()
    rows = synthesizer.sample(given=known, where="n < 50", random_state=0)
    if isinstance(table, pd.DataFrame):
        pd.testing.assert_frame_equal(rows[["job"]], known)
    else:
        assert rows.select(["job"]).equals(known)


# Bins of the two columns of a rule differ: a cell may begin above a known value of the other.
UNEVEN = Domain(
    {
        "id": Identifier("P{}"),
        "start": Date("2022-01-01", "2023-12-31", bins=20),
        "end": Date("2022-01-01", "2024-12-31", bins=16),
        "price": Numeric(0, 100, bins=7, decimals=2),
        "refund": Numeric(0, 100, bins=10, decimals=2, nullable=True),
        "reason": Categorical(["late", "broken"], nullable=True),
    },
    structure=[
        at_most("start", "end"),
        at_most("refund", "price"),
        forbid("refund == None and reason != None"),
        forbid("refund != None and reason == None"),
    ],
)


def uneven_rows(n):
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, size, 9 * n) for size in UNEVEN.shape], axis=1)
    return UNEVEN.decode(codes[~UNEVEN.structure.breaks(codes)][:n], rng)


def uneven_violations(frame):
    return (
        (frame["start"] > frame["end"])
        | (frame["refund"] > frame["price"])
        | (frame["refund"].isna() != frame["reason"].isna())
    ).sum()


@pytest.fixture(scope="module")
def uneven():
    return MarginalSynthesizer(epsilon=3, domain=UNEVEN, random_state=0).fit(uneven_rows(1000))


@pytest.mark.parametrize("given", [["end"], ["start"], ["price"], ["refund", "start"]])
def test_numbers_beside_given_ones_keep_the_rules(uneven, given):
    known = uneven_rows(500)[given]
    rows = uneven.sample(given=known, random_state=0)
    pd.testing.assert_frame_equal(rows[given], known)
    assert uneven_violations(rows) == 0
    assert rows["id"].nunique() == 500


def test_given_values_that_leave_few_codes():
    # Rows drawn with the first day as the start have nearly always a later cell as the end.
    codes = np.tile([[19, 15]], (1000, 1))
    small = UNEVEN.select(["start", "end"])
    view = MarginalSynthesizer(epsilon=5, domain=small, random_state=0).fit(small.decode(codes, 0))
    known = pd.DataFrame({"end": pd.to_datetime(["2022-01-01", "2022-02-04"] * 5)})
    rows = view.sample(given=known, random_state=0)
    assert (rows["start"] <= known["end"]).all()


def test_filled_numbers_keep_the_rules_beside_known_ones(uneven):
    frame = uneven_rows(500)
    rng = np.random.default_rng(3)
    for name in ("start", "end", "price", "refund"):
        frame.loc[rng.random(500) < 0.2, name] = None
    filled = uneven.impute(frame, random_state=0)
    assert uneven_violations(filled) == 0
    # A gap beside a value of the same rule is no contradiction: the row is still given.
    assert (filled.loc[frame["reason"].notna(), "refund"].notna()).all()


def test_a_row_that_breaks_one_rule_is_known_in_the_other_columns(uneven):
    known = pd.DataFrame(
        {"price": [20.0] * 200, "refund": [90.0] * 200, "end": ["2022-03-01"] * 200}
    )
    rows = uneven.sample(given=known, random_state=0)
    assert (rows["start"] <= pd.Timestamp("2022-03-01")).all()


def test_rows_that_are_drawn_again_have_ids_of_their_own(uneven):
    rows = uneven.sample(400, 0, where="start > '2023-06-10' and end < '2023-06-20'")
    assert rows["id"].tolist() == [f"P{number}" for number in range(1, 401)]


@pytest.mark.parametrize("first", ["2022-06-04", "2022-06-08", "2022-09-01"])
def test_conditions_hold_beside_given_values(uneven, first):
    known = pd.DataFrame({"end": pd.to_datetime(["2022-06-05"] * 200)})
    rows = uneven.sample(given=known, where=f"start >= '{first}'", random_state=0)
    assert rows["end"].equals(known["end"]) and (rows["start"] >= first).all()
    # What was given breaks the rule together with a condition that begins later.
    assert uneven_violations(rows) == (0 if first < "2022-06-05" else 200)
    with pytest.raises(ValueError, match="No row was found .* contradict each other"):
        uneven.sample(
            given=pd.DataFrame({"price": [5.0]}),
            where="start >= '2022-06-08' and end <= '2022-06-07'",
        )
