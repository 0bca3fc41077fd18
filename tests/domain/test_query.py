"""Queries with or, not, between, bands and names, against pandas on tables known exactly."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

import skdp
from skdp import Categorical, Date, Domain, Numeric, Synopsis
from skdp.domain.query import parts_of
from skdp.mechanisms import discrete_laplace
from skdp.release import AnySpread, Boxes, BoxModel, KnownNoise, parse

DOMAIN = Domain(
    {
        "n": Numeric(0, 4, integer=True, nullable=True),
        "m": Numeric(10, 13, integer=True),
        "s": Categorical(["F", "M"]),
        "o": Categorical(["low", "mid", "high"], ordered=True, nullable=True),
    }
)


def exact(domain, counts):
    """A synopsis with one box for each cell."""
    lower = np.indices(domain.shape).reshape(len(domain.shape), -1).T
    return Synopsis(
        domain, BoxModel(Boxes(lower, lower + 1), counts, domain.shape, KnownNoise(1.0))
    )


CELLS = np.indices(DOMAIN.shape).reshape(4, -1).T
COUNTS = np.random.default_rng(0).integers(0, 9, len(CELLS))
RELEASE = exact(DOMAIN, COUNTS)
ROWS = pd.DataFrame(
    {
        "n": np.where(CELLS[:, 0] < 5, CELLS[:, 0], np.nan),
        "m": CELLS[:, 1] + 10,
        "s": np.array(["F", "M"])[CELLS[:, 2]],
        "o": np.array(["low", "mid", "high", None], dtype=object)[CELLS[:, 3]],
    }
)
VALUES = {"n": range(5), "m": range(10, 14), "s": ["F", "M"]}


@st.composite
def comparison(draw):
    """A condition that pandas reads too."""
    name = draw(st.sampled_from([*VALUES]))
    one = st.sampled_from(list(VALUES[name]))
    operators = ["==", "!=", "in", "not in"]
    operator = draw(st.sampled_from(operators + ["<", "<=", ">", ">="] * (name != "s")))
    value = draw(st.lists(one, min_size=1, max_size=3) if "in" in operator else one)
    return f"{name} {operator} {value!r}"


expressions = st.recursive(
    comparison(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(expressions)
def test_any_expression_counts_the_rows_that_pandas_finds(text):
    found = ROWS.query(text, engine="python").index
    assert RELEASE.count(text) == pytest.approx(COUNTS[found].sum())
    # The conjunctions are disjoint.
    covered = np.zeros(DOMAIN.shape)
    for weights in parse(text, DOMAIN).products:
        part = np.ones(DOMAIN.shape)
        for axis, vector in weights.items():
            part *= vector.reshape([-1 if a == axis else 1 for a in range(4)])
        covered += part
    expected = np.zeros(len(ROWS))
    expected[found] = 1
    np.testing.assert_array_equal(covered.ravel(), expected)


@settings(max_examples=60)
@given(expressions, expressions)
def test_answers_are_consistent(first, second):
    def count(text):
        return RELEASE.count(text)

    assert count(first) + count(f"not ({first})") == pytest.approx(RELEASE.total)
    both, any_of = count(f"({first}) and ({second})"), count(f"({first}) or ({second})")
    assert both + any_of == pytest.approx(count(first) + count(second))
    assert -1e-9 <= both <= any_of + 1e-9


def one(text, domain):
    """Weights of what is one conjunction."""
    [weights] = parse(text, domain).products
    return weights


def test_words_beyond_those_of_pandas():
    n, o, s, m = (ROWS[name] for name in ("n", "o", "s", "m"))
    for text, mask in {
        "n between 1 and 3": n.between(1, 3),
        "n not between 1 and 3": ~n.between(1, 3),
        "n is null": n.isna(),
        "n is not null or s == 'F'": n.notna() | (s == "F"),
        "o IS NULL OR NOT (n >= 2 AND s IN ['M'])": o.isna() | ~((n >= 2) & (s == "M")),
        "o between 'mid' and 'high' or n is None": o.isin(["mid", "high"]) | n.isna(),
        "~(o > 'low') & m != 11 | not not n = 3": (~o.isin(["mid", "high"]) & (m != 11)) | (n == 3),
        "not n > 2 and s == 'F'": ~(n > 2) & (s == "F"),
        "n > 2 or n <= 2 or n is null": n.isna() | n.notna(),
        "n > 3 and n < 2 or s == 'F' and s == 'M'": n < 0,
    }.items():
        assert RELEASE.count(text) == COUNTS[mask.to_numpy()].sum(), text


def test_sums_means_and_groups_of_unions():
    text = "n <= 1 and s == 'F' or n >= 3 and m == 12 or o is null"
    held = ROWS.loc[ROWS.index.repeat(COUNTS)].query(
        "n <= 1 and s == 'F' or n >= 3 and m == 12 or o != o"
    )
    assert RELEASE.sum("n", text) == pytest.approx(held["n"].sum())
    assert RELEASE.mean("n", text) == pytest.approx(held["n"].mean())
    np.testing.assert_allclose(
        RELEASE.sum("m", [text, "m > 11", "s == 'F' or n is null"]),
        [
            held["m"].sum(),
            (ROWS["m"] * COUNTS)[ROWS["m"] > 11].sum(),
            (ROWS["m"] * COUNTS)[(ROWS["s"] == "F") | ROWS["n"].isna()].sum(),
        ],
    )
    groups = RELEASE.aggregate("s", "m", text).set_index("s")
    expected = held.groupby("s")["m"].agg(["count", "sum", "mean"])
    pd.testing.assert_frame_equal(groups, expected, check_dtype=False, check_index_type=False)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=4))
def test_ranges_that_share_a_bin_count_it_once(ranges):
    domain = Domain({"x": Numeric(0, 10, bins=4), "y": Categorical(["a", "b"])})
    text = " or ".join(f"x between {min(r) / 4} and {max(r) / 4}" for r in ranges)
    fine = (np.arange(4000) + 0.5) / 400
    inside = np.any([(min(r) / 4 <= fine) & (fine <= max(r) / 4) for r in ranges], axis=0)
    [weights] = one(text, domain).values()
    np.testing.assert_allclose(weights, inside.reshape(4, -1).mean(axis=1), atol=2e-3)


def test_special_values_steps_and_long_lists():
    domain = Domain(
        {
            "pay": Numeric(0, 100, bins=10, special=[-1, 999], nullable=True),
            "cents": Numeric(0, 1, decimals=2, bins=5),
        }
    )
    assert one("pay < 20 or pay >= 95", domain)[0].tolist() == [
        *[1, 1, 0, 0, 0, 0, 0, 0, 0, 0.5],
        *[1, 1, 0],
    ]
    assert parse("not pay < 20", domain).products[0][0].tolist() == [0, 0, *[1] * 8, 0, 1, 1]
    for text in (
        "cents in [0.05, 0.1] or cents > 0.9",
        "not (cents not in [0.05, 0.1] and cents <= 0.9)",
    ):
        np.testing.assert_allclose(one(text, domain)[1], [0.1, 0, 0, 0, 10 / 21], atol=1e-12)
    many = " or ".join(f"cents == {k / 100}" for k in range(0, 100, 2))
    np.testing.assert_allclose(one(many, domain)[1].sum(), 2 * (10 / 20) * 2.5, rtol=0.05)


def test_too_many_conjunctions_are_refused():
    domain = Domain({f"c{i}": Categorical([0, 1]) for i in range(24)})
    text = " and ".join(f"(c{i} == 1 or c{i + 1} == 0)" for i in range(0, 24, 2))
    with pytest.raises(ValueError, match="too complicated: .* 1,000 disjoint"):
        parts_of(text, domain)
    wide = " or ".join(f"c{i} == 1" for i in range(24))
    assert len(parts_of(wide, domain)) == 24
    many = Domain({f"c{i}": Categorical([0, 1]) for i in range(900)})
    with pytest.raises(ValueError, match="too complicated: .* at most 200 columns"):
        parts_of(" or ".join(f"c{i} == 1" for i in range(900)), many)
    with pytest.raises(ValueError, match="too complicated"):
        parts_of(" and ".join(f"(c{i} == 1 or c{(7 * i) % 90} == 0)" for i in range(90)), many)
    assert len(parts_of(" and ".join(f"c{i} == 1" for i in range(900)), many)) == 1


# --- names


def test_names_stand_for_values():
    names = {"low": np.int64(1), "those": {"F"}, "some": np.array([1, 2])}
    assert RELEASE.count("n >= @low and s in @those", names=names) == RELEASE.count(
        "n >= 1 and s == 'F'"
    )
    answers = RELEASE.count(["n in @some", "n between @low and 3"], names=names)
    np.testing.assert_array_equal(answers, RELEASE.count(["n in [1, 2]", "n between 1 and 3"]))
    assert RELEASE.mean("m", "n == @low", names=names) == RELEASE.mean("m", "n == 1")
    rows = RELEASE.sample(50, 0, where="n == @low", names=names)
    assert (rows["n"] == 1).all()
    with pytest.raises(
        ValueError, match=r"position 5: nothing is given for @lo; did you mean @low"
    ):
        RELEASE.count("n >= @lo", names=names)
    with pytest.raises(TypeError, match="names must be a mapping"):
        RELEASE.count("n >= @lo", names=[3])


def test_names_may_be_dates():
    domain = Domain({"day": Date("2024-01-01", "2024-01-31")})
    start = pd.Timestamp("2024-01-10")
    texts = ["day >= @start", "day < '2024-01-10'"]
    release = exact(domain, np.arange(31))
    answers = release.count(texts, names={"start": start})
    np.testing.assert_allclose(answers, [sum(range(9, 31)), sum(range(9))])


# --- bands


@over("right", [True, False])
def test_bands_are_those_of_pandas(right):
    held = ROWS.loc[ROWS.index.repeat(COUNTS)]
    edges = [-1, 1, 3, 5]
    cut = pd.cut(held["n"], edges, right=right)
    expected = held.groupby(cut, observed=False)["m"].agg(["count", "sum", "mean"])
    found = RELEASE.aggregate("n", "m", bands={"n": edges}, right=right).set_index("n")
    assert found.index.tolist() == expected.index.tolist()
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy())
    two = pd.crosstab(held["s"], cut, dropna=False)
    table = RELEASE.crosstab("s", "n", bands={"n": edges}, right=right)
    np.testing.assert_allclose(table.to_numpy(), two.to_numpy()[:, :3])
    assert table.columns.name == "n"
    turned = RELEASE.crosstab("n", "s", bands={"n": edges}, right=right)
    np.testing.assert_array_equal(turned.to_numpy(), table.to_numpy().T)


def test_bands_of_the_column_that_is_averaged_and_of_a_query_on_it():
    held = ROWS.loc[ROWS.index.repeat(COUNTS)].query("n != 2 and (s == 'F' or m > 11)")
    expected = held.groupby(pd.cut(held["n"], [0, 2, 4]), observed=False)["n"].mean()
    found = RELEASE.aggregate("n", "n", "n != 2 and (s == 'F' or m > 11)", bands={"n": [0, 2, 4]})
    np.testing.assert_allclose(found["mean"], expected)


def test_bands_of_dates_and_open_ends():
    domain = Domain({"day": Date("2024-01-01", "2024-01-31"), "x": Numeric(0, 10, bins=5)})
    release = exact(domain, np.ones(155))
    bands = {"day": ["2024-01-01", "2024-01-11", "2024-02-01"]}
    table = release.aggregate("day", bands=bands, right=False)
    assert table["count"].tolist() == [50, 105]
    assert table["day"][0].left == pd.Timestamp("2024-01-01")
    open_ended = release.aggregate("x", bands={"x": [-np.inf, 5, np.inf]})
    np.testing.assert_allclose(open_ended["count"], [77.5, 77.5])
    index = pd.IntervalIndex.from_tuples([(0, 1), (4, 6)], closed="both")
    np.testing.assert_allclose(release.aggregate("x", bands={"x": index})["count"], [15.5, 31])


@over(
    "bands, message",
    [
        ({"n": [3, 1]}, "ascending"),
        ({"n": [1]}, "ascending"),
        ({"n": 3}, "list of edges"),
        ({"n": ["a", "b"]}, "."),
        ({"m": [10, 12]}, "bands names 'm'"),
        ({"q": [10, 12]}, "no column 'q'"),
    ],
)
def test_wrong_bands_are_refused(bands, message):
    with pytest.raises(ValueError, match=message):
        RELEASE.aggregate("n", bands=bands)
    with pytest.raises(ValueError, match="Categorical, which has no bands"):
        RELEASE.aggregate("s", bands={"s": [1, 2]})
    with pytest.raises(TypeError, match="mapping"):
        RELEASE.aggregate("s", bands=[1, 2])


# --- other models, intervals, samples


def released():
    """One release of each kind of model, on the same rows."""
    held = ROWS.loc[ROWS.index.repeat(COUNTS * 3)]
    return {
        "boxes": skdp.HDPViewSynthesizer(epsilon=2.0, domain=DOMAIN, random_state=0),
        "network": skdp.PrivBayesSynthesizer(epsilon=2.0, domain=DOMAIN, random_state=0),
        "marginals": skdp.MarginalSynthesizer(epsilon=2.0, domain=DOMAIN, random_state=0),
    }, held


@pytest.mark.filterwarnings("ignore::skdp.exceptions.InsecureSeedWarning")
@over("kind", ["boxes", "network", "marginals"])
def test_unions_on_every_model(kind):
    makers, held = released()
    release = makers[kind].fit(held).synopsis_
    pairs = itertools.combinations(
        ["n < 2", "s == 'F'", "not o == 'low'", "m in [10, 13] and n is not null"], 2
    )
    for one, two in pairs:
        union = release.count(f"({one}) or ({two})")
        parts = [release.count(text) for text in (one, two, f"({one}) and ({two})")]
        assert union == pytest.approx(parts[0] + parts[1] - parts[2], rel=0.02, abs=3)
        if kind != "boxes":
            assert union >= max(parts[:2]) - 1e-6 - 0.02 * release.total
        rest = release.count(f"not (({one}) or ({two}))")
        # How far a table of two columns is believed depends on how many are asked.
        assert union + rest == pytest.approx(release.total, rel=1e-3)
    if kind == "network":
        with pytest.raises(ValueError, match="no error bars"):
            release.count("n < 2 or s == 'F'", return_interval=True)
    else:
        answer = release.count("n < 2 or s == 'F'", return_interval=True)
        assert answer.lower < float(answer) < answer.upper
        assert answer.guarantee
    rows = release.sample(200, 1, where="n < 2 or s == 'F' and o == 'mid'")
    assert ((rows["n"] < 2) | ((rows["s"] == "F") & (rows["o"] == "mid"))).all()


def test_a_union_that_is_a_conjunction_has_its_interval():
    boxes = Boxes([[0, 0, 0, 0], [3, 0, 0, 0]], [[3, 4, 2, 4], [6, 4, 2, 4]])
    for law in (KnownNoise(0.5), AnySpread(0.5)):
        release = Synopsis(DOMAIN, BoxModel(boxes, [700, 300], DOMAIN.shape, law))
        one = release.count("n < 3", return_interval=True)
        two = release.count(
            "n < 3 and s == 'F' or n < 3 and s == 'M' and m > 11 or n < 3 and m < 12",
            return_interval=True,
        )
        assert (one.value, one.lower, one.upper) == pytest.approx((two.value, two.lower, two.upper))
        assert one.std == pytest.approx(two.std)


@pytest.mark.slow
def test_intervals_of_unions_cover_noise_and_any_spread():
    """At 90 percent of 300 releases, fewer than 250 covered has a probability below 1e-5."""
    generator = np.random.default_rng(5)
    domain = Domain({"a": Numeric(0, 5, integer=True), "b": Numeric(0, 5, integer=True)})
    boxes = Boxes([[0, 0], [3, 0], [3, 3]], [[3, 6], [6, 3], [6, 6]])
    truth = generator.integers(0, 200, (6, 6)) * (generator.random((6, 6)) < 0.5)
    sums = [truth[a:c, b:d].sum() for (a, b), (c, d) in zip(boxes.lower, boxes.upper, strict=True)]
    a, b = np.indices((6, 6))
    queries = {"a < 2 or b > 3": (a < 2) | (b > 3), "not (a < 1 and b < 5)": ~((a < 1) & (b < 5))}
    covered = dict.fromkeys(queries, 0)
    for seed in range(300):
        with pytest.warns(skdp.exceptions.InsecureSeedWarning):
            noisy = discrete_laplace(np.array(sums), 0.1, random_state=seed)
        release = Synopsis(domain, BoxModel(boxes, noisy, domain.shape, AnySpread(0.1)))
        for text, cells in queries.items():
            answer = release.count(text, return_interval=True, level=0.9)
            covered[text] += answer.lower <= truth[cells].sum() <= answer.upper
    assert min(covered.values()) >= 250


@over("method", ["rounded", "independent"])
def test_samples_of_a_union_follow_it(method):
    domain = Domain({"x": Numeric(0, 8, bins=4), "s": Categorical(["F", "M"])})
    release = exact(domain, [100, 0, 100, 50, 300, 0, 0, 200])
    where = "x < 1 or x >= 2.5 and x < 5 and s == 'F' or x > 7"
    rows = release.sample(4000, 0, where=where, method=method)
    assert len(rows.query(where)) == 4000
    for text in ("x < 1", "x > 7", "2.5 <= x < 5"):
        share = release.count(f"({text}) and ({where})") / release.count(where)
        assert len(rows.query(text)) / 4000 == pytest.approx(share, abs=0.04)
    # Inside a bin that two parts divide, numbers are even.
    inside = release.sample(4000, 0, where="x < 0.5 or x > 1.5 and x < 2", method=method)["x"]
    assert ((inside < 0.5) | (inside > 1.5)).all()
    assert (inside < 0.5).mean() == pytest.approx(0.5, abs=0.05)
    n = len(release.sample(random_state=0, where=where, method=method))
    assert n == round(release.count(where))


def test_a_union_beside_given_columns_is_refused():
    given_rows = pd.DataFrame({"m": [10, 11]})
    with pytest.raises(ValueError, match="not supported together with given"):
        RELEASE.sample(where="n < 2 or s == 'F'", given=given_rows)
    # On one column, "or" makes no union over several.
    rows = RELEASE.sample(where="n < 1 or n > 3", given=given_rows, random_state=0)
    assert rows["n"].isin([0, 4]).all()
    # A part that is impossible is left out.
    rows = RELEASE.sample(20, 0, where="n > 3 and n < 2 or s == 'F'")
    assert (rows["s"] == "F").all()
    with pytest.raises(ValueError, match="No row can satisfy"):
        RELEASE.sample(20, 0, where="n > 3 and n < 2 or s == 'F' and s == 'M'")


# --- what an answer looks like


def test_an_answer_is_short():
    answer = RELEASE.count("s == 'F'", return_interval=True)
    assert "noise" in answer.guarantee
    assert "noise" not in repr(answer)
    shown = skdp.release.QueryResult(16512.3, 58.0, 16394.27, 16630.33, "<all>")
    assert repr(shown) == "QueryResult(16,512, interval 16,394 to 16,630)"
    assert "&lt;all&gt;" in shown._repr_html_()
    small = skdp.release.QueryResult(0.45, 0.001, 0.437712, 0.462288, "")
    assert repr(small) == "QueryResult(0.4500, interval 0.4377 to 0.4623)"
    wide = skdp.release.QueryResult(12.0, 2500, -4988.0, 5012.0, "")
    assert repr(wide) == "QueryResult(10, interval -4,990 to 5,010)"
    assert repr(skdp.release.QueryResult(3.0, np.inf, -np.inf, np.inf, "")) == (
        "QueryResult(3, interval -inf to inf)"
    )


# --- rules


def test_rules_may_have_unions():
    declared = {
        "age": Numeric(0, 3, integer=True),
        "job": Categorical(["none", "clerk", "cook"]),
        "kids": Categorical([0, 1, 2]),
    }
    forbidden = "age < 1 and job != 'none' or age < 2 and not kids == 0"
    domain = Domain(declared, structure=[skdp.forbid(forbidden)])
    bare = Domain(declared)
    cells = pd.DataFrame(
        itertools.product(range(4), declared["job"].categories, range(3)), columns=[*declared]
    )
    expected = cells.eval("age < 1 and job != 'none' or age < 2 and not kids == 0")
    np.testing.assert_array_equal(domain.structure.breaks(bare.encode(cells)), expected)
    only = skdp.forbid("kids != 0 and not (age == 3 or job == 'cook')")
    domain = Domain(declared, structure=[only])
    expected = cells.eval("kids != 0 and not (age == 3 or job == 'cook')")
    np.testing.assert_array_equal(domain.structure.breaks(bare.encode(cells)), expected)
    assert Domain.from_json(domain.to_json()) == domain
    for text in ("age >= 0 or kids == 1", "age < 1 and age > 2 or kids == 1 and kids == 2"):
        with pytest.raises(skdp.DomainError, match="covers no cell of the domain, or all"):
            Domain(declared, structure=[skdp.forbid(text)])
