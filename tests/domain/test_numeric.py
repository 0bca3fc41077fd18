"""Numbers: codes, draws, means, queries and releases of all kinds of bins."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from loops import over

from skdp import Categorical, DomainError, Numeric
from skdp.algorithms.groupings import groupings
from skdp.domain import Domain
from skdp.domain.bins import POINT
from skdp.domain.query import parts_of
from skdp.release import parse
from skdp.release.grouping import Selected
from skdp.tables import as_column


def codes_of(attribute, values):
    return as_column(np.asarray(values, dtype=float), "x").codes(attribute.coding())


@st.composite
def numerics(draw):
    """Any declaration; the ones that are refused are passed over."""
    integer = draw(st.booleans())
    number = st.integers(-50, 300) if integer else st.floats(-50, 300).map(lambda x: round(x, 3))
    options = {"integer": integer, "nullable": draw(st.booleans())}
    options["special"] = draw(st.lists(number, max_size=3, unique=True))
    if draw(st.booleans()):
        edges = sorted(draw(st.sets(number, min_size=2, max_size=8)))
        arguments = []
        options["edges"] = edges
    else:
        arguments = sorted([draw(number), draw(number)])
        options["bins"] = draw(st.none() | st.integers(1, 40))
        options["scale"] = draw(st.sampled_from(["linear", "log", "sqrt"]))
    if draw(st.booleans()):
        options["decimals"] = draw(st.integers(0, 3))
    try:
        return Numeric(*arguments, **options)
    except DomainError:
        assume(False)


kinds = st.one_of(
    numerics(),
    st.sampled_from(
        [
            Numeric(0.01, 1e5, scale="log", decimals=2, bins=20, special=[0]),
            Numeric(0, 10**12, bins=32, scale="sqrt", integer=True),
            Numeric(-60, 1500, special=[0, 9999], nullable=True),
            Numeric(-5, 10**7, "auto", integer=True, special=[3]),
        ]
    ),
)


@given(kinds, st.integers(0, 2**32))
def test_a_drawn_value_has_its_code_and_lies_in_its_span(attribute, seed):
    codes = np.repeat(np.arange(attribute.size), 30)
    drawn = attribute.draw(codes, np.random.default_rng(seed))
    np.testing.assert_array_equal(codes_of(attribute, drawn), codes)
    low, high = attribute.span(codes)
    known = codes < attribute.n_values
    assert ((low <= drawn) & (drawn <= high))[known].all()
    assert np.isnan(drawn[~known]).all() and np.isnan(low[~known]).all()
    for ends in (low, high):
        np.testing.assert_array_equal(codes_of(attribute, ends), codes)


@given(numerics(), st.integers(0, 2**32))
def test_bounds_are_respected_where_the_cell_meets_them(attribute, seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(attribute.bins), 20)
    # A value of the cell between the bounds shows that they meet.
    inside = attribute.draw(codes, rng)
    lower = np.where(rng.random(len(codes)) < 0.3, np.nan, inside - rng.exponential(3, len(codes)))
    upper = inside + rng.exponential(3, len(codes)) * rng.integers(0, 2, len(codes))
    drawn = attribute.draw(codes, rng, lower, upper)
    assert not ((drawn < lower) | (drawn > upper)).any()
    np.testing.assert_array_equal(codes_of(attribute, drawn), codes)
    # Bounds that the cell does not meet give its nearest value.
    beyond = attribute.draw(codes, rng, None, -1e9)
    np.testing.assert_array_equal(beyond, attribute.span(codes)[0])
    np.testing.assert_array_equal(attribute.draw(codes, rng, 1e9), attribute.span(codes)[1])


@given(kinds)
def test_declarations_survive_text_json_and_pickle(attribute):
    assert eval(repr(attribute), {"Numeric": Numeric}) == attribute
    domain = Domain({"x": attribute, "y": Categorical(["a", "b"])})
    assert Domain.from_json(domain.to_json()) == domain
    # A ledger knows a release by what was declared, whatever codes it counts.
    assert domain.fine.fingerprint == domain.fingerprint
    again = pickle.loads(pickle.dumps(attribute))
    assert (again, hash(again)) == (attribute, hash(attribute))
    # The last of some points may be a bin by itself.
    assert (np.diff(attribute.edges)[:-1] > 0).all() and attribute.edges[-1] >= attribute.edges[-2]
    assert len(attribute.labels()) == len({*attribute.labels()}) == attribute.size


@settings(max_examples=40)
@given(kinds)
def test_means_are_those_of_draws(attribute):
    rng = np.random.default_rng(7)
    codes = np.repeat(np.arange(attribute.n_values), 1000)
    drawn = attribute.draw(codes, rng).reshape(-1, 1000)
    spread = drawn.std(axis=1) / math.sqrt(1000)
    # 40 attributes and some 10,000 bins: a deviation of 6 in one in 50,000 runs.
    assert (np.abs(drawn.mean(axis=1) - attribute.means()) <= 6 * spread + 1e-9).all()


def test_codes_of_special_values_come_after_the_bins():
    attribute = Numeric(0, 10, bins=2, special=[-1, 0, 999], nullable=True)
    values = [-1, -0.0, 0, 999, 998.9, -2, 0.1, 5, math.nan, math.inf]
    assert codes_of(attribute, values).tolist() == [2, 3, 3, 4, 1, 0, 0, 1, 5, 1]
    assert attribute.labels() == ["[0, 5)", "[5, 10]", "-1", "0", "999", "missing"]
    assert (attribute.n_values, attribute.order().tolist()) == (5, [2, 3, 0, 1, 4, 5])
    assert attribute.means().tolist() == [2.5, 7.5, -1, 0, 999]


NEAR = [-np.inf, -1e308, -2.6, -1, -0.6, -0.5, 0, 0.49, 0.5, 1, 1.999, 2.5, 1e308, np.inf, np.nan]


@over(
    "attribute, values, codes",
    [
        (Numeric(0, 1, 4), NEAR, [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, -1]),
        # Fractions of integers go to the nearest.
        (Numeric(-2, 2, integer=True), NEAR, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 4, -1]),
        (
            Numeric(edges=[-2, 0, 2], integer=True, special=[1]),
            [-0.6, -0.5, 0.6, 1, 2.4],
            [0, 1, 1, 2, 1],
        ),
        (Numeric(edges=[0, 2**52 + 2, 2**53], integer=True), [2**52 + 1, 2**52 + 2], [0, 1]),
        (Numeric(0, 2**53, 2**10, integer=True), [2**43 - 1, 2**43, 2**53 - 1], [0, 1, 1023]),
    ],
)
def test_codes_of_values(attribute, values, codes):
    assert codes_of(attribute, values).tolist() == codes


@given(st.integers(-(10**9), 10**9), st.integers(0, 500), st.data())
def test_every_integer_lies_in_the_bin_between_its_edges(lower, span, data):
    bins = data.draw(st.none() | st.integers(1, span + 1))
    attribute = Numeric(lower, lower + span, bins, integer=True)
    values = np.arange(attribute.lower, attribute.upper + 1)
    codes, edges = codes_of(attribute, values), attribute.edges
    assert edges.dtype == np.int64 and len(edges) == attribute.bins + 1
    assert (edges[codes] <= values).all() and (values < edges[codes + 1]).all()
    # No bin is empty, and sizes differ as little as whole numbers allow, but for the closed end.
    sizes = np.bincount(codes, minlength=attribute.bins)
    assert sizes.min() >= 1 and (attribute.bins == 1 or np.ptp(sizes[:-1]) <= 1)
    means = [values[codes == code].mean() for code in range(attribute.bins)]
    np.testing.assert_allclose(attribute.means(), means)


@settings(max_examples=40)
@given(kinds)
def test_levels_and_groupings_keep_special_values_apart(attribute):
    first = attribute.bins
    for level in attribute.levels()[1:]:
        cells = level.groups[first:]
        assert len(set(cells)) == len(cells) and not set(cells) & set(level.groups[:first])
        assert len(level.labels) == level.groups.max() + 1 == len(set(level.labels))
    for family in groupings(attribute, 8):
        for level in family:
            assert len(level.groups) == attribute.size and len(level.labels) <= 8
            assert len(set(level.groups[first:])) == attribute.size - first


def shares(query, attribute):
    domain = Domain({"x": attribute, "y": Categorical(["a", "b"])})
    return parse(query, domain).products[0][0].tolist()


def first_moment(query, domain, column):
    """Weights of the records with a value, and for each code of it the mean of what is covered."""
    [part] = parts_of(query, domain)
    found = Selected.of(part, domain, [column])
    [numbers] = found.numbers
    return found.weights, found.weights[numbers.axis] * numbers.mean


@over(
    "query, expected",
    [
        ("x == 0", [0, 0, 1, 0, 0]),
        ({"x": [0, None]}, [0, 0, 1, 0, 1]),
        ("x >= 0", [1, 1, 1, 1, 0]),
        ({"x": (5, 99)}, [0, 1, 0, 1, 0]),
        ("x in [5, 99]", [0, POINT, 0, 1, 0]),
    ],
)
def test_special_values_in_queries(query, expected):
    assert shares(query, Numeric(0, 10, bins=2, special=[0, 99], nullable=True)) == expected


def test_single_values_of_a_grid_have_a_share():
    price = Numeric(0, 100, bins=10, decimals=2)
    assert shares("x == 19.99", price)[1] == pytest.approx(1 / 1000)
    assert shares("x < 10.01", price)[:2] == [1, pytest.approx(1 / 1000)]
    # No record has such a value.
    assert sum(shares("x == 19.999", price)) == 0
    halves = Numeric(0, 10, bins=2, decimals=1, special=[5])
    assert shares("x == 5", halves) == [0, 0, 1]
    assert shares("x in [1.1, 1.5, 5]", halves) == [pytest.approx(2 / 50), 0, 1]


@settings(max_examples=50)
@given(kinds, st.integers(0, 2**32))
def test_shares_and_sums_are_those_of_draws(attribute, seed):
    # Shares of a range by 2,000 draws in each cell; 6 standard errors.
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(attribute.n_values), 2000)
    drawn = attribute.draw(codes, rng).reshape(-1, 2000)
    low, high = np.sort(rng.choice(drawn.ravel(), 2))
    domain = Domain({"x": attribute, "y": Categorical(["a", "b"])})
    weights, moment = first_moment({"x": (low, high)}, domain, "x")
    inside = (drawn >= low) & (drawn <= high)
    n = attribute.n_values
    share = inside.mean(axis=1)
    error = np.sqrt(np.maximum(share * (1 - share), 0.002) / 2000)
    assert (np.abs(share - weights[0][:n]) <= 6 * error + 0.002).all()
    # The sums agree where the shares do: the mean of what is covered lies within the range.
    covered = weights[0][:n] > 1e-9
    means = moment[:n][covered] / weights[0][:n][covered]
    slack = 1e-6 * max(1, abs(low), abs(high))
    assert ((means >= low - slack) & (means <= high + slack)).all()


def test_the_largest_integers_lie_on_the_grid():
    grid = Numeric(0, 2**53, "auto", integer=True).contents.grid
    assert [grid.place(x) for x in (-np.inf, 2.5, 2**53, np.inf)] == [0, 3, 2**53, 2**53 + 1]
    assert grid.at_least([-np.inf, 2**53, np.inf]).tolist() == [0, 2**53, 2**53 + 1]
    # Where no point lies between bounds, the one before them.
    assert Numeric(0, 9, 5, integer=True).draw([1], np.random.default_rng(0), 2.2, 2.8) == 2
