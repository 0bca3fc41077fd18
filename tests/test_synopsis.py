import copy
import io
import json
import math
import pickle
import warnings
import zipfile
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import skdp
from skdp import _validation
from skdp._random import sampling_generator
from skdp._validation import dyadic_floor
from skdp.accounting import PrivacyLoss
from skdp.domain import Categorical, Domain, Numeric
from skdp.mechanisms import discrete_laplace, discrete_laplace_quantile, discrete_laplace_variance
from skdp.release import (
    BoundedSpread,
    Boxes,
    BoxModel,
    KnownNoise,
    LeafErrorBound,
    Query,
    QueryResult,
    Reach,
    Synopsis,
    intervals,
    parse,
)
from skdp.release import boxes as box_model
from skdp.release import synopsis as release_synopsis

DOMAIN = Domain(
    {
        "age": Numeric(20, 29, integer=True),
        "pay": Numeric(0, 80, bins=8, nullable=True),
        "sex": Categorical(["Female", "Male"]),
        "size": Categorical(["S", "M", "L"], ordered=True),
    }
)


def random_boxes(shape, n_boxes, generator):
    """A partition by random cuts."""
    lower, upper = [np.zeros(len(shape), dtype=int)], [np.array(shape)]
    while len(lower) < n_boxes:
        i = int(generator.integers(len(lower)))
        open_axes = np.flatnonzero(upper[i] - lower[i] > 1)
        if not len(open_axes):
            continue
        axis = generator.choice(open_axes)
        cut = generator.integers(lower[i][axis] + 1, upper[i][axis])
        lower.append(lower[i].copy())
        upper.append(upper[i].copy())
        lower[-1][axis] = upper[i][axis] = cut
    return Boxes(np.array(lower), np.array(upper))


def expanded(boxes, counts, shape):
    """Expected count of every cell."""
    cells = np.zeros(shape)
    for low, high, count in zip(boxes.lower, boxes.upper, counts, strict=True):
        where = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        cells[where] += count / math.prod((high - low).tolist())
    return cells


def answered(cells, weights):
    for axis, vector in weights.items():
        cells = cells * vector.reshape([-1 if a == axis else 1 for a in range(cells.ndim)])
    return cells.sum()


@pytest.fixture
def small():
    generator = sampling_generator(1)
    boxes = random_boxes(DOMAIN.shape, 40, generator)
    counts = generator.integers(-20, 100, 40)
    loss = PrivacyLoss(1, {"cuts": Fraction(1, 3), "counts": Fraction(2, 3)})
    return Synopsis(
        DOMAIN,
        BoxModel(
            boxes,
            counts,
            DOMAIN.shape,
            BoundedSpread(
                Fraction(2, 3),
                LeafErrorBound(
                    theta=1.5,
                    delta=2.0,
                    lam=3.0,
                    depth=generator.integers(0, 9, 40),
                    test_number=generator.integers(0, 80, 40),
                    step=0.25,
                ),
            ),
        ),
        privacy_loss=loss,
        mechanism="random cuts",
    )


QUERIES = [
    None,
    {},
    {"age": (22, 25)},
    {"pay": (15, 47)},
    "pay == None",
    "22 <= age < 25 and sex == 'Male'",
    {"age": [21, 28], "pay": (0, 80), "sex": ["Male"], "size": ("S", "M")},
    {"size": "L"},
    "age < 22 and age > 25",
]


# --- boxes


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([[0, 0]], [[1, 1, 1]], "shape"),
        ([0, 0], [1, 1], "shape"),
        (np.zeros((0, 2), dtype=int), np.zeros((0, 2), dtype=int), "at least one"),
        ([[0, 1]], [[1, 1]], "lower < upper"),
        ([[0, -1]], [[1, 1]], "non-negative"),
        ([[0, 0]], [[1, 2**40]], "32 bits"),
        ([[0, 0]], [[1, 1.5]], "integers"),
    ],
)
def test_boxes_are_checked(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        Boxes(lower, upper)


def test_volume_is_checked_even_for_immense_domains():
    shape = (1000,) * 40  # 1e120 cells
    boxes = random_boxes(shape, 200, sampling_generator(2))
    boxes.check_volume(shape)
    with pytest.raises(ValueError, match="do not add up"):
        Boxes(boxes.lower[1:], boxes.upper[1:]).check_volume(shape)
    upper = boxes.upper.copy()
    upper[7, 3] -= 1 if upper[7, 3] - boxes.lower[7, 3] > 1 else -1
    with pytest.raises(ValueError, match="do not add up|beyond the domain"):
        Boxes(boxes.lower, upper).check_volume(shape)
    with pytest.raises(ValueError, match="beyond the domain"):
        boxes.check_volume((999,) + shape[1:])
    with pytest.raises(ValueError, match="40 attributes and the domain 2"):
        boxes.check_volume((3, 3))


@pytest.mark.parametrize(
    ("counts", "kind", "arguments", "message"),
    [
        ([1, 2, 3], KnownNoise, [], "one number for each of the 2 boxes"),
        (["a", "b"], KnownNoise, [], "one number for each"),
        ([1.0, np.nan], KnownNoise, [], "finite"),
        ([1, 2**60], KnownNoise, [], "2..53"),
        ([1, 2], KnownNoise, [[1, 1, 1]], "one for each of the 2 boxes"),
        ([1, 2], KnownNoise, [0], "positive"),
        ([1, 2], BoundedSpread, [None, LeafErrorBound(1, 1, 1, [1], [1])], "bounds 1 boxes"),
    ],
)
def test_box_model_is_checked(counts, kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        BoxModel(Boxes([[0], [2]], [[2], [4]]), counts, (4,), kind(*arguments))


def test_the_release_is_frozen_and_does_not_freeze_the_input(small):
    counts = np.array([1.0, 2.0])
    lower, upper = np.array([[0], [2]], dtype=np.int32), np.array([[2], [4]], dtype=np.int32)
    Synopsis(
        Domain({"x": Numeric(0, 4, bins=4)}),
        BoxModel(
            Boxes(lower, upper),
            counts,
            Domain({"x": Numeric(0, 4, bins=4)}).shape,
        ),
    )
    for array in (counts, lower, upper):
        assert array.flags.writeable
    for array in (small.model.counts, small.model.boxes.lower):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3


# --- answers


@pytest.mark.parametrize("seed", range(5))
def test_counts_match_the_expanded_table(seed):
    generator = sampling_generator(seed)
    boxes = random_boxes(DOMAIN.shape, 1 + 30 * seed, generator)
    counts = generator.integers(-50, 200, len(boxes))
    synopsis = Synopsis(DOMAIN, BoxModel(boxes, counts, DOMAIN.shape))
    cells = expanded(boxes, counts, DOMAIN.shape)
    expected = [answered(cells, parse(query, DOMAIN).products[0]) for query in QUERIES]
    answers = synopsis.count(QUERIES)
    assert isinstance(answers, np.ndarray)
    np.testing.assert_allclose(answers, expected, atol=1e-8)
    for query, answer in zip(QUERIES, answers, strict=True):
        single = synopsis.count(query)
        assert type(single) is float
        assert single == pytest.approx(answer, abs=1e-8)
    assert synopsis.total == counts.sum()


def test_batches_of_many_sizes_agree(monkeypatch, small):
    queries = QUERIES * 30
    expected = small.count(queries)
    monkeypatch.setattr(box_model, "_CHUNK", 64)
    np.testing.assert_allclose(small.count(queries), expected, atol=1e-9)
    assert small.count([]).shape == (0,)
    assert small.count([], return_interval=True) == []


def test_counts_are_not_clamped():
    domain = Domain({"x": Numeric(0, 4, bins=4)})
    synopsis = Synopsis(domain, BoxModel(Boxes([[0], [2]], [[2], [4]]), [-7, 3], domain.shape))
    assert synopsis.count() == synopsis.total == -4
    assert synopsis.count({"x": (0, 1)}) == -3.5
    assert len(synopsis.sample()) == 0


def test_sums_and_means_match_the_expanded_table(small):
    cells = np.maximum(expanded(small.model.boxes, small.model.counts, DOMAIN.shape), 0)
    lower = np.stack(np.unravel_index(np.arange(cells.size), DOMAIN.shape), axis=1)
    synopsis = Synopsis(DOMAIN, BoxModel(Boxes(lower, lower + 1), cells.ravel(), DOMAIN.shape))
    values = {
        "age": DOMAIN["age"].centers,
        "pay": np.append(DOMAIN["pay"].centers, 0.0),
    }
    for name, centers in values.items():
        axis = DOMAIN.index(name)
        for query in [None, {"sex": "Male"}, {"size": ("M", "L"), "sex": ["Female"]}]:
            [weights] = parse(query, DOMAIN).products
            expected = answered(cells, {**weights, axis: centers})
            number = (
                answered(cells, {**weights, axis: np.append(np.ones(8), 0)})
                if name == "pay"
                else answered(cells, weights)
            )
            assert synopsis.sum(name, query) == pytest.approx(expected)
            assert synopsis.mean(name, query) == pytest.approx(expected / number)
    both = synopsis.mean("pay", [{"sex": "Male"}, {"sex": "Female"}])
    assert both[0] == pytest.approx(synopsis.mean("pay", {"sex": "Male"}))
    assert both.shape == (2,)
    # A condition on the column itself: the middle of the covered part.
    assert 13 <= synopsis.mean("pay", {"pay": (13, 16)}) <= 16
    assert synopsis.mean("age", {"age": [21, 23], "sex": "Male"}) <= 23
    assert synopsis.sum("age", {"age": 25}) == pytest.approx(25 * synopsis.count({"age": 25}))


def test_means_without_records_are_nan_and_noise_cannot_leave_the_range():
    domain = Domain({"x": Numeric(0, 4, bins=4), "g": Categorical(["a", "b"])})
    boxes = Boxes([[0, 0], [2, 0], [0, 1]], [[2, 1], [4, 1], [4, 2]])
    synopsis = Synopsis(domain, BoxModel(boxes, [-99, 100, -5], domain.shape))
    assert synopsis.mean("x", {"g": "a"}) == 4.0
    assert math.isnan(synopsis.mean("x", {"g": "b"}))
    with pytest.raises(ValueError, match="not numbers"):
        synopsis.mean("g")
    with pytest.raises(ValueError, match="no column 'y'"):
        synopsis.sum("y")


def test_a_thousand_queries_on_ten_thousand_boxes():
    generator = sampling_generator(3)
    domain = Domain({f"x{i}": Numeric(0, 99, integer=True) for i in range(15)})
    synopsis = Synopsis(
        domain,
        BoxModel(
            random_boxes(domain.shape, 10_000, generator),
            generator.integers(0, 50, 10_000),
            domain.shape,
        ),
    )
    queries = []
    for _ in range(1000):
        ends = np.sort(generator.integers(0, 100, (3, 2)), axis=1).tolist()
        axes = generator.choice(15, 3, replace=False)
        queries.append({f"x{axis}": tuple(end) for axis, end in zip(axes, ends, strict=True)})
    answers = synopsis.count(queries)
    assert answers.shape == (1000,)


# --- sampling


def test_samples_follow_the_release():
    # False alarms: chi-square at 1e-6 for the right law.
    from scipy.stats import chi2

    generator = sampling_generator(4)
    boxes = random_boxes(DOMAIN.shape, 30, generator)
    counts = generator.integers(-20, 100, 30)
    synopsis = Synopsis(DOMAIN, BoxModel(boxes, counts, DOMAIN.shape))
    codes = synopsis.sample_codes(200_000, random_state=5)
    assert codes.dtype == np.int32 and codes.shape == (200_000, 4)
    observed = np.bincount(np.ravel_multi_index(codes.T, DOMAIN.shape), minlength=DOMAIN.size)

    def statistic(weights):
        cells = expanded(boxes, np.maximum(weights, 0), DOMAIN.shape).ravel()
        expected = cells / cells.sum() * len(codes)
        some = expected > 0
        assert not observed[~some].any()
        return ((observed - expected)[some] ** 2 / expected[some]).sum(), some.sum() - 1

    value, freedom = statistic(counts)
    assert value < chi2.isf(1e-6, freedom)
    wrong, _ = statistic(np.where(counts > 0, counts + 5, 0))
    assert wrong > chi2.isf(1e-6, freedom)


def test_without_positive_counts_all_cells_are_equally_likely():
    domain = Domain({"x": Numeric(0, 4, bins=4), "g": Categorical(["a", "b", "c"])})
    synopsis = Synopsis(
        domain, BoxModel(Boxes([[0, 0], [1, 0]], [[1, 3], [4, 3]]), [-3, 0], domain.shape)
    )
    codes = synopsis.sample_codes(12_000, random_state=0)
    observed = np.bincount(np.ravel_multi_index(codes.T, domain.shape), minlength=12)
    # Standard deviation 30 around 1000; false alarms below 1e-6.
    assert np.abs(observed - 1000).max() < 170


def test_a_huge_release_is_drawn_only_as_far_as_asked():
    domain = Domain({"a": Numeric(0, 1, bins=2), "b": Numeric(0, 1, bins=2)})
    boxes = Boxes([[0, 0], [1, 0]], [[1, 2], [2, 2]])
    huge = Synopsis(domain, BoxModel(boxes, [10**9, 10**9], domain.shape))
    for draw in (huge.sample, huge.sample_codes):
        with pytest.raises(ValueError, match="2,000,000,000 records of 2 columns.*n_samples="):
            draw()
        assert len(draw(10)) == 10
        for wrong, error in ((-1, ValueError), (True, TypeError), (1.0, TypeError)):
            with pytest.raises(error, match="n_samples must"):
                draw(wrong)


def test_training_rows_of_a_huge_release_are_as_many_as_fit(monkeypatch):
    frame = pd.DataFrame({"a": [0.2] * 300, "b": ["x", "y", "y"] * 100})
    domain = Domain({"a": Numeric(0, 1, bins=4), "b": Categorical(["x", "y"])})
    both = (
        skdp.MarginalSynthesizer(epsilon=5.0, domain=domain, target="b", random_state=0),
        skdp.PrivPfCClassifier(epsilon=5.0, domain=domain, target="b", random_state=0),
    )
    monkeypatch.setattr(_validation, "MOST_VALUES_DRAWN", 100)
    synthesizer, grid = both
    X, y = frame[["a"]], frame["b"]
    assert len(synthesizer.fit(X, y).make_training_set()[0]) == 50
    assert len(synthesizer.make_training_set(70)[0]) == 70
    histogram = skdp.RangeTreeHistogram(
        epsilon=5.0, domain=domain.select(["a"]), random_state=0
    ).fit(X)
    grid.fit(X, y)
    for refusing in (synthesizer, grid, histogram):
        with pytest.raises(ValueError, match="Give the number of rows"):
            refusing.sample()
        assert len(refusing.sample(70)) == 70


def test_samples_have_the_types_of_the_domain(small):
    frame = small.sample(50, random_state=0)
    assert list(frame.columns) == list(DOMAIN.names)
    assert (DOMAIN.encode(frame) >= 0).all()
    pd.testing.assert_frame_equal(frame, small.sample(50, random_state=0))
    assert not frame.equals(small.sample(50, random_state=1))
    assert len(small.sample()) == round(small.total)
    assert len(small.sample(0)) == len(small.sample_codes(0)) == 0
    with pytest.raises(ValueError, match="n_samples must be at least 0, got -1"):
        small.sample(-1)
    for wrong in (2.5, True, "3"):
        with pytest.raises(TypeError, match="n_samples must be an integer"):
            small.sample(wrong)


# --- intervals


def line(n_boxes, intervals=None, privacy_loss=None):
    """Boxes of five cells each on a line."""
    domain = Domain({"x": Numeric(0, 5 * n_boxes - 1, integer=True)})
    lower = np.arange(n_boxes)[:, None] * 5
    return Synopsis(
        domain,
        BoxModel(Boxes(lower, lower + 5), np.zeros(n_boxes, dtype=int), domain.shape, intervals),
        privacy_loss=privacy_loss,
    )


def test_one_box_has_the_exact_quantile_of_its_noise():
    synopsis = line(10, KnownNoise(0.1))
    result = synopsis.count({"x": (5, 9)}, return_interval=True, level=0.9)
    assert isinstance(result, QueryResult)
    assert result.upper == discrete_laplace_quantile(0.9, 0.1)
    assert result.lower == 0  # no count is negative
    assert synopsis.model.reach([Query(({0: np.ones(50)},))], 0.9).below > 0
    assert result.std == pytest.approx(math.sqrt(discrete_laplace_variance(0.1)))
    assert float(result) == result.value == 0
    assert "at least 90%" in result.guarantee and "cuts through no box" in result.guarantee
    half = synopsis.count({"x": (5, 5)}, return_interval=True, level=0.9)
    assert half.upper == pytest.approx(result.upper / 5)
    assert "does not cover the uneven spread" in half.guarantee


def weighted_sums(weights, epsilon, n_trials):
    """Fresh noise under fixed weights, from the release's own mechanism."""
    size = (n_trials, len(weights))
    noise = discrete_laplace(np.zeros(math.prod(size), dtype=np.int64), epsilon, random_state=7)
    return np.abs(noise.reshape(size) @ weights)


@pytest.mark.parametrize(
    ("ends", "epsilon", "level"),
    [
        ((0, 9), 1.0, 0.95),
        ((3, 16), 0.1, 0.95),
        ((3, 16), 1.0, 0.9),
        ((2, 96), 0.5, 0.99),
        ((0, 99), 0.05, 0.5),
    ],
)
def test_noise_intervals_cover_and_are_not_wider_than_needed(ends, epsilon, level):
    # 100,000 fresh draws; each bound fails with probability below 1e-6 for the right law.
    synopsis = line(20, KnownNoise(epsilon))
    result = synopsis.count({"x": ends}, return_interval=True, level=level)
    first, last = ends
    cells = np.arange(100).reshape(20, 5)
    weights = ((cells >= first) & (cells <= last)).mean(axis=1)
    n_trials = 100_000
    errors = weighted_sums(weights, epsilon, n_trials)
    noise = 5 * math.sqrt(level * (1 - level) / n_trials)
    covered = (errors <= result.upper).mean()
    assert covered >= level - noise
    assert np.quantile(errors, level) * 1.15 >= result.upper
    assert result.std == pytest.approx(
        math.sqrt((weights**2).sum() * discrete_laplace_variance(epsilon))
    )
    # The same test refuses an interval made for 20% less noise.
    less = line(20, KnownNoise(epsilon * 1.25))
    short = less.count({"x": ends}, return_interval=True, level=level)
    assert (errors <= short.upper).mean() < level - noise


def test_four_blocks_have_the_published_half_width():
    # Weights 1, 1, .4, .2 at epsilon 1: exact 4.28, order statistic 4.54, Chernoff 7.28 for
    # continuous noise; the discrete noise has almost the same law.
    from skdp.mechanisms.laplace import noise_bound
    from skdp.release.intervals import _simulated_quantile

    w, e, n = np.array([1.0, 0.4, 0.2]), np.ones(3), np.array([2, 1, 1])
    assert noise_bound(w, w, e, n, 0.025) == pytest.approx(7.28, rel=0.03)
    assert 4.1 < _simulated_quantile(w, w, e, n, 0.025) < 4.7
    assert _simulated_quantile(w, w, e, n, 1e-7) == math.inf


def test_a_chernoff_bound_serves_where_simulation_would_take_too_long():
    synopsis = line(20, KnownNoise(1))
    simulated = synopsis.count({"x": (3, 96)}, return_interval=True, level=0.999)
    bound = synopsis.count({"x": (3, 96)}, return_interval=True, level=1 - 1e-9)
    assert "simulated" in simulated.guarantee and "bound" in bound.guarantee
    assert simulated.upper < bound.upper < 60


def test_equal_queries_have_equal_intervals_and_levels_are_nested(small):
    for query in QUERIES:
        first = small.count(query, return_interval=True)
        assert first == small.count(query, return_interval=True)
        wide = small.count(query, return_interval=True, level=0.99)
        assert wide.lower <= first.lower <= first.value <= first.upper <= wide.upper
    results = small.count(QUERIES, return_interval=True)
    assert [result.value for result in results] == pytest.approx(list(small.count(QUERIES)))
    nothing = small.count("age < 22 and age > 25", return_interval=True)
    assert nothing.lower == nothing.upper == nothing.std == 0


@pytest.mark.parametrize(("low", "high"), [(0.3, 1.0), (0.0, 0.7), (0.5, 0.5), (0.9, 1.0)])
@pytest.mark.parametrize("n_boxes", [1, 3, 40])
def test_quantiles_of_slanted_noise(low, high, n_boxes):
    # 100,000 fresh draws; each assertion fails with probability below 1e-6 for the right law.
    from skdp.mechanisms.laplace import noise_bound
    from skdp.release.intervals import _simulated_quantile, noise_quantile

    alpha, epsilon, n_trials = 0.05, Fraction(1, 10), 100_000
    drawn = float(dyadic_floor(epsilon))
    slopes = np.full(n_boxes, low), np.full(n_boxes, high)
    z = discrete_laplace(np.zeros(n_trials * n_boxes, dtype=np.int64), epsilon, random_state=3)
    z = z.reshape(n_trials, n_boxes)
    sums = np.maximum(low * z, high * z).sum(axis=1)
    quantile, _ = noise_quantile(*slopes, [epsilon], np.zeros(n_boxes, dtype=int), alpha)
    margin = 5 * math.sqrt(alpha * (1 - alpha) / n_trials)
    assert (sums > quantile).mean() <= alpha + margin
    kinds = np.array([low]), np.array([high]), np.array([drawn]), np.array([n_boxes])
    simulated, bound = _simulated_quantile(*kinds, alpha), noise_bound(*kinds, alpha)
    assert quantile == pytest.approx(min(simulated, bound)) or n_boxes == 1
    assert (sums > bound).mean() <= alpha + margin
    assert np.quantile(sums, 1 - alpha) * 1.2 + 1 >= simulated
    # 20% less noise is told apart.
    less, _ = noise_quantile(
        *slopes, [epsilon * Fraction(5, 4)], np.zeros(n_boxes, dtype=int), alpha
    )
    assert (sums > less).mean() > alpha + margin


def test_bounds_on_uneven_boxes_widen_the_interval():
    domain = Domain({"x": Numeric(0, 14, integer=True)})
    lower = np.array([[0], [5], [10]])
    bound = LeafErrorBound(2.0, 1.0, 3.0, depth=[2, 2, 2], test_number=[3, 5, 0])
    facts = BoundedSpread(1, bound)
    rich = Synopsis(
        domain, BoxModel(Boxes(lower, lower + 5), [10_000, 10_000, 10_000], domain.shape, facts)
    )
    query = {"x": (2, 7)}
    result = rich.count(query, return_interval=True)
    spread = sum(4 + 3 * math.log(n * (n + 1) / (2 * 0.025)) for n in (3, 5)) / 2
    assert result.value == 12_000
    assert spread + 1 < result.upper - result.value < spread + 10
    assert spread + 1 < result.value - result.lower < spread + 10
    plain = line(3, KnownNoise(1)).count(query, return_interval=True)
    assert result.std > plain.std
    assert "and the uneven spread of records in boxes that the query cuts." in result.guarantee
    # Where the counts are small, so is the unevenness that they can hide.
    poor = Synopsis(domain, BoxModel(Boxes(lower, lower + 5), [3, 0, 0], domain.shape, facts))
    result = poor.count(query, return_interval=True)
    assert 3 < result.upper < 3 + spread / 2
    assert result.lower == 0
    # No box is cut: all of the failure probability goes to the noise.
    whole = poor.count({"x": (5, 9)}, return_interval=True)
    assert whole.upper == discrete_laplace_quantile(0.95, 1)
    assert "the only error" in whole.guarantee
    # A box without a test has one cell, and none of the error.
    assert bound.bounds(0.05)[2] == 0


@pytest.mark.parametrize("inside", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("records", [0, 2, 40])
def test_intervals_with_bounds_cover_adversarial_records(inside, records):
    # All records of the boxes that the query cuts lie inside it, or none, or half of them; 2,000
    # releases, nominal 90%, three standard errors.
    n_boxes, level, n_trials = 12, 0.9, 2000
    domain = Domain({"x": Numeric(0, 5 * n_boxes - 1, integer=True), "y": Categorical(["a", "b"])})
    lower = np.stack([np.arange(n_boxes) * 5, np.zeros(n_boxes, dtype=int)], axis=1)
    boxes = Boxes(lower, lower + [5, 2])
    errors = LeafErrorBound(50.0, 0, 0, depth=[0] * n_boxes, test_number=[1] * n_boxes)
    true = n_boxes * records * inside
    # The aggregation error of ten cells that hold their records in five, or evenly.
    assert n_boxes * (2 * records * abs(inside - 0.5)) <= 50 * n_boxes
    covered, widths = 0, []
    counts = np.full((n_trials, n_boxes), records)
    noisy = discrete_laplace(counts.ravel(), 1, random_state=11).reshape(counts.shape)
    model = Synopsis(
        domain, BoxModel(boxes, noisy[0], domain.shape, BoundedSpread(1, errors))
    ).model
    asked = [parse({"y": "a"}, domain)]
    quantiles = {}

    def remembered(low, high, epsilons, index, alpha):
        key = (low.tobytes(), high.tobytes(), alpha)
        if key not in quantiles:
            quantiles[key] = original(low, high, epsilons, index, alpha)
        return quantiles[key]

    original = intervals.noise_quantile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "noise_quantile", remembered)
        for row in noisy:
            model.counts = row
            [value] = model.answer(asked)
            _, [below], [above], _ = model.reach(asked, level)
            covered += value - below <= true <= value + above
            widths.append(below + above)
    assert len(quantiles) == 2
    assert covered / n_trials >= level - 3 * math.sqrt(level * (1 - level) / n_trials)
    assert np.median(widths) < n_boxes * min(records, 50) + 60


def test_the_bound_for_lattice_noise_uses_its_tail():
    facts = {"theta": 2.0, "delta": 1.0, "lam": 3.0, "depth": [1], "test_number": [4]}
    smooth = LeafErrorBound(**facts).bounds(0.05)[0]
    lattice = LeafErrorBound(**facts, step=0.25).bounds(0.05)[0]
    assert lattice == pytest.approx(3 + 3 * math.log(20 / ((1 + math.exp(-0.25 / 3)) * 0.05)))
    assert smooth < lattice < smooth + 0.25


@pytest.mark.parametrize("name", ["theta", "delta", "lam", "step"])
def test_leaf_errors_are_checked(name):
    facts = {"theta": 1, "delta": 1, "lam": 1, "depth": [1], "test_number": [1], "step": 0.0}
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=name):
            LeafErrorBound(**{**facts, name: wrong})
    with pytest.raises(ValueError, match="depth"):
        LeafErrorBound(**{**facts, "depth": [-1]})
    with pytest.raises(ValueError, match="same length"):
        LeafErrorBound(**{**facts, "depth": [1, 2]})


@pytest.mark.parametrize("seed", range(20))
def test_aggregation_errors_bound_every_misfit(seed):
    # Exact counts, no noise to speak of: what remains is |sum (x - mean)| <= spread * AE / 2,
    # also for bins covered in part.
    generator = sampling_generator(seed)
    domain = Domain({"x": Numeric(0, 12, bins=12), "y": Numeric(0, 6, bins=6)})
    table = generator.poisson(generator.exponential(5, domain.shape) ** 2)
    boxes = random_boxes(domain.shape, 6, generator)
    parts = [
        table[low[0] : high[0], low[1] : high[1]]
        for low, high in zip(boxes.lower, boxes.upper, strict=True)
    ]
    errors = np.array([np.abs(part - part.mean()).sum() for part in parts])
    worst = LeafErrorBound(errors.max(), 0, 0, depth=[0] * 6, test_number=[1] * 6)
    synopsis = Synopsis(
        domain,
        BoxModel(
            boxes,
            [part.sum() for part in parts],
            domain.shape,
            BoundedSpread(1000, worst),
        ),
    )
    for _ in range(50):
        ends = np.sort(generator.random((2, 2)) * [[12.0], [6.0]], axis=1)
        query = {"x": tuple(ends[0]), "y": tuple(ends[1])}
        true = answered(table, parse(query, domain).products[0])
        result = synopsis.count(query, return_interval=True)
        assert result.lower - 1e-9 <= true <= result.upper + 1e-9
    assert "Bins covered in part" in result.guarantee


def test_boxes_may_have_their_own_noise():
    mixed = line(3, KnownNoise([1, 0.1, 0.1]))
    assert mixed.count({"x": (0, 4)}, return_interval=True) == line(3, KnownNoise(1)).count(
        {"x": (0, 4)}, return_interval=True
    )
    both = mixed.count({"x": (0, 9)}, return_interval=True)
    assert both.std**2 == pytest.approx(
        discrete_laplace_variance(1) + discrete_laplace_variance(0.1)
    )
    assert discrete_laplace_quantile(0.95, 0.1) <= both.upper < 40


def test_without_a_noise_law_there_are_no_intervals():
    with pytest.raises(ValueError, match="how its noise is distributed"):
        line(3).count(return_interval=True)
    synopsis = line(3, KnownNoise(1))
    for level in (0, 1, -0.5, math.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            synopsis.count(return_interval=True, level=level)
    for level in ("0.9", None, True):
        with pytest.raises(TypeError, match="must be a number"):
            synopsis.count(return_interval=True, level=level)


# --- views, tables, text


def test_views_are_margins(small):
    cells = expanded(small.model.boxes, small.model.counts, DOMAIN.shape)
    np.testing.assert_allclose(small.view("age"), cells.sum(axis=(1, 2, 3)), atol=1e-9)
    np.testing.assert_allclose(small.view(["age", "size"]), cells.sum(axis=(1, 2)), atol=1e-9)
    np.testing.assert_allclose(small.view(["size", "age"]), cells.sum(axis=(1, 2)).T, atol=1e-9)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "one or two"),
        (["age", "pay", "sex"], "one or two"),
        (["age", "age"], "different"),
        ("agee", "Did you mean 'age'"),
    ],
)
def test_views_refuse(small, columns, message):
    with pytest.raises(ValueError, match=message):
        small.view(columns)


def test_immense_views_are_refused():
    domain = Domain({name: Numeric(0, 1, bins=100_000) for name in "xy"})
    synopsis = Synopsis(domain, BoxModel(Boxes([[0, 0]], [[100_000, 100_000]]), [5], domain.shape))
    assert synopsis.view("x").sum() == pytest.approx(5)
    with pytest.raises(ValueError, match="10,000,000,000 cells"):
        synopsis.view(["x", "y"])


def test_to_frame_says_what_the_boxes_are():
    domain = Domain(
        {
            "age": Numeric(20, 29, integer=True, nullable=True),
            "pay": Numeric(0, 1, bins=4),
            "sex": Categorical(["F", "M"]),
            "size": Categorical(["S", "M", "L"], ordered=True),
            "job": Categorical(list("abcdefg")),
            "count": Categorical(["x", "y"]),
        }
    )
    lower = [[0, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0], [10, 0, 0, 0, 0, 0]]
    upper = [[9, 2, 2, 3, 7, 2], [9, 4, 2, 3, 7, 2], [10, 4, 2, 3, 7, 2], [11, 4, 2, 3, 7, 2]]
    frame = Synopsis(domain, BoxModel(Boxes(lower, upper), [1, 2, -3, 4], domain.shape)).to_frame()
    assert frame["age"].tolist() == ["20 to 28", "20 to 28", "29", "missing"]
    assert frame["pay"].tolist() == ["[0, 0.5)", "[0.5, 1]", "any", "any"]
    assert frame["count_"].tolist() == [1, 2, -3, 4]
    rest = domain.select(["age", "size", "job", "sex"])
    lower = [[9, 0, 0, 0], [0, 0, 0, 0], [9, 1, 0, 0], [9, 1, 6, 0]]
    upper = [[11, 1, 7, 2], [9, 3, 7, 2], [11, 3, 6, 2], [11, 3, 7, 2]]
    frame = Synopsis(rest, BoxModel(Boxes(lower, upper), np.zeros(4), rest.shape)).to_frame()
    assert frame["age"][0] == "29 or missing"
    assert frame["size"].tolist() == ["S", "any", "M to L", "M to L"]
    assert frame["job"].tolist() == ["any", "any", "a, b, c, ... (6 in all)", "g"]


def test_reprs_say_what_matters(small):
    text = repr(small)
    for part in (
        "4 columns",
        "random cuts",
        "epsilon=1",
        "40 groups of records",
        f"{small.total:,.6g}",
    ):
        assert part in text
    assert small.epsilon == 1 and not small.seeded
    seeded = Synopsis(
        Domain({"<b>": Numeric(0, 1, 32)}, inferred=True),
        BoxModel(Boxes([[0]], [[32]]), [3], (32,)),
        privacy_loss=PrivacyLoss(2, seeded=True),
    )
    assert seeded.seeded
    assert "seeded: no guarantee" in repr(seeded) and "epsilon" not in repr(seeded)
    shown = seeded._repr_html_()
    assert "seeded: no guarantee" in shown and "inferred from the data" in shown
    assert "<b>" not in shown and "&lt;b&gt;" in shown


# --- files


def same(first, second):
    assert first.domain == second.domain
    assert first.privacy_loss == second.privacy_loss
    assert first.mechanism == second.mechanism
    facts, arrays = first.model.to_arrays()
    other_facts, other_arrays = second.model.to_arrays()
    assert facts == other_facts
    assert list(arrays) == list(other_arrays)
    for name, array in arrays.items():
        assert array.dtype == other_arrays[name].dtype
        np.testing.assert_array_equal(array, other_arrays[name])


def test_files_round_trip_exactly(small, tmp_path):
    one_third = line(3, KnownNoise([Fraction(1, 3), 1, Fraction(1, 3)]))
    for synopsis in (small, one_third, line(2)):
        path = tmp_path / "release"
        synopsis.save(path)
        loaded = Synopsis.load(str(path))
        same(synopsis, loaded)
        before = path.read_bytes()
        loaded.save(path)
        assert path.read_bytes() == before
        if synopsis.model.to_arrays()[0]:
            query = {synopsis.domain.names[0]: (3, 23)}
            assert synopsis.count(query, return_interval=True) == loaded.count(
                query, return_interval=True
            )
    assert one_third.model.to_arrays()[0]["noise_epsilon"] == ["1/3", "1"]


def test_files_can_be_read_without_skdp(small, tmp_path):
    small.save(tmp_path / "release.npz")
    with np.load(tmp_path / "release.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["counts"], small.model.counts)
        metadata = json.loads(bytes(archive["metadata.json"]))
    assert metadata["format"] == "skdp synopsis"
    assert metadata["privacy"] == {
        "epsilon": "1",
        "parts": {"cuts": "1/3", "counts": "2/3"},
        "seeded": False,
    }


def test_files_say_seeded_and_hold_no_seed(tmp_path):
    synopsis = line(2, privacy_loss=PrivacyLoss(1, seeded=True))
    synopsis.save(tmp_path / "x")
    assert Synopsis.load(tmp_path / "x").seeded
    with zipfile.ZipFile(tmp_path / "x") as archive:
        assert sorted(archive.namelist()) == [
            "counts.npy",
            "lower.npy",
            "metadata.json",
            "upper.npy",
        ]


def test_pickles_keep_the_release_and_drop_its_caches(small):
    small.count(QUERIES)
    for other in (pickle.loads(pickle.dumps(small)), copy.deepcopy(small)):
        same(small, other)
        assert not other.model._sides
        np.testing.assert_allclose(small.count(QUERIES), other.count(QUERIES))


def contents(small, tmp_path):
    small.save(tmp_path / "release")
    with zipfile.ZipFile(tmp_path / "release") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, entries):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate names
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in entries:
                archive.writestr(name, content)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def edited(metadata, *path_and_value):
    *path, last, value = path_and_value
    data = json.loads(metadata)
    inner = data
    for key in path:
        inner = inner[key]
    inner[last] = value
    return json.dumps(data).encode()


def test_foreign_and_hostile_files_are_refused(small, tmp_path):
    good = contents(small, tmp_path)
    metadata = good["metadata.json"]
    header = b"\x93NUMPY\x01\x00v\x00"
    huge = "{'descr': '<i8', 'fortran_order': False, 'shape': (9999999999999,), }"

    def arrays(**changes):
        return list({**good, **changes}.items())

    def facts(*path_and_value):
        return arrays(**{"metadata.json": edited(metadata, *path_and_value)})

    cases = {
        "no metadata": (list(good.items())[1:], "no metadata.json"),
        "twice": ([*good.items(), ("counts.npy", npy(np.zeros(40)))], "no metadata.json"),
        "other json": (arrays(**{"metadata.json": b'{"a": 1}'}), "not written by skdp"),
        "list": (arrays(**{"metadata.json": b"[1]"}), "not written by skdp"),
        "no json": (arrays(**{"metadata.json": b"\xff\xfe"}), "not a usable synopsis"),
        "deep": (arrays(**{"metadata.json": b"[" * 100_000}), "not a usable synopsis"),
        "later": (facts("version", 2), "version is 2 and this skdp reads 1"),
        "kind": (facts("model", "kind", "tree"), "'tree' is unknown"),
        "pickle": (
            arrays(**{"counts.npy": npy(np.array([print] * 40, dtype=object))}),
            "dtype object",
        ),
        "complex": (arrays(**{"counts.npy": npy(np.zeros(40, dtype=complex))}), "complex"),
        "huge": (
            arrays(**{"counts.npy": header + huge.ljust(117).encode() + b"\n"}),
            "size that its header says",
        ),
        "short": (arrays(**{"counts.npy": npy(np.zeros(39))}), "each of the 40 boxes"),
        "no array": (list(good.items())[:-1], "not a usable synopsis"),
        "domain": (facts("domain", {}), "not a usable synopsis"),
        "one box less": (
            arrays(
                **{
                    name: npy(getattr(small.model.boxes, name[:5])[1:])
                    for name in ("lower.npy", "upper.npy")
                }
            ),
            "do not add up",
        ),
        "negative": (
            arrays(**{"lower.npy": npy(np.full((40, 4), -(2**63)))}),
            "non-negative",
        ),
        "exponent": (facts("privacy", "epsilon", "1e999999999"), "not an exact fraction"),
        "unequal parts": (facts("privacy", "parts", "cuts", "1/2"), "must sum to epsilon"),
        "noise": (facts("model", "noise_epsilon", ["1e999999999"]), "not an exact fraction"),
        "no noise": (facts("model", "noise_epsilon", ["0"]), "positive"),
        "two noises": (facts("model", "noise_epsilon", ["1", "2"]), "not a usable"),
        "seeded": (facts("privacy", "seeded", 0), "whether it was seeded"),
        "nan": (facts("model", "leaf_errors", "theta", math.nan), "theta"),
        "mechanism": (facts("mechanism", ["x"]), "mechanism"),
    }
    for name, (entries, message) in cases.items():
        path = tmp_path / "case"
        write(path, entries)
        with pytest.raises(ValueError, match=message) as error:
            Synopsis.load(path)
        assert "case" in str(error.value), name
    for content in (b"", b"PK", b"age,sex\n1,2\n", pickle.dumps({"a": 1}), b"\x93NUMPY" * 9):
        (tmp_path / "case").write_bytes(content)
        with pytest.raises(ValueError, match="not a usable synopsis"):
            Synopsis.load(tmp_path / "case")
    with pytest.raises(FileNotFoundError):
        Synopsis.load(tmp_path / "absent")
    with pytest.raises(OSError):
        Synopsis.load(tmp_path)


def test_bombs_are_refused_before_they_unpack(small, tmp_path):
    good = contents(small, tmp_path)
    write(tmp_path / "bomb", [*good.items(), ("x.npy", b"\0" * 30_000_000)])
    assert (tmp_path / "bomb").stat().st_size < 100_000
    with pytest.raises(ValueError, match="max_bytes=1,000,000"):
        Synopsis.load(tmp_path / "bomb", max_bytes=1_000_000)


def use(synopsis):
    """What a loaded release must be able to do without an error other than ValueError."""
    assert repr(synopsis) and synopsis._repr_html_()
    assert math.isfinite(synopsis.count())
    assert len(synopsis.sample_codes(3, 0)) == 3
    assert len(synopsis.to_frame()) == len(synopsis.model.boxes)
    name = synopsis.domain.names[0]
    try:
        synopsis.count({name: (22, 27)}, return_interval=True)
    except ValueError as error:
        assert "noise" in str(error) or name in str(error)


FUZZ = settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@FUZZ
@given(data=st.data())
def test_damaged_files_raise_value_error_or_load(small, tmp_path, data):
    path = tmp_path / "release"
    small.save(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    path.write_bytes(content)
    try:
        loaded = Synopsis.load(path)
    except ValueError:
        return
    use(loaded)


json_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["1/3", "1/0", "0", "boxes", [], {}, ["1"], [["1"]], {"a": "1"}]),
)


@FUZZ
@given(data=st.data())
def test_well_packed_nonsense_raises_value_error_or_loads(small, tmp_path, data):
    good = contents(small, tmp_path)
    metadata = json.loads(good["metadata.json"])
    for _ in range(data.draw(st.integers(0, 2))):
        inner = metadata
        while True:
            keys = list(inner) if isinstance(inner, dict) else range(len(inner))
            if not len(keys):
                break
            key = data.draw(st.sampled_from(list(keys)))
            if isinstance(inner[key], dict | list) and data.draw(st.integers(0, 3)):
                inner = inner[key]
                continue
            inner[key] = data.draw(json_values)
            break
    good["metadata.json"] = json.dumps(metadata).encode()
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(set(good) - {"metadata.json"})))
        body = bytearray(good[name])
        for _ in range(data.draw(st.integers(1, 3))):
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
        good[name] = bytes(body)
    write(tmp_path / "case", good.items())
    try:
        loaded = Synopsis.load(tmp_path / "case")
    except ValueError:
        return
    use(loaded)


# --- other models


class Flat:
    """All cells alike: the least that a kind of release has to have."""

    kind, independent = "flat", False
    about, covers = "one number", "nothing but Poisson errors"

    def __init__(self, total, shape):
        self.total, self.shape = total, shape

    def answer(self, queries):
        return (
            np.array(
                [
                    sum(math.prod(w.mean() for w in part.values()) for part in query.products)
                    for query in queries
                ]
            )
            * self.total
        )

    def variance(self, queries):
        return np.abs(self.answer(queries))

    def covariance(self, queries):
        return np.diag(self.variance(queries))

    def reach(self, queries, level):
        std = np.sqrt(self.variance(queries))
        return Reach(std, 2 * std, 2 * std, "about 95%")

    def view(self, axes):
        shape = [self.shape[axis] for axis in axes]
        return np.full(shape, self.total / math.prod(shape))

    def sample_codes(self, n_samples, generator, weights=None):
        return generator.integers(0, self.shape, (n_samples, len(self.shape)), dtype=np.int32)

    round_codes = sample_codes

    def to_arrays(self):
        return {"total": self.total}, {}

    @classmethod
    def from_arrays(cls, shape, facts, arrays):
        return cls(float(facts["total"]), shape)


def test_another_model_serves_behind_the_same_interface(monkeypatch, tmp_path):
    synopsis = Synopsis(DOMAIN, Flat(600.0, DOMAIN.shape), mechanism="flat")
    assert synopsis.count({"sex": "Male", "size": "S"}) == pytest.approx(100)
    assert synopsis.mean("age") == pytest.approx(24.5)
    assert len(synopsis.sample()) == 600
    assert "holds one number" in repr(synopsis)
    assert synopsis.count("age < 22", return_interval=True).guarantee == "about 95%"
    for asked in (
        lambda **how: synopsis.mean("age", **how),
        lambda **how: synopsis.proportion("sex == 'Male'", **how),
        lambda **how: synopsis.quantile("age", **how),
        lambda **how: synopsis.std("pay", **how),
    ):
        found = asked(return_interval=True)
        assert found.lower <= asked() <= found.upper and "Poisson errors" in found.guarantee
    synopsis.save(tmp_path / "flat")
    with pytest.raises(ValueError, match="'flat' is unknown"):
        Synopsis.load(tmp_path / "flat")
    monkeypatch.setitem(release_synopsis._MODELS, "flat", Flat)
    assert Synopsis.load(tmp_path / "flat").total == 600
    with pytest.raises(ValueError, match="has none"):
        synopsis.model.view = lambda axes: np.zeros((2, 3))
        synopsis.plot(["sex", "size"], blocks=True)


def test_box_model_alone_is_enough_for_a_synopsis(small):
    model = BoxModel(small.model.boxes, small.model.counts, DOMAIN.shape)
    assert Synopsis(DOMAIN, model).count() == small.count()
