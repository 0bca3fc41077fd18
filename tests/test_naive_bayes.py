"""Naive Bayes."""

import numpy as np
from designs import DOMAIN, people
from loops import over

import skdp


def test_naive_bayes_is_that_of_the_true_counts_where_noise_vanishes():
    rows, _, ill = people(50_000)
    model = skdp.PrivateNaiveBayes(
        epsilon=1_000.0, domain=DOMAIN, classes=["no", "yes"], random_state=0
    ).fit(rows, ill)
    for label, shown in zip(["no", "yes"], model.feature_log_prob_["city"], strict=True):
        truth = [np.mean(rows["city"][ill == label] == city) for city in "abc"]
        np.testing.assert_allclose(np.exp(shown), truth, atol=0.01)
    assert abs(np.exp(model.class_log_prior_[1]) - np.mean(ill == "yes")) < 0.01
    np.testing.assert_allclose(np.exp(model.feature_log_prob_["age"]).sum(axis=1), 1)


@over("epsilon", [1.0, 1_000.0])
def test_columns_that_say_the_same_do_not_make_naive_bayes_sure(epsilon):
    rng = np.random.default_rng(0)
    y = rng.random(20_000) < 0.3
    x = np.where(rng.random(20_000) < 0.7, y, ~y).astype(int)
    X = np.repeat(x[:, None], 8, axis=1)
    model = skdp.PrivateNaiveBayes(
        epsilon=epsilon, domain=skdp.Categorical([0, 1]), classes=[False, True], random_state=0
    ).fit(X, y)
    # Bayes' theorem for one column.
    likely = [0.3 * a / (0.3 * a + 0.7 * (1 - a)) for a in (0.3, 0.7)]
    np.testing.assert_allclose(model.predict_proba([[0] * 8, [1] * 8])[:, 1], likely, atol=0.05)
    assert model.score(X, y) >= 0.69
