"""Marginals: what they spend, what they find, what odd tables give, and that views agree."""

import itertools
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from boxed import asked, reach_of

import skdp
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric, Synopsis
from skdp._random import noise_source
from skdp.algorithms.marginals import measure as measure_module
from skdp.algorithms.marginals import plans as plans_module
from skdp.algorithms.marginals.fit import Attribute, Population, posterior_mean
from skdp.algorithms.marginals.plans import Candidates
from skdp.domain import Zeros
from skdp.tables import CountTable

DOMAIN = Domain(
    {
        "a": Categorical(list("pqrs")),
        "b": Numeric(0, 1, bins=10),
        "c": Categorical(["no", "yes"]),
        "d": Numeric(0, 4, integer=True),
    }
)

RULED = Domain(
    DOMAIN.items(),
    structure=[
        skdp.forbid("a == 'p' and c == 'yes'"),
        skdp.forbid("b < 0.3 and d >= 3"),
        skdp.forbid("a == 'q' and c == 'no' and d == 0"),
    ],
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
        view = MarginalSynthesizer(epsilon=epsilon, domain=domain, random_state=seed, **parameters)
        return view.fit(frame, y)


def check(view, domain, n_rows=200):
    """What every release of a domain is: finite, with totals that agree within their noise."""
    model = view.synopsis_.model
    whole = view.count(return_interval=True)
    names = domain.names[:4]
    tables = [view.synopsis_.view([name]) for name in names]
    tables += [view.synopsis_.view(list(pair)) for pair in itertools.combinations(names, 2)]
    for table in tables:
        assert np.isfinite(table).all()
        assert abs(table.sum() - whole.value) <= 8 * whole.std + 1e-6 * abs(whole.value)
    drawn = view.sample(n_rows, random_state=0)
    assert set(drawn.columns) == set(domain.columns) and len(drawn) == n_rows
    assert domain.encode(drawn).min() >= 0
    assert sum(view.privacy_loss_.parts.values()) == view.privacy_loss_.epsilon
    return model


# --- what is spent


def record(monkeypatch):
    """The cost of every mechanism that the kernel calls, by the name of the mechanism."""
    spent = {}

    def spy(module, name, place):
        mechanism = getattr(module, name)

        def called(*given, **more):
            spent.setdefault(name, []).append(given[place])
            return mechanism(*given, **more)

        monkeypatch.setattr(module, name, called)

    spy(measure_module, "discrete_laplace", 1)
    spy(plans_module, "discrete_laplace", 1)
    spy(plans_module, "noisy_max", 1)
    spy(plans_module, "sparse_counts", 3)
    return spent


WAYS = {
    "few": {"epsilon": 0.02},
    "sets": {"epsilon": 0.3},
    "pairs": {"epsilon": 2.0, "max_order": 2},
    "single columns": {"epsilon": 1.0, "max_order": 1},
    "four columns": {"epsilon": 0.3, "max_order": 4},
    "ranges": {"epsilon": 0.3, "workload": "ranges"},
    "cells": {"epsilon": 0.3, "workload": "cells"},
    "workload": {"epsilon": 1.0, "workload": {("a", "c", "d"): 1, ("b", "d"): 0.25}},
    "one table": {"epsilon": 5.0},
    "joint counts": {"epsilon": 30.0},
    "target": {"epsilon": 0.3, "target": "c"},
    "target, pairs": {"epsilon": 0.1, "target": "a", "max_order": 2},
}


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_all_steps_together_spend_epsilon_exactly(way, ruled, monkeypatch):
    spent = record(monkeypatch)
    view = release(rows(2000), domain=RULED if ruled else DOMAIN, **WAYS[way])
    # All but the part for the records that are skipped.
    epsilon = view.privacy_loss_.epsilon - view.privacy_loss_.parts["skipped"]
    assert sum(itertools.chain.from_iterable(spent.values())) == epsilon
    assert spent["discrete_laplace"][0] == view.privacy_loss_.parts["total"]
    budget = view.synopsis_.model.budget
    assert sum(budget.values()) == pytest.approx(float(epsilon))
    # Of the choice at most two fifths are for how far off the rows are of pairs not measured.
    chosen, choice = float(sum(spent.get("noisy_max", []))), budget.get("choice", 0.0)
    assert 0.6 * choice <= chosen * (1 + 1e-12) and chosen <= choice * (1 + 1e-12)
    assert float(sum(spent.get("sparse_counts", []))) == pytest.approx(budget.get("joint", 0.0))
    assert set(view.privacy_loss_.parts) == {"skipped", "total", "views"}
    if not ruled:
        steps = {"single columns": set(), "one table": {"sets"}, "joint counts": {"joint"}}
        assert steps.get(way, {"sets"}) <= {*budget} - {"total", "columns"}


# --- what is found


def test_bins_are_labels_and_groups_of_pairs():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.gamma(2.0, 10.0, 20_000).clip(0, 100)})
    frame["y"] = (frame["x"] + rng.normal(0, 5, 20_000)).clip(0, 100)
    both = release(frame, 1.0, Domain(dict.fromkeys("xy", Numeric(0, 100, bins=5)))).synopsis_
    assert len(both.aggregate("x")) == 5 and both.view(["x", "y"]).shape == (5, 5)
    assert all(len(np.unique(each.units)) <= 5 for each in both.model.coefficients.ladders.values())


def test_only_sets_of_the_workload_are_measured():
    model = release(rows(4000), 2.0, workload={("a", "d"): 1, ("b", "c"): 0.5}).synopsis_.model
    measured = {axes for axes in model.coefficients.looks if len(axes) > 1}
    assert measured and measured <= {(0, 3), (1, 2)}


def test_all_columns_together_are_counted_where_cells_hold_many_records():
    frame = rows(20_000)
    view = release(frame, 1.0)
    assert set(check(view, DOMAIN).budget) == {"total", "columns", "sets"}
    drawn = view.sample(20_000, random_state=0)
    cells = [np.ravel_multi_index(DOMAIN.encode(each).T, DOMAIN.shape) for each in (frame, drawn)]
    exact, found = (np.bincount(each, minlength=400) for each in cells)
    assert np.abs(found - exact).sum() / 2 < 0.05 * len(frame)
    # The total has the precision of the table too.
    assert view.count() == pytest.approx(len(frame), abs=150)


@pytest.mark.parametrize("epsilon", [30.0, 1e6])
@pytest.mark.parametrize("ruled", [False, True])
def test_joint_counts_are_within_a_few_records(epsilon, ruled):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 300, 6000)
    frame = pd.DataFrame({"x": x, "y": (x + rng.integers(0, 2, 6000)) % 300, "z": x % 2})
    domain = Domain(
        {name: Numeric(0, 299, integer=True) for name in "xy"} | {"z": Categorical([0, 1])},
        structure=[skdp.forbid("x < 1 and z == 1")] if ruled else [],
    )
    view = MarginalSynthesizer(epsilon=epsilon, domain=domain, random_state=0).fit(frame)
    assert "joint" in view.synopsis_.model.budget
    queries = [
        "x == 10 and y == 10",
        "x == 10 and y == 11",
        "x == 11 and y == 10",
        "x < 100 and y < 100",
        "x < 150 and z == 1",
        "50 <= x < 60 and 50 <= y < 70 and z == 0",
    ]
    missed = 0
    for query in queries:
        truth = len(frame.query(query))
        answer = view.count(query, return_interval=True, level=0.999)
        assert abs(answer.value - truth) < 5 + 0.01 * truth
        missed += not answer.lower - 0.5 <= truth <= answer.upper + 0.5
        # Two records more would be noticed with little noise.
        if epsilon == 1e6:
            assert answer.upper - answer.lower < 4
    assert not missed
    # Neighbouring codes that a group of two would share are told apart in rows too.
    drawn = view.sample(6000, random_state=0)
    assert ((drawn["y"] - drawn["x"]) % 300 <= 1).mean() > 0.99


# --- progress


def test_progress_is_shown_when_asked(capsys):
    release(rows(1000), 2.0, max_order=2, verbose=1)
    out, steps = capsys.readouterr()
    wanted = ("single columns", "6 sets of columns", "synthetic rows")
    assert (out, steps.splitlines()) == ("", [f"MarginalSynthesizer: {each}" for each in wanted])


# --- the choice of sets


def even(size, mass=None):
    """An attribute of so many codes, equally frequent or with a mass for each."""
    mu = np.full(size, 1 / size) if mass is None else mass / mass.sum()
    return Attribute(mu, np.arange(size), np.arange(size))


def test_pairs_that_depend_stand_out_and_their_choices_share_a_budget(monkeypatch):
    # Four copies of a column, and three columns of noise.
    rng = np.random.default_rng(0)
    copies = np.repeat(rng.integers(0, 4, (2000, 1)), 4, axis=1)
    codes = np.hstack([copies, rng.integers(0, 4, (2000, 3))])
    attributes = [even(4) for _ in range(7)]
    population = Population.of(attributes, Zeros(), 2000, rng)
    table = CountTable.from_codes(codes, (4,) * 7)
    weights = dict.fromkeys(itertools.combinations(range(7), 2), 1)
    candidates = Candidates(table, attributes, weights, 2000.0)
    costs = record(monkeypatch)
    chosen = candidates.best(population, [], 6, Fraction(60), Fraction(1), noise_source(0))
    assert sorted(chosen) == list(itertools.combinations(range(4), 2))
    assert costs == {"noisy_max": [Fraction(10)] * 6}
    # A weight counts in a score: the copies of smaller weight are left out.
    halved = Candidates(table, attributes, weights | {(0, 1): Fraction(1, 2)}, 2000.0)
    chosen = halved.best(population, [], 5, Fraction(50), Fraction(1), noise_source(0))
    assert (0, 1) not in chosen and all(max(pair) < 4 for pair in chosen)


def test_cells_follow_the_model_where_noise_explains_all_and_the_table_without_noise():
    rng = np.random.default_rng(0)
    model = np.full((24, 24), 30.0)
    noise = posterior_mean(model + rng.normal(0, 19, model.shape), 19.0**2, model)
    assert ((noise - model) ** 2).mean() < 0.05 * 19.0**2
    score = np.linspace(-1, 1, 24)
    truth = model * (1 + 0.9 * np.outer(score, score))
    np.testing.assert_allclose(posterior_mean(truth, 1e-9, model), truth, rtol=1e-6)
    # Noise as large as what it hides: better than the model and than the noisy cells.
    noisy = truth + rng.normal(0, 10, truth.shape)
    found = posterior_mean(noisy, 10.0**2, model)
    apart = [((each - truth) ** 2).mean() for each in (found, model, noisy)]
    assert apart[0] < min(apart[1:])
    # Cells can be empty, whatever is drawn.
    assert found.min() >= 0 > noisy.min()


# --- odd tables


def odd_tables():
    rng = np.random.default_rng(0)
    one = Domain({"a": Numeric(0, 1, bins=128)})
    yield "one column", one, pd.DataFrame({"a": rng.random(300)})
    few = Domain({"x": Categorical(["k"]), "y": Numeric(0, 1, bins=60), "z": Categorical([0])})
    yield "constant columns", few, pd.DataFrame({"x": "k", "y": rng.random(300), "z": 0})
    frame = rows(3000)
    yield "empty", DOMAIN, frame.iloc[:0]
    twice = Domain(dict.fromkeys(("b", "copy", "other"), DOMAIN["b"]))
    yield "two copies", twice, frame[["b"]].assign(copy=frame["b"], other=rng.random(3000))
    missing = Domain({name: Numeric(0, 1, bins=5, nullable=True) for name in "xyz"})
    gaps = pd.DataFrame(rng.random((1000, 3)), columns=list("xyz"))
    yield "missing values", missing, gaps.mask(gaps < 0.4)


@pytest.mark.parametrize("epsilon", [1e-4, 1e6])
@pytest.mark.parametrize(
    ("domain", "frame"), [pytest.param(*rest, id=name) for name, *rest in odd_tables()]
)
def test_odd_tables(domain, frame, epsilon, tmp_path):
    view = release(frame, epsilon, domain)
    check(view, domain)
    if epsilon == 1e6:
        assert view.count() == pytest.approx(len(frame), abs=1e-3)
        if "copy" in domain:
            assert np.trace(view.synopsis_.view(["b", "copy"])) > 0.9 * len(frame)
    answer = view.count(return_interval=True)
    assert answer.lower <= max(answer.value, 0.0) <= answer.upper
    view.synopsis_.save(tmp_path / "file")
    loaded = Synopsis.load(tmp_path / "file")
    assert loaded.count() == view.count() and loaded.mechanism == "marginals"
    again = pickle.loads(pickle.dumps(view)).synopsis_
    assert again.count(return_interval=True) == answer
    names = list(domain.names[:2])
    for other in (loaded, again):
        np.testing.assert_allclose(other.view(names), view.synopsis_.view(names), rtol=1e-9)
    np.testing.assert_array_equal(
        loaded.sample_codes(50, random_state=1), view.synopsis_.sample_codes(50, random_state=1)
    )


# --- answers


@pytest.mark.parametrize(
    ("epsilon", "n_seeds"),
    [
        (0.3, 2),
        pytest.param(0.3, 12, marks=pytest.mark.slow),
        pytest.param(4, 12, marks=pytest.mark.slow),
    ],
)
def test_intervals_cover_queries_on_any_number_of_columns(epsilon, n_seeds):
    rng = np.random.default_rng(1)
    n, shape = 20_000, (30, 12, 5, 4)
    x, free = rng.gamma(2.0, 4.0, n).astype(int), rng.integers(0, 4, (2, n))
    columns = [np.minimum(x, 29), (x // 3 + free[0]) % 12, x % 5, free[1]]
    frame = pd.DataFrame({f"c{i}": column for i, column in enumerate(columns)})
    domain = Domain({name: (0, size - 1) for name, size in zip(frame, shape, strict=True)})
    orders = [order for order in (1, 2, 3, 4) for _ in itertools.combinations(range(4), order)] * 5
    errors = np.zeros((n_seeds, len(orders)))
    for seed, place in np.ndindex(errors.shape):
        if not place:
            model = release(frame, epsilon, domain, seed).synopsis_.model
        query = {}
        for axis in rng.permutation(4)[: orders[place]].tolist():
            low, high = np.sort(rng.integers(0, shape[axis], 2))
            query[axis] = 1.0 * ((np.arange(shape[axis]) >= low) & (np.arange(shape[axis]) <= high))
        truth = np.prod([each[columns[axis]] for axis, each in query.items()], axis=0).sum()
        error = abs(model.answer(asked([query]))[0] - truth)
        errors[seed, place] = error / reach_of(model, query, 0.95)[2]
    # Questions to one release share its noise.
    assert (errors <= 1).mean() >= (0.92 if n_seeds > 2 else 0.85)
    # Intervals a quarter as wide are noticed.
    assert (errors <= 1 / 4).mean() < 0.8
    for order in (1, 2, 3, 4):
        assert n_seeds <= 2 or (errors[:, np.equal(orders, order)] <= 1).mean() >= 0.88


@pytest.mark.parametrize(
    ("codes", "others", "epsilon"), [(40, 0, 1.0), (40, 3, 5.0), (100, 5, 1.0)]
)
def test_bars_tell_what_groups_of_categories_hide(codes, others, epsilon):
    # Each ward has its own frequent diagnoses. Of 300 cells and more, fewer than 0.88 in bars at
    # 95% are improbable even where errors of one release go together; before, it was 0.4 to 0.7.
    rng = np.random.default_rng(5)
    ward = rng.integers(8, size=60_000)
    law = (1 / np.arange(1, codes + 1)) * np.exp(rng.normal(0, 1.5, (8, codes)))
    reach = np.cumsum(law / law.sum(axis=1, keepdims=True), axis=1)
    code = (rng.random(len(ward))[:, None] > reach[ward]).sum(axis=1).clip(0, codes - 1)
    columns = {"ward": ward, "code": code}
    columns |= {f"x{i}": rng.integers(6, size=len(ward)) for i in range(others)}
    domain = Domain(
        {name: Categorical(range(int(max(each)) + 1)) for name, each in columns.items()}
    )
    view = MarginalSynthesizer(epsilon=epsilon, domain=domain).fit(pd.DataFrame(columns))
    truth = np.zeros((8, domain["code"].size))
    np.add.at(truth, (ward, code), 1)
    asked = [{"ward": a, "code": b} for a, b in np.ndindex(truth.shape)]
    found = view.count(asked, return_interval=True)
    held = [a.lower <= t <= a.upper for a, t in zip(found, truth.ravel(), strict=True)]
    assert np.mean(held) > 0.88
    if not others:
        # One table of both columns: no category is in a group with another.
        off = np.array([a.value for a in found]) - truth.ravel()
        assert np.sqrt(np.mean(off**2)) < 4.0


def test_both_sides_of_a_cut_through_a_group_are_as_uncertain():
    """Records of a category lie in one group of ages: a cut hides as many on either side."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 100, (20_000, 6)), columns=[*"nabcde"])
    older = rng.integers(6, 10, 20_000)
    frame["level"] = np.where(frame["n"] < 30, frame["n"] // 3, older)
    view = release(frame, 1.0, dict.fromkeys("nabcde", (0, 99)) | {"level": [*range(10)]})
    for age in (3, 4, 8):
        below, above = (
            view.count(f"n {side} {age} and level == {(age - 1) // 3}", return_interval=True)
            for side in ("<", ">=")
        )
        assert 0.8 < below.std / above.std < 1.25


def test_all_of_a_block_may_lie_at_one_number():
    # Ten values among 800 bins, of which each block has one or two.
    frame = pd.DataFrame({"x": np.repeat(np.arange(0.5, 10.0), 1000)})
    for seed in range(4):
        view = release(frame, domain={"x": (0.0, 10.0)}, epsilon=0.02, seed=seed)
        assert view.synopsis_.count("x == 3.5", return_interval=True).upper > 1000


def test_a_set_may_hold_a_column_of_which_rules_leave_one_code():
    domain = Domain(dict.fromkeys("abc", [0, 1]), structure=[skdp.forbid("a == 1")])
    frame = pd.DataFrame({"a": [0] * 9, "b": [0, 1, 1] * 3, "c": [1] * 9})
    assert release(frame, domain=domain, workload={("a", "b", "c"): 1}).synopsis_.total


# --- a target: pairs with it come first, and rows predict it

LABELLED = Domain(
    {
        **{name: Numeric(0, 1, bins=16) for name in "xyz"},
        "kind": Categorical(list("pqrs")),
        "label": Categorical(["no", "rare", "yes"]),
    }
)


def labelled(n, seed=0):
    """Rows whose label follows from x and y together, but three that are rare."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.random(n) for name in "xyz"})
    frame["kind"] = rng.choice(list("pqrs"), n)
    frame["label"] = np.where((frame["x"] > 0.5) & (frame["y"] > 0.4), "yes", "no")
    frame.loc[:2, "label"] = "rare"
    return frame


def drawn_with_label(frame, epsilon):
    return release(frame, epsilon, LABELLED, target="label").sample(20_000, random_state=0)


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_pairs_with_the_target_are_measured_first(epsilon):
    model = release(labelled(20_000), epsilon, LABELLED, target="label").synopsis_.model
    assert {*model.pairs} >= {(axis, 4) for axis in range(4)}


@pytest.mark.parametrize(
    ("n", "epsilon", "right"), [(3000, 0.1, 0), (3000, 30, 0.75), (20_000, 1, 0.88)]
)
def test_two_columns_predict_a_label_together_of_which_one_value_is_rare(n, epsilon, right):
    drawn = drawn_with_label(labelled(n), epsilon)
    rare, yes = (drawn["label"] == each for each in ("rare", "yes"))
    assert rare.mean() < 0.1
    assert ((drawn["x"] > 0.5) & (drawn["y"] > 0.4) == yes)[~rare].mean() > right


def test_columns_that_say_the_same_of_a_label_count_once():
    rng = np.random.default_rng(0)
    frame, x = labelled(40_000), rng.integers(0, 16, 40_000)
    for name in "xyz":
        frame[name] = (x + rng.random(len(x))) / 16
    frame["label"] = np.where(rng.random(len(x)) < 0.4 + 0.2 * (x >= 8), "yes", "no")
    drawn = drawn_with_label(frame, 2.0)
    high = (drawn[list("xyz")] >= 0.5).all(axis=1)
    # Three independent columns in each class would say 0.77.
    assert (drawn.loc[high, "label"] == "yes").mean() == pytest.approx(0.6, abs=0.06)
