"""Statistics of a release with intervals: values, coverage, limits, bad input."""

import itertools

import numpy as np
import pandas as pd
import pytest
from densities import GaussianNoise

import skdp
from skdp import (
    Categorical,
    Date,
    Domain,
    MarginalSynthesizer,
    Numeric,
    QueryResult,
    Synopsis,
    derived,
)
from skdp.release import (
    AnySpread,
    BoundedSpread,
    Boxes,
    BoxModel,
    KnownNoise,
    LeafErrorBound,
    NetworkModel,
    Query,
)
from skdp.release.model import roots
from skdp.release.statistics import normal_draws

DOMAIN = Domain(
    {
        "n": Numeric(0, 9, integer=True),
        "m": Numeric(0, 3, integer=True, nullable=True),
        "s": Categorical(["F", "M"]),
    }
)
GENERATOR = np.random.default_rng(5)
TABLE = GENERATOR.integers(0, 40, DOMAIN.shape)
# The two numbers depend on each other.
TABLE[:5, :2] += 30
CELLS = np.indices(DOMAIN.shape).reshape(3, -1).T
ROWS = pd.DataFrame(
    {
        "n": CELLS[:, 0].astype(float),
        "m": np.where(CELLS[:, 1] < 4, CELLS[:, 1], np.nan),
        "s": np.array(["F", "M"])[CELLS[:, 2]],
    }
).loc[np.repeat(np.arange(len(CELLS)), TABLE.ravel())]


def cells(counts, law, domain=DOMAIN):
    """One box for each cell."""
    lower = np.indices(domain.shape).reshape(len(domain.shape), -1).T
    return Synopsis(domain, BoxModel(Boxes(lower, lower + 1), np.ravel(counts), domain.shape, law))


def gaussian(counts, variance, domain=DOMAIN):
    return cells(counts, GaussianNoise(np.full(np.size(counts), float(variance))), domain)


def noisy(rng, std, table=TABLE):
    return np.round(table + rng.normal(0, std, table.shape))


EXACT = gaussian(TABLE, 0.0)
WOMEN = ROWS[ROWS["s"] == "F"]
BOTH = ROWS.dropna()
# A question to a release, and what it is in a table.
STATISTICS = {
    "count": (lambda r, **how: r.count("n > 3", **how), (ROWS["n"] > 3).sum()),
    "or": (
        lambda r, **how: r.count("n > 7 or s == 'F'", **how),
        len(ROWS.query("n > 7 or s == 'F'")),
    ),
    "sum": (lambda r, **how: r.sum("n", "s == 'F'", **how), WOMEN["n"].sum()),
    "mean": (lambda r, **how: r.mean("n", "s == 'F'", **how), WOMEN["n"].mean()),
    "missing": (lambda r, **how: r.mean("m", **how), ROWS["m"].mean()),
    "either": (
        lambda r, **how: r.mean("n", "s == 'F' or m == 2", **how),
        ROWS.query("s == 'F' or m == 2")["n"].mean(),
    ),
    "std": (lambda r, **how: r.std("n", **how), ROWS["n"].std(ddof=0)),
    "share": (lambda r, **how: r.proportion("n < 3", "s == 'F'", **how), (WOMEN["n"] < 3).mean()),
    "shares": (
        lambda r, **how: r.proportion("n < 3 or m == 1", "m < 3", **how),
        ROWS.query("m < 3").eval("n < 3 or m == 1").mean(),
    ),
    "covariance": (
        lambda r, **how: r.covariance("n", "m", **how),
        BOTH[["n", "m"]].cov(ddof=0).iloc[0, 1],
    ),
    "correlation": (
        lambda r, **how: r.correlation("n", "m", **how),
        BOTH[["n", "m"]].corr().iloc[0, 1],
    ),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_of_exact_counts_are_those_of_the_table(name):
    asked, truth = STATISTICS[name]
    assert asked(EXACT) == pytest.approx(truth)
    result = asked(EXACT, return_interval=True)
    assert isinstance(result, QueryResult)
    assert float(result) == asked(EXACT)
    assert (result.std, result.lower, result.upper) == pytest.approx((0, truth, truth), abs=1e-9)
    assert result.sampling_std == 0
    assert result.guarantee


def test_quantiles_of_many_empty_bins_with_noise():
    # 2,000 bins, the records in the first hundred of them.
    domain = Domain({"x": Numeric(0, 2_000, bins=2_000)})
    counts = np.zeros(2_000)
    counts[:100] = 50
    rng = np.random.default_rng(1)
    for _ in range(5):
        noisy_counts = counts + np.round(rng.normal(0, 1.4, 2_000))
        release = gaussian(noisy_counts, 2.0, domain)
        assert release.quantile("x", 0.5) == pytest.approx(50, abs=2)
        # Negative counts that are cut off would add 1,000 records above, and move this to 1,000.
        assert release.quantile("x", 0.9) == pytest.approx(90, abs=3)
        found = release.quantile("x", 0.5, return_interval=True)
        assert 45 < found.lower <= 50 <= found.upper < 55
    everywhere_negative = gaussian(-counts - 1, 2.0, domain)
    assert np.isnan(everywhere_negative.quantile("x"))
    only_noise = gaussian(np.r_[3, -5, np.zeros(1_998)], 2.0, domain)
    assert 0 <= only_noise.quantile("x") <= 1


def test_intervals_of_a_long_list():
    release = cells(TABLE, KnownNoise(0.5))
    queries = [f"n <= {i % 9} and m < {i % 3 + 1}" for i in range(101)]
    for asked in (
        lambda some: release.count(some, return_interval=True),
        lambda some: release.sum("n", some, return_interval=True),
        lambda some: release.mean("n", some, return_interval=True),
    ):
        many, few = asked(queries), asked(queries[:6])
        assert all(each.guarantee for each in (many[5], few[5]))
        for quick, exact in zip(many, few, strict=False):
            assert quick.value == exact.value
            assert quick.std == pytest.approx(exact.std)
            assert quick.upper - quick.lower == pytest.approx(exact.upper - exact.lower, rel=0.15)


@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.75, 0.9])
def test_quantiles_of_exact_counts(q):
    truth = ROWS["n"].quantile(q, interpolation="lower")
    assert EXACT.quantile("n", q) == truth
    result = EXACT.quantile("n", q, return_interval=True)
    assert result.value == result.lower == result.upper == truth
    women = EXACT.quantile("n", [q, 0.5], "s == 'F'")
    assert women == [WOMEN["n"].quantile(each, interpolation="lower") for each in (q, 0.5)]


def test_intervals_cover_as_often_as_they_say_and_half_of_them_do_not():
    """Of 200 releases, 80% intervals fail to cover 141 with a probability below 0.1% each."""
    rng = np.random.default_rng(11)
    covered, halved = (dict.fromkeys([*STATISTICS, "median"], 0) for _ in range(2))
    for _ in range(200):
        release = gaussian(noisy(rng, 12.0), 144.0 + 1 / 12)
        for name, (asked, truth) in STATISTICS.items():
            found = asked(release, return_interval=True, level=0.8)
            covered[name] += found.lower <= truth <= found.upper
            low, high = ((found.value + end) / 2 for end in (found.lower, found.upper))
            halved[name] += low <= truth <= high
        found = release.quantile("n", 0.5, return_interval=True, level=0.8)
        covered["median"] += found.lower <= ROWS["n"].median() <= found.upper
    assert min(covered.values()) >= 141, covered
    # Linear questions are not wider than they must be, and half of a width is refused.
    linear = ["count", "or", "sum", "mean", "missing", "share", "std"]
    assert max(covered[name] for name in linear) <= 180, covered
    assert max(halved[name] for name in linear) < 141, halved
    assert halved["covariance"] < 170 and halved["correlation"] < 170


def test_releases_of_marginals_cover():
    rng = np.random.default_rng(3)
    n = 3000
    table = pd.DataFrame({"a": rng.binomial(11, 0.4, n), "s": rng.choice(["x", "y", "z"], n)})
    table["b"] = np.clip(table["a"] // 2 + rng.integers(0, 3, n), 0, 7)
    domain = Domain(
        {
            "a": Numeric(0, 11, integer=True),
            "s": Categorical(["x", "y", "z"]),
            "b": Numeric(0, 7, integer=True),
        }
    )
    asked = {
        "mean": lambda r, **how: r.mean("a", "s == 'x'", **how),
        "sum": lambda r, **how: r.sum("b", **how),
        "std": lambda r, **how: r.std("a", **how),
        "share": lambda r, **how: r.proportion("a > 5", "s != 'z'", **how),
        "correlation": lambda r, **how: r.correlation("a", "b", **how),
        "quantile": lambda r, **how: r.quantile("a", 0.8, **how),
    }
    exact = skdp.MarginalSynthesizer(epsilon=1e6, domain=domain, random_state=0)
    lower = np.indices(domain.shape).reshape(3, -1).T
    codes = domain.encode(table)
    counts = np.bincount(np.ravel_multi_index(codes.T, domain.shape), minlength=len(lower))
    truth = gaussian(counts, 0.0, domain)
    hits = 0
    for seed in range(6):
        release = exact.set_params(epsilon=1.0, random_state=seed).fit(table).synopsis_
        for statistic in asked.values():
            found = statistic(release, return_interval=True)
            hits += found.lower <= statistic(truth) <= found.upper
    # 36 intervals at 95%: fewer than 29 with a probability of 0.1%.
    assert hits >= 29


def test_sampling_of_a_population_is_covered_beside_the_noise():
    """A sample of 700 of 1400: fewer than 141 of 200 intervals with a probability of 0.1%."""
    rng = np.random.default_rng(13)
    people = rng.binomial(9, 0.4, 1400)
    domain = Domain({"n": Numeric(0, 9, integer=True)})
    asked = {
        "mean": (lambda r, **how: r.mean("n", **how), people.mean()),
        "std": (lambda r, **how: r.std("n", **how), people.std()),
        "share": (lambda r, **how: r.proportion("n > 4", **how), (people > 4).mean()),
        "count": (lambda r, **how: r.count("n > 4", **how), (people > 4).sum() / 2),
    }
    covered, alone = (dict.fromkeys(asked, 0) for _ in range(2))
    for _ in range(200):
        counts = np.bincount(rng.permutation(people)[:700], minlength=10)
        release = gaussian(noisy(rng, 3.0, counts), 9.0, domain)
        for name, (question, truth) in asked.items():
            found = question(
                release,
                return_interval=True,
                level=0.8,
                interval="population",
                population_size=1400,
            )
            plain = question(release, return_interval=True, level=0.8)
            # Noise may make the fourth moment of a spread negative.
            assert found.sampling_std > 0 or name == "std"
            assert plain.sampling_std == 0
            assert found.std == plain.std
            covered[name] += found.lower <= truth <= found.upper
            alone[name] += plain.lower <= truth <= plain.upper
    assert min(covered.values()) >= 141 and max(covered.values()) <= 182, covered
    # The noise alone does not cover what the population is.
    assert max(alone[name] for name in ("mean", "share", "count")) < 141, alone


def test_a_census_has_no_sampling_error_and_a_large_population_the_most():
    how = {"return_interval": True, "interval": "population"}
    sizes = (len(ROWS), 2 * len(ROWS), None)
    found = [EXACT.mean("n", population_size=size, **how).sampling_std for size in sizes]
    assert found[0] == 0
    assert found[1] == pytest.approx(found[2] / np.sqrt(2), rel=0.01)
    assert found[2] == pytest.approx(ROWS["n"].std(ddof=0) / np.sqrt(len(ROWS)), rel=0.01)
    r = EXACT.correlation("n", "m", **how)
    # That of normal variables is (1 - r^2) / sqrt(n).
    assert r.sampling_std == pytest.approx((1 - r.value**2) / np.sqrt(len(BOTH)), rel=0.5)
    assert EXACT.quantile("n", 0.5, **how).upper >= EXACT.quantile("n", 0.5)
    assert "random sample" in r.guarantee
    assert EXACT.sum("n", **how).sampling_std == pytest.approx(
        ROWS["n"].std(ddof=0) * np.sqrt(len(ROWS))
    )


def test_groups_have_the_intervals_of_their_queries():
    rng = np.random.default_rng(14)
    release = gaussian(noisy(rng, 3.0), 9.0)
    table = release.aggregate(["m", "s"], "n", return_interval=True)
    assert {"std_error", "lower", "upper"} <= set(table.columns)
    assert table.attrs["level"] == 0.95 and table.attrs["guarantee"]
    for row in table.itertuples():
        query = {"m": [row.m], "s": row.s} if row.m is not None else {"m": [None], "s": row.s}
        one = release.mean("n", query, return_interval=True)
        assert (row.std_error, row.lower, row.upper) == pytest.approx(
            (one.std, one.lower, one.upper)
        )
    counts = release.aggregate("s", query="n < 4", bands=None, return_interval=True, level=0.8)
    one = release.count("n < 4 and s == 'M'", return_interval=True, level=0.8)
    assert counts.loc[1, ["lower", "upper"]].tolist() == pytest.approx([one.lower, one.upper])


def test_a_crosstab_has_four_tables():
    release = gaussian(TABLE, 4.0)
    table = release.crosstab("s", "m", return_interval=True)
    assert [*table.columns.get_level_values(0).unique()] == ["count", "std_error", "lower", "upper"]
    assert np.array_equal(table["count"], release.crosstab("s", "m"))
    one = release.count("s == 'F' and m == 2", return_interval=True)
    assert table["lower"].loc["F", 2] == pytest.approx(one.lower)
    wide = release.crosstab("s", "m", return_interval=True, interval="population")
    assert (wide["std_error"] > table["std_error"]).all(axis=None)


# --- limits of what is possible


def test_empty_groups_have_intervals_and_the_guarantee_says_that_nothing_is_known():
    counts = np.zeros(DOMAIN.shape)
    for release in (
        gaussian(counts, 100.0),
        gaussian(counts - 5, 100.0),
        gaussian(counts + 1, 1e6),
    ):
        mean = release.mean("n", "s == 'F'", return_interval=True)
        assert (mean.lower, mean.upper) == (0, 9)
        assert 0 < mean.std <= 4.5
        assert "too few records for this noise" in mean.guarantee
        share = release.proportion("n > 3", "s == 'F'", return_interval=True)
        assert (share.lower, share.upper) == (0, 1)
        std = release.std("n", return_interval=True)
        assert std.lower == 0 and 4.2 < std.upper <= 4.5
        assert release.correlation("n", "m", return_interval=True).upper == 1
        found = release.covariance("n", "m", return_interval=True)
        assert -found.lower == pytest.approx(found.upper, rel=0.02)
        assert 5 < found.upper <= 4.5 * 1.5
        assert release.count("s == 'F'", return_interval=True).lower == 0
        middle = release.quantile("n", 0.5, return_interval=True)
        assert 0 <= middle.lower <= middle.upper <= 9
        table = release.aggregate("s", "n", return_interval=True)
        assert table[["std_error", "lower", "upper"]].notna().all(axis=None)
        assert repr(mean) and repr(std) and mean._repr_html_()


def test_bins_covered_in_part_are_told():
    domain = Domain({"x": Numeric(0, 12, bins=3), "y": Numeric(0, 6, bins=2)})
    counts = np.array([[5000, 4000], [4000, 6000], [3000, 2000]])
    release = gaussian(counts, 9.0, domain)
    told = "Bins covered in part"
    asked = [
        lambda query: release.count(query, return_interval=True),
        lambda query: release.sum("y", query, return_interval=True),
        lambda query: release.mean("y", query, return_interval=True),
        lambda query: release.std("y", query, return_interval=True),
        lambda query: release.proportion(query, return_interval=True),
        lambda query: release.correlation("x", "y", query, return_interval=True),
    ]
    for ask in asked:
        assert ask("x >= 2").guarantee.count(told) == 1
        assert told not in ask("x >= 4").guarantee


@pytest.mark.parametrize("at", [0.01, 0.5, 3.99, 4.0])
def test_counts_cover_what_a_bin_may_hold_that_a_query_cuts(at):
    # All records of a bin lie at one number, wherever a threshold cuts the bin.
    domain = Domain({"x": Numeric(0, 12, bins=3), "y": Numeric(0, 3, integer=True)})
    rows = pd.DataFrame({"x": np.repeat([at, 5.0], 4_000), "y": np.arange(8_000) % 4})
    made = [
        skdp.GridSynthesizer(epsilon=1.0, domain=domain, random_state=0),
        skdp.HDPViewSynthesizer(epsilon=1.0, domain=domain, random_state=0),
        skdp.DataCube(epsilon=1.0, domain=domain, random_state=0),
    ]
    for release in [each.fit(rows) for each in made]:
        release = getattr(release, "synopsis_", release)
        for query in ("x < 1", "x >= 1 and y == 2", "x < 1 or y == 3", "0.4 < x <= 0.6"):
            true = len(rows.query(query))
            answer = release.count(query, return_interval=True, level=0.99)
            assert answer.lower <= true <= answer.upper
            assert "may hold their records anywhere" in answer.guarantee
    # Not wider than that: the other bin is known up to its noise.
    assert answer.upper - answer.lower < 4_200


def test_constant_columns():
    counts = np.zeros(DOMAIN.shape)
    counts[4] = 100
    exact = gaussian(counts, 0.0)
    assert exact.std("n") == 0
    assert np.isnan(exact.correlation("n", "m"))
    found = exact.correlation("n", "m", return_interval=True)
    assert (found.lower, found.upper) == (-1, 1) and "may all be equal" in found.guarantee
    assert exact.std("n", return_interval=True).upper == 0
    found = gaussian(counts, 4.0).std("n", return_interval=True)
    assert 0 <= found.lower <= 0.5 and 0 < found.upper < 4.5
    one = Domain({"n": Categorical([3], ordered=True), "s": Categorical(["a", "b"])})
    found = gaussian(np.array([[10, 9]]), 4.0, one)
    assert found.mean("n", return_interval=True).upper == 3
    assert found.quantile("n", return_interval=True).lower == 3


def test_intervals_stay_within_what_is_possible():
    rng = np.random.default_rng(15)
    for std in (3.0, 30.0, 300.0):
        release = gaussian(noisy(rng, std), std**2)
        for name, (asked, _) in STATISTICS.items():
            found = asked(release, return_interval=True)
            assert found.lower <= found.upper and np.isfinite([found.lower, found.upper]).all(), (
                name
            )
            if name in ("count", "or", "sum", "std", "share", "shares"):
                assert found.lower >= 0
            if name in ("share", "shares", "correlation"):
                assert found.upper <= 1
            if name == "correlation":
                assert found.lower >= -1
            if name in ("mean", "either"):
                assert 0 <= found.lower and found.upper <= 9


def test_numbers_may_lie_anywhere_in_their_bins():
    domain = Domain({"x": Numeric(0, 100, bins=4), "s": Categorical(["a", "b"])})
    release = gaussian(np.full((4, 2), 50.0), 0.0, domain)
    mean = release.mean("x", return_interval=True)
    assert (mean.lower, mean.upper) == pytest.approx((37.5, 62.5), rel=0.01)
    assert "anywhere in their bins" in mean.guarantee
    total = release.sum("x", return_interval=True)
    assert (total.lower, total.upper) == pytest.approx((400 * 37.5, 400 * 62.5), rel=0.01)
    middle = release.quantile("x", 0.6, return_interval=True)
    assert (middle.lower, middle.upper) == pytest.approx((50, 75))
    std = release.std("x", return_interval=True)
    assert std.value == pytest.approx(100 / np.sqrt(12))
    assert "spread evenly" in std.guarantee


# --- columns of other kinds


def test_dates_categories_and_derived_columns():
    domain = Domain(
        {
            "day": Date("2024-01-01", "2024-01-10"),
            "size": Categorical(["S", "M", "L"], ordered=True, nullable=True),
            "a": Numeric(0, 2, integer=True),
            "b": Numeric(0, 1, integer=True),
            "big": Categorical([0, 1]),
        },
        structure=[derived("big", "a", {0: 0, 1: 0, 2: 1})],
    )
    counts = np.random.default_rng(0).integers(0, 9, domain.shape)
    release = gaussian(counts, 1.0, domain)
    day = release.mean("day", return_interval=True)
    assert day.lower < day.value < day.upper and isinstance(day.value, pd.Timestamp)
    assert isinstance(day.std, pd.Timedelta) and "2024-01-" in repr(day)
    middle = release.quantile("day", return_interval=True)
    assert middle.lower <= middle.value <= middle.upper
    assert release.quantile("day") == middle.value
    size = release.quantile("size", [0.01, 0.99], return_interval=True)
    assert [each.value for each in size] == release.quantile("size", [0.01, 0.99]) == ["S", "L"]
    assert "S" in repr(size[0]) and np.isnan(size[0].std)
    how = {"return_interval": True, "interval": "population"}
    held = np.indices(domain.shape).reshape(4, -1)[2]
    spread = np.sqrt(np.cov(held, fweights=counts.ravel(), ddof=0))
    found = release.mean("a", **how).sampling_std
    assert found == pytest.approx(spread / np.sqrt(counts.sum()), rel=0.01)
    assert release.mean("big") == pytest.approx(release.proportion("a == 2"))
    assert release.correlation("big", "b", return_interval=True).value == pytest.approx(
        release.correlation("big", "b")
    )
    grouped = release.aggregate("big", "day", return_interval=True)
    assert (grouped["lower"] < grouped["upper"]).all()
    assert isinstance(grouped["std_error"].iloc[0], pd.Timedelta)
    for wrong, message in (
        (lambda: release.std("day"), "holds dates"),
        (lambda: release.correlation("a", "a"), "must be different"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda r: r.quantile("s"), "have no order"),
        (lambda r: r.mean("s"), "not numbers"),
        (lambda r: r.std("s", return_interval=True), "not numbers"),
        (lambda r: r.correlation("n", "s"), "not numbers"),
        (lambda r: r.quantile("n", 0.0), "between 0 and 1"),
        (lambda r: r.quantile("n", [0.5, 1.0]), "between 0 and 1"),
        (lambda r: r.quantile("n", -1), "between 0 and 1"),
        (lambda r: r.mean("n", return_interval=True, level=0), "between 0 and 1"),
        (lambda r: r.aggregate("s", return_interval=True, level=1), "between 0 and 1"),
        (lambda r: r.std("n", return_interval=True, level=1.0), "between 0 and 1"),
        (lambda r: r.count("n > 1", return_interval=True, interval="sample"), "interval"),
        (lambda r: r.mean("n", interval="population"), "return_interval=True"),
        (lambda r: r.mean("n", return_interval=True, population_size=9), "population_size"),
        (
            lambda r: r.mean("n", return_interval=True, interval="population", population_size=0),
            "positive",
        ),
        (lambda r: r.mean("x"), "no column 'x'"),
        (lambda r: r.std("x"), "no column 'x'"),
        (lambda r: r.quantile("x"), "no column 'x'"),
    ],
)
def test_wrong_questions_are_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        asked(EXACT)


def test_a_release_without_known_noise_has_values_and_no_intervals():
    release = cells(TABLE, None)
    for asked, truth in STATISTICS.values():
        assert asked(release) == pytest.approx(truth)
        with pytest.raises(ValueError, match="no intervals"):
            asked(release, return_interval=True)


def test_estimators_answer_as_their_releases():
    table = ROWS.sample(200, random_state=0)
    fitted = skdp.HDPViewSynthesizer(epsilon=1.0, domain=DOMAIN, random_state=0).fit(table)
    for asked, _ in STATISTICS.values():
        one, two = (asked(each, return_interval=True) for each in (fitted, fitted.synopsis_))
        assert repr(one) == repr(two)
    assert fitted.quantile("n", 0.3) == fitted.synopsis_.quantile("n", 0.3)


# --- real weights


def asked(*vectors):
    return [Query(({0: vector},)) for vector in vectors]


def test_boxes_take_weights_of_any_sign():
    """Signed weights mirror: the error of -w above is that of w below."""
    boxes = Boxes([[0], [3], [5]], [[3], [5], [9]])
    weights = np.linspace(-2.0, 3.0, 9)
    for law in (KnownNoise(1.0), AnySpread(1.0)):
        model = BoxModel(boxes, [30, 20, 50], (9,), law)
        one, two = (model.reach(asked(sign * weights), 0.9) for sign in (1, -1))
        assert (one.below, one.above) == (
            pytest.approx(two.above, rel=0.03),
            pytest.approx(two.below, rel=0.03),
        )
        [query] = asked(weights)
        twice = model.reach([query.plus(query)], 0.9)
        assert twice.above == pytest.approx(2 * one.above, rel=0.03)
        many = model.reach(asked(weights, np.ones(9)), 0.9)
        assert many.above[0] == pytest.approx(one.above[0], rel=0.2)
        mirrored = model.variance(asked(weights, -weights, 2 * weights))
        assert mirrored == pytest.approx(mirrored[0] * np.array([1, 1, 4]))


def test_bounds_on_uneven_boxes_hold_for_weights_of_any_sign():
    """All spreads of the records of two boxes whose errors are within the bounds."""
    boxes = Boxes([[0], [3]], [[3], [5]])
    bound = LeafErrorBound(4.0, 0.0, 1e-9, np.zeros(2, int), np.ones(2, int))
    weights = np.array([-2.0, 0.5, 1.0, -1.0, 3.0])
    for spread in itertools.product(range(5), repeat=5):
        held = np.array(spread)
        means = np.repeat([held[:3].mean(), held[3:].mean()], [3, 2])
        if np.abs(held - means)[:3].sum() > 4 or np.abs(held - means)[3:].sum() > 4:
            continue
        if held.sum() % 7:
            continue
        counts = [int(held[:3].sum()), int(held[3:].sum())]
        model = BoxModel(boxes, counts, (5,), BoundedSpread(50.0, bound))
        _, [below], [above], _ = model.reach(asked(weights), 0.9)
        [value] = model.answer(asked(weights))
        assert value - below - 1e-9 <= weights @ held <= value + above + 1e-9


def test_covariances_are_those_of_the_noise_and_of_records_in_one_cell():
    """Of 4,000 releases, whose boxes have all their records in one cell."""
    rng = np.random.default_rng(8)
    boxes = Boxes([[0], [3], [5]], [[3], [5], [9]])
    held = np.array([30, 20, 50])
    weights = rng.normal(size=(3, 9))
    truth = []
    for _ in range(4000):
        cells = boxes.lower[:, 0] + rng.integers(0, [3, 2, 4])
        truth.append(weights[:, cells] @ held)
    model = BoxModel(boxes, held, (9,), AnySpread(5.0))
    found = model.covariance(asked(*weights))
    assert np.diag(found) == pytest.approx(model.variance(asked(*weights)))
    noise = BoxModel(boxes, held, (9,), KnownNoise(5.0)).covariance(asked(*weights))
    size = np.sqrt(np.outer(np.diag(found), np.diag(found)))
    assert np.abs(found - noise - np.cov(np.array(truth).T)).max() < 0.1 * size.max()
    # Neither half nor twice of it would pass.
    assert np.abs(found - noise).max() > 0.5 * size.max()


def test_covariances_are_positive_semidefinite_with_the_stated_variances():
    rng = np.random.default_rng(9)
    release = MarginalSynthesizer(epsilon=1.0, domain=DOMAIN).fit(ROWS)
    made = [release.synopsis_.model, gaussian(TABLE, 4.0).model, cells(TABLE, AnySpread(1.0)).model]
    made.append(skdp.DataCube(epsilon=1.0, domain=DOMAIN).fit(ROWS)._asked().model)
    for model in made:
        for _ in range(20):
            chosen = [sorted(rng.choice(3, rng.integers(1, 3), replace=False)) for _ in range(4)]
            queries = [
                Query(({int(a): rng.random(DOMAIN.shape[a]) for a in axes},)) for axes in chosen
            ]
            queries.append(queries[0].plus(queries[1]))
            found = model.covariance(queries)
            variances = model.variance(queries)
            np.testing.assert_allclose(np.diag(found), variances, rtol=1e-6, atol=1e-6)
            assert np.linalg.eigvalsh(found).min() >= -1e-9 * variances.max()


def test_roots_keep_variances_of_what_is_no_covariance():
    wrong = np.array([[1.0, 5.0, 0.0], [5.0, 2.0, 1.0], [0.0, 1.0, 0.0]])
    root = roots(wrong)
    np.testing.assert_allclose(np.diag(root @ root.T), np.diag(wrong), atol=1e-12)
    right = np.cov(np.random.default_rng(0).normal(size=(4, 20)))
    np.testing.assert_allclose(roots(right), np.linalg.cholesky(right))
    assert not roots(np.zeros((2, 3, 3))).any()


def test_draws_are_normal():
    draws = normal_draws(6)
    rng = np.random.default_rng(0)
    for k, tolerance in ((2, 0.03), (6, 0.08)):
        directions = rng.normal(size=(500, k))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        ends = np.quantile(directions @ draws[:k], [0.025, 0.975], axis=1)
        assert np.abs(np.abs(ends) / 1.959964 - 1).max() < tolerance


# --- what is printed, and answers that are nearly certain


def test_printed_values_lie_in_their_interval_and_values_stay_linear():
    release = gaussian(np.where(TABLE > 30, TABLE, -20), 4.0)
    low = release.count("n == 9 and m == 3 and s == 'F'", return_interval=True)
    assert float(low) == -20 and repr(low).startswith("QueryResult(0")
    # Nothing but zero is left below the interval: the end of the law of what is possible.
    assert low.lower == 0 < low.upper == pytest.approx(-np.log(0.05) * 4 / 20)
    parts = [release.count(f"n == {n}", return_interval=True) for n in range(10)]
    assert sum(map(float, parts)) == pytest.approx(release.count())
    exact = gaussian(np.zeros(DOMAIN.shape), 0.0).count(return_interval=True)
    assert exact.lower == exact.upper == 0


def test_single_numbers_of_a_continuous_column():
    domain = Domain({"x": Numeric(0, 100, bins=20), "s": Categorical(["a", "b"])})
    rows = pd.DataFrame({"x": np.repeat([12.5, 80.0], 2000), "s": ["a", "b"] * 2000})
    for made in (MarginalSynthesizer, skdp.GridSynthesizer):
        release = made(epsilon=10.0, domain=domain, random_state=0).fit(rows).synopsis_
        for query, truth in (("x == 12.5", 2000), ("x == 12.5 and s == 'a'", 1000), ("x == 50", 0)):
            found = release.count(query, return_interval=True)
            assert abs(found.value) < 1e-6 and found.lower <= truth <= found.upper
            assert found.upper < truth + 300
        assert release.count("x != 12.5") == pytest.approx(release.count())
        drawn = release.sample(5, random_state=0, where="x == 12.5")
        assert drawn["x"].eq(12.5).all()


def test_networks_have_statistics_without_intervals():
    table = ROWS.dropna()
    domain = Domain({name: DOMAIN[name] for name in ("n", "s")})
    fitted = skdp.PrivBayesSynthesizer(epsilon=50.0, domain=domain, random_state=0).fit(
        table[["n", "s"]]
    )
    assert isinstance(fitted.synopsis_.model, NetworkModel)
    assert fitted.mean("n") == pytest.approx(table["n"].mean(), abs=0.5)
    assert fitted.std("n") == pytest.approx(table["n"].std(), abs=0.5)
    with pytest.raises(ValueError, match="no error bars"):
        fitted.mean("n", return_interval=True)


def test_correlations_without_names_are_a_matrix():
    found = EXACT.correlation()
    assert list(found) == list(found.index) == ["n", "m"]
    expected = BOTH[["n", "m"]].corr()
    np.testing.assert_allclose(found, expected)
    assert EXACT.correlation(["m", "n"], query="s == 'F'").loc["m", "n"] == pytest.approx(
        EXACT.correlation("m", "n", "s == 'F'")
    )
    noise = gaussian(TABLE, 4.0)
    held = noise.correlation(return_interval=True, level=0.9)
    alone = noise.correlation("n", "m", return_interval=True, level=0.9)
    for part, value in (("value", alone.value), ("lower", alone.lower), ("upper", alone.upper)):
        assert held[part].loc["n", "m"] == held[part].loc["m", "n"] == pytest.approx(value)
    assert held["lower"].loc["n", "n"] == 1 and held["std_error"].loc["n", "m"] > 0
    assert held.attrs == {"level": 0.9, "guarantee": alone.guarantee}
    names = Domain({"s": Categorical(["F", "M"]), "n": Numeric(0, 9, integer=True)})
    for asked, message in (
        (lambda: EXACT.correlation("n"), "must be two columns"),
        (lambda: EXACT.correlation(query=["n > 3"]), "of one query"),
        (
            lambda: gaussian(np.ones(20), 1.0, names).correlation(),
            "two columns of numbers, got 'n'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            asked()


def test_means_of_groups_are_those_of_an_aggregate():
    found = EXACT.mean("n", "n < 8", by="s", return_interval=True)
    pd.testing.assert_frame_equal(found, EXACT.aggregate("s", "n", "n < 8", return_interval=True))
    np.testing.assert_allclose(EXACT.mean("n", by=["s"])["mean"], ROWS.groupby("s")["n"].mean())


def test_means_under_a_condition_that_cuts_a_bin_are_of_the_part():
    domain = Domain({"x": Numeric(0, 1000, bins=10), "g": Categorical(["a", "b"])})
    rows = pd.DataFrame({"x": np.linspace(0, 1000, 4000), "g": ["a", "b"] * 2000})
    release = MarginalSynthesizer(epsilon=50.0, domain=domain).fit(rows).synopsis_
    for query, middle in (("x < 10", 5.0), ("x > 990", 995.0), ("x < 10 and g == 'a'", 5.0)):
        found = release.mean("x", query, return_interval=True)
        assert found.value == pytest.approx(middle, abs=0.5)
        assert 0.0 <= found.lower <= found.upper <= 1000.0
        assert release.sum("x", query, return_interval=True).lower >= 0.0


def test_a_mean_of_nobody_may_be_any_number_of_the_column():
    domain = Domain({"x": Numeric(10, 20, bins=10)})
    rows = pd.DataFrame({"x": np.linspace(10, 20, 400)})
    release = MarginalSynthesizer(epsilon=50.0, domain=domain).fit(rows).synopsis_
    found = release.mean("x", "x > 15 and x < 12", return_interval=True)
    assert (found.lower, found.upper) == (10.0, 20.0)
