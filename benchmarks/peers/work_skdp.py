"""Jobs done with this library, in an environment that holds its dependencies alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
from _worker import main

from skdp import (
    Categorical,
    Domain,
    DPKMeans,
    MarginalSynthesizer,
    Numeric,
    PrivacyLedger,
    PrivateClassifier,
    PrivateLinearRegression,
    PrivPfCTransformer,
    RangeTreeHistogram,
)
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms import discrete_laplace, top_k


def noise(data, job, clock):
    """Discrete Laplace noise on a vector of integers, tables included."""
    values = np.zeros(int(data["n"]), dtype=np.int64)
    with clock:
        discrete_laplace(values, job["epsilon"])
    return {"n": len(values)}


def ranges(data, job, clock):
    """A tree of counts over the bins."""
    bins = len(data["counts"])
    records = np.repeat(np.arange(bins), data["counts"])
    histogram = RangeTreeHistogram(epsilon=job["epsilon"], domain=Numeric(0, bins, bins))
    with clock:
        histogram.fit(records)
        counts = histogram.to_frame()["count"].to_numpy()
    return {"released": counts}


def most_frequent(method):
    """Ten selections of the k most frequent items; a person moves each count by at most one."""

    def work(data, job, clock):
        ordered = method == "one-shot"
        with clock:
            selected = [
                top_k(
                    data["counts"],
                    int(data["k"]),
                    job["epsilon"],
                    1,
                    method=method,
                    ordered=ordered,
                )
                for _ in range(10)
            ]
        return {"selected": np.asarray(selected)}

    return work


def kmeans(data, job, clock):
    """k-means with a public range."""
    model = DPKMeans(int(data["k"]), epsilon=job["epsilon"], domain=(-1, 1))
    X = data["X"].astype(float)
    with clock:
        model.fit(X)
    return {"centers": model.cluster_centers_}


def table_of(data):
    """Frame of codes, its domain and the names of its columns."""
    names = [f"c{axis}" for axis in range(len(data["shape"]))]
    domain = Domain(
        {
            name: Numeric(0, int(size) - 1, integer=True)
            for name, size in zip(names, data["shape"], strict=True)
        }
    )
    return pd.DataFrame(data["codes"], columns=names), domain, names


def marginals(data, job, clock):
    """Ranges of pairs of attributes."""
    frame, domain, names = table_of(data)
    queries = [
        {names[a]: (first, last), names[b]: (start, stop)}
        for a, first, last, b, start, stop in data["queries"].tolist()
    ]
    release = MarginalSynthesizer(epsilon=job["epsilon"], domain=domain)
    with clock:
        release.fit(frame)
        answers = release.count(queries)
    return {"answers": np.asarray(answers, dtype=float)}


def synthetic(data, job, clock):
    """Synthetic rows to train on."""
    frame, domain, names = table_of(data)
    label = Categorical([0, 1])
    domain = domain.select(names[:-1]).with_attribute(names[-1], label)
    release = MarginalSynthesizer(epsilon=job["epsilon"], domain=domain, target=names[-1])
    with clock:
        release.fit(frame)
        rows = release.sample()
    return {"synthetic": rows[names].to_numpy().astype(np.int64)}


def grid(data, job, clock):
    """Logistic regression on a grid chosen for the label, on the columns as they are."""
    from sklearn.linear_model import LogisticRegression

    from benchmarks.privpfc import adult

    problem = adult()
    X, y = problem.predictors, problem.labels
    train, test = data["train"], data["test"]
    release = PrivPfCTransformer(
        epsilon=job["epsilon"], domain=problem.domain, target=problem.target
    )
    model = PrivateClassifier(LogisticRegression(max_iter=300), release)
    with clock:
        model.fit(X.iloc[train], y[train])
    predicted = model.predict(X.iloc[test])
    return {"predictions": (np.asarray(predicted) == ">50K").astype(int)}


def spent_by_kmeans(width):
    """Epsilon of all parts of one fit at epsilon 1."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(1000, width))
    ledger = PrivacyLedger()
    DPKMeans(3, epsilon=1.0, domain=(-1, 1), ledger=ledger).fit(X)
    return float(ledger.spent)


def conduct(data, job, clock):
    """What an estimator spends, records and keeps; and scikit-learn's checks."""
    from sklearn.model_selection import cross_val_score
    from sklearn.naive_bayes import GaussianNB
    from sklearn.utils.estimator_checks import check_estimator

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(500, 3)), columns=["a", "b", "c"])
    y = pd.Series((X["a"] > 0).astype(int), name="y")
    domain = Domain({name: Numeric(-1, 1, bins=8) for name in X} | {"y": Categorical([0, 1])})
    ledger = PrivacyLedger(1.0)
    release = PrivPfCTransformer(epsilon=1.0, domain=domain, target="y", ledger=ledger)
    try:
        cross_val_score(PrivateClassifier(GaussianNB(), release), X, y, cv=5, error_score="raise")
    except BudgetExceededError:
        pass
    fitted = DPKMeans(3, epsilon=1.0, domain=(-1, 1)).fit(X.to_numpy())
    checks = check_estimator(DPKMeans(3, epsilon=1.0, domain=(-1, 1)), on_fail=None)
    return {
        "spent d 2": spent_by_kmeans(2),
        "spent d 10": spent_by_kmeans(10),
        "spent d 50": spent_by_kmeans(50),
        "folds": round(float(ledger.spent)),
        "recorded": float(ledger.spent),
        "keeps": float(hasattr(fitted, "labels_") or hasattr(fitted, "inertia_")),
        "failed": sum(check["status"] == "failed" for check in checks),
        "checks": len(checks),
    }


def regress(data, job, clock):
    """Linear regression on indicators of all columns."""
    names = [f"c{i}" for i in range(len(data["shape"]))]
    domain = Domain(
        {
            name: Numeric(0, int(size) - 1, integer=True) if ordered else Categorical(range(size))
            for name, size, ordered in zip(names, data["shape"], data["ordered"], strict=True)
        }
    )
    limits = float(data["low"]), float(data["high"])
    model = PrivateLinearRegression(
        epsilon=job["epsilon"], domain=domain, target_range=limits, one_hot="all"
    )
    with clock:
        model.fit(pd.DataFrame(data["codes"], columns=names), data["target"])
    return {"predictions": model.predict(pd.DataFrame(data["asked"], columns=names))}


if __name__ == "__main__":
    main(
        {
            "noise/discrete_laplace": noise,
            "conduct/as it comes": conduct,
            "ranges/RangeTreeHistogram": ranges,
            "top-k/top_k": most_frequent("one-shot"),
            "top-k/top_k, canonical": most_frequent("canonical"),
            "k-means/DPKMeans": kmeans,
            "regress/PrivateLinearRegression": regress,
            "marginals/MarginalSynthesizer": marginals,
            "classify/MarginalSynthesizer": synthetic,
            "classify/PrivPfCTransformer": grid,
        }
    )
