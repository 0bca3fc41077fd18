"""The prior of marginals: its field, what is believed of measured sets, and errors of answers."""

import itertools

import numpy as np
import pandas as pd
import pytest
from boxed import random_query

from skdp import Categorical, Domain, MarginalSynthesizer, Numeric
from skdp.domain.query import Query
from skdp.release import marginals as marginals_module
from skdp.release import prior as prior_module
from skdp.release import products as products_module
from skdp.release.basis import Ladder, Look
from skdp.release.prior import ColumnBasis, Prior, cut_shares

DOMAIN = Domain(
    {
        "age": Numeric(0, 20, bins=20, special=[-1], nullable=True),
        "pay": Numeric(0, 12, bins=12),
        "sex": Categorical(["F", "M"]),
        "work": Categorical(list("abcde")),
    }
)


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    age = np.minimum(rng.gamma(3, 2.5, n), 19.9)
    pay = np.clip(age / 2 + rng.normal(0, 2, n), 0, 11.9)
    work = np.array(list("abcde"))[np.minimum(pay // 2.5, 4).astype(int)]
    age[rng.random(n) < 0.1] = -1
    age[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"age": age, "pay": pay, "sex": rng.choice(["F", "M"], n), "work": work})


@pytest.fixture(scope="module", params=[0.2, 2.0])
def model(request):
    made = MarginalSynthesizer(epsilon=request.param, domain=DOMAIN, max_order=2, random_state=0)
    return made.fit(people()).synopsis_.model


def ladder(n_codes, n_units, n_ordered=0):
    sizes = tuple(1 << level for level in range(n_units.bit_length()))
    return Ladder(np.arange(n_codes) * n_units // n_codes, sizes, n_ordered)


def test_features_have_the_covariance_of_the_field():
    """A walk over five codes beside two that stand alone, simulated in small steps."""
    rng, n_draws, n_steps = np.random.default_rng(0), 20_000, 40
    counts = np.array([5.0, 1.0, 3.0, 7.0, 2.0, 4.0, 3.0])
    column = ColumnBasis(counts, ladder(7, 4, 5))
    mass = counts / counts.sum()
    ranks = np.append(0.0, np.cumsum(mass[:5])) / mass[:5].sum()
    # From an end a quarter of the first code is left out; within a code steps are even.
    sides = [np.maximum(each, each[1] / 4) for each in (ranks, 1 - ranks[::-1])]
    one, other = (-np.diff(1 / each) / 8 for each in sides)
    steps = np.repeat((one + other[::-1]) / n_steps, n_steps)
    walk = np.cumsum(np.sqrt(12 * steps) * rng.normal(size=(n_draws, len(steps))), axis=1)
    share = np.repeat(mass[:5] / n_steps, n_steps)
    walk -= (walk @ share / share.sum())[:, None]
    weights = rng.normal(size=(7, 3))
    centred = weights - mass @ weights
    sums = walk @ (share[:, None] * np.repeat(centred[:5], n_steps, axis=0))
    apart = np.array([mass[:5].sum(), *mass[5:]])
    block = np.vstack([mass[:5] @ centred[:5], mass[5:, None] * centred[5:]])
    sums += (rng.normal(size=(n_draws, 3)) / np.sqrt(apart)) @ block
    field, chance = column.features(weights)
    expected = field.T @ field
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    # The last step of a code is taken after its records: a fortieth, and noise of 1%.
    assert np.abs((np.cov(sums.T) - expected) / scale).max() < 0.05
    np.testing.assert_allclose(chance.T @ chance, (mass[:, None] * centred).T @ centred)


def test_the_walk_has_the_density_of_columns_with_joint_tails():
    """At a share of r records below, (1/r**2 + 1/(1 - r)**2) / 8; the outermost code is exact."""
    cells = np.arange(400) // 40
    weights = np.column_stack([np.eye(400)[:, 0], np.eye(10)[cells][:, [0, 2, 5, 9]]])
    field, _ = ColumnBasis(np.ones(400), ladder(400, 4, 400)).features(weights)
    below = (np.arange(400_000) + 0.5) / 400_000
    density = (1 / below**2 + 1 / (1 - below) ** 2) / 8
    sums = np.cumsum((weights - weights.mean(axis=0)).repeat(1000, axis=0), axis=0) / 400_000
    exact = 12 * (sums**2 * density[:, None]).mean(axis=0)
    np.testing.assert_allclose((field**2).sum(axis=0), exact, rtol=0.03)


def test_ranges_that_end_inside_codes_are_told_from_values():
    weights = np.array([[0.0, 0.5, 0.5], [0.25, 0.5, -1.0], [1.0, 0.5, 0.0]])
    np.testing.assert_allclose(cut_shares(weights)[:, 0], [0, 0.1875, 0])
    assert not cut_shares(weights)[:, 1:].any()


def test_beliefs_are_the_posterior_of_one_law():
    """By brute force: each value of u, and each scale of the law of its roots."""
    rng = np.random.default_rng(1)
    columns = {axis: ColumnBasis(rng.random(8) + 0.1, ladder(8, 8, 8)) for axis in range(5)}
    looks, centre = {}, rng.normal(size=(7, 7))
    for pair in itertools.combinations(range(3), 2):
        precision = rng.uniform(0.5, 2.0, (7, 7)) * (rng.random((7, 7)) < 0.9)
        looks[pair] = Look(centre + rng.normal(size=(7, 7)) * 3, precision)
    prior = Prior(50.0, columns, looks, lambda axes: centre, {2: 0.3})
    values, laws = prior_module._VARIANCES, prior_module._exponential_laws()
    np.testing.assert_allclose(laws.sum(axis=1), 1)

    def parts(axes, u):
        a, b = (columns[axis] for axis in axes)
        (one, first), (other, second) = a.turn(8), b.turn(8)
        field, chance = (np.outer(first[law], second[law]) for law in (0, 1))
        spread = u * 50.0**2 * field / (a.reach * b.reach) ** 2 + 50.0 * chance
        known, look = looks[axes].precision > 0, looks[axes]
        # Nothing is known of what was not measured.
        noise = np.where(known, 1 / np.maximum(look.precision, 1e-9), 50.0**2)
        noise = one.T**2 @ noise @ other**2
        away = one.T @ np.where(known, look.values - centre, 0) @ other
        return spread / (spread + noise), spread + noise, noise, away

    likely = {}
    for axes in looks:
        logs = []
        for u in values:
            _, whole, _, away = parts(axes, u)
            logs.append(-0.5 * (np.log(whole) + away**2 / whole).sum())
        likely[axes] = np.exp(np.array(logs) - max(logs))
    of_scales = np.prod([[law @ each for law in laws] for each in likely.values()], axis=0)
    law = of_scales / of_scales.sum() @ laws
    for axes in looks:
        shares = likely[axes] * law / (likely[axes] @ law)
        gains = np.array([parts(axes, u)[0] for u in values])
        gain = np.tensordot(shares, gains, 1)
        more = np.tensordot(shares, gains**2, 1) - gain**2
        told = prior.belief(axes)
        np.testing.assert_allclose(told.gain, gain, atol=1e-3)
        *_, noise, away = parts(axes, 1.0)
        np.testing.assert_allclose(told.variance, gain * noise + more * away**2, rtol=0.01)
        assert told.u == pytest.approx(shares @ values, rel=1e-3)
    assert prior.unmeasured(2) == pytest.approx(min(np.pi * 0.09, law @ values), rel=1e-6)
    assert prior.unmeasured(1) == pytest.approx(law @ values, rel=1e-6)
    # Seven pairs have no table.
    assert prior.any_pair((0, 4)) ** 2 == pytest.approx(9 / 21) and prior.any_pair((0, 1)) == 1


def test_what_is_believed_is_as_near_as_it_says():
    """Tables drawn from the field: nominal variances, and a law near that of the roots."""
    ratios, n, noise = [], 5000.0, 400.0
    for seed in range(8):
        rng, truth, looks = np.random.default_rng(seed), {}, {}
        columns = {axis: ColumnBasis(rng.random(16) + 0.2, ladder(16, 16, 16)) for axis in range(9)}
        for pair in itertools.combinations(range(9), 2):
            a, b = (columns[axis] for axis in pair)
            u = rng.exponential(0.3) ** 2
            one, other = a.turn(16), b.turn(16)
            field, chance = (np.outer(one[1][law], other[1][law]) for law in (0, 1))
            spread = n**2 * u / (a.reach * b.reach) ** 2 * field + n * chance
            truth[pair] = one[0] @ (rng.normal(size=spread.shape) * np.sqrt(spread)) @ other[0].T
            seen = truth[pair] + rng.normal(size=spread.shape) * np.sqrt(noise)
            looks[pair] = Look(seen, np.full(spread.shape, 1 / noise))
        prior = Prior(n, columns, looks, lambda axes: np.zeros((15, 15)), {})
        told, errors = [prior.belief(pair) for pair in looks], 0.0
        for of, (a, b) in zip(told, looks, strict=True):
            one, other = columns[a].turn(16)[0], columns[b].turn(16)[0]
            seen, true = (one.T @ each @ other for each in (looks[a, b].values, truth[a, b]))
            errors += ((of.gain * seen - true) ** 2).sum()
        ratios.append(errors / sum(of.variance.sum() for of in told))
        assert 0.09 < prior.unmeasured(0) < 0.36  # 2 * 0.3**2, from 36 sets
    # They scatter by 0.07. A variance that leaves out what is not believed is half of this one.
    assert 0.9 < np.mean(ratios) < 1.1


def test_with_a_flat_prior_answers_are_the_best_linear_estimate(model, monkeypatch):
    """Where nothing is believed before, the rows cancel: only what was measured is left."""
    again = type(model).from_arrays(model.shape, *model.to_arrays())
    monkeypatch.setattr(Prior, "_law", lambda self, order: np.ones(1))
    monkeypatch.setattr(Prior, "_likelihoods", lambda self, axes: np.ones(1))
    monkeypatch.setattr(prior_module, "_VARIANCES", np.array([1e20]))
    pairs = [axes for axes in model.coefficients.looks if len(axes) == 2]
    assert pairs
    for axes in pairs:
        sizes = again.sizes(axes)
        ladders = [again.coefficients.ladders[axis] for axis in axes]
        sums = {
            axis: own.sums(again.columns[axis].counts, size)
            for axis, own, size in zip(axes, ladders, sizes, strict=True)
        }
        table, _ = again.coefficients.table(axes, sizes, sums)
        ones = [np.eye(size)[own.groups(size)] for own, size in zip(ladders, sizes, strict=True)]
        some = [
            (i, j) for i, j in np.ndindex(*sizes) if ones[0][:, i].any() and ones[1][:, j].any()
        ]
        queries = [Query(({axes[0]: ones[0][:, i], axes[1]: ones[1][:, j]},)) for i, j in some]
        if len(some) == table.size:
            np.testing.assert_allclose(again.answer(queries), [table[at] for at in some], atol=1e-6)


def test_covariances_are_those_of_sums_and_positive(model):
    rng = np.random.default_rng(3)
    queries = [random_query(rng, model.shape) for _ in range(40)]
    whole = model.covariance(queries)
    np.testing.assert_allclose(np.diag(whole), model.variance(queries), rtol=1e-8)
    assert np.linalg.eigvalsh(whole).min() > -1e-8 * np.diag(whole).max()
    for i, j in itertools.combinations(range(0, 40, 5), 2):
        [both] = model.variance([queries[i].plus(queries[j])])
        parts = whole[i, i] + whole[j, j] + 2 * whole[i, j]
        assert both == pytest.approx(parts, rel=1e-6, abs=1e-6 * (whole[i, i] + whole[j, j]))


def test_questions_in_parts_of_any_size_have_the_answers_of_each(model, monkeypatch):
    rng = np.random.default_rng(4)
    blocks = [[random_query(rng, model.shape) for _ in range(3)] for _ in range(20)]
    together, every = model.covariances(blocks), sum(blocks, [])
    for block, found in zip(blocks, together, strict=True):
        near = 1e-9 * np.diag(found).max()
        np.testing.assert_allclose(found, model.covariance(block), atol=near)
    each = np.array([model.answer([query])[0] for query in every])
    np.testing.assert_allclose(model.answer(every), each, atol=1e-6)
    monkeypatch.setattr(products_module, "_AT_ONCE", 1)
    monkeypatch.setattr(marginals_module, "_AT_ONCE", 1)
    near = 1e-10 * np.abs(together).max()
    np.testing.assert_allclose(model.covariances(blocks), together, atol=near)
    np.testing.assert_allclose(model.answer(every), each, atol=1e-6)


def test_a_column_by_itself_has_the_variance_of_its_noise(model):
    rng = np.random.default_rng(5)
    for axis, column in model.columns.items():
        weights = rng.normal(size=model.shape[axis])
        [found] = model.variance([Query(({axis: weights},))])
        assert found == pytest.approx(float(column.variance(weights)), rel=1e-6)
    [total] = model.variance([Query(({},))])
    assert total == pytest.approx(model.total_variance)


def test_pairs_without_a_table_may_be_no_further_off_than_their_columns_allow():
    frame = people()
    made = MarginalSynthesizer(epsilon=1.0, domain=DOMAIN, max_order=1, random_state=0).fit(frame)
    few, half = made.count("work == 'e'"), len(frame) / 2
    found = made.count("work == 'e' and sex == 'F'", return_interval=True)
    assert found.upper - found.lower <= 2 * 1.96 * max(few, half) / np.sqrt(3) + 100
    assert found.lower <= ((frame["work"] == "e") & (frame["sex"] == "F")).sum() <= found.upper


def test_a_table_leaves_no_more_open_than_its_groups_allow(monkeypatch):
    """Whatever is believed of what is finer: of a cut group it is known who meets the other one."""
    rng = np.random.default_rng(7)
    first = 100 * rng.beta(2, 5, 5000)
    frame = pd.DataFrame({"a": first, "b": np.clip(first + rng.normal(0, 5, 5000), 0, 100)})
    domain = Domain({"a": (0.0, 100.0), "b": (0.0, 100.0)})
    made = MarginalSynthesizer(epsilon=1.0, domain=domain, random_state=0).fit(frame)
    released = made.synopsis_.model
    axes = (0, 1)
    # Thresholds in the middle of the group of most codes that hold records.
    places = []
    for axis, size in zip(axes, released.sizes(axes), strict=True):
        held = released.columns[axis].counts > 20.0
        groups = released.coefficients.ladders[axis].groups(size)
        inside = np.flatnonzero(groups == np.bincount(groups[held]).argmax())
        places.append(inside[len(inside) // 2])
    query = Query(({axis: np.arange(released.shape[axis]) < places[axis] for axis in axes},))

    def variance(scale):
        monkeypatch.setattr(Prior, "distance", lambda self, axes: scale * self.reach(axes))
        again = type(released).from_arrays(released.shape, *released.to_arrays())
        return again.variance([query])[0]

    sizes, share, table = released.sizes(axes), [], released.rows_in_groups(axes)
    for axis, size in zip(axes, sizes, strict=True):
        groups, mass = released.coefficients.ladders[axis].groups(size), released.bases[axis].mass
        inside = np.bincount(groups[: places[axis]], mass[: places[axis]], size)
        share.append(inside / np.bincount(groups, mass, size))
    bound = 0.0
    for counts, own, other in ((table, *share), (table.T, *share[::-1])):
        for group in np.flatnonzero((own > 0) & (own < 1)):
            records, a = counts[group].sum(), own[group]
            b = counts[group] @ other / records
            far = max(min(a, b) - a * b, a * b - max(a + b - 1, 0))
            bound += max(records * far, 1) ** 2 / 3
    assert bound > 0
    assert bound <= variance(1e9) <= bound + variance(0.0)
    assert variance(1e6) == pytest.approx(variance(1e9))
