"""Error bars by kinds of questions: exact on small cases, calibrated on simulated releases."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from skdp import Categorical, Domain, MarginalSynthesizer, Numeric, Synopsis
from skdp._random import noise_source
from skdp.kernels.marginals.simulation import Alone, simulated_errors, variance_of_total
from skdp.kernels.marginals.wide import JointCounts
from skdp.kernels.pairviews import errors
from skdp.kernels.pairviews.errors import (
    exact_answers,
    publish_classes,
    random_weights,
    slope_weights,
    tail_weights,
)
from skdp.kernels.pairviews.pooling import NoisyQuantile, likely_reach
from skdp.kernels.pairviews.single import single_views
from skdp.mechanisms import discrete_laplace
from skdp.release import ErrorBars, ErrorClasses, PairTable, TreeDensity, TreeModel, typical_ratio
from skdp.rows import CountTable

SHAPE = (5, 4, 3)
ONE = Fraction(1)


def bars(reach, scaled=False):
    return ErrorBars(0.95, reach, scaled, 0.8, 2000, "some questions")


def known(**changed):
    """Errors of a release of three columns: 10 in the first code of each column, 0 elsewhere."""
    alone = []
    for size in SHAPE:
        errors_ = np.zeros((8, size), dtype=np.float32)
        errors_[:, 0] = [10, -10] * 4
        alone.append(errors_)
    given = {
        "classes": {"two": bars(40.0), "tail": bars(20.0), "wide": bars(60.0)},
        "typical": {"two": 1.5, "tail": 2.5, "wide": 1.5},
        "misfit": {"two": 30.0, "tail": 40.0, "wide": 45.0},
        "lower": {"two": {}, "tail": {0.8: 0.7, 0.9: 0.8}, "wide": {}},
        "total_variance": 25.0,
        "noise": {(0, 1): 4.0},
        "alone": alone,
    }
    return ErrorClasses(**{**given, **changed})


def model(**changed):
    density = TreeDensity([np.full(size, 1 / size) for size in SHAPE], [])
    return TreeModel(density, 6000.0, error_bars=known(**changed))


def mask(size, *codes):
    weights = np.zeros(size)
    weights[list(codes)] = 1.0
    return weights


LOW, SIDE = mask(5, 0, 1, 2), mask(4, 0, 1)


# --- which errors a question has


def test_the_total_has_the_law_of_its_noise():
    assert model().error({}, 0.8).above == pytest.approx(5 * 1.2816, rel=1e-3)
    # The tail of a Laplace law is longer than the normal one.
    assert model().error({}, 0.99).above == pytest.approx(5 * math.log(100) / math.sqrt(2))
    # Weights that are equal for all records multiply it.
    twice = model().error({0: np.full(5, -2.0)}, 0.8)
    assert twice.above == pytest.approx(2 * 5 * 1.2816, rel=1e-3)


def test_one_column_has_its_simulated_errors():
    release = model()
    with_first = release.error({0: mask(5, 0, 3)}, 0.95)
    assert with_first.above == pytest.approx(1.25 * 10 * 2.306, rel=1e-3)
    assert release.error({0: mask(5, 3)}, 0.95).above == 0
    assert release.error({0: np.array([-3.0, 1, 1, 1, 1])}, 0.95).above == pytest.approx(
        3 * with_first.above
    )
    halves, text = release.column_errors(0, np.stack([mask(5, 0), np.ones(5)]), 0.95)
    assert halves[0] == pytest.approx(with_first.above)
    assert halves[1] == pytest.approx(release.error({}, 0.95).above)
    assert "one column" in text and with_first.guarantee == text


def test_parts_that_differ_in_one_column_are_one_question():
    release = model()
    first, rest = mask(5, 0), mask(5, 3, 4)
    both = release.error_of_parts([{0: first}, {0: rest}], 0.9)
    assert both == release.error({0: first + rest}, 0.9)
    # A sum less its mean times the count; what cancels has no error.
    values = np.arange(5.0)
    one = release.error({0: values - 2.5, 1: SIDE}, 0.9)
    parts = [{0: values, 1: SIDE}, {1: -2.5 * SIDE}]
    assert release.error_of_parts(parts, 0.9) == one
    assert release.error_of_parts([{0: values, 1: SIDE}, {0: -values, 1: SIDE}], 0.9).above == 0


def test_two_columns_have_the_quantile_of_their_class():
    release = model()
    assert release.error({0: LOW, 1: SIDE}, 0.95).above == 40.5
    assert release.error({0: LOW, 1: SIDE, 2: mask(3, 0, 1)}, 0.95).above == 60.5
    # Ranges that hold few records on both columns; two codes are no cell.
    small = TreeModel(
        TreeDensity(
            [np.array([0.04, 0.06, 0.3, 0.3, 0.3]), np.full(4, 0.25), np.full(3, 1 / 3)], []
        ),
        6000.0,
        error_bars=known(),
    )
    assert small.error({0: mask(5, 0, 1), 1: SIDE}, 0.95).above == 40.5
    assert release.error({0: mask(5, 0, 1), 1: SIDE}, 0.99).above > 40.5
    # A whole column says nothing.
    assert release.error({0: LOW, 1: SIDE, 2: np.ones(3)}, 0.95).above == 40.5


def test_lower_levels_are_published_or_follow_a_law():
    release = model()
    ends = {0: mask(5, 0, 1), 1: mask(4, 0)}
    density = TreeDensity(
        [np.array([0.04, 0.06, 0.3, 0.3, 0.3]), np.array([0.1, 0.3, 0.3, 0.3]), np.ones(3) / 3], []
    )
    release = TreeModel(density, 6000.0, error_bars=known())
    found = [release.error(ends, level).above for level in (0.8, 0.9, 0.95)]
    assert found == pytest.approx([0.7 * 20.5, 0.8 * 20.5, 20.5])
    wide = [release.error({0: LOW, 1: SIDE}, level).above / 40.5 for level in (0.8, 0.9)]
    assert wide == pytest.approx([0.595, 0.804], abs=0.002)
    levels = [0.3, 0.5, 0.79, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.999]
    for question in (ends, {0: LOW, 1: SIDE}, {0: LOW}, {}, {0: mask(5, 0), 1: mask(4, 0)}):
        halves = [release.error(question, level).above for level in levels]
        assert halves == sorted(halves)
        assert len({release.error(question, level).std for level in levels}) == 1


def test_weights_of_any_sign_widen_the_interval_in_proportion():
    release = model()
    rng = np.random.default_rng(0)
    for _ in range(20):
        question = {0: rng.normal(size=5), 1: rng.normal(size=4)}
        half = release.error(question, 0.9).above
        assert half > 0
        turned = {0: -3 * question[0], 1: question[1]}
        assert release.error(turned, 0.9).above == pytest.approx(3 * half)
        # Never wider than the class allows for the reach of the weights, and the total.
        products = np.outer(*question.values())
        most = 40.5 * np.ptp(products) + abs(products.mean()) * release.error({}, 0.9).above
        assert half <= most
        many = [{0: rng.normal(size=5), 1: rng.normal(size=4)} for _ in range(20)]
        assert np.isfinite(release.error_of_parts(many, 0.9).above)


def test_scaled_quantiles_give_small_answers_narrow_intervals():
    scaled = {name: bars(640.0, True) for name in ("two", "wide")} | {"tail": bars(20.0)}
    release = model(classes=scaled, typical={"two": 1.0, "tail": 2.5, "wide": 1.0})
    half = release.error({0: LOW, 1: SIDE}, 0.95).above
    assert 640 / 80 < half < 640 / 16 + 0.5
    # The same spread with other weights.
    assert release.error({0: LOW, 1: 2 * SIDE}, 0.95).above == pytest.approx(2 * half, rel=0.15)


def test_a_cell_has_the_noise_of_its_table_or_the_misfit_of_its_class():
    release = model()
    measured = release.error({0: mask(5, 3), 1: mask(4, 2)}, 0.95)
    # 300 records; the noise has a standard deviation of 4.
    assert measured.above == pytest.approx(1.1 * 1.96 * 4 * (300.5 / 304.5) ** 0.75 + 0.5, rel=1e-3)
    small = {"two": 20.0, "tail": 40.0, "wide": 45.0}
    guessed = model(misfit=small).error({0: mask(5, 3), 2: mask(3, 2)}, 0.95)
    assert guessed.above == pytest.approx(
        1.1 * 1.96 * 2.4 * 20 * math.sqrt(400.5 / 6000) + 0.5, rel=1e-3
    )
    # A cell is a range too, whose error was published.
    for level in (0.8, 0.95, 0.99):
        large = model(misfit={"two": 1e6, "tail": 1e6, "wide": 1e6})
        most = 40.5 * ndtri(0.5 + level / 2) / ndtri(0.975) + 0.5
        for times in (1, 3):
            cell = large.error({0: times * mask(5, 3), 2: mask(3, 2)}, level)
            assert cell.above == pytest.approx(times * most)
    assert release.error({0: mask(5, 3), 1: -2 * mask(4, 2)}, 0.95).above == pytest.approx(
        2 * measured.above
    )
    assert "one code of each" in measured.guarantee
    three = release.error({0: mask(5, 3), 1: mask(4, 2), 2: mask(3, 2)}, 0.95)
    assert three.above > 0


def test_cells_of_other_pairs_err_more_where_most_pairs_were_measured():
    tables = [PairTable(pair, np.full((5, 4), 1 / 20)) for pair in ((0, 1),)]
    tables.append(PairTable((1, 2), np.full((4, 3), 1 / 12)))
    density = TreeDensity([np.full(size, 1 / size) for size in SHAPE], tables)
    small = {"two": 5.0, "tail": 5.0, "wide": 5.0}
    cell = {0: mask(5, 3), 2: mask(3, 2)}
    measured = TreeModel(density, 6000.0, error_bars=known(misfit=small))
    # One pair of three is left: the errors of all are its errors.
    assert (measured.error(cell, 0.95).above - 0.5) == pytest.approx(
        math.sqrt(3) * (model(misfit=small).error(cell, 0.95).above - 0.5)
    )


def test_columns_that_were_not_measured_together_are_named():
    release = model()
    assert "Not all of its columns were measured together" in (
        release.error({0: LOW, 1: SIDE}, 0.95).guarantee
    )
    text = release.error({0: LOW, 1: SIDE}, 0.9).guarantee
    assert "90%" in text and "some questions" in text


@pytest.mark.parametrize("total", [0.0, -20.0, 0.4])
def test_a_release_of_nobody_has_intervals(total):
    density = TreeDensity([np.full(size, 1 / size) for size in SHAPE], [])
    release = TreeModel(density, total, error_bars=known())
    for question in ({}, {0: LOW}, {0: LOW, 1: SIDE}, {0: mask(5, 1), 1: mask(4, 1)}):
        assert np.isfinite(release.error(question, 0.9)[:3]).all()
    assert np.isfinite(release.error({0: np.arange(5.0), 1: SIDE}, 0.9)[:3]).all()


def test_typical_ratio_by_hand():
    # All questions alike: the quantile is that of one normal law.
    assert typical_ratio(np.full(10, 500.0), 1000.0, 0.95) == pytest.approx(1.0)
    assert typical_ratio(np.full(10, 100.0), 1000.0, 0.95) == pytest.approx(1 / 0.6)


# --- what is published and simulated


def random_table(seed=0, n=60, shape=(4, 3, 2, 3)):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n) for size in shape], axis=1)
    return CountTable.from_codes(codes, shape)


@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(1000)])
def test_published_quantiles_have_the_sensitivity_that_is_paid_for(monkeypatch, share):
    """One record more moves each quantile by at most the sensitivity; budgets add up."""
    table = random_table()
    density = TreeDensity([np.full(size, 1 / size) for size in table.shape], [])
    release = TreeModel(density, 61.3)
    alone = [np.zeros((4, size)) for size in table.shape]
    calls = []

    def recorded(value, epsilon, sensitivity=1, **kwargs):
        calls.append((int(value), epsilon, sensitivity))
        return discrete_laplace(value, epsilon, sensitivity, **kwargs)

    monkeypatch.setattr(errors, "discrete_laplace", recorded)
    # Few questions are enough and quick.
    monkeypatch.setattr(errors, "_ERROR_QUERIES", 100)
    monkeypatch.setattr(errors, "_OTHER_QUERIES", 40)

    def published(some):
        calls.clear()
        found = publish_classes(some, release, share, [True] * 4, alone, random_state=0)
        return list(calls), found

    before, found = published(table)
    assert sum(epsilon for _, epsilon, _ in before) == share
    many = share > 1
    assert [s for *_, s in before] == [
        80 if many else 1,
        *[1] * (3 if many else 1),
        80 if many else 1,
        64,
    ]
    assert set(found["tail"].lower) == ({0.8, 0.9} if many else set())
    moved = [0] * len(before)
    for code in np.ndindex(*table.shape):
        row = np.array([code], dtype=np.int32)
        more = CountTable.from_codes(
            np.concatenate([table.codes, row]), table.shape, np.append(table.counts, 1)
        )
        after, _ = published(more)
        assert [each[1:] for each in after] == [each[1:] for each in before]
        for place, (one, two) in enumerate(zip(before, after, strict=True)):
            moved[place] = max(moved[place], abs(one[0] - two[0]))
    assert max(moved) > 0
    for change, (_, _, sensitivity) in zip(moved, before, strict=True):
        assert change <= sensitivity


def quantile(noisy, scale, **changed):
    return NoisyQuantile(
        **{"noisy": noisy, "scale": scale, "unit": 1.5, "least": 5.0, "usual": 1.0, "spread": 0.25}
        | changed
    )


def test_sharp_quantiles_are_believed():
    found = likely_reach([quantile(q, 0.5) for q in (200, 210, 190)], 1e4, 0.95)
    for (reach, expected), q in zip(found, (200, 210, 190), strict=True):
        assert expected == pytest.approx(q, rel=0.05)
        assert q < reach < 1.25 * q


def test_a_quantile_lost_in_noise_follows_the_others():
    sharp = [quantile(200, 1.0), quantile(200, 1.0)]
    for noisy in (-3000, 0, 3000):
        (reach, expected), *_ = likely_reach([quantile(noisy, 1000.0), *sharp], 1e4, 0.95)
        assert 150 < expected < 300
        assert 200 < reach < 500
    # What noise alone makes is known.
    for kind in likely_reach([quantile(0, 1000.0, least=900.0)], 1e4, 0.95):
        assert min(kind) > 0.75 * 900


def test_intervals_of_noisy_quantiles_cover_on_average():
    """Over noise, and quantiles that are drawn as they are expected to be."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(300):
        scale = math.exp(rng.uniform(math.log(4), math.log(2500)))
        truth = scale * np.exp(0.25 * rng.normal(size=3)) / 1.5
        noisy = np.rint(truth + rng.laplace(scale=300.0, size=3)).astype(int).tolist()
        found = likely_reach([quantile(each, 300.0) for each in noisy], 1e4, 0.95)
        shares += [1 - 0.05 ** (reach / q) for (reach, _), q in zip(found, truth, strict=True)]
    assert 0.95 < np.mean(shares) < 0.99


@pytest.mark.parametrize("total", [1.0, 40.0, 1e9])
@pytest.mark.parametrize("least", [0.0, 1e6])
def test_any_total_and_noise_have_a_reach(total, least):
    kinds = [quantile(noisy, 3.0, least=least) for noisy in (-(10**12), 0, 10**12)]
    assert np.isfinite(likely_reach(kinds, total, 0.95)).all()


@pytest.mark.parametrize("alone", [True, False])
def test_joint_counts_tell_the_errors_of_columns(alone):
    rng = np.random.default_rng(0)
    rows = np.array([[0, 0], [0, 1], [1, 1]], dtype=np.int32)
    joint = JointCounts(rows, np.ones(3), 3.0, 1.0, noise=4.0, elsewhere=6.0, alone=alone)
    before = [rng.laplace(scale=30.0, size=(24, size)) for size in (2, 3)]
    after = joint.column_errors(before)
    for held, own, found in zip(([2, 1], [1, 2, 0]), before, after, strict=True):
        counted = 4.0 * np.array(held) + 6.0 / len(held)
        # Of the total, whose variance is 1.
        counted += alone * (np.array(held) / 3) ** 2
        single = np.mean(own**2, axis=0)
        wanted = counted if alone else 1 / (1 / counted + 1 / single)
        np.testing.assert_allclose(np.mean(found**2, axis=0), wanted, rtol=1e-3)
    assert all(each.shape == own.shape for each, own in zip(after, before, strict=True))


def test_no_quantile_is_below_that_of_noise_alone():
    table = random_table(n=600)
    density = TreeDensity([np.full(size, 1 / size) for size in table.shape], [])
    release = TreeModel(density, 600.0)
    rng = np.random.default_rng(0)
    alone = [rng.normal(scale=1e5, size=(6, size)) for size in table.shape]
    found = publish_classes(table, release, ONE, [True] * 4, alone, random_state=0)
    # Sums of products are compared with the truth and with nothing else.
    assert all(found[kind].bars.reach > 1e4 for kind in ("two", "tail", "wide"))
    assert found["slope"].bars.reach < 1e4


def test_products_of_weights_move_by_at_most_what_is_paid_for():
    rng = np.random.default_rng(0)
    for ordered, size in ((True, 24), (True, 2), (False, 7), (True, 1)):
        mass = rng.dirichlet(np.ones(size))
        for _ in range(200):
            weights = slope_weights(mass, ordered, rng)
            np.testing.assert_array_equal(weights, np.rint(weights))
            assert np.abs(weights).max() <= 8
            assert abs(weights @ mass) <= 1


def test_covariances_of_a_flattened_model_are_wide_enough():
    """A model that takes two columns that rise together for independent."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 12, 20_000)
    y = np.clip(x + rng.integers(-2, 3, len(x)), 0, 11)
    codes = np.stack([x, y, rng.integers(0, 12, len(x))], axis=1)
    table = CountTable.from_codes(codes, (12, 12, 12))
    margins = [np.bincount(column, minlength=12) / len(x) for column in codes.T]
    release = TreeModel(TreeDensity(margins, []), float(len(x)))
    alone = [np.zeros((4, 12))] * 3
    classes = publish_classes(table, release, ONE, [True] * 3, alone, random_state=0)
    known = ErrorClasses(
        classes={kind: each.bars for kind, each in classes.items()},
        typical={kind: each.typical for kind, each in classes.items()},
        misfit={kind: each.misfit for kind, each in classes.items()},
        lower={kind: each.lower for kind, each in classes.items()},
        total_variance=1.0,
        noise={},
        alone=alone,
    )
    steps = np.arange(12.0) - 5.5
    error = abs((steps[codes[:, 0]] * steps[codes[:, 1]]).sum())
    stated = TreeModel(release.density, release.total, error_bars=known)
    half = stated.error({0: steps, 1: steps}, 0.95)[1]
    assert error < half < 4 * error


def test_tail_ranges_hold_few_records_at_one_end():
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.ones(50))
    for ordered in (True, False):
        for _ in range(50):
            weights = tail_weights(mass, ordered, rng)
            assert weights @ mass <= 0.2 or weights.sum() == 1
            inside = np.flatnonzero(weights)
            if ordered:
                assert inside[0] == 0 or inside[-1] == 49
                assert len(inside) == inside[-1] - inside[0] + 1
    assert tail_weights(np.array([1.0]), True, rng).tolist() == [1.0]


ALONE = Alone(
    (12, 2, 60), Fraction(1, 5), Fraction(1, 50), [np.arange(12), None, np.arange(60)], {}
)


def test_simulated_errors_and_the_variance_of_the_total_are_those_of_the_noise():
    # 200 measurements of the same counts. A standard deviation of that many has a relative
    # standard error of 5%; one that is off by 20% must be noticed.
    marginals = [np.full(12, 1 / 12), np.array([0.3, 0.7]), np.full(60, 1 / 60)]
    found = simulated_errors(marginals, 6000.0, ALONE, noise_source(3))
    assert [each.shape for each in found] == [(24, 12), (24, 2), (24, 60)]
    # All columns have the same total.
    np.testing.assert_allclose(found[0].sum(axis=1), found[1].sum(axis=1), atol=0.01)
    np.testing.assert_allclose(found[0].sum(axis=1), found[2].sum(axis=1), atol=0.01)
    table = CountTable.from_codes(
        np.stack([np.tile(np.arange(12), 500), np.repeat([0, 1], [1800, 4200]),
                  np.tile(np.arange(60), 100)], axis=1).astype(np.int32),
        ALONE.shape,
    )  # fmt: skip
    source = noise_source(5)
    totals, cells = [], []
    for _ in range(200):
        first = 6000 + int(discrete_laplace(0, ALONE.total_epsilon, random_state=source))
        views, total = single_views(
            table, ALONE.epsilon, first, ALONE.total_epsilon, ALONE.orders, random_state=source
        )
        totals.append(total - 6000)
        cells.append(views[0] - 500)
    true = math.sqrt(np.mean(np.square(totals)))
    assert true == pytest.approx(math.sqrt(variance_of_total(ALONE)), rel=0.16)
    assert np.sqrt(np.mean(np.square(cells))) == pytest.approx(
        np.sqrt(np.mean(found[0] ** 2.0)), rel=0.16
    )


def test_a_label_has_the_errors_of_its_classes():
    alone = ALONE._replace(shape=(12, 1, 60), label=1, n_classes=2, label_variance=400.0)
    marginals = [np.full(12, 1 / 12), np.array([0.3, 0.7]), np.full(60, 1 / 60)]
    found = simulated_errors(marginals, 6000.0, alone, noise_source(3))
    assert found[1].shape == (24, 2)
    assert 10 < found[1].std() < 30
    assert variance_of_total(alone) > variance_of_total(ALONE)


# --- releases


def dependent(n=8000, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.gamma(2.0, 4.0, n).astype(int)
    columns = {
        "a": np.minimum(x, 29),
        "b": (x // 3 + rng.integers(0, 4, n)) % 12,
        "c": x % 5,
        "d": rng.integers(0, 4, n),
    }
    shape = (30, 12, 5, 4)
    domain = Domain(
        {name: Numeric(0, size - 1, integer=True) for name, size in zip("abc", shape, strict=False)}
        | {"d": Categorical(range(4))}
    )
    table = CountTable.from_codes(np.stack(list(columns.values()), axis=1), shape)
    return pd.DataFrame(columns), domain, table


def release(epsilon=1.0, seed=0, **kwargs):
    frame, domain, _ = dependent()
    return (
        MarginalSynthesizer(epsilon, domain=domain, random_state=seed, **kwargs)
        .fit(frame)
        .synopsis_
    )


def test_intervals_survive_files(tmp_path):
    synopsis = release()
    assert isinstance(synopsis.model.error_bars, ErrorClasses)
    synopsis.save(tmp_path / "a.release")
    again = Synopsis.load(tmp_path / "a.release")
    for query in ("a > 5", "a > 5 and d == 1", "a == 3 and b == 2", "a > 5 and b < 3 and c > 1"):
        for level in (0.8, 0.95):
            one, two = (
                each.count(query, return_interval=True, level=level) for each in (synopsis, again)
            )
            assert one == two


def test_files_with_wrong_errors_are_refused():
    facts, arrays = known().to_arrays()
    assert ErrorClasses.from_arrays(SHAPE, facts, arrays).noise == known().noise
    with pytest.raises(ValueError, match="fit the domain"):
        ErrorClasses.from_arrays((5, 4, 4), facts, arrays)
    with pytest.raises(ValueError, match="variance"):
        ErrorClasses.from_arrays(SHAPE, {**facts, "total_variance": -1.0}, arrays)


@pytest.mark.parametrize("epsilon", [0.3, pytest.param(4, marks=pytest.mark.slow)])
def test_intervals_of_each_kind_cover_fresh_questions(epsilon):
    # 200 fresh questions of each kind on each of 5 releases; questions of one release share its
    # noise. Intervals a quarter as wide must fail for every kind.
    rng = np.random.default_rng(1)
    frame, domain, table = dependent()
    shape = table.shape
    masses = [table.dense((axis,)) / table.n for axis in range(4)]
    kinds = {
        "one": (1, lambda a: random_weights(shape[a], a < 3, rng)),
        "two": (2, lambda a: random_weights(shape[a], a < 3, rng)),
        "tail": (2, lambda a: tail_weights(masses[a], a < 3, rng)),
        "cell": (2, lambda a: mask(shape[a], rng.integers(shape[a]))),
        "three": (3, lambda a: random_weights(shape[a], a < 3, rng)),
    }
    covered, narrow = {}, {}
    for seed in range(5):
        view = MarginalSynthesizer(epsilon, domain=domain, random_state=seed).fit(frame)
        found = view.synopsis_.model
        for kind, (order, draw) in kinds.items():
            for _ in range(5):
                axes = tuple(sorted(rng.choice(4, order, replace=False).tolist()))
                some = [{a: draw(a) for a in axes} for _ in range(40)]
                off = np.abs(found.answer(some) - exact_answers(table, axes, some))
                half = np.array([found.error(one, 0.9).above for one in some])
                covered.setdefault(kind, []).append((off <= half).mean())
                narrow.setdefault(kind, []).append((off <= half / 4).mean())
    means = {kind: np.mean(each) for kind, each in covered.items()}
    assert min(means.values()) >= 0.87, means
    assert min(np.mean(each) for each in narrow.values()) < 0.8
