"""Releases under structural zeros: cells that public rules leave empty stay empty."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from boxed import asked, reach_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loops import over

from skdp.algorithms.marginals import Asked, measured_views
from skdp.algorithms.marginals.fit import Attribute, _lacking
from skdp.domain import Zeros
from skdp.release import ViewsModel
from skdp.tables import CountTable

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.InsecureSeedWarning")


def allowed_rows(codes, zeros):
    inside = np.ones(len(codes), dtype=bool)
    for axes, allowed in zeros:
        inside &= allowed[tuple(codes[:, axis] for axis in axes)]
    return inside


def table_of(shape, zeros, n=3000, seed=0):
    """Records that follow the rules, with dependent columns."""
    generator = np.random.default_rng(seed)
    latent = generator.beta(1.5, 3, size=(40 * n, 1))
    noise = generator.random((40 * n, len(shape)))
    codes = np.minimum((0.6 * latent + 0.4 * noise) * shape, np.array(shape) - 1).astype(np.int32)
    return CountTable.from_codes(codes[allowed_rows(codes, zeros)][:n], shape)


def release(table, zeros, epsilon=1.0, seed=0, **asked):
    whole = Fraction(epsilon).limit_denominator(1000)
    parts = {"total": whole / 50, "views": whole * 49 / 50}
    orders = [np.arange(size) for size in table.shape]
    asked = Asked(orders, zeros=Zeros.of(zeros), **asked)
    return measured_views(table, parts, asked, random_state=seed)


@over("seed", range(3))
def test_codes_that_are_rare_and_only_possible_together_are_drawn(seed):
    """Independent columns meet them in none of 30,000 rows; one column at a time never would."""
    codes = np.random.default_rng(seed).integers(2, 20, (3000, 4)).astype(np.int32)
    codes[:90] = codes[:90] % 2
    low = np.arange(20) < 2
    zeros = [((0, k), np.equal.outer(low, low)) for k in (1, 2, 3)]
    view = release(CountTable.from_codes(codes, (20,) * 4), zeros, 4, seed)
    assert 60 < view.total * view.rows.table((0,))[:2].sum() < 120


def test_more_codes_may_lack_a_row_than_there_are_rows():
    mass = np.repeat([0.0, 0.25], [46, 4])
    attributes = [Attribute(mass, np.arange(50), np.arange(50))] * 2
    zeros = Zeros.of([((0, 1), np.eye(50, dtype=bool))])
    rows = np.concatenate([*_lacking(np.zeros((10, 2), dtype=np.int32), attributes, zeros)])
    assert {*map(tuple, rows.tolist())} == {(code, code) for code in range(46, 50)}


AT_MOST = np.tri(6, dtype=bool)
NO_CORNER = np.ones((6, 6, 3), dtype=bool)
NO_CORNER[:3, :3, 0] = False
NEVER_2 = np.arange(6) != 2

SHAPE = (6, 6, 6, 3, 4)
TREE = [((0, 1), AT_MOST), ((1, 2), AT_MOST)]
# The third rule follows from the others, but for the cells that it forbids besides.
CYCLE = [*TREE, ((0, 2), AT_MOST & (np.add.outer(np.arange(6), np.arange(6)) != 4))]
WIDE = [((0, 1, 3), NO_CORNER), ((2,), NEVER_2)]
ALL = [*CYCLE, *WIDE]


def forbidden_answers(model, zeros, shape):
    """Largest answer to a query inside of a forbidden cell."""
    queries = [
        {axis: np.eye(shape[axis])[code] for axis, code in zip(axes, cell, strict=True)}
        for axes, allowed in zeros
        for cell in np.argwhere(~allowed)
    ]
    return np.abs(model.answer(asked(queries))).max(initial=0.0)


# --- nothing forbidden comes out


@over("shape", [(600, 600, 3), (2100, 5), (600, 4, 4, 4)])
def test_attributes_whose_codes_are_grouped_keep_the_rules(shape):
    rows, columns = np.indices(shape[:2])
    zeros = [((0, 1), columns * shape[0] <= rows * shape[1])]
    model = release(table_of(shape, zeros, n=2000), zeros, 3.0)
    assert allowed_rows(model.sample_codes(4000, np.random.default_rng(0), {}), zeros).all()


@over("zeros, epsilon", [(TREE, 3.0), (CYCLE, 1000.0), (WIDE, 3.0), (ALL, 1000.0)])
def test_rows_and_answers_follow_the_table(zeros, epsilon):
    """One table of all columns, and joint counts: rows have its margins, also beside zeros."""
    table = table_of(SHAPE, zeros, n=10_000)
    model = release(table, zeros, epsilon)
    rows = model.sample_codes(10_000, np.random.default_rng(0), {})
    for a, b in itertools.combinations(range(5), 2):
        exact = table.dense((a, b))
        found = np.zeros(exact.shape)
        np.add.at(found, (rows[:, a], rows[:, b]), 1)
        assert np.abs(found - exact).sum() / 2 < 0.05 * table.n
        assert np.abs(model.view([a, b]) - exact).sum() / 2 < 0.05 * table.n


@st.composite
def structures(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=2, max_size=5)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    zeros = []
    for _ in range(draw(st.integers(1, 4))):
        n_axes = draw(st.integers(1, min(3, len(shape))))
        axes = tuple(sorted(generator.permutation(len(shape))[:n_axes].tolist()))
        density = draw(st.sampled_from([0.2, 0.5, 0.9]))
        zeros.append((axes, generator.random([shape[axis] for axis in axes]) < density))
    return shape, zeros


@settings(max_examples=30)
@given(structures(), st.sampled_from([0.01, 1.0, 100.0]), st.sampled_from([None, 0]))
@example((SHAPE, TREE), 1000.0, None)
@example((SHAPE, ALL), 3.0, 3)
def test_any_rules(structure, epsilon, label):
    """Also of what a file and a pickle hold; and the budget is used up."""
    shape, zeros = structure
    cells = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1).astype(np.int32)
    possible = allowed_rows(cells, zeros)
    compiled = Zeros.of(zeros)
    assert (compiled is None) == (not possible.any())
    if compiled is None or np.prod(shape) == 1:
        return
    table = CountTable.from_codes(np.repeat(cells[possible], 50, axis=0), shape)
    made = release(table, zeros, epsilon, label=label)
    assert sum(made.budget.values()) == pytest.approx(epsilon, rel=1e-3)
    loaded = ViewsModel.from_arrays(shape, *made.to_arrays())
    for model in (made, loaded, pickle.loads(pickle.dumps(made))):
        assert allowed_rows(model.sample_codes(300, np.random.default_rng(0), {}), zeros).all()
        assert forbidden_answers(model, zeros, shape) == 0
    for axes, allowed in zeros:
        assert len(axes) > 2 or (made.view(axes)[~allowed] == 0).all()


def test_conditions_that_rules_make_certain_are_left_out():
    """Low numbers are one category by the rules: the better known condition stands for both."""
    codes = np.random.default_rng(0).integers(0, (20, 4, 6), (5000, 3)).astype(np.int32)
    codes[:, 1] *= codes[:, 0] > 1
    codes = codes[(codes[:, 0] < 2) | (codes[:, 1] > 0)]
    zeros = [((0, 1), np.equal.outer(np.arange(20) < 2, np.arange(4) == 0))]
    model = release(CountTable.from_codes(codes, (20, 4, 6)), zeros)
    low, first, numbers = 1.0 * (np.arange(20) < 2), np.eye(4)[0], np.arange(20.0)
    both, one, other, high, total = asked(
        [{0: low, 1: first}, {0: low}, {1: first}, {0: 1 - low, 1: first}, {0: numbers, 1: first}]
    )
    known = np.argmin(model.variance([one, other]))
    for of in (model.answer, model.variance):
        assert of([both, high]) == pytest.approx([of([one, other])[known], 0])
    # Of sums too only the numbers count that are possible.
    assert model.answer([total])[0] == pytest.approx(codes[codes[:, 0] < 2, 0].sum(), abs=100)


def test_error_bars_cover_under_rules():
    table = table_of(SHAPE, ALL, n=10_000)
    generator = np.random.default_rng(5)
    missed = tried = 0
    for seed in range(3):
        model = release(table, ALL, 0.5, seed)
        for a, b in itertools.combinations(range(len(SHAPE)), 2):
            exact = table.dense((a, b))
            for _ in range(10):
                weights = {}
                for axis in (a, b):
                    low, high = sorted(generator.integers(0, SHAPE[axis], size=2).tolist())
                    weights[axis] = np.zeros(SHAPE[axis])
                    weights[axis][low : high + 1] = 1.0
                truth = weights[a] @ exact @ weights[b]
                _, _, above, _ = reach_of(model, weights, 0.95)
                tried += 1
                missed += abs(model.answer(asked([weights]))[0] - truth) > above
    assert missed <= 0.08 * tried
