"""Residuals of records are bounded integers; priors and posteriors of one column."""

import numpy as np
from loops import over
from scored import some_scores

from skdp.algorithms.additive import UNIT, Identity, Logit
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


# ------------------------------------------------------------------------------------- one column


def test_the_posterior_follows_precise_sums_and_forgets_noisy_ones():
    truth = np.sin(np.arange(20) / 3)
    curvature = np.full(20, 100.0)
    for prior in (Prior(20, range(20)), Prior(20, None)):
        near = prior.update(curvature * truth, curvature, np.full(20, 1e-6))
        np.testing.assert_allclose(near.mean, truth, atol=1e-3)
        far = prior.update(curvature * truth, curvature, np.full(20, 1e12))
        np.testing.assert_allclose(far.mean, 0, atol=1e-3)


# ------------------------------------------------------------------------------------------- pairs


@over(
    "link",
    [
        Logit(2),
        Logit(3),
        *(Identity(np.arange(-UNIT, UNIT + 1, 64), reach=reach) for reach in (UNIT, 301)),
    ],
)
def test_residuals_and_weight_of_a_record_stay_within_the_joint_bound(link):
    scores = np.arange(-9 * UNIT, 9 * UNIT)[:, None] * np.arange(1, link.n_outputs + 1)
    for label in range(len(getattr(link, "outcomes", range(getattr(link, "n_classes", 0))))):
        residuals = link.residuals(scores, np.full(len(scores), label))
        weights = link.weights(scores)
        assert weights.dtype == residuals.dtype == np.int64
        assert weights.min() >= 0
        assert np.abs(residuals).sum(axis=1).max() <= link.reach
        reach = np.abs(residuals).sum(axis=1) + weights
        assert reach.max() <= link.joint
        if link.n_outputs == 1:
            assert reach.max() >= 0.98 * link.reach
