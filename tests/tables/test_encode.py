"""Lazy frames: the same counts, hence the same releases, as of rows in memory; silent errors."""

import contextlib
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from engines import ENGINE_WARNINGS, arrow, spark_frame, spark_session
from estimators import CASES
from estimators import people as generated

import skdp
from skdp import Categorical, Date, Domain, Numeric, forbid
from skdp._random import noise_source
from skdp.exceptions import DomainError, EngineError
from skdp.tables import (
    TYPES_DECLARED,
    Coded,
    Contributions,
    ProjectedCounts,
    as_column,
    as_frame,
    count_rows,
    counts,
    read_rows,
)
from skdp.tables import frame as frames

pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
dd = pytest.importorskip("dask.dataframe")

pytestmark = ENGINE_WARNINGS

# Relations live as long as their connection.
CONNECTION = duckdb.connect()


def polars_lazy(frame):
    return pl.from_arrow(arrow(frame)).lazy()


def duckdb_relation(frame):
    return CONNECTION.from_arrow(arrow(frame))


def dask_frame(frame):
    return dd.from_pandas(frame, npartitions=min(3, max(1, len(frame))))


ENGINES = {"polars": polars_lazy, "duckdb": duckdb_relation, "dask": dask_frame}
engines = pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
engines_and_spark = pytest.mark.parametrize(
    "make",
    [*ENGINES.values(), pytest.param(spark_frame, marks=pytest.mark.slow)],
    ids=[*ENGINES, "pyspark"],
)


def messy(n=300):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "who": rng.integers(0, 40, n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 20, n)),
            "pay": rng.normal(0, 1, n),
            "town": pd.Series(rng.choice(["a", "b", "c", "elsewhere", ""], n), dtype="str"),
            "start": rng.integers(0, 6, n),
            "stop": rng.integers(0, 6, n),
        }
    )


DOMAIN = Domain(
    {
        "age": Numeric(0, 100, bins=12),
        "pay": Numeric(-2, 2, bins=9, nullable=True),
        "town": Categorical(["a", "b", "c"], nullable=True),
        "start": Numeric(0, 5, integer=True),
        "stop": Numeric(0, 5, integer=True),
    },
    structure=[forbid("start >= 4 and stop < 2"), forbid("town = 'a' and start = 0")],
)


# --- the same codes


@contextlib.contextmanager
def small(**limits):
    """Batches far smaller than the table, codes in a file, and what `limits` says of `counts`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "BATCH_ROWS", 64)
        patch.setattr(counts, "_HELD_BYTES", 100)
        patch.setattr(counts, "MERGED_ROWS", 50)
        for name, value in limits.items():
            patch.setattr(counts, name, value)
        yield patch


def assert_same(lazy, frame, domain=DOMAIN):
    mine, its = (Coded(read_rows(each), domain) for each in (frame, lazy))
    np.testing.assert_array_equal(mine.cells, its.cells)
    mine, its = mine.counts(), its.counts()
    np.testing.assert_array_equal(mine.codes, its.codes)
    np.testing.assert_array_equal(mine.counts, its.counts)
    return its


@engines_and_spark
def test_lazy_rows_have_the_codes_and_cells_of_rows_in_memory(make):
    frame = messy()
    with small():
        assert 0 < assert_same(make(frame), frame).n < len(frame)
        assert assert_same(make(frame.iloc[:0]), frame.iloc[:0]).n == 0
        codes = Coded(read_rows(make(frame)), DOMAIN).codes
        assert isinstance(codes, np.memmap) and codes.min() >= 0


def test_types_of_engines_have_the_keys_of_text():
    # The same fields, by the types that DuckDB finds and as text.
    types = "DATE TIMESTAMP TIMESTAMPTZ TIME DECIMAL(18,3) HUGEINT BOOLEAN ENUM('2020-01-01')"
    texts = ["2020-01-01", "2020-01-01 10:30:00", "10:30:00", "1.500", "7", "true"]
    domain = Domain({"x": Categorical([*texts, "z"], nullable=True)})
    for kind in types.split():
        values = ", ".join(f"('{text}')" for text in [*texts, "9" * 30])
        relation = CONNECTION.sql(
            f"SELECT TRY_CAST(v AS {kind}) AS x, v FROM (VALUES {values}) AS t(v)"
        )
        rows = relation.filter("x IS NOT NULL")
        typed = count_rows(read_rows(rows.select("x")), domain)
        told = count_rows(read_rows(rows.select("CAST(x AS VARCHAR) AS x")), domain)
        assert typed.codes.tolist() == told.codes.tolist() != [], kind


@pytest.mark.parametrize("where", ["connection", "column"])
def test_collations_join_no_categories_and_no_persons(where):
    texts = ["a", "A", "á", "Á", "ss", "ß", "", "b"]
    frame = pd.DataFrame({"x": pd.Series(texts * 3), "who": pd.Series(texts * 3)})
    with duckdb.connect() as connection:
        connection.register("given", arrow(frame))
        kind = "VARCHAR" + " COLLATE NOCASE.NOACCENT" * (where == "column")
        if where == "connection":
            connection.execute("PRAGMA default_collation='NOCASE.NOACCENT'")
        connection.execute(f"CREATE TABLE rows (x {kind}, who {kind})")
        connection.execute("INSERT INTO rows SELECT x, who FROM given")
        relation = connection.table("rows")
        assert_same(relation, frame, Domain({"x": Categorical(["a", "á", "ss"], nullable=True)}))
        anyone = Domain({"x": Categorical(["a", "b"], other="a", nullable=True)})
        kept = Contributions("who", 1, noise_source(1))
        assert count_rows(read_rows(relation), anyone, kept).n == len(set(texts) - {""})


@pytest.mark.slow
def test_timestamps_and_collations_of_spark():
    session = spark_session()
    rows = session.sql("SELECT TIMESTAMP'2020-01-01 23:30:00-05:00' AS t, 'A' AS x")
    domain = Domain({"t": Date("2020-01-01", "2020-01-31"), "x": Categorical(["a", "A"])})
    assert count_rows(read_rows(rows), domain).codes.tolist() == [[1, 1]]


# --- the same releases


def people(n_rows=400):
    return generated(n_rows).astype(dict.fromkeys(("sex", "work", "income"), "str"))


def case_of(name):
    return next(case for case in CASES if case.name == name)


def released(estimator):
    """Everything that a fit assigned, in a form that compares."""
    state = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    if state.get("synopsis_") is not None:
        state["synopsis_"] = state["synopsis_"].to_frame().to_dict("list")
    # Only the loss of a lazy frame assumes that types were declared.
    told = repr(sorted(state.items())).replace(f", assumes that {TYPES_DECLARED}", "")
    return re.sub(" at 0x[0-9a-f]*", "", told)


COUNTED = [
    *("HDPViewSynthesizer", "GridSynthesizer", "MarginalSynthesizer", "PrivBayesSynthesizer"),
    *("RangeTreeHistogram", "PrivPfCTransformer", "DiffGenTransformer", "DataCube", "DPKMeans"),
    *("PrivateLinearRegression", "PrivateNaiveBayes"),
]


@pytest.mark.parametrize("name", COUNTED)
def test_releases_are_those_of_pandas(name):
    case = case_of(name)
    frame = case.rows(people())
    with small():
        expected = case.make(random_state=3).fit(frame)
        for make in ENGINES.values():
            got = case.make(random_state=3).fit(make(frame))
            assert released(got) == released(expected)
            assert list(got.feature_names_in_) == list(expected.feature_names_in_)


@pytest.mark.parametrize("name", ["MarginalSynthesizer", "PrivPfCClassifier", "DataCube"])
def test_projections_release_what_the_whole_table_does(name):
    case = case_of(name)
    lazy = polars_lazy(case.rows(people()))
    expected = released(case.make(random_state=3).fit(lazy))
    with small(MOST_AT_ONCE=1):
        assert released(case.make(random_state=3).fit(lazy)) == expected
        domain = case.make().domain
        rows = read_rows(lazy).select(domain.names)
        assert isinstance(count_rows(rows, domain, together=()), ProjectedCounts)


WIDE = Domain({f"c{j}": Numeric(-3, 3, bins=64) for j in range(5)})


def test_a_table_that_may_not_fit_is_announced_before_the_charge():
    frame = pd.DataFrame(np.zeros((3, 5)), columns=WIDE.names)
    ledger = skdp.PrivacyLedger(9)
    view = skdp.PrivTreeSynthesizer(epsilon=1.0, domain=WIDE, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with pytest.raises(UserWarning, match=r"36 bytes each.*MarginalSynthesizer"):
            view.fit(polars_lazy(frame))
    assert ledger.spent == 0


# --- persons


@engines
def test_persons_of_lazy_rows_are_bounded_as_in_memory(make):
    frame = messy()
    kept = {}
    for most in (1, 3, 50):
        with small():
            bound = Contributions("who", most, noise_source(7))
            lazy = Coded(read_rows(make(frame)), DOMAIN, bound)
        memory = Coded(as_frame(frame), DOMAIN, Contributions("who", most, noise_source(7)))
        np.testing.assert_array_equal(lazy.cells, memory.cells)
        assert lazy.counts().n == memory.counts().n == lazy.cells[0]
        kept[most] = lazy.counts().n
    assert kept[1] <= 40 and kept[1] < kept[3] < kept[50]


# --- refusals and failures


def view(**changes):
    domain = Domain({"age": Numeric(0, 99), "sex": Categorical(["F", "M"])})
    return skdp.GridSynthesizer(**{"epsilon": 1.0, "domain": domain, **changes})


def two_columns():
    return pd.DataFrame({"age": [1.0, 2.0, 3.0], "sex": pd.Series(["F", "M", "F"], dtype="str")})


@engines
def test_what_does_not_fit_is_refused_before_the_charge(make):
    ledger = skdp.PrivacyLedger(1)
    frame = two_columns()
    for message, rows in (
        ("Missing: 'sex'", frame[["age"]]),
        ("cannot be read.*durations to numbers", frame.assign(age=pd.Timedelta(1, "s"))),
    ):
        with pytest.raises(DomainError, match=message):
            view(ledger=ledger).fit(make(rows))
    with pytest.raises(TypeError, match="no order that 'sex'.*name it in target="):
        view(target="sex", ledger=ledger).fit(make(frame[["age"]]), np.array(["F", "M", "F"]))
    with pytest.raises(TypeError, match="lazy, and only tables in memory.*Collect it first"):
        case_of("PrivateStandardScaler").make(ledger=ledger).fit(make(frame[["age"]]))
    assert ledger.spent == 0


def test_plans_whose_columns_are_not_known_are_refused(monkeypatch):
    with pytest.raises(DomainError, match="must be unique, but 'sex'"):
        view().fit(duckdb_relation(two_columns()).select("age, sex, sex"))
    with pytest.raises(DomainError, match=r"cannot tell the columns.*Nothing was") as caught:
        view().fit(pl.scan_parquet("no such file of Alice.parquet"))
    assert "Alice" not in str(caught.value) and caught.value.__context__ is None
    # DuckDB gives times without their offset, so that two of one moment would differ.
    for odd in ("['F']", "TIMETZ '10:30:00+02'"):
        with pytest.raises(DomainError, match="cannot be read: a column holds"):
            view().fit(CONNECTION.sql(f"SELECT 1.0 AS age, {odd} AS sex"))


def failing(engine):
    frame = two_columns()
    if engine == "polars":

        def fail(batch):
            raise ValueError(f"cannot stand {batch}")

        return polars_lazy(frame).with_columns(pl.col("age").map_batches(fail, pl.Float64))
    if engine == "duckdb":
        relation = duckdb_relation(frame)
        return relation.select("error('Alice: ' || sex)::DOUBLE AS age, sex")

    def fail_part(part):
        raise ValueError(f"cannot stand {part}")

    return dask_frame(frame).map_partitions(fail_part, meta=frame.iloc[:0])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failing_plan_is_charged_once_and_its_words_are_withheld(engine):
    ledger = skdp.PrivacyLedger(1)
    estimator = view(ledger=ledger, epsilon=0.25)
    with pytest.raises(EngineError, match=r"failed to give the rows.*stays spent") as caught:
        estimator.fit(failing(engine))
    error = caught.value
    assert not any(word in str(error) for word in ("Alice", "cannot stand", "F"))
    assert error.__context__ is None and error.__cause__ is None
    assert float(ledger.spent) == 0.25 and len(ledger.to_frame()) == 1
    assert not hasattr(estimator, "synopsis_")
    # A lazy column is not read at all: its plan would fail before the charge.
    with pytest.raises(TypeError, match="is lazy"):
        as_column(failing("dask")["age"] if engine == "dask" else failing(engine), "y")
