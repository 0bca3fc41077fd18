"""Releases under structural zeros: cells that public rules leave empty stay empty."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from densities import asked, reach_of
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp
from skdp.algorithms.marginals import Asked, Rules, measured_views
from skdp.algorithms.marginals.constraints import first_row, group_mask
from skdp.algorithms.marginals.prior import fitted
from skdp.domain import Zeros
from skdp.exceptions import DomainError
from skdp.release import ViewsModel
from skdp.tables import CountTable, ProjectedCounts

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.InsecureSeedWarning")


def allowed_rows(codes, zeros):
    inside = np.ones(len(codes), dtype=bool)
    for each in zeros:
        inside &= each.allowed[tuple(codes[:, axis] for axis in each.axes)]
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
    return measured_views(table, parts, Asked(orders, zeros=zeros, **asked), random_state=seed)


AT_MOST = np.tri(6, dtype=bool)
NO_CORNER = np.ones((6, 6, 3), dtype=bool)
NO_CORNER[:3, :3, 0] = False
NEVER_2 = np.arange(6) != 2

SHAPE = (6, 6, 6, 3, 4)
TREE = [Zeros((0, 1), AT_MOST), Zeros((1, 2), AT_MOST)]
# The third rule follows from the others, but for the cells that it forbids besides.
CYCLE = [
    *TREE,
    Zeros((0, 2), AT_MOST & (np.add.outer(np.arange(6), np.arange(6)) != 4)),
]
WIDE = [Zeros((0, 1, 3), NO_CORNER), Zeros((2,), NEVER_2)]
ALL = [*CYCLE, *WIDE]
KINDS = {"tree": TREE, "cycle": CYCLE, "wide": WIDE, "all": ALL}


def forbidden_answers(model, zeros, shape):
    """Largest answer to a query inside of a forbidden cell."""
    worst = 0.0
    for each in zeros:
        cells = np.argwhere(~each.allowed)
        queries = [
            {axis: np.eye(shape[axis])[code] for axis, code in zip(each.axes, cell, strict=True)}
            for cell in cells
        ]
        if queries:
            worst = max(worst, np.abs(model.answer(asked(queries))).max())
    return worst


# --- nothing forbidden comes out


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 3.0, 1000.0])
@pytest.mark.parametrize("kind", KINDS)
def test_samples_and_answers_keep_the_rules(kind, epsilon):
    zeros = KINDS[kind]
    model = release(table_of(SHAPE, zeros), zeros, epsilon)
    rows = model.sample_codes(5000, np.random.default_rng(1))
    assert allowed_rows(rows, zeros).all()
    assert forbidden_answers(model, zeros, SHAPE) == 0
    for each in zeros:
        if len(each.axes) == 2:
            assert (model.view(each.axes)[~each.allowed] == 0).all()
    assert (model.view([2])[~NEVER_2] == 0).all() == any(z.axes == (2,) for z in zeros)


@pytest.mark.parametrize("given", [{"label": 0}, {"label": 3}])
@pytest.mark.parametrize("kind", KINDS)
def test_targets_keep_the_rules(kind, given):
    zeros = KINDS[kind]
    model = release(table_of(SHAPE, zeros), zeros, 1.0, **given)
    assert allowed_rows(model.sample_codes(4000, np.random.default_rng(1)), zeros).all()
    assert forbidden_answers(model, zeros, SHAPE) == 0


@pytest.mark.parametrize("epsilon", [3.0, 1000.0])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_answers_follow_the_table(kind, epsilon):
    """One table of all columns, and joint counts: rows have its margins, also beside zeros."""
    table = table_of(SHAPE, KINDS[kind], n=10_000)
    model = release(table, KINDS[kind], epsilon)
    rows = model.sample_codes(10_000, np.random.default_rng(0))
    for a, b in itertools.combinations(range(5), 2):
        exact = table.dense((a, b))
        found = np.zeros(exact.shape)
        np.add.at(found, (rows[:, a], rows[:, b]), 1)
        assert np.abs(found - exact).sum() / 2 < 0.05 * table.n
        assert np.abs(model.view([a, b]) - exact).sum() / 2 < 0.05 * table.n
    for code in range(6):
        one = {0: np.eye(6)[code], 3: np.eye(3)[1]}
        [whole] = model.answer(asked([one]))
        parts = model.answer(asked({**one, 2: np.eye(6)[other]} for other in range(6)))
        assert parts.sum() == pytest.approx(whole, abs=200 if epsilon < 10 else 3)


def test_a_code_of_the_label_that_is_impossible_is_empty():
    only = np.ones((6, 3), dtype=bool)
    only[:, 1] = False
    zeros = [Zeros((0, 3), only)]
    model = release(table_of(SHAPE, zeros), zeros, 0.05, label=3)
    assert model.view([3])[1] == 0
    assert (model.sample_codes(1000, np.random.default_rng(0))[:, 3] != 1).all()


@pytest.mark.parametrize("shape", [(600, 600, 3), (2100, 5), (600, 4, 4, 4)])
def test_attributes_whose_codes_are_grouped_keep_the_rules(shape):
    rows, columns = np.indices(shape[:2])
    allowed = columns * shape[0] <= rows * shape[1]
    zeros = [Zeros((0, 1), allowed)]
    table = table_of(shape, zeros, n=2000)
    model = release(table, zeros, 3.0)
    assert allowed_rows(model.sample_codes(4000, np.random.default_rng(0)), zeros).all()


def test_rules_that_leave_almost_nothing():
    """Rows drawn from the tree almost never satisfy a rule; its columns are then redrawn."""
    shape = (10, 10, 10, 2)
    allowed = np.zeros(shape[:3], dtype=bool)
    allowed[np.arange(10), np.arange(10)[::-1], (np.arange(10) * 7) % 10] = True
    parity = np.add.outer(np.add.outer(np.arange(10), np.arange(10)), np.arange(2)) % 2 == 0
    for zeros in ([Zeros((0, 1, 2), allowed)], [Zeros((0, 1, 3), parity)]):
        codes = np.stack(np.unravel_index(np.arange(2000), shape), axis=1).astype(np.int32)
        table = CountTable.from_codes(codes[allowed_rows(codes, zeros)], shape)
        model = release(table, zeros, 1.0)
        rows = model.sample_codes(2000, np.random.default_rng(0))
        assert len(rows) == 2000
        assert allowed_rows(rows, zeros).all()


@st.composite
def structures(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=2, max_size=5)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    zeros = []
    for _ in range(draw(st.integers(1, 4))):
        n_axes = draw(st.integers(1, min(3, len(shape))))
        axes = tuple(sorted(generator.permutation(len(shape))[:n_axes].tolist()))
        density = draw(st.sampled_from([0.2, 0.5, 0.9]))
        zeros.append(Zeros(axes, generator.random([shape[axis] for axis in axes]) < density))
    return shape, zeros


@settings(max_examples=30)
@given(structures(), st.sampled_from([0.01, 1.0, 100.0]))
def test_any_rules(structure, epsilon):
    shape, zeros = structure
    cells = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1).astype(np.int32)
    possible = allowed_rows(cells, zeros)
    rules = Rules.of(shape, zeros)
    assert (rules is None) == (not possible.any())
    if rules is None or np.prod(shape) == 1:
        return
    row = first_row(rules)
    codes = np.array([[rules.codes[axis][code] for axis, code in enumerate(row)]])
    assert allowed_rows(codes, zeros).all()
    table = CountTable.from_codes(np.repeat(cells[possible], 50, axis=0), shape)
    model = release(table, zeros, epsilon)
    rows = model.sample_codes(300, np.random.default_rng(0))
    assert allowed_rows(rows, zeros).all()
    assert forbidden_answers(model, zeros, shape) == 0


# --- the parts


def test_no_rules_change_nothing():
    table = table_of(SHAPE, [])
    free = [Zeros((0, 1), np.ones((6, 6), dtype=bool))]
    plain, ruled = release(table, []), release(table, free)
    assert (plain.view([0, 1]) == ruled.view([0, 1])).all()
    assert plain.budget == ruled.budget


def test_rules_are_made_consistent():
    chain = [Zeros((0, 1), np.eye(6, k=1, dtype=bool)), Zeros((1, 2), np.eye(6, k=1, dtype=bool))]
    rules = Rules.of((6, 6, 6), chain)
    assert [codes.tolist() for codes in rules.codes] == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]
    assert rules.sizes == (4, 4, 4)
    assert Rules.of((6, 6, 6), [*chain, Zeros((0,), np.arange(6) > 3)]) is None
    # Nothing contradicts pair by pair, but three columns cannot all differ with two values.
    differ = ~np.eye(2, dtype=bool)
    pairs = [Zeros(axes, differ) for axes in itertools.combinations(range(3), 2)]
    assert Rules.of((2, 2, 2), pairs[:2]) is not None
    assert Rules.of((2, 2, 2), pairs) is None
    with pytest.raises(ValueError, match="no possible record"):
        release(CountTable.from_codes(np.zeros((0, 3), dtype=int), (2, 2, 2)), pairs)


def test_a_wide_rule_that_pairs_imply_needs_no_rows():
    both = AT_MOST[:, :, None] & AT_MOST[None, :, :]
    rules = Rules.of(SHAPE, [Zeros((0, 1, 2), both)])
    assert not rules.wide
    assert set(rules.pairs) == {(0, 1), (1, 2)}
    assert Rules.of(SHAPE, [Zeros((0, 1, 3), NO_CORNER)]).wide


def test_of_a_chain_its_neighbours_are_left():
    order = [3, 0, 4, 1, 2]
    zeros = []
    for low, high in itertools.combinations(range(5), 2):
        a, b = order[low], order[high]
        at_most = np.tri(7, dtype=bool)
        zeros.append(Zeros((min(a, b), max(a, b)), at_most if a > b else at_most.T))
    rules = Rules.of((7,) * 5, zeros)
    assert set(rules.pairs) == {(0, 3), (0, 4), (1, 4), (1, 2)}
    assert set(rules.forest()) == set(rules.pairs)
    together = np.zeros((3, 3), dtype=bool)
    together[:2, :2] = together[2, 2] = True
    missing = [Zeros(pair, together) for pair in itertools.combinations(range(5), 2)]
    rules = Rules.of((3,) * 5, missing)
    assert len(rules.forest()) == 4


def test_the_strictest_pairs_form_the_forest():
    rules = Rules.of(SHAPE, CYCLE)
    assert rules.forest()[0] == (0, 2)
    assert len(rules.forest()) == 2


def test_group_mask():
    allowed = np.tri(6, 4, dtype=bool)
    mask, exact = group_mask(allowed, (np.array([0, 0, 1, 1, 2, 2]), None))
    assert mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert not exact
    mask, exact = group_mask(np.repeat(np.eye(2, dtype=bool), 3, axis=0), (np.arange(6) // 3, None))
    assert exact
    assert (mask == np.eye(2, dtype=bool)).all()


def test_fitting_reaches_margins_that_are_possible_and_meets_others_half_way():
    generator = np.random.default_rng(0)
    table = generator.random((6, 6)) * AT_MOST
    rows, columns = table.sum(axis=1) / table.sum(), table.sum(axis=0) / table.sum()
    found = fitted(np.ones((6, 6)), AT_MOST, rows, columns)
    assert np.abs(found.sum(axis=1) - rows).max() < 1e-3
    assert np.abs(found.sum(axis=0) - columns).max() < 1e-3
    low, high = np.eye(6)[1], np.eye(6)[3]
    found = fitted(np.ones((6, 6)), AT_MOST, low, high)
    assert (found[~AT_MOST] == 0).all()
    assert found.sum() == pytest.approx(1)


def test_projected_counts_give_the_same_release():
    table = table_of(SHAPE, ALL)
    asked = ProjectedCounts(np.repeat(table.codes, table.counts, axis=0), table.shape)
    one, other = release(table, ALL, 2.0), release(asked, ALL, 2.0)
    assert (one.view([0, 1]) == other.view([0, 1])).all()
    assert (one.row_weights == other.row_weights).all()


def test_records_that_break_a_rule_do_not_matter():
    """They are skipped before counting; codes that no record can have are dropped again here."""
    rules = Rules.of(SHAPE, [Zeros((2,), NEVER_2)])
    table = table_of(SHAPE, [])
    assert rules.compressed(table).n == table.n - table.dense((2,))[2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.1, 0.8, 5.0])
def test_the_budget_is_used_up_whatever_the_rules(kind, epsilon):
    model = release(table_of(SHAPE, KINDS[kind]), KINDS[kind], epsilon)
    assert sum(model.budget.values()) == pytest.approx(epsilon)


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_pickles_keep_the_zeros(kind):
    zeros = KINDS[kind]
    model = release(table_of(SHAPE, zeros), zeros)
    queries = [{0: np.eye(6)[code], 3: np.eye(3)[1]} for code in range(6)]
    for again in (
        ViewsModel.from_arrays(SHAPE, *model.to_arrays()),
        pickle.loads(pickle.dumps(model)),
    ):
        np.testing.assert_allclose(again.answer(asked(queries)), model.answer(asked(queries)))
        assert allowed_rows(again.sample_codes(2000, np.random.default_rng(0)), zeros).all()
        assert forbidden_answers(again, zeros, SHAPE) == 0


# --- accuracy


def variation(model, table, pairs):
    errors = []
    for a, b in pairs:
        exact = table.dense((a, b)) / table.n
        found = model.view([a, b])
        errors.append(0.5 * np.abs(np.maximum(found, 0) / np.maximum(found, 0).sum() - exact).sum())
    return np.mean(errors)


@pytest.mark.parametrize("kind", ["tree", pytest.param("all", marks=pytest.mark.slow)])
def test_rules_make_releases_more_accurate(kind):
    zeros = KINDS[kind]
    table = table_of(SHAPE, zeros, n=10_000)
    pairs = list(itertools.combinations(range(len(SHAPE)), 2))
    for epsilon in (0.1, 0.5):
        with_rules, without = (
            np.mean(
                [variation(release(table, z, epsilon, seed), table, pairs) for seed in range(3)]
            )
            for z in (zeros, [])
        )
        assert with_rules < 1.02 * without


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


# --- estimators


GRADES = {"A1": "A", "A2": "A", "B1": "B"}
LOANS = skdp.Domain(
    {
        "id": skdp.Identifier(),
        "amount": skdp.Numeric(0, 100, bins=10),
        "balance": skdp.Numeric(0, 100, bins=10),
        "kind": skdp.Categorical(["single", "joint"]),
        "second": skdp.Numeric(0, 50, bins=5, nullable=True),
        "sub": skdp.Categorical(["A1", "A2", "B1"]),
        "grade": skdp.Categorical(["A", "B"]),
    },
    structure=[
        skdp.at_most("balance", "amount"),
        skdp.forbid("second != None and kind != 'joint'"),
        skdp.derived("grade", from_="sub", map=GRADES),
        skdp.forbid("amount >= 0 and amount <= 30 and kind == 'joint' and sub == 'B1'"),
    ],
)


def applications(n=3000, seed=0):
    generator = np.random.default_rng(seed)
    amount = generator.uniform(0, 100, n)
    kind = np.where((generator.random(n) < 0.3) & (amount > 30), "joint", "single")
    sub = generator.choice(list(GRADES), n)
    return pd.DataFrame(
        {
            "id": range(n),
            "amount": amount,
            "balance": amount * generator.random(n),
            "kind": kind,
            "second": np.where(kind == "joint", generator.uniform(0, 50, n), np.nan),
            "sub": sub,
            "grade": pd.Series(sub).map(GRADES),
        }
    )


def impossible(rows):
    return (
        (rows["balance"] > rows["amount"])
        | (rows["second"].notna() & (rows["kind"] == "single"))
        | (rows["sub"].map(GRADES) != rows["grade"])
        | ((rows["amount"] < 30) & (rows["kind"] == "joint") & (rows["sub"] == "B1"))
    )


@pytest.mark.parametrize("target", [None, "kind", "sub"])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_synthetic_rows_are_possible(target, epsilon, tmp_path):
    rows = applications()
    y = None if target is None else rows.pop(target)
    view = skdp.MarginalSynthesizer(epsilon=epsilon, domain=LOANS, target=target, random_state=0)
    view.fit(rows, y)
    drawn = view.sample(2000, random_state=0)
    assert set(drawn.columns) == set(LOANS.columns)
    assert not impossible(drawn).any()
    queries = [
        "kind == 'single' and second >= 10",
        {"amount": (0, 30), "kind": "joint", "sub": "B1"},
        "amount < 20 and balance >= 20",
        "amount < 30 and kind == 'joint' and grade == 'B' and balance < 50",
    ]
    assert not any(view.count(query) for query in queries)
    view.synopsis_.save(tmp_path / "file.skdp")
    again = skdp.Synopsis.load(tmp_path / "file.skdp")
    assert not impossible(again.sample(500, random_state=0)).any()
    assert not any(again.count(query) for query in queries)


def test_records_that_break_a_rule_are_skipped():
    rows = applications()
    broken = rows.head(50).assign(balance=99.0, amount=1.0)
    one, other = (
        skdp.MarginalSynthesizer(epsilon=1.0, domain=LOANS, random_state=0)
        .fit(each)
        .synopsis_.model
        for each in (rows, pd.concat([broken, rows]))
    )
    assert one.total == other.total
    assert (one.view([0, 1]) == other.view([0, 1])).all()


@pytest.mark.parametrize(
    "estimator",
    [
        skdp.HDPViewSynthesizer(domain=LOANS),
        skdp.PrivTreeSynthesizer(domain=LOANS),
        skdp.KDTreeSynthesizer(domain=LOANS),
        skdp.GridSynthesizer(domain=LOANS),
        skdp.DataCube(domain=LOANS),
        skdp.PrivPfCClassifier(domain=LOANS, target="kind"),
        skdp.DiffGenTransformer(domain=LOANS, target="kind"),
        skdp.ProjectedHistogramTransformer(domain=LOANS, target="kind"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_that_would_break_rules_refuse_them(estimator):
    ledger = skdp.PrivacyLedger(10)
    estimator = estimator.set_params(ledger=ledger)
    name = type(estimator).__name__
    with pytest.raises(DomainError, match=rf"{name} cannot honour.*'amount'.*without_structure"):
        estimator.fit(applications(100))
    assert ledger.spent == 0


def test_a_column_with_impossible_values_is_refused_too():
    domain = skdp.Domain({"x": skdp.Numeric(0, 8, bins=8)}, structure=[skdp.forbid("x < 2")])
    with pytest.raises(DomainError, match="RangeTreeHistogram cannot honour"):
        skdp.RangeTreeHistogram(domain=domain).fit(pd.DataFrame({"x": [1.0, 3.0]}))
    view = skdp.MarginalSynthesizer(domain=domain, random_state=0)
    view.fit(pd.DataFrame({"x": [1.0, 3.0, 5.0] * 50}))
    assert view.sample(100, random_state=0)["x"].min() >= 2
    assert view.count("x < 2") == 0


def test_estimators_of_scikit_learn_are_tried_out_on_possible_rows():
    drawn = []

    class Remembers(skdp.MarginalSynthesizer):
        def make_training_set(self, n_samples=None, random_state=None):
            X, y, weight = super().make_training_set(n_samples, random_state)
            drawn.append(X.assign(kind=y))
            return X, y, weight

    from sklearn.dummy import DummyClassifier

    rows = applications(500)
    release = Remembers(epsilon=1.0, domain=LOANS, target="kind", random_state=0)
    skdp.PrivateClassifier(DummyClassifier(), release).fit(rows.drop(columns="kind"), rows["kind"])
    assert len(drawn) >= 2
    for each in drawn:
        assert not impossible(each).any()
        assert set(each["kind"]) == {"single", "joint"}
