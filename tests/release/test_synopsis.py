import json
import math
from fractions import Fraction

import numpy as np
import pytest
from boxed import expanded, random_boxes, weighted
from loops import over

from skdp._random import sampling_generator
from skdp.accounting import PrivacyLoss
from skdp.domain import Categorical, Domain, Numeric
from skdp.hierarchy import noise_quantile
from skdp.mechanisms import discrete_laplace, discrete_laplace_quantile, discrete_laplace_variance
from skdp.release import (
    Boxes,
    BoxModel,
    Intervals,
    LeafErrorBound,
    Query,
    QueryResult,
    Synopsis,
    parse,
)

DOMAIN = Domain(
    {
        "age": Numeric(20, 29, integer=True),
        "pay": Numeric(0, 80, bins=8, nullable=True),
        "sex": Categorical(["Female", "Male"]),
        "size": Categorical(["S", "M", "L"], ordered=True),
    }
)


@pytest.fixture
def small():
    generator = sampling_generator(1)
    boxes = random_boxes(DOMAIN.shape, 40, generator)
    counts = generator.integers(-20, 100, 40)
    depth, test_number = generator.integers(0, 9, 40), generator.integers(0, 80, 40)
    errors = LeafErrorBound(1.5, 2.0, 3.0, depth=depth, test_number=test_number, step=0.25)
    model = BoxModel(boxes, counts, DOMAIN.shape, Intervals(Fraction(2, 3), errors))
    loss = PrivacyLoss(1, {"cuts": Fraction(1, 3), "counts": Fraction(2, 3)})
    return Synopsis(DOMAIN, model, privacy_loss=loss, mechanism="random cuts")


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


# --- answers


@over("seed", range(5))
def test_counts_match_the_expanded_table(seed):
    generator = sampling_generator(seed)
    boxes = random_boxes(DOMAIN.shape, 1 + 30 * seed, generator)
    counts = generator.integers(-50, 200, len(boxes))
    synopsis = Synopsis(DOMAIN, BoxModel(boxes, counts, DOMAIN.shape))
    cells = expanded(boxes, counts, DOMAIN.shape)
    expected = [weighted(cells, parse(query, DOMAIN).products[0]).sum() for query in QUERIES]
    answers = synopsis.count(QUERIES)
    assert isinstance(answers, np.ndarray)
    np.testing.assert_allclose(answers, expected, atol=1e-8)
    for query, answer in zip(QUERIES, answers, strict=True):
        single = synopsis.count(query)
        # This release does not describe its noise: a number is all that there is to print.
        assert isinstance(single, float) and str(single) == repr(float(single))
        assert single == pytest.approx(answer, abs=1e-8)
    assert synopsis.total == counts.sum()


# --- sampling


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
    synopsis = line(10, Intervals(0.1))
    result = synopsis.count({"x": (5, 9)}, return_interval=True, level=0.9)
    assert isinstance(result, QueryResult)
    assert result.upper == discrete_laplace_quantile(0.9, 0.1)
    assert result.lower == 0  # no count is negative
    assert synopsis.model.reach([Query(({0: np.ones(50)},))], 0.9).below > 0
    assert result.std == pytest.approx(math.sqrt(discrete_laplace_variance(0.1)))
    assert float(result) == result.value == 0
    assert "about 90%" in result.guarantee and "cuts through no box" in result.guarantee
    half = synopsis.count({"x": (5, 5)}, return_interval=True, level=0.9)
    assert half.upper == pytest.approx(result.upper / 5)
    assert "does not cover the uneven spread" in half.guarantee


@over("ends, epsilon, level", [((3, 16), 1.0, 0.9), ((0, 99), 0.05, 0.8)])
def test_intervals_are_those_of_the_noise_of_boxes_that_a_query_cuts(ends, epsilon, level):
    """That `noise_quantile` covers is tested with it; sums of fifths lie on a lattice."""
    first, last = ends
    result = line(20, Intervals(epsilon)).count({"x": ends}, return_interval=True, level=level)
    cells = np.arange(100).reshape(20, 5)
    weights = ((cells >= first) & (cells <= last)).mean(axis=1)
    variances = np.full(20, discrete_laplace_variance(epsilon))
    assert result.upper == pytest.approx(noise_quantile(weights, variances, level), rel=0.05)
    assert result.std == pytest.approx(math.sqrt(weights**2 @ variances))


@over("inside", [0, 5, 10])
def test_intervals_with_bounds_cover_adversarial_records(inside):
    # Of ten records in each box, so many lie where the query asks: all, none or half. Of 60
    # releases, 90% intervals fail to cover 43 with a probability of 0.01%.
    n_boxes, level = 12, 0.9
    domain = Domain({"x": Numeric(0, 5 * n_boxes - 1, integer=True), "y": Categorical(["a", "b"])})
    lower = np.stack([np.arange(n_boxes) * 5, np.zeros(n_boxes, dtype=int)], axis=1)
    # The aggregation error of ten cells that hold ten records in five of them.
    errors = LeafErrorBound(10.0, 0, 0, depth=[0] * n_boxes, test_number=[1] * n_boxes)
    boxes, law, covered, widths = Boxes(lower, lower + [5, 2]), Intervals(1, errors), 0, []
    noisy = discrete_laplace(np.full(60 * n_boxes, 10), 1, random_state=11)
    for counts in noisy.reshape(60, n_boxes):
        release = Synopsis(domain, BoxModel(boxes, counts, domain.shape, law))
        found = release.count({"y": "a"}, return_interval=True, level=level)
        covered += found.lower <= n_boxes * inside <= found.upper
        widths.append(found.upper - found.lower)
    assert covered >= 43
    assert np.median(widths) < n_boxes * 10 + 60


# --- views, tables, text


def test_views_are_margins(small):
    cells = expanded(small.model.boxes, small.model.counts, DOMAIN.shape)
    np.testing.assert_allclose(small.view("age"), cells.sum(axis=(1, 2, 3)), atol=1e-9)
    np.testing.assert_allclose(small.view(["age", "size"]), cells.sum(axis=(1, 2)), atol=1e-9)
    np.testing.assert_allclose(small.view(["size", "age"]), cells.sum(axis=(1, 2)).T, atol=1e-9)


def test_boxes_and_seeds_are_told_and_names_are_escaped(small):
    domain = Domain({"age": Numeric(20, 29, integer=True, nullable=True), "pay": Numeric(0, 1, 4)})
    lower, upper = [[0, 0], [0, 2], [9, 0], [10, 0]], [[9, 2], [9, 4], [10, 4], [11, 4]]
    frame = Synopsis(domain, BoxModel(Boxes(lower, upper), [1, 2, -3, 4], domain.shape)).to_frame()
    assert frame["age"].tolist() == ["20 to 28", "20 to 28", "29", "missing"]
    assert frame["pay"].tolist() == ["[0, 0.5)", "[0.5, 1]", "any", "any"]
    assert frame["count"].tolist() == [1, 2, -3, 4]
    assert "epsilon=1" in repr(small) and not small.seeded
    model, loss = BoxModel(Boxes([[0]], [[32]]), [3], (32,)), PrivacyLoss(2, seeded=True)
    seeded = Synopsis(Domain({"<b>": Numeric(0, 1, 32)}), model, privacy_loss=loss)
    for shown in (repr(seeded), seeded._repr_html_()):
        assert "seeded: no guarantee" in shown and "epsilon" not in shown
    assert "<b>" not in shown and "&lt;b&gt;" in shown


# --- files


def test_files_round_trip_exactly(small, tmp_path):
    one_third = line(3, Intervals([Fraction(1, 3), 1, Fraction(1, 3)]))
    for synopsis in (small, one_third, line(2)):
        path = tmp_path / "release"
        synopsis.save(path)
        loaded = Synopsis.load(str(path))
        before = path.read_bytes()
        loaded.save(path)
        assert path.read_bytes() == before
    assert one_third.model.to_arrays()[0]["noise_epsilon"] == ["1/3", "1"]


def test_files_say_seeded_and_hold_no_seed(small, tmp_path):
    """Read without skdp."""
    for synopsis, seeded in ((small, False), (line(2, None, PrivacyLoss(1, seeded=True)), True)):
        path = tmp_path / "release.npz"
        synopsis.save(path)
        assert Synopsis.load(path).seeded == seeded
        with np.load(path, allow_pickle=False) as archive:
            np.testing.assert_array_equal(archive["counts"], synopsis.model.counts)
            metadata = json.loads(bytes(archive["metadata.json"]))
            names = sorted(archive)
        assert metadata["format"] == "skdp synopsis"
        assert metadata["privacy"]["seeded"] is seeded
        if seeded:
            assert names == ["counts", "epsilon_of", "lower", "metadata.json", "upper"]
        else:
            assert metadata["privacy"]["parts"] == {"cuts": "1/3", "counts": "2/3"}
