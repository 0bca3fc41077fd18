"""Residuals of records are bounded integers; priors and posteriors of one column."""

import numpy as np
from loops import over
from scored import some_scores

from skdp.algorithms.additive import UNIT, Identity, Logit, class_shares
from skdp.algorithms.additive.model import Prior


@over("n_classes", [2, 3, 7])
def test_residuals_of_classes_are_bounded_integers_near_the_exact_ones(n_classes):
    link = Logit(n_classes)
    scores = some_scores(link.n_outputs)
    labels = np.arange(len(scores)) % n_classes
    residuals = link.residuals(scores, labels)
    assert residuals.dtype == np.int64
    assert np.abs(residuals).sum(axis=1).max() <= link.reach * UNIT
    exact = np.eye(n_classes)[labels] - link.probabilities(scores / UNIT)
    np.testing.assert_allclose(
        residuals / UNIT, exact[:, -link.n_outputs :], atol=1.1 / UNIT + 1e-4
    )


def test_a_record_has_the_same_residual_in_any_company():
    link = Logit(4)
    scores = some_scores(4)
    labels = np.arange(len(scores)) % 4
    together = link.residuals(scores, labels)
    alone = [link.residuals(scores[i : i + 1], labels[i : i + 1])[0] for i in range(len(scores))]
    assert np.array_equal(together, alone)


def test_shares_of_classes_are_those_of_the_counts_as_far_as_noise_allows():
    truth = np.array([0.5, 0.3, 0.15, 0.05, 0.0])
    np.testing.assert_allclose(class_shares(1e4 * truth, 0.0), truth, atol=1e-3)
    # Even where noise is large, or counts are negative.
    np.testing.assert_allclose(class_shares(10 * truth, 1e8), 0.2, atol=0.01)
    for counts in (-np.arange(5.0), np.zeros(5), np.array([-300.0, 2.0, 5.0, 1.0, 0.0])):
        shares = class_shares(counts, 50.0)
        assert (shares > 0).all() and abs(shares.sum() - 1) < 1e-12
    # They lose less than half of what the counts themselves lose, with no share below one in 1e4.
    rng, lost = np.random.default_rng(0), np.zeros(2)
    p = (truth + 0.01) / 1.05
    for _ in range(200):
        noisy = 100 * p + rng.laplace(size=5) * 15
        plain = np.maximum(noisy, 0.01)
        for place, found in enumerate((class_shares(noisy, 450.0), plain / plain.sum())):
            lost[place] += p @ np.log(p / found)
    assert lost[0] < 0.5 * lost[1]


# ------------------------------------------------------------------------------------- one column


def test_the_posterior_follows_precise_sums_and_forgets_noisy_ones():
    truth = np.sin(np.arange(20) / 3)
    curvature = np.full(20, 100.0)
    for prior in (Prior(20, range(20)), Prior(20, None)):
        near = prior.update(curvature * truth, curvature, np.full(20, 1e-6))
        np.testing.assert_allclose(near[0], truth, atol=1e-3)
        far = prior.update(curvature * truth, curvature, np.full(20, 1e12))
        np.testing.assert_allclose(far[0], 0, atol=1e-3)


def test_a_second_measurement_counts_as_much_as_its_noise_allows():
    """Two independent sums of the same function are as good as one with half the variance."""
    truth, noise = np.array([1.0, -0.5, 0.2]), np.full(3, 50.0)
    curvature, prior = np.full(3, 100.0), Prior(3, None)
    once, left = prior.update(curvature * truth, curvature, noise)
    twice, rest = prior.update(curvature * (truth - once), curvature, noise, 1e-9, left)
    best, least = prior.update(curvature * truth, curvature, noise / 2)
    np.testing.assert_allclose(once + twice, best, rtol=1e-3)
    np.testing.assert_allclose(rest, least, rtol=1e-2)


@over("n_classes", [2, 3])
@over("reach", [None, UNIT, 301])
def test_residuals_of_a_record_stay_within_their_bound(n_classes, reach):
    outcomes = np.arange(-UNIT, UNIT + 1, 64)
    link = Logit(n_classes) if reach is None else Identity(outcomes, reach=reach)
    scores = np.arange(-9 * UNIT, 9 * UNIT)[:, None] * np.arange(1, link.n_outputs + 1)
    for label in range(n_classes if reach is None else len(outcomes)):
        residuals = link.residuals(scores, np.full(len(scores), label))
        assert residuals.dtype == np.int64
        sizes = np.abs(residuals).sum(axis=1)
        assert 0.98 * link.reach <= sizes.max() <= link.reach
