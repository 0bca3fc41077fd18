"""Marginals: what they refuse, what odd tables give, and that their views agree."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from skdp.kernels.marginals import candidates as candidates_module
from skdp.kernels.marginals import marginal_views, schemes, stepwise
from skdp.kernels.marginals.candidates import Candidates
from skdp.kernels.marginals.evidence import Evidence
from skdp.kernels.marginals.lawful import Laws
from skdp.kernels.marginals.plan import plan_views, used_sets
from skdp.kernels.marginals.population import Population
from skdp.kernels.marginals.posterior import nearer_model, posterior_mean
from skdp.kernels.marginals.wide import measure_whole
from skdp.kernels.marginals.worth import least_distance, worth_views
from skdp.kernels.pairviews.attributes import Attribute
from skdp.kernels.pairviews.errors import exact_answers, random_weights

import skdp
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric, Synopsis
from skdp._random import noise_source
from skdp.exceptions import DomainError
from skdp.mechanisms import discrete_laplace_variance
from skdp.release import TreeDensity
from skdp.rows import CountTable
from skdp.synthesis.workloads import as_workload

DOMAIN = Domain(
    {
        "a": Categorical(list("pqrs")),
        "b": Numeric(0, 1, bins=10),
        "c": Categorical(["no", "yes"]),
        "d": Numeric(0, 4, integer=True),
    }
)


def rows(n, seed=0):
    """Four columns that depend on each other; c is yes where a and d are both small or large."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 4, n), rng.random(n)
    d = np.clip(np.floor(b * 4 + rng.normal(0, 0.7, n)), 0, 4)
    c = ((a < 2) == (d < 2)) ^ (rng.random(n) < 0.1)
    names = np.array(list("pqrs"), dtype=object)
    return pd.DataFrame({"a": names[a], "b": b, "c": np.where(c, "yes", "no"), "d": d})


def release(frame, epsilon=1.0, domain=DOMAIN, seed=0, y=None, **parameters):
    """A seeded release; nothing may warn but that hardly anybody shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", skdp.InsecureSeedWarning)
        warnings.filterwarnings("ignore", message=".*nearly no records")
        view = MarginalSynthesizer(epsilon, domain=domain, random_state=seed, **parameters)
        return view.fit(frame, y)


def check(view, domain, n_rows=200, apart=np.inf):
    """What every release of a domain is: finite and not below zero, with totals that agree.

    ``apart`` is how far the margins of pairs may be from the single columns, as a share.
    """
    model = view.synopsis_.model
    whole = view.count()
    # Totals are not cut at zero: a negative one makes all its counts negative.
    least = -1e-9 if min(part.total for part in getattr(model, "models", [model])) > 0 else -np.inf
    names = domain.names[:4]
    tables = {(name,): view.synopsis_.view([name]) for name in names}
    for pair in itertools.combinations(names, 2):
        if domain[pair[0]].size * domain[pair[1]].size <= 2**20:
            tables[pair] = view.synopsis_.view(list(pair))
    for columns, table in tables.items():
        assert np.isfinite(table).all() and table.min() >= least
        assert table.sum() == pytest.approx(whole, rel=1e-6, abs=1e-6)
        if len(columns) == 2:
            for place, name in enumerate(columns):
                off = np.abs(table.sum(axis=1 - place) - tables[name,]).max()
                assert off <= apart * max(abs(whole), 1)
    drawn = view.sample(n_rows, random_state=0)
    assert set(drawn.columns) == set(domain.columns) and len(drawn) == n_rows
    assert domain.encode(drawn).min() >= 0
    assert sum(view.privacy_loss_.parts.values()) == view.privacy_loss_.epsilon
    return model


# --- parameters


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"max_order": 0}, ValueError, "max_order must be at least 1"),
        ({"max_order": 5}, ValueError, "max_order must be at most 4"),
        ({"max_order": 2.0}, TypeError, "max_order must be an integer"),
        ({"max_order": True}, TypeError, "max_order must be an integer"),
        ({"max_order": None}, TypeError, "max_order must be an integer"),
        ({"workload": "points"}, ValueError, "'all', 'ranges' or 'cells', got 'points'"),
        ({"workload": None}, TypeError, "workload must be 'all'"),
        ({"workload": [("a", "b")]}, TypeError, "a dict from sets of columns"),
        ({"workload": {}}, ValueError, "no set of columns"),
        ({"workload": {"a": 1}}, TypeError, r"is written \('age',\)"),
        ({"workload": {(): 1}}, ValueError, "an empty set"),
        ({"workload": {("a", "a"): 1}}, ValueError, "named twice"),
        ({"workload": {("a", "b"): 1, ("b", "a"): 1}}, ValueError, "twice"),
        ({"workload": {("a", "age"): 1}}, DomainError, "'age' is not in the domain"),
        ({"workload": {(0, 1): 1}}, DomainError, "0 is not in the domain"),
        ({"workload": {tuple("abcd"): 1}}, ValueError, "max_order=3"),
        ({"workload": {("a", "b"): 1}, "max_order": 1}, ValueError, "max_order=1"),
        ({"workload": {("a", "b"): 0}}, ValueError, r"\(0, 1\], got 0"),
        ({"workload": {("a", "b"): 1.01}}, ValueError, r"\(0, 1\], got 1.01"),
        ({"workload": {("a", "b"): np.nan}}, ValueError, "must be finite"),
        ({"workload": {("a", "b"): "1"}}, TypeError, "must be a number"),
        ({"workload": {("a", "b"): True}}, TypeError, "must be a number"),
        ({"plan": "pgm"}, ValueError, "'adaptive', 'mst', 'aim' or 'linear', got 'pgm'"),
        ({"plan": None}, ValueError, "plan must be"),
        ({"plan": "mst", "max_order": 1}, ValueError, "max_order=1 allows no sets"),
        ({"plan": "mst", "workload": {("a", "b"): 1}}, ValueError, "'all' with.*got a dict"),
        ({"plan": "aim", "workload": "cells"}, ValueError, "'all' or a dict with.*got 'cells'"),
        ({"error_share": 1}, ValueError, "error_share"),
        ({"target": "age"}, DomainError, "target"),
        ({"epsilon": 0}, ValueError, "epsilon must be positive"),
        ({"domain": Domain({"e": Numeric(0, 1)})}, DomainError, "'e'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(parameters, error, message):
    ledger = skdp.PrivacyLedger(10)
    view = MarginalSynthesizer(**{"domain": DOMAIN, "ledger": ledger, **parameters})
    with pytest.raises(error, match=message):
        view.fit(rows(10))
    assert ledger.spent == 0 and not hasattr(view, "synopsis_")


def test_workloads_are_sets_of_positions():
    found = as_workload({("c", "a"): 0.1, frozenset("bd"): 1, ("d",): Fraction(1, 3)}, DOMAIN, 2)
    assert found == {(0, 2): Fraction(1, 10), (1, 3): 1, (3,): Fraction(1, 3)}
    for word in ("all", "ranges", "cells"):
        assert as_workload(word, DOMAIN, 3) == word


def test_a_set_whose_table_would_not_fit_is_refused_before_anything_is_spent():
    domain = Domain(dict.fromkeys("abcd", Numeric(0, 1, bins=128)))
    frame, ledger = pd.DataFrame(np.zeros((1, 4)), columns=list("abcd")), skdp.PrivacyLedger(10)
    sets = {tuple("abcd"): 1}
    view = MarginalSynthesizer(domain=domain, workload=sets, max_order=4, ledger=ledger)
    with pytest.raises(ValueError, match=r"table of 268,435,456 cells.*Name smaller sets"):
        view.fit(frame)
    assert ledger.spent == 0
    assert as_workload({tuple("abc"): 1}, domain, 3) == {(0, 1, 2): 1}


def test_sets_to_choose_from_are_those_that_tell_something_new():
    sets = {(0, 1): 0.5, (0, 1, 3): 1, (2, 3): 1, (1,): 1, (0, 2): 0.1, (1, 2): 0.1}
    assert used_sets(sets, (2, 3, 4, 1)) == {(0, 1): 1, (0, 2): 0.1, (1, 2): 0.1}
    assert used_sets(sets, (2, 3, 4, 1), label=0) == {(1, 2): 0.1}
    assert used_sets("cells", (2, 3, 4, 1)) == "cells"


def test_the_budget_of_sets_goes_to_those_that_can_be_chosen():
    # Of these sets only one is left: the target's pairs are known, and k has one code.
    frame = rows(5000).assign(k=0)
    domain = Domain({**dict(DOMAIN.items()), "k": Categorical([0])})
    sets = {("a", "c"): 1, ("c", "d", "k"): 1, ("a", "d", "k"): 1, ("a", "d"): 0.1}
    y = frame.pop("c")
    few = release(frame, 5.0, domain, y=y, target="c", workload=sets)
    one = release(frame, 5.0, domain, y=y, target="c", workload={("a", "d"): 1})
    np.testing.assert_array_equal(few.synopsis_.view(["a", "d"]), one.synopsis_.view(["a", "d"]))


def test_parts_that_contradict_each_other_leave_a_table():
    evidence = Evidence([np.array([50.0, 50.0])] * 3, [1.0] * 3)
    same = np.eye(2) / 2
    for axes, table in {(0, 1): same, (0, 2): same, (1, 2): same[::-1]}.items():
        evidence.estimated(axes, table)
    evidence.estimated((0, 1, 2), np.full((2, 2, 2), 1 / 8))
    for target in evidence.targets():
        assert target.table.sum() == pytest.approx(1) and target.table.min() >= 0


def test_derived_columns_are_no_part_of_a_workload():
    domain = Domain(
        {**dict(DOMAIN.items()), "e": Categorical([0, 1])},
        structure=[skdp.derived("e", "d", {0: 0, 1: 0, 2: 1, 3: 1, 4: 1})],
    )
    frame = rows(10)
    view = MarginalSynthesizer(domain=domain, workload={("a", "e"): 1})
    with pytest.raises(DomainError, match="'e' is not measured"):
        view.fit(frame.assign(e=(frame["d"] > 1).astype(int)))


def test_a_release_repeats_with_its_seed_only():
    frame = rows(2000)
    one, same, other = (release(frame, seed=seed).synopsis_ for seed in (1, 1, 2))
    for names in (["a"], ["a", "c"], ["b", "d"]):
        np.testing.assert_array_equal(one.view(names), same.view(names))
        assert (one.view(names) != other.view(names)).any()
    pd.testing.assert_frame_equal(one.sample(50, random_state=0), same.sample(50, random_state=0))


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_order": 2},
        {"max_order": 4, "error_share": 0},
        {"workload": "ranges"},
        {"workload": "cells"},
        {"workload": {("a", "c", "d"): 1, ("b", "d"): 0.25}},
    ],
    ids=str,
)
def test_every_parameter_gives_a_release_whose_views_agree(parameters):
    frame = rows(4000)
    view = release(frame, 2.0, **parameters)
    model = check(view, DOMAIN, apart=0.002)
    assert view.count() == pytest.approx(len(frame), abs=100)
    # A table of all columns takes the place of other sets where these may have more than two.
    alone = isinstance(parameters.get("workload"), dict) or parameters.get("max_order") == 2
    sets = {"views"} if alone or parameters.get("max_order") == 4 else {"joint"}
    parts = {"total", "single", *sets}
    assert parts <= set(model.budget) <= {*parts, "test", "choice", "again"}
    assert sum(model.budget.values()) <= 2.0
    wanted = set() if parameters.get("error_share") == 0 else {"errors"}
    assert set(view.privacy_loss_.parts) == {"total", "views"} | wanted


def test_without_sets_columns_are_independent():
    frame = rows(4000)
    view = release(frame, 5.0, max_order=1)
    model = check(view, DOMAIN, apart=0.002)
    assert not model.pairs and set(model.budget) == {"total", "single"}
    for one, two in itertools.combinations(DOMAIN.names, 2):
        pair = view.synopsis_.view([one, two])
        margins = np.outer(pair.sum(axis=1), pair.sum(axis=0)) / pair.sum()
        # They are at most as dependent as 10,000 independent rows.
        assert np.abs(pair - margins).max() < 6 * np.sqrt(margins.max() * 4000 / 10_000)


def test_what_depends_on_three_columns_is_found():
    # No pair of columns tells anything: c is 1 where a and b differ.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (20_000, 4)), columns=list("abcd"))
    frame["c"] = frame["a"] ^ frame["b"]
    domain = Domain(dict.fromkeys("abcd", Categorical([0, 1])))
    view = release(frame, 10.0, domain)
    agree = sum(view.count({"a": x, "b": y, "c": x ^ y}) for x in (0, 1) for y in (0, 1))
    assert agree > 19_000


def test_all_columns_together_are_counted_where_cells_hold_many_records():
    frame = rows(20_000)
    view = release(frame, 1.0)
    model = check(view, DOMAIN, apart=0.002)
    assert set(model.budget) == {"total", "single", "joint"}
    drawn = view.sample(20_000, random_state=0)
    cells = [np.ravel_multi_index(DOMAIN.encode(each).T, DOMAIN.shape) for each in (frame, drawn)]
    exact, found = (np.bincount(each, minlength=400) for each in cells)
    assert np.abs(found - exact).sum() / 2 < 0.05 * len(frame)
    # The total has the precision of the table too.
    assert view.count() == pytest.approx(len(frame), abs=150)


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.filterwarnings("ignore:Tables of several columns")
def test_joint_counts_tell_all_codes_of_columns_that_views_would_group(ruled, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 300, 6000)
    frame = pd.DataFrame({"x": x, "y": (x + rng.integers(0, 2, 6000)) % 300, "z": x % 2})
    domain = Domain(
        {name: Numeric(0, 299, integer=True) for name in "xy"} | {"z": Categorical([0, 1])}
    )
    if ruled:
        domain = Domain(domain, structure=[skdp.forbid("x < 1 and z == 1")])
    view = MarginalSynthesizer(300.0, domain=domain, random_state=0).fit(frame)
    assert float(view.synopsis_.model.budget["joint"]) > 200
    truth = CountTable.from_codes(frame.to_numpy(dtype=np.int32), (300, 300, 2))
    for pair in itertools.combinations(range(3), 2):
        missed = np.abs(view.synopsis_.model.view(pair) - truth.dense(pair)).sum()
        assert missed < 0.01 * len(frame)
    # Neighbouring codes that a group of two would share, also after saving.
    view.synopsis_.save(tmp_path / "release")
    for synopsis in (view.synopsis_, Synopsis.load(tmp_path / "release")):
        assert synopsis.count("x == 10 and y == 10") == pytest.approx(
            len(frame.query("x == 10 and y == 10")), abs=0.5
        )
    # What few rows agree on follows the tables of groups.
    given = pd.DataFrame({"x": np.arange(300)})
    completed = view.sample(given=given, random_state=0)
    near = (completed["y"] - completed["x"]) % 300
    assert (near <= 3).mean() + (near >= 297).mean() > 0.9


def test_cells_that_only_noise_explains_lose_their_weight():
    # Records have equal codes in all of eight columns; most of 4 ** 8 cells are empty.
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 3000)
    code[:30] = 3
    domain = Domain({name: Categorical(range(4)) for name in "abcdefgh"})
    frame = pd.DataFrame({name: np.where(rng.random(3000) < 0.9, 0, code) for name in "abcdefgh"})
    view = release(frame, 9.0, domain, error_share=0)
    assert "joint" in view.synopsis_.model.budget
    sampled = view.sample(3000, random_state=0)
    seen = set(map(tuple, frame.to_numpy()))
    strange = sum(tuple(row) not in seen for row in sampled.to_numpy())
    assert strange < 0.01 * len(frame)
    assert view.count() == pytest.approx(3000, abs=30)


# --- progress


def test_progress_is_shown_when_asked(capsys):
    quiet = release(rows(1000), 2.0, max_order=2)
    assert capsys.readouterr() == ("", "")
    view = release(rows(1000), 2.0, max_order=2, verbose=1)
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert not shown.out and all(line.startswith("MarginalSynthesizer: ") for line in lines)
    steps = [line.removeprefix("MarginalSynthesizer: ") for line in lines]
    assert "single columns" in steps[:2] and steps[-1] == "errors of the model"
    assert any("of columns" in step for step in steps)
    # It changes nothing.
    assert view.count("a == 'p'") == quiet.count("a == 'p'")
    release(rows(400)[["a", "b"]], 2.0, DOMAIN.select(["a", "b"]), verbose=1)
    assert "single columns and their pair" in capsys.readouterr().err


# --- tiny budgets


@pytest.mark.parametrize("kind", [MarginalSynthesizer, skdp.PairViewSynthesizer])
@pytest.mark.parametrize(
    "parameters",
    [{"epsilon": 1e-12}, {"epsilon": 1e-300}, {"epsilon": 1, "error_share": 1e-13}],
    ids=str,
)
def test_noise_that_would_not_fit_is_refused_before_anything_is_spent(kind, parameters):
    ledger = skdp.PrivacyLedger(10)
    view = kind(domain=DOMAIN, ledger=ledger, **parameters)
    with pytest.raises(ValueError, match="noise would not fit into 64-bit integers"):
        view.fit(rows(10))
    assert ledger.spent == 0 and not hasattr(view, "synopsis_")


@pytest.mark.parametrize("target", [None, "c"])
def test_the_least_budget_is_enough(target):
    # Totals of 10**11 records are noise, and with them sets are chosen and measured.
    least = 4e-12 / 0.019 * 1.001
    for seed in range(4):
        check(release(rows(10), least, seed=seed, target=target), DOMAIN)


# --- the plans of papers


@pytest.mark.parametrize("plan", ["mst", "aim"])
@pytest.mark.parametrize("epsilon", [1e-4, 2.0, pytest.param(1e6, marks=pytest.mark.slow)])
def test_plans_of_papers_give_releases_whose_views_agree(plan, epsilon):
    frame = rows(3000)
    view = release(frame, epsilon, plan=plan, error_share=0)
    model = check(view, DOMAIN, apart=0.002 if epsilon > 1 else np.inf)
    assert set(model.budget) == {"total", "single", "choice", "views"}
    assert view.synopsis_.mechanism == f"marginals, plan {plan}"
    if epsilon > 1:
        assert view.count() == pytest.approx(3000, abs=200)


def test_mst_measures_a_tree_for_a_third_of_the_budget():
    view = release(rows(3000), 3.0, plan="mst", workload="all")
    model = view.synopsis_.model
    parts = view.privacy_loss_.parts
    for name in ("single", "choice", "views"):
        assert model.budget[name] == pytest.approx(float(parts["views"]) / 3)
    assert len(model.pairs) == 3 and not model.extra


def test_a_target_is_a_column_like_the_others_in_the_plans_of_papers():
    frame = rows(2000)
    y = frame.pop("c")
    one = release(frame, y=y, target="c", plan="mst")
    same = release(frame.assign(c=y)[list(DOMAIN.names)], plan="mst")
    np.testing.assert_array_equal(one.synopsis_.view(["a", "c"]), same.synopsis_.view(["a", "c"]))


@pytest.mark.parametrize("plan", ["mst", "aim"])
def test_plans_of_papers_under_rules_and_in_a_single_column(plan):
    view = release(rows(2000), 5.0, RULED, plan=plan)
    assert abs(view.count("a == 'p' and c == 'yes'")) < 1e-4
    line = Domain({"a": DOMAIN["a"]})
    assert set(release(rows(2000)[["a"]], 1.0, line, plan=plan).synopsis_.model.budget) == {
        "total",
        "single",
    }


@pytest.mark.parametrize("plan", ["mst", "aim"])
def test_every_cell_of_a_set_is_noised_in_the_plans_of_papers(plan, monkeypatch):
    tables = {}

    def recorded(self, axes, noisy, variance, model):
        tables.setdefault(axes, []).append(noisy)
        return measured(self, axes, noisy, variance, model)

    measured = Evidence.measured
    monkeypatch.setattr(Evidence, "measured", recorded)
    for seed in range(6):
        release(rows(10).iloc[:0], 0.05, seed=seed, plan=plan, error_share=0)
    often = [found for found in tables.values() if len(found) > 2]
    assert often and all((np.ptp(found, axis=0) > 0).all() for found in often)


def test_sets_of_aim_have_the_weight_of_what_they_share_with_the_workload():
    # Of three attributes each pair shares two with the triple, and each triple three.
    found = schemes.aim_sets("all", (2, 3, 4), 3)
    assert found == {(0, 1): 2 / 3, (0, 2): 2 / 3, (1, 2): 2 / 3, (0, 1, 2): 1}
    # Attribute 0 counts 1.5, attribute 1 counts 1, attribute 2 counts .5.
    found = schemes.aim_sets({(0, 1): 1, (0, 2): Fraction(1, 2)}, (2, 3, 4), 3)
    assert found == {(0, 1): 1, (0, 2): 2 / 2.5}
    assert schemes.aim_sets("all", (2, 1, 1), 3) == {}
    # Tables of too many cells are left out, and pairs stand for too many triples.
    assert (0, 1, 2) not in schemes.aim_sets("all", (128, 128, 128), 3)
    assert max(map(len, schemes.aim_sets("all", (2,) * 30, 3))) == 2


def test_the_rounds_of_aim_spend_the_budget_exactly(monkeypatch):
    picks, costs = [], []

    def chosen(self, *given):
        picks.append(given[4])
        return best(self, *given)

    def measured(*given, **more):
        costs.append(given[3])
        return measure(*given, **more)

    measure, best = schemes.measure_sets, Candidates.best
    monkeypatch.setattr(schemes, "measure_sets", measured)
    monkeypatch.setattr(Candidates, "best", chosen)
    view = release(rows(1000), 0.5, plan="aim", error_share=0)
    views = view.privacy_loss_.parts["views"]
    rounds = [pick + cost for pick, cost in zip(picks, costs, strict=True)]
    single = views * Fraction(3, 64)
    assert sum(rounds) == views - single
    assert rounds[0] == views / 64 and 1 < len(rounds) < 64
    for before, after in itertools.pairwise(rounds[:-1]):
        assert after in (before, 2 * before)


# --- how the budget is divided


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("workload", ["all", "ranges", "cells", {(0, 1): 1.0, (0, 2, 3): 0.5}])
@pytest.mark.parametrize("shape", [(2, 2, 2, 2), (100, 9, 74, 5, 1), (30,) * 60])
def test_the_parts_of_a_plan_add_up(shape, workload, labelled):
    for total in (-10, 0, 300, 10_000, 10**7):
        for views in (Fraction(1, 50), Fraction(1), Fraction(500)):
            plan = plan_views(views, total, shape, workload=workload, labelled=labelled)
            shares = [plan.test, plan.single, plan.classes, plan.grid, plan.choice, plan.views]
            assert sum(shares) == views
            assert min(shares) >= 0 and plan.single > 0
            assert labelled or not (plan.classes or plan.grid)
            assert all(number > 0 for number in plan.rounds)
            assert plan.n_views == plan.n_first + sum(plan.rounds)
            assert (plan.n_views > 0) == (plan.views > 0)


def pairs_of_columns(n, dependent, seed=0):
    """Codes of eight columns; of the first two the second repeats the first, or nothing does."""
    codes = np.random.default_rng(seed).integers(0, 4, (n, 8), dtype=np.int32)
    if dependent:
        codes[:, 1] = codes[:, 0]
    return CountTable.from_codes(codes, (4,) * 8)


def test_a_test_says_whether_any_pair_is_worth_a_view():
    source = noise_source(0)
    orders = [np.arange(4)] * 8
    for dependent in (False, True):
        table = pairs_of_columns(5000, dependent)
        found = [worth_views(table, Fraction(1, 20), orders, source) for _ in range(30)]
        # Without dependence the share of "yes" is a few in a hundred.
        assert sum(found) == 30 if dependent else sum(found) <= 6
    assert least_distance(28, 0.05) == pytest.approx(8 * (math.log(28) + 2) / 0.05)


def test_without_dependence_single_columns_get_all_but_the_test():
    domain = Domain({name: Numeric(0, 3, integer=True) for name in "abcdefgh"})
    codes = np.random.default_rng(0).integers(0, 4, (5000, 8))
    frame = pd.DataFrame(codes, columns=list("abcdefgh"))
    model = release(frame, 0.6, domain=domain, error_share=0).synopsis_.model
    assert not model.pairs
    assert model.budget["single"] + model.budget["test"] == pytest.approx(0.6 * 0.98)


def test_the_steps_spend_what_they_have_and_no_more(monkeypatch):
    chosen, costs = [], []

    def best(self, *given, **more):
        chosen.append(given[4])
        return pick(self, *given, **more)

    def measured(*given, **more):
        costs.append(given[3])
        return measure(*given, **more)

    measure, pick = stepwise.measure_sets, Candidates.best
    monkeypatch.setattr(stepwise, "measure_sets", measured)
    monkeypatch.setattr(Candidates, "best", best)
    view = release(rows(2000), 0.4, error_share=0)
    views, budget = view.privacy_loss_.parts["views"], view.synopsis_.model.budget
    assert chosen and sum(chosen) == pytest.approx(budget["choice"])
    assert float(sum(costs)) == pytest.approx(budget.get("views", 0.0))
    spent = sum(each for name, each in budget.items() if name != "total")
    assert spent == pytest.approx(float(views))


def test_no_set_is_a_candidate_that_noise_seldom_beats():
    codes = np.random.default_rng(0).integers(0, 4, (3000, 4), dtype=np.int32)
    attributes = [Attribute.of(np.ones(4) / 4, np.arange(4), 128) for _ in range(4)]
    population = Population.of(
        attributes, Laws.of(None, attributes), 3000, np.random.default_rng(0)
    )
    table = CountTable.from_codes(codes, (4,) * 4)
    candidates = Candidates(table, attributes, range(4), 3, "all", None, 1000)
    source = noise_source(1)

    def one():
        given = (population, 3000.0, [], 1, Fraction(1, 10), Fraction(1, 10), source)
        return candidates.best(*given, or_none=True)

    assert sum(not one() for _ in range(40)) >= 20
    assert candidates.any([]) and not candidates.any(candidates._sets([]))


def test_sets_of_a_round_share_no_pair_and_their_choices_share_its_budget(monkeypatch):
    # Four copies of a column, and three columns of noise: the sets inside the copies stand out.
    rng = np.random.default_rng(0)
    copies = np.repeat(rng.integers(0, 4, (2000, 1)), 4, axis=1)
    codes = np.hstack([copies, rng.integers(0, 4, (2000, 3))])
    attributes = [Attribute.of(np.ones(4) / 4, np.arange(4), 128) for _ in range(7)]
    population = Population.of(attributes, Laws.of(None, attributes), 2000, rng)
    table = CountTable.from_codes(codes, (4,) * 7)
    candidates = Candidates(table, attributes, range(7), 3, "all", None, 1000)
    pick, costs = candidates_module.noisy_max, []

    def picked(scores, epsilon, score_range, **given):
        costs.append(epsilon)
        return pick(scores, epsilon, score_range, **given)

    monkeypatch.setattr(candidates_module, "noisy_max", picked)
    chosen = candidates.best(population, 2000.0, [], 5, Fraction(50), Fraction(1), noise_source(0))
    pairs = [pair for axes in chosen for pair in itertools.combinations(axes, 2)]
    assert len(set(pairs)) == len(pairs)
    assert set(chosen[0]) <= {0, 1, 2, 3}
    assert costs == [Fraction(10)] * 5
    # Where all sets share a pair with one that was chosen, the rest is chosen among all.
    few = Candidates(table, attributes, range(3), 3, "all", None, 1000)
    everything = few.best(population, 2000.0, [], 9, Fraction(9), Fraction(1), noise_source(0))
    assert sorted(everything) == [(0, 1), (0, 1, 2), (0, 2), (1, 2)]


def test_cells_can_be_empty_whatever_the_model_says():
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(200) % 2, 0.0, 100.0)
    noisy = truth + rng.normal(0, 15, 200)
    model = np.full(200, 50.0)
    mean = posterior_mean(noisy, 15.0**2, model, empty=True)
    assert mean.min() >= 0
    assert np.abs(mean - truth).mean() < 0.8 * np.abs(noisy - truth).mean()


def test_patterns_above_the_noise_move_the_model_and_noise_does_not():
    rng = np.random.default_rng(0)
    score = np.linspace(-1, 1, 24)
    model = np.full((24, 24), 30.0)
    truth = model * (1 + 0.9 * np.outer(score, score))
    noisy = truth + rng.normal(0, 15, truth.shape)
    found = nearer_model(noisy, 15.0**2, model)
    assert found.min() >= 0
    # Better than the model, and than the noisy cells.
    apart = [((each - truth) ** 2).mean() for each in (found, model, noisy)]
    assert apart[0] < 0.5 * min(apart[1:])
    assert score @ found @ score > 0.5 * score @ truth @ score
    noise = nearer_model(model + rng.normal(0, 19, model.shape), 19.0**2, model)
    assert np.abs(noise - model).max() < 5
    # Cells without noise are taken as they are, a table of one row as well.
    np.testing.assert_allclose(nearer_model(truth, 1e-9, model), truth, rtol=1e-6)
    assert nearer_model(np.array([[3.0, 1.0]]), 0.5, np.array([[2.0, 2.0]])).shape == (1, 2)


def test_columns_that_rise_together_stay_together():
    # 24 codes each: a cell holds about as many records as its noise.
    rng = np.random.default_rng(0)
    z, columns = rng.normal(size=10_000), {}
    for name in "abcde":
        z = 0.7 * z + 0.7 * rng.normal(size=len(z))
        columns[name] = np.clip(np.rint(12 + 4 * z), 0, 23).astype(int)
    frame = pd.DataFrame(columns)
    domain = Domain({name: Numeric(0, 23, integer=True) for name in columns})
    view = release(frame, 3.0, domain, error_share=0).synopsis_
    for one, two in itertools.pairwise("abcde"):
        assert view.correlation(one, two) > 0.6 * frame[one].corr(frame[two])


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 3, 4, 3), (3, 4, 5, 4)])
def test_total_beside_a_table_of_all_columns_has_the_stated_variance(sizes):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, size, 12_000) for i, size in enumerate(sizes)})
    table = CountTable.from_codes(frame.to_numpy(), sizes)
    parts = {"total": Fraction(1, 50), "views": Fraction(1), "errors": Fraction(1, 20)}
    attributes = [Attribute.of(np.ones(size), np.arange(size), 128) for size in sizes]
    own, share = 900.0, Fraction(1, 2)
    source = noise_source(0)
    # The first total has noise of its own.
    totals = []
    for _ in range(150):
        first = 12_000 + rng.normal(0, np.sqrt(own))
        joint, _, noise = measure_whole(table, share, attributes, [50.0] * 4, first, own, source)
        totals.append(joint.total)
    expected = 1 / (1 / own + 1 / (discrete_laplace_variance(share) * np.prod(sizes)))
    assert joint.variance == pytest.approx(expected)
    # A variance of 150 normal numbers is off by 40% in one of 1,000 cases.
    assert np.var(totals) == pytest.approx(expected, rel=0.4)
    assert set(noise) == set(itertools.combinations(range(4), 2))
    model = marginal_views(table, parts, random_state=0)
    assert "joint" in model.budget and model.error_bars.total_variance < 5000


def test_as_many_sets_of_a_workload_as_fit_into_memory_are_measured():
    large = dict.fromkeys(itertools.combinations(range(12), 3), 1)
    plan = plan_views(Fraction(1000), 1e6, (300,) * 12, workload=large)
    assert plan.n_views == 2**25 // 128**3 and plan.choice > 0
    # Few large sets among many small ones leave room for all of these.
    small = dict.fromkeys(itertools.combinations(range(2, 8), 3), 1)
    plan = plan_views(Fraction(1000), 1e6, (300,) * 2 + (5,) * 6, workload={**small, (0, 1, 2): 1})
    assert plan.n_views == 21 and not plan.choice
    assert plan_views(Fraction(1000), 1e6, (300,) * 12).n_views > 16


def test_nothing_is_spent_on_choosing_all_sets():
    few = plan_views(Fraction(1, 2), 4000, (10, 10, 10, 10))
    assert few.choice > 0 and 0 < few.n_views < 6
    many = plan_views(Fraction(20), 40_000, (10, 10, 10, 10))
    assert many.choice == 0 and many.n_first == 0 and many.rounds == [6, 4]


def test_little_signal_is_spent_on_single_columns():
    # 22 columns of 8 codes: pairs would make single columns too noisy.
    assert plan_views(Fraction(1, 10), 11_000, (8,) * 22).single == Fraction(1, 10)
    assert plan_views(Fraction(1), 11_000, (8,) * 22).n_views > 0


def test_wide_sets_of_many_codes_are_not_measured():
    # A set of three columns has a million cells, more than the noise scales of all records.
    plan = plan_views(Fraction(1), 48_842, (100, 100, 100, 100))
    assert plan.rounds == [6] and plan.most_cells < 100**3
    assert plan_views(Fraction(10), 10**8, (100, 100, 100, 100)).most_cells > 100**3


def independent_rows(n_rows=2000, sizes=(30, 20, 2), seed=0):
    """A population of independent attributes, before any view."""
    rng = np.random.default_rng(seed)
    views = [rng.gamma(1.0, size=size) + 0.1 for size in sizes]
    attributes = [Attribute.of(view, np.arange(len(view)), 128) for view in views]
    population = Population.of(attributes, Laws.of(None, attributes), n_rows, rng)
    return attributes, population


def test_sets_that_need_no_choice_are_taken_in_order():
    attributes, population = independent_rows()
    table = CountTable.from_codes(np.zeros((50, 3), dtype=np.int32), (30, 20, 2))
    candidates = Candidates(table, attributes, [0, 1, 2], 3, "all", None, 1000)

    def best(taken, number):
        # Noise would need a source.
        return candidates.best(population, 50.0, taken, number, Fraction(0), Fraction(1), None)

    assert best([], 2) == [(0, 1), (0, 2)]
    # The set of all three has 1,200 cells.
    assert best([(0, 1), (0, 2)], 5) == [(1, 2)]


def test_margins_of_drawn_rows_are_smooth_where_columns_are_independent():
    attributes, population = independent_rows()
    truth = np.outer(attributes[0].grouped, attributes[1].grouped)
    drawn, smooth = population.margin((0, 1)), population.smooth_margin((0, 1))
    assert smooth.min() >= 0 and smooth.sum() == pytest.approx(1)
    assert np.abs(smooth - truth).sum() < 0.6 * np.abs(drawn - truth).sum()


def test_margins_of_columns_that_depend_on_each_other_stay():
    copies = np.arange(2000, dtype=np.int32)[:, None] % np.full((1, 2), 10)
    flat = [np.full(10, 0.1)] * 2
    rng = np.random.default_rng(0)
    population = Population(TreeDensity(flat, [], {}), copies, [], rng)
    smooth = population.smooth_margin((0, 1))
    assert np.abs(smooth - np.eye(10) / 10).sum() < 0.02


def test_smooth_margins_respect_rules():
    rows = np.zeros((500, 2), dtype=np.int32)
    rows[:250, 0] = 1
    never = np.array([[0.0, 0.0], [0.0, -80.0]])
    rng = np.random.default_rng(0)
    even = TreeDensity([np.full(2, 0.5)] * 2, [], {})
    population = Population(even, rows, [((0, 1), never)], rng)
    assert population.smooth_margin((0, 1))[1, 1] == 0


def test_views_that_form_a_tree_are_released_without_rows():
    model = release(rows(900), 1.0, plan="mst", error_share=0).synopsis_.model
    assert len(model.pairs) == len(model.density.edges) > 0 and model.rows is None
    view = release(rows(4000), 5.0, max_order=2, error_share=0).synopsis_.model
    assert len(view.pairs) == 6 and view.rows is not None


# --- odd tables


def odd_tables():
    rng = np.random.default_rng(0)
    line = Domain({"x": Numeric(0, 1, bins=70)})
    yield "one column", line, pd.DataFrame({"x": rng.random(300)})
    few = Domain({"x": Categorical(["k"]), "y": Numeric(0, 1, bins=60), "z": Categorical([0])})
    yield "constant columns", few, pd.DataFrame({"x": "k", "y": rng.random(300), "z": 0})
    frame = rows(3000)
    yield "mixed", DOMAIN, frame
    yield "one row", DOMAIN, frame.iloc[:1]
    yield "empty", DOMAIN, frame.iloc[:0]
    yield "all rows equal", DOMAIN, pd.concat([frame.iloc[[0]]] * 3000, ignore_index=True)
    twice = Domain(dict.fromkeys(("b", "copy", "other"), DOMAIN["b"]))
    b = frame["b"]
    yield "two copies", twice, pd.DataFrame({"b": b, "copy": b, "other": rng.random(3000)})
    missing = Domain({name: Numeric(0, 1, bins=5, nullable=True) for name in "xyz"})
    gaps = pd.DataFrame(rng.random((1000, 3)), columns=list("xyz"))
    yield "missing values", missing, gaps.mask(gaps < 0.4)


@pytest.mark.parametrize("epsilon", [1e-4, pytest.param(1.0, marks=pytest.mark.slow), 1e6])
@pytest.mark.parametrize(
    ("domain", "frame"), [pytest.param(*rest, id=name) for name, *rest in odd_tables()]
)
def test_odd_tables(domain, frame, epsilon, tmp_path):
    view = release(frame, epsilon, domain)
    check(view, domain, apart=0.002 if epsilon * len(frame) > 1e5 else np.inf)
    if epsilon == 1e6:
        assert view.count() == pytest.approx(len(frame), abs=1e-3)
    answer = view.count(return_interval=True)
    assert answer.lower <= max(answer.value, 0.0) <= answer.upper
    view.synopsis_.save(tmp_path / "file")
    loaded = Synopsis.load(tmp_path / "file")
    assert loaded.count() == view.count() and loaded.mechanism == "marginals"
    np.testing.assert_array_equal(
        loaded.sample_codes(50, random_state=1), view.synopsis_.sample_codes(50, random_state=1)
    )


def test_copies_of_a_column_stay_copies():
    b = rows(5000)["b"]
    domain = Domain(dict.fromkeys(("b", "copy", "other"), DOMAIN["b"]))
    other = np.random.default_rng(1).random(5000)
    view = release(pd.DataFrame({"b": b, "copy": b, "other": other}), 5.0, domain)
    pair = view.synopsis_.view(["b", "copy"])
    assert np.trace(pair) > 0.9 * pair.sum()


@pytest.mark.parametrize("n_columns", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_many_columns_and_few_rows(n_columns):
    rng = np.random.default_rng(0)
    domain = Domain({f"c{i}": Numeric(0, 1, bins=2 + i % 9) for i in range(n_columns)})
    frame = pd.DataFrame(rng.random((500, n_columns)), columns=list(domain.names))
    view = release(frame, 1.0, domain, error_share=0)
    check(view, domain, n_rows=20)
    assert view.count() == pytest.approx(500, abs=400)


@pytest.mark.slow
def test_a_column_of_many_codes_is_grouped_and_that_is_said():
    rng = np.random.default_rng(0)
    x = rng.random(10_000)
    domain = Domain({"x": Numeric(0, 1, bins=100_000), "y": DOMAIN["b"], "z": DOMAIN["c"]})
    frame = pd.DataFrame({"x": x, "y": x, "z": np.where(x > 0.5, "yes", "no")})
    view = MarginalSynthesizer(2.0, domain=domain, random_state=0)
    with pytest.warns(UserWarning, match="Tables of several columns do not tell all codes of 'x'"):
        view.fit(frame)
    assert "tables of several columns tell groups of codes apart in 'x'" in view.synopsis_.mechanism
    assert len(view.synopsis_.view(["x"])) == 100_000
    assert view.count("x <= 0.3 and y <= 0.3") == pytest.approx((x <= 0.3).sum(), abs=300)
    assert view.sample(500, random_state=0)["x"].nunique() > 50


# --- classes


@pytest.mark.parametrize("epsilon", [1e-4, 20.0, 1e6])
def test_a_class_of_three_records(epsilon):
    frame = rows(3000)
    frame["c"] = np.where(np.arange(3000) % 1000 == 5, "yes", "no")
    view = release(frame.drop(columns="c"), epsilon, y=frame["c"], target="c")
    check(view, DOMAIN)
    X, y, weight = view.make_training_set(500, random_state=0)
    assert list(X.columns) == ["a", "b", "d"] and set(y) <= {"no", "yes"} and weight is None
    if epsilon >= 20:
        assert view.count("c == 'yes'") == pytest.approx(3, abs=5)


def test_a_target_is_learned():
    frame = rows(20_000)
    view = release(frame.drop(columns="c"), 5.0, y=frame["c"], target="c")
    X, y, _ = view.make_training_set(random_state=0)
    low = X["a"].isin(["p", "q"]) == (X["d"] < 2)
    assert (low == (y == "yes")).mean() > 0.8


# --- rules

RULED = Domain(
    DOMAIN.items(),
    structure=[
        skdp.forbid("a == 'p' and c == 'yes'"),
        skdp.forbid("b < 0.3 and d >= 3"),
        skdp.forbid({"a": "q", "c": "no", "d": 0}),
    ],
)


@pytest.mark.parametrize("target", [None, "c"])
@pytest.mark.parametrize("epsilon", [0.1, 1000.0])
def test_no_row_breaks_a_rule(epsilon, target):
    frame = rows(3000)
    y = None if target is None else frame.pop(target)
    view = release(frame, epsilon, RULED, y=y, target=target)
    check(view, RULED)
    drawn = view.sample(2000, random_state=0)
    broken = (
        ((drawn["a"] == "p") & (drawn["c"] == "yes"))
        | ((drawn["b"] < 0.3) & (drawn["d"] >= 3))
        | ((drawn["a"] == "q") & (drawn["c"] == "no") & (drawn["d"] == 0))
    )
    assert not broken.any()
    for query in (
        "a == 'p' and c == 'yes'",
        "b < 0.3 and d >= 3",
        {"a": "q", "c": "no", "d": 0},
    ):
        assert abs(view.count(query)) < 1e-4


# --- answers


def test_counts_samples_and_the_truth_agree():
    frame = rows(30_000)
    view = release(frame, 10.0)
    drawn = view.sample(random_state=0)
    assert len(drawn) == pytest.approx(len(frame), abs=30)
    for one, two in itertools.combinations(DOMAIN.names, 2):
        axes = [DOMAIN.index(one), DOMAIN.index(two)]
        tables = []
        for table in (frame, drawn):
            codes = DOMAIN.encode(table)[:, axes]
            found = np.zeros([DOMAIN.shape[axis] for axis in axes])
            np.add.at(found, tuple(codes.T), 1)
            tables.append(found)
        counted = view.synopsis_.view([one, two])
        for other in tables:
            assert np.abs(counted - other).sum() / 2 < 0.03 * len(frame)
    corner = view.synopsis_.view(["a", "c"])[0, 0]
    assert view.count({"a": "p", "c": "no"}) == pytest.approx(corner, abs=1e-6 * len(frame))


def test_persons():
    frame = rows(2000).assign(who=np.arange(2000) // 2)
    view = release(frame, 5.0, unit="who", max_contributions=2)
    assert view.privacy_loss_.max_contributions == 2
    assert view.count() == pytest.approx(2000, abs=100)
    check(view, DOMAIN)


@pytest.mark.parametrize("epsilon", [0.3, pytest.param(4, marks=pytest.mark.slow)])
def test_intervals_cover_queries_on_any_number_of_columns(epsilon):
    # 300 fresh queries on each of 5 releases; intervals a quarter as wide must fail somewhere.
    rng = np.random.default_rng(1)
    n = 20_000
    x = rng.gamma(2.0, 4.0, n).astype(int)
    columns = [
        np.minimum(x, 29),
        (x // 3 + rng.integers(0, 4, n)) % 12,
        x % 5,
        rng.integers(0, 4, n),
    ]
    shape = (30, 12, 5, 4)
    table = CountTable.from_codes(np.stack(columns, axis=1), shape)
    domain = Domain({f"c{i}": Categorical(list(range(size))) for i, size in enumerate(shape)})
    frame = pd.DataFrame({f"c{i}": column for i, column in enumerate(columns)})
    covered, narrow = {}, {}
    for seed in range(5):
        model = (
            MarginalSynthesizer(epsilon, domain=domain, random_state=seed)
            .fit(frame)
            .synopsis_.model
        )
        for order in (1, 2, 3, 4):
            axes = tuple(sorted(rng.choice(4, order, replace=False).tolist()))
            queries = [{a: random_weights(shape[a], False, rng) for a in axes} for _ in range(300)]
            answers = model.answer(queries)
            errors = np.abs(answers - exact_answers(table, axes, queries))
            half = np.array([model.error(query, 0.95).above for query in queries])
            covered.setdefault(order, []).append((errors <= half).mean())
            narrow.setdefault(order, []).append((errors <= half / 4).mean())
    assert min(np.mean(each) for each in covered.values()) >= 0.93
    assert min(np.mean(each) for each in narrow.values()) < 0.9
