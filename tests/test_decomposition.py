"""Components of the covariance."""

import numpy as np
from designs import DOMAIN, people, refused

import skdp
from skdp.exceptions import DomainError


def test_components_are_those_of_the_covariance():
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    clouds = np.random.default_rng(0).normal(size=(20_000, 3)) * [0.3, 0.15, 0.05]
    X = np.clip(clouds @ turn.T, -1, 1)
    pca = skdp.PrivatePCA(epsilon=50, domain=skdp.Numeric(-1, 1, bins=200), random_state=0).fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    np.testing.assert_allclose(pca.explained_variance_, values[::-1], rtol=0.02)
    np.testing.assert_allclose(np.abs(pca.components_ @ vectors[:, ::-1]), np.eye(3), atol=0.02)
    np.testing.assert_allclose(pca.explained_variance_ratio_.sum(), 1)
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(X)), X, atol=1e-9)
    first = skdp.PrivatePCA(1, epsilon=1, domain=skdp.Numeric(-1, 1)).fit(X)
    assert first.transform(X).shape == (20_000, 1)
    assert first.get_feature_names_out().tolist() == ["privatepca0"]


def test_components_of_what_are_no_numbers_are_refused():
    rows = people(50)[0]
    pca = skdp.PrivatePCA
    refused(pca(domain=DOMAIN.select(["city"])), DomainError, "city", rows[["city"]])
    refused(pca(domain=DOMAIN.select(["age"])), DomainError, "missing or special", rows[["age"]])
    plain = skdp.Numeric(0, 1)
    refused(pca(3, domain=plain), ValueError, "at most 2", np.zeros((5, 2)))
    refused(pca(0, domain=plain), ValueError, "n_components", np.zeros((5, 2)))
    wide = skdp.Numeric(-1e200, 1e200)
    refused(pca(domain=wide), DomainError, "too wide for squares", np.zeros((5, 2)))
    # Noise of products that does not fit: of few columns, or of many.
    for epsilon, d in ((1e-9, 2), (1e-3, 2_000)):
        wide = pca(epsilon=epsilon, domain=skdp.Numeric(0, 1, bins=4))
        refused(wide, ValueError, "64-bit", np.zeros((3, d)))
