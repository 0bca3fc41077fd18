"""``bins="auto"``: the fine public lattice, and the few bins of estimators that count cells."""

import hashlib
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import skdp
from skdp import Categorical, Date, DomainError, Identifier, Numeric, derived
from skdp.domain import Domain

RANGES = [
    (0, 1),
    (0, 1000),
    (0, 365),
    (0, 2e5),
    (-500, 2000),
    (-1, 1),
    (18, 90),
    (1, 1e5),
    (-1000, 0),
    (0, 0.001),
    (17.3, 90.04),
    (1e6, 1e6 + 1),
    (1e-300, 1e300),
]


def digest(arrays):
    return hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in arrays)).hexdigest()[:16]


def test_edges_of_a_range_never_change():
    # A release says "auto" and holds counts by code: other edges would give them other meanings.
    assert digest(Numeric(*each).edges for each in RANGES) == "cb2ef430a5888393"
    grids = [
        Numeric(0, 1000, decimals=2),
        Numeric(0, 9e6, step=7000),
        Numeric(0, 10**7, "auto", integer=True),
        Numeric(0, 5e4, decimals=1, special=[0, 0.3]),
        Numeric(0, 5e4, scale="log", decimals=0),
    ]
    assert digest(each.edges for each in grids) == "10b3dbf6dffe5aea"


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


def test_thresholds_that_people_ask_about_are_edges():
    edges = set(Numeric(0, 1000).edges.tolist())
    assert edges >= {0.01, 0.05, 0.25, 1, 1.5, 2, 5, 7.5, 12, 15, 24, 50, 75, 120, 365, 500, 750}
    assert set(Numeric(-60, 1500).edges.tolist()) >= {-30, -5, -0.5, 0, 1, 15, 30, 45, 120, 500}
    assert set(Numeric(18, 90).edges.tolist()) >= {18.5, 21, 25, 30, 65, 67.5}
    assert set(Numeric(0, 1).edges.tolist()) >= {0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.99}
    # The first is exact: 0.3 is an edge, and 0.1 + 0.2 lies on its right.
    codes = Domain({"x": Numeric(0, 1)}).encode(pd.DataFrame({"x": [0.29999, 0.3, 0.1 + 0.2]}))
    assert codes[1] == codes[2] == codes[0] + 1


def test_values_of_a_grid_have_a_bin_each_or_share_one():
    assert Numeric(0, 10, decimals=2).bins == 1001
    assert Numeric(0, 100, step=0.25).edges[:3].tolist() == [0, 0.25, 0.5]
    cents = Numeric(0, 1000, decimals=2)
    assert cents.edges[1] == 0.01 and cents.bins <= 1024
    ages = Numeric(0, 90, "auto", integer=True)
    assert ages.one_each and ages.labels()[-1] == "90"
    pay = Numeric(0, 10**7, "auto", integer=True)
    assert pay.edges.dtype == np.int64 and pay.bins == 800 and pay.edges[-1] == 10**7 + 1
    # What only special values fall into is no bin.
    sparse = Numeric(0, 50, "auto", integer=True, special=[0, 7])
    assert sparse.labels()[:2] == ["[0, 2)", "[2, 3)"] and "[6, 8)" in sparse.labels()


@pytest.mark.parametrize(
    "attribute",
    [
        Numeric(0, 1000),
        Numeric(0, 1000, decimals=1, special=[0], nullable=True),
        Numeric(1, 1e6, scale="log"),
        Numeric(0, 10**6, "auto", integer=True),
    ],
    ids=repr,
)
def test_it_travels_as_auto(attribute):
    domain = Domain({"x": attribute, "y": Categorical(["a", "b"])})
    text = domain.to_json()
    assert json.loads(text)["attributes"][0]["bins"] == "auto" and len(text) < 500
    # Earlier versions do not know it, and say so.
    assert json.loads(text)["version"] == 2
    for again in (
        Domain.from_json(text),
        pickle.loads(pickle.dumps(domain)),
        Domain({"x": eval(repr(attribute)), "y": domain["y"]}),
    ):
        assert again == domain and hash(again) == hash(domain)
        np.testing.assert_array_equal(again["x"].edges, attribute.edges)
    assert "bins='auto'" in repr(attribute)
    coarse = attribute.resolved(32)
    assert attribute != coarse
    assert domain.diff(domain.resolved(32)) == [f"- x: {attribute!r}", f"+ x: {coarse!r}"]


def test_few_bins_are_those_that_a_number_declares():
    options = {"special": [0, 999], "nullable": True, "decimals": 1}
    assert Numeric(0, 500, **options).resolved(32) == Numeric(0, 500, 32, **options)
    assert Numeric(1, 1e4, scale="log").resolved(8) == Numeric(1, 1e4, 8, scale="log")
    assert Numeric(0, 2, step=0.5).resolved(32) == Numeric(0, 2, 5, step=0.5)
    many = Numeric(0, 10**6, "auto", integer=True)
    assert many.resolved(32) == Numeric(0, 10**6, 32, integer=True)
    for same in (
        Numeric(0, 1, 2000),
        Numeric(0, 5000, integer=True),
        Date("2020-01-01", "2020-12-31"),
    ):
        assert same.resolved(32) is same
    assert many.resolved(None) is many

    domain = Domain(
        {"id": Identifier(), "age": Numeric(0, 96), "adult": Categorical(["no", "yes"])},
        structure=[derived("adult", from_="age", map={(0, 18): "no", (18, 96): "yes"})],
        inferred=True,
    )
    few = domain.resolved(32)
    assert few.shape == (32,) and few.columns == domain.columns and few.inferred
    assert few.structure.rules == domain.structure.rules
    assert few.resolved(32) is few and domain.resolved(None) is domain


def test_wrong_bins_are_refused():
    with pytest.raises(DomainError, match="bins must be a number or 'auto', got 'fine'"):
        Numeric(0, 1, "fine")
    with pytest.raises(DomainError, match="too many for one code each"):
        Numeric(0, 2**53 + 2, "auto", integer=True)
    with pytest.raises(DomainError, match="too wide for float64"):
        Numeric(-1e308, 1e308)
    with pytest.raises(DomainError, match="narrower than float64"):
        Numeric(1e15, 1e15 + 1)


def test_schemas_declare_it(tmp_path):
    book = tmp_path / "book.csv"
    book.write_text(
        "Variable,Type,Range,Bins\npay,number,0 to 5000,\nscore,integer,300..850,\n"
        "hours,integer,0..90,Auto\nday,date,2020-01-01..2020-12-31,auto\nage,integer,0..90,\n"
    )
    domain = Domain.from_schema(book)
    assert domain["pay"] == Numeric(0, 5000) and domain["age"].bins == 91
    assert domain["score"] == Numeric(300, 850, "auto", integer=True)
    assert domain["hours"] == Numeric(0, 90, "auto", integer=True)
    assert domain["day"] == Date("2020-01-01", "2020-12-31")


# ------------------------------------------------------------------ estimators

AUTO = Domain({"x": Numeric(0, 100), "y": Numeric(0, 1), "c": Categorical(["a", "b"])})


def table(n=400):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"x": rng.uniform(0, 100, n), "y": rng.random(n), "c": rng.choice(["a", "b"], n)}
    )


@pytest.mark.parametrize(
    "made",
    [
        lambda domain: skdp.HDPViewSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.PrivBayesSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.PrivTreeSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.KDTreeSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.GridSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.DataCube(epsilon=1, domain=domain, max_order=1, random_state=0),
        lambda domain: skdp.PrivateNaiveBayes(epsilon=1, domain=domain, target="c", random_state=0),
        lambda domain: skdp.PrivPfCClassifier(epsilon=1, domain=domain, target="c", random_state=0),
        lambda domain: skdp.DPTopKSelector(1, domain=domain, target="c", random_state=0),
    ],
)
def test_what_counts_cells_releases_few_bins(made):
    rows = table()
    fine, coarse = made(AUTO).fit(rows), made(AUTO.resolved(32)).fit(rows)
    for each in (fine, coarse):
        found = getattr(each, "domain_", None)
        assert found is None or found == AUTO.resolved(32)
    assert fine.domain == AUTO
    if hasattr(fine, "synopsis_"):
        assert fine.synopsis_.domain == AUTO.resolved(32)
        queries = [{"x": (0, 50)}, {"c": "a", "y": (0.2, 0.7)}]
        np.testing.assert_array_equal(fine.count(queries), coarse.count(queries))
    elif hasattr(fine, "predict"):
        np.testing.assert_array_equal(fine.predict_proba(rows), coarse.predict_proba(rows))
    elif hasattr(fine, "plan_"):
        assert fine.plan().domain == fine.plan_.domain == coarse.plan_.domain
    else:
        assert fine.selected_ == coarse.selected_


def test_single_columns_and_marginals_keep_all_bins():
    rng = np.random.default_rng(1)
    n = 20_000
    rows = pd.DataFrame({"hours": rng.exponential(3, n), "kind": rng.choice(["a", "b"], n)})
    domain = Domain({"hours": Numeric(0, 1000), "kind": Categorical(["a", "b"])})
    truth = (rows["hours"] <= 2).sum()
    with warnings.catch_warnings():
        # Not about groups of codes either.
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", skdp.InsecureSeedWarning)
        release = skdp.MarginalSynthesizer(epsilon=1, domain=domain, random_state=0).fit(rows)
    assert release.synopsis_.domain == domain
    assert abs(release.quantile("hours") / rows["hours"].median() - 1) < 0.05
    assert abs(release.count("hours <= 2") / truth - 1) < 0.05
    alone = skdp.RangeTreeHistogram(epsilon=1, bounds=(0, 1000), random_state=0).fit(
        rows[["hours"]]
    )
    assert alone.domain_.attributes == (Numeric(0, 1000),)
    assert alone.quantile([0.1, 0.5, 0.9]) == pytest.approx(
        rows["hours"].quantile([0.1, 0.5, 0.9]).to_numpy(), rel=0.02
    )
    found = alone.count([(0, 2)], return_interval=True)[0]
    assert found.lower <= truth <= found.upper and found.upper - found.lower < 0.01 * n


def test_engines_code_it_as_frames_do():
    pl = pytest.importorskip("polars")
    rows = pd.DataFrame({"x": np.append(Numeric(0, 1000).edges, [0.29999, -5, 2e3, np.nan])})
    made = [
        skdp.RangeTreeHistogram(epsilon=1, bounds=(0, 1000), random_state=0).fit(each)
        for each in (rows, pl.DataFrame(rows).lazy())
    ]
    np.testing.assert_array_equal(made[0].noisy_counts_, made[1].noisy_counts_)


def test_what_trains_on_a_release_takes_the_declared_domain():
    rows = table()
    release = skdp.HDPViewSynthesizer(epsilon=1, domain=AUTO.select(["x"]), random_state=0)
    model = skdp.PrivateRegressor(LinearRegression(), release, target_range=(0, 1))
    model.fit(rows[["x"]], rows["y"])
    assert model.synthesizer_.domain_.shape == (32, 32)
