"""Jobs done with diffprivlib, in its environment."""

from __future__ import annotations

import numpy as np
from _worker import indicators, main
from diffprivlib import BudgetAccountant, mechanisms, models, tools
from diffprivlib.models import k_means
from diffprivlib.utils import BudgetError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator


def noise(data, job, clock):
    """Discrete Laplace noise; there is no function of arrays, so one value a call."""
    n = min(int(data["n"]), 20_000)
    mechanism = mechanisms.Geometric(epsilon=job["epsilon"], sensitivity=1)
    with clock:
        for _ in range(n):
            mechanism.randomise(0)
    return {"n": n}


def ranges(data, job, clock):
    """One noisy count for each bin; there is nothing for ranges."""
    bins = len(data["counts"])
    records = np.repeat(np.arange(bins), data["counts"])
    with clock:
        counts, _ = tools.histogram(records, epsilon=job["epsilon"], bins=bins, range=(0, bins))
    return {"released": np.asarray(counts, dtype=float)}


def kmeans(data, job, clock):
    """k-means with public bounds."""
    X = data["X"].astype(float)
    bounds = np.full(X.shape[1], -1.0), np.full(X.shape[1], 1.0)
    model = models.KMeans(int(data["k"]), epsilon=job["epsilon"], bounds=bounds)
    with clock:
        model.fit(X)
    return {"centers": model.cluster_centers_}


def one_hot(data):
    """Numbers scaled to [0, 1] beside a 0/1 column for each category, and the bound of a row."""
    numbers = np.clip((data["numbers"] - data["low"]) / (data["high"] - data["low"]), 0, 1)
    texts = [
        np.eye(size)[column] for column, size in zip(data["texts"].T, data["sizes"], strict=True)
    ]
    # A row holds one 1 for each list of categories and numbers of at most 1.
    return np.hstack([numbers, *texts]), float(np.sqrt(numbers.shape[1] + len(texts)))


def coded(data):
    """Numbers beside one column of codes for each list of categories, and public bounds."""
    numbers = np.clip(data["numbers"], data["low"], data["high"])
    low = np.append(data["low"], np.zeros(len(data["sizes"])))
    high = np.append(data["high"], data["sizes"] - 1)
    return np.hstack([numbers, data["texts"]]), (low, high)


def classified(model, X, data, clock):
    """Predictions for the test rows of a model fitted to the others."""
    train, test = data["train"], data["test"]
    with clock:
        model.fit(X[train], data["labels"][train])
    return {"predictions": np.asarray(model.predict(X[test]))}


def of_codes(model, **given):
    """Models of codes: trees, and naive Bayes, which would split its budget over indicators."""

    def work(data, job, clock):
        X, bounds = coded(data)
        fitted = model(epsilon=job["epsilon"], bounds=bounds, **given)
        return classified(fitted, X, data, clock)

    return work


def logistic(data, job, clock):
    """Logistic regression by objective perturbation."""
    X, norm = one_hot(data)
    model = models.LogisticRegression(epsilon=job["epsilon"], data_norm=norm)
    return classified(model, X, data, clock)


def regress(data, job, clock):
    """Linear regression by the functional mechanism, on indicators of all columns."""
    low, high = float(data["low"]), float(data["high"])
    features, asked = (indicators(data[part], data["shape"]) for part in ("codes", "asked"))
    model = models.LinearRegression(
        epsilon=job["epsilon"], bounds_X=(0.0, 1.0), bounds_y=(low, high)
    )
    with clock:
        model.fit(features, data["target"].astype(float))
    return {"predictions": np.asarray(model.predict(asked), dtype=float)}


def spent_by_kmeans(width):
    """Sum of the epsilons of all mechanisms that one fit at epsilon 1 calls, for one cluster.

    With one cluster every call reads every record, so the calls compose in sequence.
    """
    calls = []
    recorded = {}
    for name in ("GeometricFolded", "LaplaceBoundedDomain"):
        original = getattr(k_means, name)

        class Recorded(original):
            def randomise(self, value):
                calls.append(self.epsilon)
                return super().randomise(value)

        recorded[name] = original
        setattr(k_means, name, Recorded)
    try:
        X = np.random.default_rng(0).uniform(-1, 1, size=(1000, width))
        bounds = np.full(width, -1.0), np.full(width, 1.0)
        models.KMeans(1, epsilon=1.0, bounds=bounds).fit(X)
    finally:
        for name, original in recorded.items():
            setattr(k_means, name, original)
    return float(sum(calls))


def conduct(data, job, clock):
    """What an estimator spends, records and keeps; and scikit-learn's checks."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 3))
    y = (X[:, 0] > 0).astype(int)
    bounds = np.full(3, -1.0), np.full(3, 1.0)
    budget = BudgetAccountant(epsilon=1.0, delta=0)
    model = models.GaussianNB(epsilon=1.0, bounds=bounds, accountant=budget)
    try:
        ran = len(cross_val_score(model, X, y, cv=5, error_score="raise"))
    except BudgetError:
        ran = 1
    fitted = models.KMeans(3, epsilon=1.0, bounds=bounds).fit(X)
    distances = ((X[:, None, :] - fitted.cluster_centers_) ** 2).sum(axis=2)
    checks = check_estimator(models.KMeans(3, bounds=(-1.0, 1.0)), on_fail=None)
    return {
        "spent d 2": spent_by_kmeans(2),
        "spent d 10": spent_by_kmeans(10),
        "spent d 50": spent_by_kmeans(50),
        "folds": ran,
        "recorded": float(budget.total()[0]),
        "keeps": float(np.array_equal(fitted.labels_, distances.argmin(axis=1))),
        "failed": sum(check["status"] == "failed" for check in checks),
        "checks": len(checks),
    }


if __name__ == "__main__":
    labels = {"classes": np.array([0, 1])}
    main(
        {
            "noise/Geometric": noise,
            "conduct/as it comes": conduct,
            "ranges/histogram": ranges,
            "k-means/KMeans": kmeans,
            "regress/LinearRegression": regress,
            "classify/GaussianNB": of_codes(models.GaussianNB),
            "classify/LogisticRegression": logistic,
            "classify/RandomForestClassifier": of_codes(models.RandomForestClassifier, **labels),
            "classify/DecisionTreeClassifier": of_codes(models.DecisionTreeClassifier, **labels),
        }
    )
