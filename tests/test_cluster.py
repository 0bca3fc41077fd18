"""DPKMeans: results, post-processing of the release, and input that is odd but legal."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from loops import over
from sklearn.cluster import KMeans

import skdp
from skdp import DPKMeans
from skdp.algorithms.kmeans.algorithms import GRID_ALGORITHMS

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
    model = DPKMeans(4, epsilon=1.0, domain=(-10, 10), algorithm="sample-aggregate")
    assert set(model.fit(X).privacy_loss_.parts) == {"range", "centroids", "records"}
    model.set_params(n_blocks=100)
    assert model.fit(X).privacy_loss_.parts == dict.fromkeys(("range", "centroids"), 0.5)


def test_number_of_clusters_is_chosen_on_the_release():
    ledger = skdp.PrivacyLedger(1)
    model = DPKMeans(range(2, 8), epsilon=1.0, domain=(-10, 10), ledger=ledger, random_state=0).fit(
        X
    )
    assert model.n_clusters_ == 4 == min(model.validity_, key=model.validity_.get)
    assert sorted(model.validity_) == [2, 3, 4, 5, 6, 7]
    assert ledger.spent == 1 and model.cluster_centers_.shape == (4, 2)


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


# --- post-processing


def test_predict_transform_and_score_agree():
    model = DPKMeans(4, domain=(-10, 10), random_state=0).fit(X)
    distances = model.transform(X)
    assert distances.shape == (len(X), 4)
    np.testing.assert_allclose(distances[7], np.linalg.norm(model.cluster_centers_ - X[7], axis=1))
    labels = model.predict(X)
    assert (labels == distances.argmin(axis=1)).all()
    assert model.score(X) == pytest.approx(-(distances.min(axis=1) ** 2).sum())
    gap = np.array([[np.nan, 1.0], X[7]])
    assert model.predict(gap).tolist() == [-1, labels[7]]
    assert np.isnan(model.transform(gap)[0]).all()
    assert model.score(gap) == pytest.approx(model.score(gap[1:]))
    again = DPKMeans(4, domain=(-10, 10), random_state=0)
    assert (again.fit_predict(X) == labels).all() and not hasattr(again, "labels_")


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


# --- odd but legal input


@pytest.mark.filterwarnings("error")
@over(
    "changes, error, message",
    [
        ({"domain": [(0, 1)] * 3}, skdp.DomainError, "has 3 ranges, but there are 2 features"),
        ({"domain": (-1e308, 1e308)}, skdp.DomainError, "Ranges beyond 1e\\+150 are refused"),
        ({"domain": (0, 5e-324)}, skdp.DomainError, "of 'x0' are too far from zero"),
        ({"domain": [(0, 1), (1.7e18, 1.7e18 + 4096)]}, skdp.DomainError, "of 'x1' are too far"),
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
    with pytest.raises(ValueError, match="project it first"):
        model.fit(np.zeros((2, 600)))
    for method in (model.fit, model.fit_predict):
        with pytest.raises(TypeError, match="records of weight 1"):
            method(X, sample_weight=np.ones(len(X)))
    assert ledger.spent == 0


def test_bounds_by_column():
    frame = pd.DataFrame(X, columns=["east", "north"])
    ledger = skdp.PrivacyLedger(2)
    domain = skdp.Domain({"north": skdp.Numeric(-9, 9, bins=4), "east": skdp.Numeric(-10, 10)})
    centers = [
        DPKMeans(3, domain=bounds, random_state=0).fit(frame).cluster_centers_
        for bounds in ([(-10, 10), (-9, 9)], {"north": (-9, 9), "east": (-10, 10)}, domain)
    ]
    assert (centers[0] == centers[1]).all() and (centers[0] == centers[2]).all()
    colour = skdp.Domain({"east": skdp.Numeric(-9, 9, bins=4), "north": skdp.Categorical(["a"])})
    for bounds, message in (
        ({"east": (0, 1)}, r"missing are \['north'\]"),
        ({"east": (0, 1), "north": (0, 1), "up": (0, 1)}, r"not in X are \['up'\]"),
        ({"east": (0, 1), "north": 1}, "'north' must be a pair"),
        (colour, r"domain of 'north' must be a pair.*or left out"),
    ):
        with pytest.raises(skdp.DomainError, match=message):
            DPKMeans(2, domain=bounds, ledger=ledger).fit(frame)
    assert ledger.spent == 0


# --- beside the dissertation


@over("columns, more", [(5, {}), (2, {"algorithm": "lloyd-improved"}), (60, {})])
def test_a_table_without_a_readable_row_warns(columns, more):
    # Noise hides it with a probability below exp(-4) at any epsilon; the seeds are fixed.
    model = DPKMeans(2, domain=(-1, 1), n_init=2, random_state=0, **more)
    with pytest.warns(UserWarning, match="nearly no records"):
        model.fit(np.full((500, columns), np.nan))
