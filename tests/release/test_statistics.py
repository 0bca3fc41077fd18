"""Statistics of a release with intervals: values, coverage, limits, bad input."""

import itertools
import pickle
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from boxed import GaussianNoise, one_box_each, random_query
from loops import over

import skdp
from skdp import Categorical, Date, Domain, Numeric, QueryResult, derived
from skdp.mechanisms import discrete_laplace_variance
from skdp.mechanisms.laplace import noise_reach
from skdp.release import Boxes, BoxModel, Intervals, LeafErrorBound, Query, statistics

SEX = Categorical(["F", "M"])
DOMAIN = Domain(
    {
        "n": Numeric(0, 9, integer=True),
        "m": Numeric(0, 3, integer=True, nullable=True),
        "s": SEX,
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


def gaussian(counts, variance, domain=DOMAIN):
    return one_box_each(domain, counts, GaussianNoise(np.full(np.size(counts), float(variance))))


def noisy(rng, std, table=TABLE):
    return np.round(table + rng.normal(0, std, table.shape))


EXACT = gaussian(TABLE, 0.0)
WOMEN = ROWS[ROWS["s"] == "F"]
BOTH = ROWS.dropna()
# A method of a release, what it is given, and what is true of the table.
STATISTICS = {
    "count": ("count", ["n > 3"], (ROWS["n"] > 3).sum()),
    "or": ("count", ["n > 7 or s == 'F'"], len(ROWS.query("n > 7 or s == 'F'"))),
    "sum": ("sum", ["n", "s == 'F'"], WOMEN["n"].sum()),
    "mean": ("mean", ["n", "s == 'F'"], WOMEN["n"].mean()),
    "missing": ("mean", ["m"], ROWS["m"].mean()),
    "either": ("mean", ["n", "s == 'F' or m == 2"], ROWS.query("s == 'F' or m == 2")["n"].mean()),
    "std": ("std", ["n"], ROWS["n"].std(ddof=0)),
    "share": ("proportion", ["n < 3", "s == 'F'"], (WOMEN["n"] < 3).mean()),
    "shares": (
        "proportion",
        ["n < 3 or m == 1", "m < 3"],
        ROWS.query("m < 3").eval("n < 3 or m == 1").mean(),
    ),
    "covariance": ("covariance", ["n", "m"], BOTH[["n", "m"]].cov(ddof=0).iloc[0, 1]),
    "correlation": ("correlation", ["n", "m"], BOTH[["n", "m"]].corr().iloc[0, 1]),
    "median": ("quantile", ["n"], ROWS["n"].quantile(interpolation="lower")),
    "of women": ("quantile", ["n", 0.9, "s == 'F'"], WOMEN["n"].quantile(0.9, "lower")),
}


def ask(release, statistic, **how):
    method, given, _ = statistic
    return getattr(release, method)(*given, **how)


@over("statistic", STATISTICS.values())
def test_statistics_of_exact_counts_are_those_of_the_table(statistic):
    truth = statistic[-1]
    assert ask(EXACT, statistic) == pytest.approx(truth)
    result = ask(EXACT, statistic, return_interval=True)
    assert isinstance(result, QueryResult)
    assert float(result) == ask(EXACT, statistic)
    assert (result.std, result.lower, result.upper) == pytest.approx((0, truth, truth), abs=1e-9)
    assert result.guarantee


def test_intervals_cover_as_often_as_they_say_and_half_of_them_do_not():
    """Of 200 releases, 80% intervals fail to cover 141 with a probability below 0.1% each."""
    rng = np.random.default_rng(11)
    covered, halved = (dict.fromkeys(STATISTICS, 0) for _ in range(2))
    for _ in range(200):
        release = gaussian(noisy(rng, 12.0), 144.0 + 1 / 12)
        for name, statistic in STATISTICS.items():
            found, truth = ask(release, statistic, return_interval=True, level=0.8), statistic[-1]
            covered[name] += found.lower <= truth <= found.upper
            low, high = ((found.value + end) / 2 for end in (found.lower, found.upper))
            halved[name] += low <= truth <= high
    assert min(covered.values()) >= 141, covered
    # Linear questions are not wider than they must be, and half of a width is refused.
    linear = ["count", "or", "sum", "mean", "missing", "share", "std"]
    assert max(covered[name] for name in linear) <= 180, covered
    assert max(halved[name] for name in linear) < 141, halved
    assert halved["covariance"] < 170 and halved["correlation"] < 170


def test_groups_have_the_intervals_of_their_queries():
    rng = np.random.default_rng(14)
    release = gaussian(noisy(rng, 3.0), 9.0)
    table = release.aggregate(["m", "s"], "n", return_interval=True)
    assert {"std_error", "lower", "upper"} <= set(table.columns)
    assert table.attrs["level"] == 0.95 and table.attrs["guarantee"]
    for row in table.itertuples():
        one = release.mean("n", {"m": [row.m], "s": row.s}, return_interval=True)
        assert (row.std_error, row.lower, row.upper) == pytest.approx(
            (one.std, one.lower, one.upper)
        )
    # The parts of a query may look at the columns of groups or not.
    either = release.aggregate("s", query="n < 4 or s == 'M'")
    expected = [release.count(f"(n < 4 or s == 'M') and s == '{each}'") for each in either["s"]]
    assert either["count"].tolist() == pytest.approx(expected)
    counts = release.aggregate("s", query="n < 4", bands=None, return_interval=True, level=0.8)
    one = release.count("n < 4 and s == 'M'", return_interval=True, level=0.8)
    assert counts.loc[1, ["lower", "upper"]].tolist() == pytest.approx([one.lower, one.upper])


@over("name", ["marginals", "boxes", "any spread", "cube", "programs", "line"])
def test_covariances_of_blocks_are_semidefinite_and_those_of_each(name):
    numbers = Domain({"n": Numeric(0, 9, bins=5), "s": Categorical(["F", "M"])})
    how, pairs = {"epsilon": 1.0, "domain": numbers, "random_state": 0}, ROWS[["n", "s"]]
    line = how | {"domain": numbers.select(["n"]), "partition": "adaptive"}
    made = {
        "marginals": lambda: skdp.MarginalSynthesizer(**how).fit(pairs).synopsis_.model,
        "boxes": lambda: skdp.HDPViewSynthesizer(**how).fit(pairs).synopsis_.model,
        "any spread": lambda: skdp.GridSynthesizer(**how, rule=2).fit(pairs).synopsis_.model,
        "cube": lambda: skdp.DataCube(**how).fit(pairs)._asked().model,
        "programs": lambda: skdp.DataCube(**how, consistency="l1").fit(pairs)._asked().model,
        "line": lambda: skdp.RangeTreeHistogram(**line).fit(ROWS[["n"]])._model,
    }
    model = made[name]()
    assert model.about.startswith("noisy counts") and model.covers.startswith("the noise")
    # Some kinds measure columns on a finer lattice than that of the domain.
    shape = getattr(model, "shape", (5, 2))
    rng = np.random.default_rng(7)
    blocks = [[random_query(rng, shape) for _ in range(4)] for _ in range(40)]
    # Sums of others: their errors follow from those.
    blocks = [[*block, block[0].plus(block[1])] for block in blocks]
    found = model.covariances(blocks)
    values = np.linalg.eigvalsh(found)
    assert (values[:, 0] >= -1e-12 * values[:, -1]).all()
    for block, covariance in zip(blocks, found, strict=True):
        np.testing.assert_allclose(covariance, model.covariance(block), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(np.diag(covariance), model.variance(block), rtol=1e-6, atol=1e-9)
        if name == "cube":
            # Noise alone is linear.
            assert covariance[4, 4] == pytest.approx(covariance[:2, :2].sum(), rel=1e-6, abs=1e-9)
    # Arrays that questions share are looked at once.
    first, second = rng.random(shape[0]), rng.random(shape[-1])
    shared = [{0: first}, {0: first, 1: second}][: len(shape)]
    apart = [{axis: vector.copy() for axis, vector in each.items()} for each in shared]
    found, expected = (model.covariance([Query((w,)) for w in each]) for each in (shared, apart))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# Slopes of the noise of each box where it is negative and where it is positive.
SLOPES = {
    "one": ([1.0], [1.0]),
    "equal": ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
    "cut": ([1.0, 0.7, 0.45], [1.0, 0.7, 0.45]),
    "of any sign": ([-2.0, 1.0, 0.5], [-2.0, 1.0, 0.5]),
    "bounded": ([0.2, -0.5, 0.0], [1.0, 0.7, 0.45]),
}


@over("slopes, epsilon, tail", itertools.product(SLOPES, [0.2, 0.7, 1.5], [0.1, 0.025, 0.005]))
def test_sums_of_noise_leave_what_they_say(slopes, epsilon, tail):
    low, high = map(np.array, SLOPES[slopes])
    z = np.arange(-60, 61)
    law = np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z))
    sums = reduce(np.add.outer, np.maximum(low[:, None] * z, high[:, None] * z))
    chances = reduce(np.multiply.outer, [law] * len(low))
    found = noise_reach(low, high, np.full(len(low), discrete_laplace_variance(epsilon)), tail)
    assert chances[sums > found + 1e-9].sum() <= 1.15 * tail
    # Nor is it much wider: 15% and one step of a lattice less would leave too much.
    assert chances[sums > 0.85 * found - 1.0].sum() > tail


def test_records_of_a_box_may_lie_in_any_one_cell():
    boxes = Boxes([[0, 0], [0, 1], [3, 0]], [[3, 1], [3, 2], [5, 2]])
    model = BoxModel(boxes, [40, -5, 90], (5, 2), Intervals(0.5, "any"))
    rng, noise = np.random.default_rng(0), model.intervals.variances(3)
    for _ in range(20):
        weights = rng.normal(size=(2, 5)), rng.normal(size=(2, 2))
        asked = [Query(({0: one, 1: two},)) for one, two in zip(*weights, strict=True)]
        cells = np.einsum("qi,qj->qij", *weights)
        expected = np.zeros((2, 2))
        for count, variance, low, high in zip(
            model.counts, noise, boxes.lower, boxes.upper, strict=True
        ):
            inside = cells[:, low[0] : high[0], low[1] : high[1]].reshape(2, -1)
            mean = inside.mean(axis=1)
            expected += variance * np.outer(mean, mean)
            expected += max(count, 0) ** 2 * np.cov(inside, bias=True)
        np.testing.assert_allclose(model.covariances([asked])[0], expected, rtol=1e-9)


def test_correlations_that_no_table_has_are_left_out():
    """The spread of a column may be hidden in noise: not every correlation is possible then."""
    rng, truth, covered, widths = np.random.default_rng(3), STATISTICS["correlation"][-1], 0, []
    for _ in range(100):
        release = gaussian(noisy(rng, 80.0), 6400.0)
        found = release.correlation("n", "m", return_interval=True, level=0.8)
        assert -1 <= found.lower <= found.upper <= 1
        covered += found.lower <= truth <= found.upper
        widths.append(found.upper - found.lower)
    # Fewer than 64 of 100 with a probability of 0.01% if 80% are covered.
    assert covered >= 64 and np.mean(widths) < 1.5, (covered, np.mean(widths))


def test_a_spread_that_noise_hides_does_not_make_a_correlation_small():
    domain = Domain({"n": Numeric(0, 3, integer=True), "w": Numeric(0, 29, integer=True)})
    table = np.zeros((4, 30))
    table[range(4), range(4)], table[range(4), range(3, -1, -1)] = 380, 130
    cells_of_rows = np.repeat(np.indices(table.shape).reshape(2, -1), table.ravel().astype(int), 1)
    truth, rng, covered = np.corrcoef(cells_of_rows)[0, 1], np.random.default_rng(4), 0
    for _ in range(100):
        release = gaussian(noisy(rng, 4.0, table), 16.0, domain)
        found = release.correlation("n", "w", return_interval=True)
        covered += found.lower <= truth <= found.upper
    # Of 95% intervals fewer than 88 hold with a probability of 0.4%.
    assert covered >= 88


def test_what_is_not_known_of_a_covariance_goes_with_the_spreads():
    """Where these are known badly, a correlation near zero is no worse known."""
    answers, scale = np.array([[1e4, 0, 0, 900, 900, 0.0]]), np.array([[0], [1], [-1], [1.0]])
    errors = np.diag([0, 0, 0, 300.0, 300, 0.07 * 900])[None] ** 2
    ends = np.ravel(statistics._simulated("correlation", answers, scale, errors, 1.96))
    np.testing.assert_allclose(ends, [-0.137, 0.137], rtol=0.05)


# --- limits of what is possible


def test_nothing_is_known_of_empty_groups():
    for count, variance in ((0, 100.0), (-5, 100.0), (1, 1e6)):
        release = gaussian(np.full(DOMAIN.shape, count), variance)
        mean = release.mean("n", "s == 'F'", return_interval=True)
        assert (mean.lower, mean.upper) == (0, 9) and 0 < mean.std <= 4.5
        assert "too few records for this noise" in mean.guarantee
        share = release.proportion("n > 3", "s == 'F'", return_interval=True)
        assert (share.lower, share.upper) == (0, 1)
        std = release.std("n", return_interval=True)
        assert std.lower == 0 and 4.2 < std.upper <= 4.5
        assert release.correlation("n", "m", return_interval=True).upper == 1
        found = release.covariance("n", "m", return_interval=True)
        assert -found.lower == pytest.approx(found.upper, rel=0.02)
        assert 5 < found.upper <= 4.5 * 1.5
        middle = release.quantile("n", 0.5, return_interval=True)
        assert 0 <= middle.lower <= middle.upper <= 9
        table = release.aggregate("s", "n", return_interval=True)
        assert table[["std_error", "lower", "upper"]].notna().all(axis=None)


@over("query", ["n > 9", "n < 2 and n > 5", {"n": []}])
def test_a_condition_on_the_column_itself_may_leave_nothing(query):
    release = gaussian(np.full(DOMAIN.shape, 50), 1.0)
    # It counted as no condition: the sum was that of all records, with an interval around it.
    assert release.sum("n", query) == 0 and np.isnan(release.std("n", query))
    mean = release.mean("n", query, return_interval=True)
    assert np.isnan(float(mean)) and (mean.lower, mean.upper) == (0, 9)
    assert np.isnan(release.correlation("n", "m", query))
    assert release.aggregate("s", "n", query)["sum"].tolist() == [0, 0]


@over("at", [0.01, 0.5, 3.99, 4.0])
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


def test_records_are_believed_to_lie_at_numbers_beside_which_there_are_none():
    # All numbers of a column are whole, or half of them, or next to none.
    rng, n = np.random.default_rng(1), 30_000
    whole, even, sex = rng.integers(0, 7, n) + 0.0, rng.uniform(0, 6, n), rng.choice(["F", "M"], n)
    half = np.where(rng.random(n) < 0.5, whole, even)
    rows = pd.DataFrame({"whole": whole, "half": half, "even": even, "sex": sex})
    domain = Domain(dict.fromkeys(["whole", "half", "even"], Numeric(0, 6)) | {"sex": SEX})
    made = skdp.MarginalSynthesizer(epsilon=8.0, domain=domain, random_state=0)
    release = made.fit(rows).synopsis_
    conditions = ("== 1", "== 2.3", "!= 2", "<= 3", "< 3", "> 4", ">= 4", "< 6", "== 6", "> 0")
    texts = [f"{name} {each}" for name in ("whole", "half", "even") for each in conditions]
    queries = [*texts, *(f"{each} and sex == 'F'" for each in texts)]
    found = release.count(queries, return_interval=True)
    true = [len(rows.query(each)) for each in queries]
    missed = sum(not a.lower <= t <= a.upper for a, t in zip(found, true, strict=True))
    assert missed <= 8  # of 60 at 95%: a false alarm in 100
    for query, answer, t in zip(queries, found, true, strict=True):
        if query.startswith("whole"):
            assert abs(float(answer) - t) < 200 and answer.upper - answer.lower < 1_000, query
    assert release.count("even == 3") < 150 and 2_000 < release.count("half == 3") < 3_000
    # All statistics agree, and drawn rows.
    for query in ("whole == 3", "whole > 4"):
        among, count = rows.query(query), release.count(query)
        assert release.proportion(query) == pytest.approx(count / release.count(), rel=0.01)
        counts = release.aggregate("sex", query=query, return_interval=True)["count"]
        assert counts.sum() == pytest.approx(count, rel=0.05)
        for statistic in ("sum", "mean"):
            answer = getattr(release, statistic)("even", query, return_interval=True, level=0.999)
            assert answer.lower <= among["even"].agg(statistic) <= answer.upper
        assert abs(release.quantile("even", 0.5, query) - among["even"].median()) < 0.3
        drawn = release.sample(where=query, random_state=0)
        assert len(drawn) == round(count) == len(drawn.query(query))


def test_numbers_where_records_lie_densely_are_not_taken_for_single_ones():
    rng, n = np.random.default_rng(0), 20_000
    rows = {"pay": rng.pareto(1.2, n).clip(0, 1e5), "near": (50 + rng.laplace(0, 0.3, n))}
    rows |= {"share": rng.beta(8, 0.4, n), "none": np.where(rng.random(n) < 0.3, 0, rows["pay"])}
    ends = {"pay": (0, 1e5), "near": (0, 100), "share": (0, 1), "none": (0, 1e5)}
    domain = Domain({name: Numeric(*each) for name, each in ends.items()})
    made = skdp.MarginalSynthesizer(epsilon=8.0, domain=domain, random_state=0)
    release, rows = made.fit(pd.DataFrame(rows)).synopsis_, pd.DataFrame(rows)
    for query in ("pay == 0", "pay > 0", "near == 50", "near > 50", "share == 1", "none == 0"):
        answer = release.count(query, return_interval=True)
        assert answer.lower <= len(rows.query(query)) <= answer.upper, query
    assert release.count("none == 0") > 4_000


def test_what_noise_hides_of_a_single_number_may_lie_at_it():
    queries = [f"x {how} {at}" for at in range(20) for how in ("==", "!=", "<=")]
    domain, held = Domain({"x": Numeric(0, 20)}), []
    for seed in range(3):
        rows = pd.DataFrame({"x": np.random.default_rng(seed).integers(0, 20, 20_000) * 1.0})
        made = skdp.MarginalSynthesizer(epsilon=0.02, domain=domain, random_state=seed)
        found = made.fit(rows).synopsis_.count(queries, return_interval=True)
        true = [len(rows.query(each)) for each in queries]
        held += [each.lower <= t <= each.upper for each, t in zip(found, true, strict=True)]
    assert np.mean(held) > 0.88


@over("std", [0.0, 30.0])
def test_means_lie_within_the_ends_that_a_condition_leaves(std):
    domain = Domain({"x": Numeric(0, 100, bins=4), "s": Categorical([1, 5, 9])})
    release = gaussian(noisy(GENERATOR, std, np.full((4, 3), 5.0)), std**2, domain)
    for column, query, low, high in (
        ("x", "30 < x < 40", 30, 40),
        ("x", "x == 33", 33, 33),
        ("x", "x > 60 and s == 1", 60, 100),
        ("x", "x < 10 or x > 90 and s == 9", 0, 100),
        ("s", "s != 9 and x < 50", 1, 5),
    ):
        found = release.mean(column, query, return_interval=True)
        assert low <= found.lower <= found.upper <= high
        assert np.isnan(found.value) or found.lower <= found.value <= found.upper
        assert found.value == release.mean(column, query) or np.isnan(found.value)
    # All numbers of a bin may lie at either end of what is left of it.
    if not std:
        found = release.mean("x", "30 < x < 40", return_interval=True)
        assert (found.lower, found.upper) == pytest.approx((30, 40), abs=0.2)


def test_what_is_printed_is_possible_and_values_add_up():
    counts = np.full(DOMAIN.shape, 4.0)
    counts[0, 1, 0] = -9.0
    release = gaussian(counts, 1.0)
    count = release.count({"n": 0, "m": 1, "s": "F"}, return_interval=True)
    assert count.value == -9 and count.lower == count.shown == 0 < count.upper < 0.4
    assert "-" not in repr(count)
    # A number that knows its interval: it adds up, and prints what is possible; no copy holds more.
    plain = release.count({"n": 0, "m": 1, "s": "F"})
    assert plain + 9 == 0 and str(plain) == str(count) == str(plain.interval)
    assert type(pickle.loads(pickle.dumps(plain))) is type(plain * 2) is float
    cells = release.aggregate(["n", "m", "s"], return_interval=True)
    assert cells["count"].sum() == pytest.approx(release.count())
    nobody = gaussian(-counts.clip(4), 1.0)
    described = nobody.describe()
    assert str(described.loc["n", "count"]).startswith("0 ")
    assert str(described.loc["s", "freq"]).startswith("0 ")
    assert described.loc["n", "count"].value < 0
    assert "estimated records 0" in repr(nobody)


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


def test_means_of_marginals_cover_what_lies_to_one_side_of_bins_as_far_as_counts_leave_open():
    rng, n = np.random.default_rng(0), 20_000
    pay = rng.gamma(3, 15_000, n).clip(0, 199_999)
    leaning = {}
    for name, numbers in {"spread": pay, "thousands": pay // 1_000 * 1_000}.items():
        table = pd.DataFrame({"pay": numbers, "sex": rng.choice(["F", "M"], n)})
        domain = Domain({"pay": (0.0, 200_000.0), "sex": ["F", "M"]})
        fitted = skdp.MarginalSynthesizer(epsilon=1, domain=domain, random_state=0).fit(table)
        release = fitted.synopsis_
        widths = np.diff(release.counted["pay"].edges)
        leaning[name] = release.model.leaning(0, widths)
        mean = release.mean("pay", return_interval=True)
        assert mean.lower <= numbers.mean() <= mean.upper
    # Of the narrowest bins, which hold nobody, nothing is known.
    assert (leaning["spread"][widths < 1] >= 0.5).all()
    assert (leaning["spread"][widths == 500] < 0.3).all()
    assert (leaning["thousands"][widths == 500] > 0.9).all()


# --- columns of other kinds


def test_dates_categories_and_derived_columns():
    domain = Domain(
        {
            "day": Date("2024-01-01", "2024-01-10"),
            "size": Categorical(["S", "M", "L"], ordered=True, nullable=True),
            "a": Numeric(0, 2, integer=True),
            "big": Categorical([0, 1]),
        },
        structure=[derived("big", "a", {0: 0, 1: 0, 2: 1})],
    )
    release = gaussian(np.random.default_rng(0).integers(0, 9, domain.shape), 1.0, domain)
    day = release.mean("day", return_interval=True)
    assert day.lower < day.value < day.upper and isinstance(day.value, pd.Timestamp)
    assert isinstance(day.std, pd.Timedelta) and "2024-01-" in repr(day)
    middle = release.quantile("day", return_interval=True)
    assert middle.lower <= middle.value <= middle.upper
    size = release.quantile("size", [0.01, 0.99], return_interval=True)
    assert [each.value for each in size] == release.quantile("size", [0.01, 0.99]) == ["S", "L"]
    assert release.mean("big") == pytest.approx(release.proportion("a == 2"))
    grouped = release.aggregate("big", "day", return_interval=True)
    assert (grouped["lower"] < grouped["upper"]).all()


# --- real weights


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
        model = BoxModel(boxes, counts, (5,), Intervals(50.0, bound))
        _, [below], [above], _ = model.reach([Query(({0: weights},))], 0.9)
        [value] = model.answer([Query(({0: weights},))])
        assert value - below - 1e-9 <= weights @ held <= value + above + 1e-9
