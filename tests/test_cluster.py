"""DPKMeans: results, post-processing of the release, and input that is odd but legal."""

from __future__ import annotations

import tracemalloc
import warnings
from fractions import Fraction

import matplotlib
import numpy as np
import pandas as pd
import pytest
from loops import over
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans

import skdp
from skdp import DPKMeans
from skdp.algorithms.kmeans.algorithms import ALGORITHMS, GRID_ALGORITHMS

matplotlib.use("agg")
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.InsecureSeedWarning")

MIDDLES = np.array([[-6, -5], [5, -6], [0, 6], [7, 5.0]])


def blobs(n=4_000, seed=0, middles=MIDDLES, scale=0.8):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, len(middles), size=n)
    return middles[labels] + generator.normal(0, scale, size=(n, middles.shape[1]))


X = blobs()


def excess(model, rows=X):
    """Mean squared distance beyond that of the best centroids."""
    best = KMeans(model.n_clusters_, n_init=5, random_state=0).fit(rows)
    return (-model.score(rows) - best.inertia_) / len(rows)


# --- results


@over("algorithm", GRID_ALGORITHMS)
def test_grid_algorithms_find_clear_clusters(algorithm):
    model = DPKMeans(4, epsilon=2.0, domain=(-10, 10), algorithm=algorithm, random_state=0).fit(X)
    apart = np.linalg.norm(model.cluster_centers_[:, None] - MIDDLES, axis=2)
    assert sorted(apart.argmin(axis=1)) == [0, 1, 2, 3]
    assert apart.min(axis=1).max() < 0.5
    counts = model.cluster_counts_[np.argsort(apart.argmin(axis=1))]
    truth = np.bincount(np.linalg.norm(X[:, None] - MIDDLES, axis=2).argmin(axis=1))
    np.testing.assert_allclose(counts, truth, atol=250)


@over("algorithm", ["lloyd", "lloyd-improved", "sample-aggregate", "genetic"])
def test_the_other_algorithms_learn_from_the_data(algorithm):
    # Without data the centroids lie anywhere: a mean squared distance of tens.
    rows = blobs(3_000)
    params = {"epsilon": 5.0, "domain": (-10, 10), "algorithm": algorithm, "init": MIDDLES / 2}
    errors = [excess(DPKMeans(4, random_state=s, **params).fit(rows), rows) for s in range(2)]
    assert np.mean(errors) < 8


def test_a_public_number_of_blocks_needs_no_number_of_records():
    model = DPKMeans(4, epsilon=1.0, domain=(-10, 10), algorithm="sample-aggregate", random_state=0)
    assert set(model.fit(X).privacy_loss_.parts) == {"range", "centroids", "records"}
    model.set_params(n_blocks=100)
    assert model.fit(X).privacy_loss_.parts == dict.fromkeys(("range", "centroids"), 0.5)
    # 400 times the blocks, a 400th of the noise.
    errors = {
        n_blocks: np.mean(
            [
                excess(model.set_params(n_blocks=n_blocks, random_state=seed).fit(X), X)
                for seed in range(3)
            ]
        )
        for n_blocks in (1, 400)
    }
    assert errors[400] < errors[1] / 2


def test_theta_sets_the_number_of_cells():
    model = DPKMeans(4, epsilon=1.0, domain=(-10, 10), n_samples=10_000, n_init=1, random_state=0)
    for algorithm in ("uniform-grid", "extended-grid", "hybrid"):
        sizes = [
            len(model.set_params(algorithm=algorithm, theta=theta).fit(X).synopsis_.model.boxes)
            for theta in (100, 1)
        ]
        # In the plane N epsilon / theta cells; Hybrid gives a part of epsilon to its round.
        least = 50 if algorithm == "hybrid" else 81
        assert least <= sizes[1] / sizes[0] <= 121 and 2_000 <= sizes[1] <= 10_000
    with pytest.raises(ValueError, match="theta must lie between"):
        model.set_params(theta=0).fit(X)


def test_auto_is_accurate_in_many_dimensions():
    middles = np.random.default_rng(3).uniform(-7, 7, size=(4, 8))
    rows = blobs(8_000, seed=4, middles=middles)

    def error(algorithm):
        params = {"epsilon": 0.5, "domain": (-10, 10), "algorithm": algorithm}
        fits = [DPKMeans(4, random_state=s, **params).fit(rows) for s in range(2)]
        return np.mean([excess(model, rows) for model in fits])

    assert error("auto") < min(0.5, error("hybrid") / 2)


def test_number_of_clusters_is_chosen_on_the_release():
    ledger = skdp.PrivacyLedger(1)
    model = DPKMeans(range(2, 8), epsilon=1.0, domain=(-10, 10), ledger=ledger, random_state=0).fit(
        X
    )
    assert model.n_clusters_ == 4 == min(model.validity_, key=model.validity_.get)
    assert sorted(model.validity_) == [2, 3, 4, 5, 6, 7]
    assert ledger.spent == 1
    assert model.cluster_centers_.shape == (4, 2)
    one = DPKMeans(4, domain=(-10, 10)).fit(X)
    assert one.validity_ is None


@over("algorithm", ["auto", "lloyd-improved", "extended-grid", "hybrid"])
def test_public_start_is_used(algorithm):
    # Lloyd's algorithm keeps the order of its starts.
    start = MIDDLES[[2, 0, 3, 1]] + 1
    model = DPKMeans(
        4, epsilon=50, domain=(-10, 10), algorithm=algorithm, init=start, random_state=0
    ).fit(X)
    reference = KMeans(4, init=start, n_init=1).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, reference.cluster_centers_, atol=0.2)


def test_units_are_kept_and_distances_euclidean():
    """The same data in other units, and bounds of unequal width."""
    shifted = X * 1000 + 50_000
    for rows, bounds, scale in (
        (X, {"x0": (-10, 10), "x1": (-8, 12)}, 1),
        (shifted, {"x0": (40_000, 60_000), "x1": (42_000, 62_000)}, 1000),
    ):
        model = DPKMeans(4, epsilon=5.0, domain=bounds, random_state=1).fit(rows)
        assert excess(model, rows) < 0.05 * scale**2
    narrow = np.column_stack([X[:, 0], X[:, 1] * 1e-9])
    model = DPKMeans(2, epsilon=5.0, domain=[(-10, 10), (-1e-8, 1e-8)], random_state=1).fit(narrow)
    assert excess(model, narrow) < 0.3


def test_budget_parts_are_named():
    parts = DPKMeans(3, epsilon=1.0, domain=(-10, 10)).fit(X).privacy_loss_.parts
    assert parts == {"clustering": Fraction(49, 50), "records": Fraction(1, 50)}
    parts = DPKMeans(3, epsilon=1.0, domain=(-10, 10), n_samples=4_000).fit(X).privacy_loss_.parts
    assert parts == {"clustering": Fraction(1)}


# --- post-processing


def test_predict_transform_and_score_agree():
    model = DPKMeans(4, domain=(-10, 10), random_state=0).fit(X)
    distances = model.transform(X)
    assert distances.shape == (len(X), 4)
    np.testing.assert_allclose(distances[7], np.linalg.norm(model.cluster_centers_ - X[7], axis=1))
    labels = model.predict(X)
    assert (labels == distances.argmin(axis=1)).all()
    assert model.score(X) == pytest.approx(-(distances.min(axis=1) ** 2).sum())
    again = DPKMeans(4, domain=(-10, 10), random_state=0)
    assert (again.fit_predict(X) == labels).all()
    assert not hasattr(again, "labels_")


def test_missing_values_are_skipped_and_labelled():
    rows = X.copy()
    rows[::7, 0] = np.nan
    model = DPKMeans(4, epsilon=2.0, domain=(-10, 10), random_state=0).fit(rows)
    assert excess(model, X) < 0.3
    assert (model.predict(rows)[::7] == -1).all()
    assert np.isnan(model.transform(rows)[::7]).all()
    assert model.score(rows) == pytest.approx(model.score(rows[~np.isnan(rows).any(axis=1)]))


def test_frames_in_and_out():
    frame = pd.DataFrame(X, columns=["east", "north"])
    model = DPKMeans(3, domain=(-10, 10), random_state=0).fit(frame)
    assert model.get_feature_names_out().tolist() == ["dpkmeans0", "dpkmeans1", "dpkmeans2"]
    out = model.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == ["dpkmeans0", "dpkmeans1", "dpkmeans2"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"east": "west"}))
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((2, 3)))
    polars = pytest.importorskip("polars").from_pandas(frame)
    for rows in (polars, polars.select("north", "east").select("east", "north")):
        assert model.score(rows) == model.score(frame)
        assert (model.predict(rows) == model.predict(frame)).all()


def test_synopsis_answers_and_samples():
    frame = pd.DataFrame(X, columns=["east", "north"])
    for algorithm in GRID_ALGORITHMS:
        model = DPKMeans(4, epsilon=2.0, domain=(-10, 10), algorithm=algorithm, random_state=0).fit(
            frame
        )
        truth = ((frame.east >= 0) & (frame.north <= 0)).sum()
        assert model.synopsis_.count("east >= 0 and north <= 0") == pytest.approx(truth, abs=300)
        drawn = model.synopsis_.sample(500, random_state=0)
        assert list(drawn.columns) == ["east", "north"] and len(drawn) == 500
        assert model.synopsis_.privacy_loss == model.privacy_loss_
    answer = model.synopsis_.count("east >= 0", return_interval=True)
    assert answer.lower < answer.value < answer.upper
    for algorithm in set(ALGORITHMS) - set(GRID_ALGORITHMS):
        model = DPKMeans(2, domain=(-10, 10), algorithm=algorithm).fit(frame[:200])
        assert model.synopsis_ is None


@over("algorithm", ["auto", "lloyd"])
def test_plot_marks_the_centroids(algorithm):
    frame = pd.DataFrame(blobs(middles=np.array([[0, 1, 2.0], [5, 5, 5]])), columns=list("abc"))
    model = DPKMeans(2, domain=(-10, 10), algorithm=algorithm, random_state=0).fit(frame)
    axes = model.plot(["c", "a"])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("c", "a")
    marked = axes.collections[-1].get_offsets()
    np.testing.assert_allclose(np.asarray(marked), model.cluster_centers_[:, [2, 0]])
    assert [text.get_text() for text in axes.texts] == ["0", "1"]
    assert "epsilon = 1" in axes.get_title()
    if algorithm == "auto":
        outlined = model.plot(["c", "a"], blocks=True, norm="linear")
        assert len(outlined.collections) == len(axes.collections) + 1
    else:
        with pytest.raises(ValueError, match="no boxes"):
            model.plot(["c", "a"], blocks=True)
    with pytest.raises(ValueError, match="two of the features"):
        model.plot(["a", "z"])
    array_model = DPKMeans(2, domain=(-10, 10), algorithm=algorithm).fit(X)
    assert array_model.plot().get_xlabel() == "x0"
    one = DPKMeans(2, domain=(-10, 10), algorithm=algorithm).fit(X[:, :1])
    with pytest.raises(ValueError, match="two of the features"):
        one.plot()


# --- odd but legal input

ODD = [
    np.empty((0, 2)),
    np.array([[0.5, 0.1]]),
    np.full((300, 2), 1e6),
    np.random.default_rng(12).choice([-1.0, 1.0, np.inf, np.nan], size=(300, 2)),
    np.full((50, 2), np.nan),
    np.random.default_rng(13).uniform(-1, 1, size=(300, 1)),
]
WIDE = np.clip(np.random.default_rng(13).normal(0, 0.2, size=(500, 30)), -1, 1)


@over("algorithm", ALGORITHMS)
def test_odd_values_are_legal(algorithm):
    # A public size keeps the grids of "m-estimator" small; without it they grow with the noise.
    size = 40 if algorithm == "m-estimator" else None
    params = {"domain": (-1, 1), "algorithm": algorithm, "n_init": 2, "n_samples": size}
    for rows in ODD:
        for k, epsilon in ((7, 1e-4), (1, 1), (7, 1e4)):
            model = DPKMeans(k, epsilon=epsilon, **params).fit(rows)
            centers = model.cluster_centers_
            assert centers.shape == (k, rows.shape[1])
            assert (np.abs(centers) <= 1).all()
            assert (model.predict(np.zeros((2, rows.shape[1]))) >= 0).all()
    tracemalloc.start()
    try:
        model = DPKMeans(3, epsilon=1.0, **params).fit(WIDE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.cluster_centers_.shape == (3, 30) and peak < 400e6


@over("algorithm", ["auto", "lloyd", "extended-grid"])
def test_identical_points_are_not_given_away(algorithm):
    rows = np.full((500, 2), 0.123456789)
    fits = [
        DPKMeans(1, epsilon=0.2, domain=(-1, 1), algorithm=algorithm, n_init=3).fit(rows)
        for _ in range(4)
    ]
    centers = np.array([model.cluster_centers_[0] for model in fits])
    assert not (centers == rows[0]).any()


@pytest.mark.filterwarnings("error")
@over(
    "changes, error, message",
    [
        ({"domain": None}, skdp.DomainError, "domain is required"),
        ({"domain": (1, -1)}, skdp.DomainError, "low < high"),
        ({"domain": (0, np.inf)}, skdp.DomainError, "finite"),
        ({"domain": (0,)}, skdp.DomainError, "pair"),
        ({"domain": [(0, 1)] * 3}, skdp.DomainError, "has 3 ranges, but there are 2 features"),
        ({"domain": (-1e308, 1e308)}, skdp.DomainError, "Ranges beyond 1e\\+150 are refused"),
        ({"domain": [(0, 1), (-1e200, 1)]}, skdp.DomainError, "Ranges beyond 1e\\+150"),
        ({"domain": (0, 5e-324)}, skdp.DomainError, "of 'x0' are too far from zero"),
        (
            {"domain": [(0, 1), (1.7e18, 1.7e18 + 4096)]},
            skdp.DomainError,
            "of 'x1' are too far from zero for their width",
        ),
        ({"n_clusters": []}, ValueError, "is empty"),
        ({"n_clusters": range(1, 4)}, ValueError, "at least 2"),
        ({"n_clusters": [2, 3], "algorithm": "lloyd"}, ValueError, "no grid"),
        ({"init": [[0, 0]]}, ValueError, "init must hold one row"),
        ({"init": [[0, np.nan], [0, 0]]}, ValueError, "init must be finite"),
    ],
)
def test_bad_parameters_are_refused_for_free(changes, error, message):
    ledger = skdp.PrivacyLedger()
    model = DPKMeans(**{"n_clusters": 2, "domain": (-1, 1), "ledger": ledger, **changes})
    with pytest.raises(error, match=message):
        model.fit(X)
    assert ledger.spent == 0


def test_bad_tables_are_refused_for_free():
    ledger = skdp.PrivacyLedger()
    model = DPKMeans(2, domain=(-1, 1), ledger=ledger)
    with pytest.raises(TypeError, match="[Ss]parse"):
        model.fit(csr_matrix(np.eye(4)))
    with pytest.raises(ValueError, match="project it first"):
        model.fit(np.zeros((2, 600)))
    for method in (model.fit, model.fit_predict):
        with pytest.raises(TypeError, match="records of weight 1"):
            method(X, sample_weight=np.ones(len(X)))
    assert ledger.spent == 0


def test_bounds_a_hundred_times_too_wide_cost_little():
    rows = blobs(20_000)
    for algorithm_bounds in ((-10, 10), (-100, 200), (-1_300, 700)):
        model = DPKMeans(4, epsilon=1.0, domain=algorithm_bounds, random_state=3).fit(rows)
        assert excess(model, rows) < 0.05
    assert model.synopsis_.count("x0 < 0") == pytest.approx((rows[:, 0] < 0).sum(), abs=700)
    assert len(model.synopsis_.sample(20, random_state=0)["x0"]) == 20
    # Far wider than any resolution: the centroids are useless, but legal.
    for wide in (1e6, 1e9):
        model = DPKMeans(4, epsilon=1.0, domain=(-wide, wide), random_state=0).fit(X)
        assert np.isfinite(model.cluster_centers_).all()


def test_bounds_by_column():
    frame = pd.DataFrame(X, columns=["east", "north"])
    arrays = DPKMeans(3, domain=[(-10, 10), (-9, 9)], random_state=0).fit(frame)
    named = DPKMeans(3, domain={"north": (-9, 9), "east": (-10, 10)}, random_state=0).fit(frame)
    np.testing.assert_array_equal(named.cluster_centers_, arrays.cluster_centers_)
    ledger = skdp.PrivacyLedger()
    for bounds, message in (
        ({"east": (0, 1)}, r"missing are \['north'\]"),
        ({"east": (0, 1), "north": (0, 1), "up": (0, 1)}, r"not in X are \['up'\]"),
        ({"east": (0, 1), "north": 1}, "'north' must be a pair"),
        ({"east": (0, 1), "north": (1, 0)}, "low < high"),
    ):
        with pytest.raises(skdp.DomainError, match=message):
            DPKMeans(2, domain=bounds, ledger=ledger).fit(frame)
    assert ledger.spent == 0


def test_bounds_from_a_domain():
    frame = pd.DataFrame(X, columns=["east", "north"])
    domain = skdp.Domain(
        {"north": skdp.Numeric(-9, 9, bins=4), "east": skdp.Numeric(edges=[-10, 0, 10])}
    )
    named = DPKMeans(3, domain={"north": (-9, 9), "east": (-10, 10)}, random_state=0).fit(frame)
    model = DPKMeans(3, domain=domain, random_state=0).fit(frame)
    np.testing.assert_array_equal(model.cluster_centers_, named.cluster_centers_)
    one = DPKMeans(3, domain=skdp.Numeric(-10, 10), random_state=0).fit(X)
    pair = DPKMeans(3, domain=(-10, 10), random_state=0).fit(X)
    np.testing.assert_array_equal(one.cluster_centers_, pair.cluster_centers_)
    ledger = skdp.PrivacyLedger()
    colour = skdp.Domain({"east": skdp.Numeric(-9, 9, bins=4), "north": skdp.Categorical(["a"])})
    with pytest.raises(skdp.DomainError, match=r"domain of 'north' must be a pair.*or left out"):
        DPKMeans(2, domain=colour, ledger=ledger).fit(frame)
    assert ledger.spent == 0


# --- beside the dissertation


@over(
    "columns, more",
    [(5, {}), (2, {}), (2, {"algorithm": "lloyd-improved"}), (60, {}), (3, {"privacy_id": "x0"})],
)
def test_a_table_without_a_readable_row_warns(columns, more):
    # Noise hides it with a probability below exp(-4) at any epsilon; the seeds are fixed.
    names = [f"x{axis}" for axis in range(columns)]
    rows = pd.DataFrame(np.full((500, columns), np.nan), columns=names)
    kept = names
    if more:
        kept = [name for name in names if name != more.get("privacy_id")]
        more = more | ({"max_rows_per_id": 1} if "privacy_id" in more else {})
    bounds = dict.fromkeys(kept, (-1, 1))
    model = DPKMeans(2, domain=bounds, n_init=2, random_state=0, **more)
    with pytest.warns(UserWarning, match="nearly no records"):
        model.fit(rows)


@over("columns", [2, 5, 60])
def test_many_more_clusters_than_records_are_warned_of(columns):
    rows = np.random.default_rng(0).uniform(-1, 1, (1_000, columns))
    model = DPKMeans(3_000, domain=(-1, 1), n_samples=1_000, random_state=0)
    with pytest.warns(UserWarning, match="n_clusters=3000 .* about 1000 records"):
        # Shown, not raised: an error would lose what was paid for.
        warnings.filterwarnings("error", message="n_clusters")
        model.fit(rows)
    assert model.cluster_centers_.shape == (3_000, columns)
    assert np.isfinite(model.cluster_centers_).all()


@over("bounds", [(-1e150, 1e150), (-1e9, 1e9), (-1, 1)])
@over("rows", [np.full((40, 2), 1e308), np.zeros((1, 2)), np.ones((40, 2))])
def test_wide_bounds_overflow_nowhere(bounds, rows):
    with np.errstate(all="raise", under="ignore"):
        model = DPKMeans(3, epsilon=10, domain=bounds, n_init=2, n_samples=40).fit(rows)
        assert np.isfinite(model.score(rows))
    assert np.isfinite(model.cluster_centers_).all()
