"""Contribution bounds: the person as the unit of privacy, in memory and in engines."""

import datetime
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from estimators import CASES
from estimators import people as generated
from loops import over
from scipy import stats

import skdp
from skdp import Categorical, Domain, Numeric
from skdp._random import noise_source
from skdp.tables import Contributions, CountTable, as_column, count_rows, identities, read_rows
from skdp.tables.persons import some_of_each

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

DOMAIN = Domain({"kind": Categorical(["a", "b"]), "level": Numeric(0, 9, integer=True)})


def in_polars(frame):
    return read_rows(pl.from_pandas(frame).lazy())


everywhere = pytest.mark.parametrize("place", [read_rows, in_polars])


def bound(most, privacy_id="who"):
    return Contributions(privacy_id, most, noise_source(None))


def crowd(n_persons=2000):
    """Every person has one row of kind b, followed by a hundred rows of kind a."""
    who = np.repeat([f"person {i}" for i in range(n_persons)], 101)
    kind = np.tile(["b", *["a"] * 100], n_persons)
    text = {"who": pd.Series(who, dtype="str"), "kind": pd.Series(kind, dtype="str")}
    return pd.DataFrame({**text, "level": 1})


@everywhere
def test_rows_of_a_person_are_drawn_evenly_and_not_by_order(place):
    frame = crowd(1000)
    n = frame["who"].nunique()
    once = count_rows(place(frame), DOMAIN, bound(1)).dense((0,))
    assert once.sum() == n
    # The first row would be b for all, a random distinct row b for half of them. A random row is
    # b for one in 101: false alarm 1e-9.
    assert once[1] <= stats.binom.isf(1e-9, n, 1 / 101) < n / 20
    five = count_rows(place(frame), DOMAIN, bound(5)).dense((0,))
    assert five.sum() == 5 * n
    # The number of b is binomial (n, 5/101): false alarm 1e-9 on each side.
    assert stats.binom.ppf(1e-9, n, 5 / 101) <= five[1] <= stats.binom.isf(1e-9, n, 5 / 101)


@everywhere
def test_rows_without_a_person_or_a_code_do_not_count(place):
    frame = pd.DataFrame(
        {
            "who": [1.0, np.nan, np.nan, 2.0, 2.0, 1.0],
            "kind": pd.Series(["a", "a", "b", "unknown", "b", "a"], dtype="str"),
            "level": [1, 1, 1, 1, 2, 1],
        }
    )
    table = count_rows(place(frame), DOMAIN, bound(1))
    assert table.codes.tolist() == [[0, 1], [1, 2]]
    assert table.counts.tolist() == [1, 1]


def test_a_person_more_adds_at_most_the_bound_and_takes_nothing_away():
    rng = np.random.default_rng(0)
    owners = rng.integers(-1, 40, 900)
    codes = np.stack([rng.integers(-1, 2, 900), rng.integers(0, 10, 900)], axis=1)
    coins = rng.integers(0, 2**63, 900)
    tables = []
    for some in (np.ones(900, dtype=bool), owners != 7):
        # Each row has the coin that it has in the other table.
        known = some & (owners >= 0) & (codes >= 0).all(axis=1)
        source = SimpleNamespace(record_words=lambda *_, known=known: coins[known])
        found = some_of_each(codes[some], owners[some], Contributions("who", 3, source))
        tables.append(CountTable.from_codes(found, (2, 10)).dense())
    added = tables[0] - tables[1]
    assert added.min() == 0 and added.sum() == 3


class Zone(datetime.tzinfo):
    def utcoffset(self, _):
        raise RuntimeError


UTC = datetime.UTC
MIDNIGHT = datetime.datetime(2020, 1, 1)
DATES = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)]
DIGITS = ["0.1000000000000000000001", "0.1", "7", "123456789012345.1", "123456789012345.2"]
PERIODS = pd.PeriodIndex.from_ordinals([600, 601, 10**9], freq="M")
DECIMALS = pa.chunked_array([[Decimal(each) for each in DIGITS]])


@over(
    "who, expected",
    [
        *((dates, [0, 1, 0]) for dates in (DATES, pl.Series(DATES), pa.chunked_array([DATES]))),
        # Readers of files make text of the integers near a text; what they merged is nobody.
        (["x", 1, True, 1.0, "1", "01"], [0, 1, -1, 1, 1, -1]),
        ([b"x", b"y", b"x"], [0, 1, 0]),
        # The digits of this text were split in every way, which took an hour.
        (["9" * 200_000 + "x"], [0]),
        # Decimals by all their digits.
        (DECIMALS, [0, 1, 2, 3, 4]),
        (pl.from_arrow(DECIMALS), [0, 1, 2, 3, 4]),
        # Their digits were lost where they are categories.
        (DECIMALS.dictionary_encode(), [0, 1, 2, 3, 4]),
        (pd.Series(pd.arrays.ArrowExtensionArray(DECIMALS)).astype("category"), [0, 1, 2, 3, 4]),
        # Equal numbers of two types, of which one may be several: whichever is first.
        ([2.0**53, 2**53, 1.0, 1], [-1, 0, 1, 1]),
        # What cannot tell persons apart is nobody.
        (pd.Series([{1}, [1], {"a": 1}, (1, 2), None, pd.NaT, "x"]), [-1] * 6 + [0]),
        ([MIDNIGHT.replace(year=2020 + i, tzinfo=Zone()) for i in range(2)], [-1, -1]),
        # A wall clock, UTC and a day; times of the day have zones that are lost, and nanoseconds.
        ([MIDNIGHT, MIDNIGHT.replace(tzinfo=UTC), MIDNIGHT.date(), MIDNIGHT], [0, 1, 2, 0]),
        ([datetime.time(10), datetime.time(10, tzinfo=UTC)], [-1, -1]),
        # pandas cannot turn a column with a far period into dates, and read it as objects.
        *((pd.Series(PERIODS, dtype=kind), [0, 1, 2]) for kind in (None, object)),
        ([pd.Period("2020-01"), pd.Period("2020-01-01"), pd.Period("2020-01")], [0, 1, 0]),
    ],
)
def test_equal_values_are_one_person(who, expected):
    assert firsts(identities(as_column(who, "who")).tolist()) == expected


def firsts(owners):
    """Persons numbered in the order in which they come, -1 for nobody."""
    order = [each for each in dict.fromkeys(owners) if each >= 0]
    return [-1 if each < 0 else order.index(each) for each in owners]


def forms_of_moments(moments):
    array = np.array(moments, dtype="M8[ns]")
    series = pd.Series(array)
    columns = [array, list(array), series, series.astype("category"), series.dt.tz_localize("UTC")]
    arrow = pa.chunked_array([pa.array(array)])
    columns += [series.astype(object), pl.Series(array), arrow, arrow.dictionary_encode()]
    return [as_column(each, "who") for each in columns]


def test_moments_that_microseconds_cannot_tell_apart_are_nobody():
    # They were one person: a record more took others of that person away.
    for column in forms_of_moments([1, 2, 1000, 2000, 1000]):
        first, second, one, two, again = identities(column).tolist()
        assert first == second == -1 and one == again != two and min(one, two) >= 0
    far = np.array([2**62, 2**61, 0], dtype="M8[s]")
    assert identities(as_column(far, "who")).tolist()[:2] == [-1, -1]


def test_a_part_of_another_type_than_the_schema_has_the_persons_of_the_schema():
    # One record that is no text made objects of a part, in which "01" was nobody.
    dask = pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    found = {}
    for kind, odd in (("string", []), (object, [b"x"])):
        who = pd.Series(["01", "1.50", *odd], dtype=kind)
        schema = pd.DataFrame({"who": pd.Series([], dtype="string"), "kind": "a", "level": 1})
        part = pd.DataFrame({"who": who, "kind": "a", "level": 1})
        with dask.config.set({"dataframe.convert-string": False}):
            lazy = frames.from_map(lambda _, part=part: part, [0], meta=schema)
            found[kind] = count_rows(read_rows(lazy), DOMAIN, bound(1)).n
    assert found == {"string": 2, object: 3}


# -- what a fit spends and says


def people(n_rows=300):
    frame = generated(n_rows)
    frame["who"] = [f"person {i % 40}" for i in range(n_rows)]
    return frame


BOUNDED = [case for case in CASES if "max_rows_per_id" in case.estimator._get_param_names()]


@over("case", BOUNDED)
def test_epsilon_is_that_of_the_person(case):
    assert len(BOUNDED) == 25
    ledger = skdp.PrivacyLedger(5)
    columns = [*case.columns, "who"] if case.columns else list(people().columns)
    model = case.make(max_rows_per_id=4, privacy_id="who", ledger=ledger)
    loss = model.fit(people()[columns]).privacy_loss_
    assert ledger.spent == loss.epsilon == Fraction(str(model.epsilon))
    assert sum(loss.parts.values()) == loss.epsilon
    assert loss.of_record.epsilon == loss.epsilon / 4
    assert "unit: person (at most 4 records of each)" in repr(loss)
    frame = ledger.to_frame()
    assert list(frame["unit"]) == ["person"] and list(frame["max_rows_per_id"]) == [4]
    assert set(frame["privacy_id"]) == {"who"}
    if getattr(model, "synopsis_", None) is not None:
        assert model.synopsis_.privacy_loss == loss


def test_releases_in_files_keep_the_unit(tmp_path):
    frame, params = people()[["age", "sex", "who"]], {"max_rows_per_id": 2, "privacy_id": "who"}
    model = skdp.GridSynthesizer(epsilon=2.0, domain=DOMAIN_OF_PEOPLE, **params).fit(frame)
    model.synopsis_.save(tmp_path / "view.skdp")
    loaded = skdp.Synopsis.load(tmp_path / "view.skdp")
    assert loaded.privacy_loss == model.privacy_loss_
    cube = skdp.DataCube(epsilon=2.0, domain=DOMAIN_OF_PEOPLE, **params).fit(frame)
    single = skdp.DataCube(epsilon=1.0, domain=DOMAIN_OF_PEOPLE).fit(frame[["age", "sex"]])
    assert cube.cuboid(["sex"])["std_error"][0] == single.cuboid(["sex"])["std_error"][0]


DOMAIN_OF_PEOPLE = Domain({"age": Numeric(17, 90, bins=8), "sex": Categorical(["Female", "Male"])})


class Meddles(skdp.PrivacyLedger):
    """Parameters of the estimator are changed while the charge is made."""

    __slots__ = ("then",)

    def charge(self, name, loss, **more):
        super().charge(name, loss, **more)
        self.then()


@pytest.mark.parametrize("changes", [{"max_rows_per_id": 1000}, {"privacy_id": "level"}])
def test_the_bound_is_that_of_the_charge(changes):
    rows = pd.DataFrame({"kind": "a", "level": np.arange(1000) % 10, "who": 1})
    ledger = Meddles(2000)
    release = skdp.GridSynthesizer(
        epsilon=1000, domain=DOMAIN, ledger=ledger, privacy_id="who", max_rows_per_id=3
    )
    ledger.then = lambda: release.set_params(**changes)
    release.fit(rows)
    assert release.synopsis_.total < 5
