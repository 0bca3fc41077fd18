"""Jobs done with this library, in an environment that holds its dependencies alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
from _worker import main

from skdp import (
    Categorical,
    Domain,
    DPKMeans,
    Numeric,
    PairViewSynthesizer,
    PrivateClassifier,
    PrivPfCTransformer,
    RangeTreeHistogram,
)
from skdp.mechanisms import discrete_laplace


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
    histogram = RangeTreeHistogram(job["epsilon"], bounds=(0, bins), bins=bins)
    with clock:
        histogram.fit(records)
        counts = histogram.to_frame()["count"].to_numpy()
    return {"released": counts}


def kmeans(data, job, clock):
    """k-means with public bounds."""
    model = DPKMeans(int(data["k"]), job["epsilon"], bounds=(-1, 1))
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
    release = PairViewSynthesizer(job["epsilon"], domain=domain)
    with clock:
        release.fit(frame)
        answers = release.count(queries)
    return {"answers": np.asarray(answers, dtype=float)}


def synthetic(data, job, clock):
    """Synthetic rows to train on."""
    frame, domain, names = table_of(data)
    label = Categorical([0, 1])
    domain = domain.select(names[:-1]).with_attribute(names[-1], label)
    release = PairViewSynthesizer(job["epsilon"], domain=domain, target=names[-1])
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
    release = PrivPfCTransformer(job["epsilon"], domain=problem.domain, target=problem.target)
    model = PrivateClassifier(LogisticRegression(max_iter=300), release)
    with clock:
        model.fit(X.iloc[train], y[train])
    predicted = model.predict(X.iloc[test])
    return {"predictions": (np.asarray(predicted) == ">50K").astype(int)}


if __name__ == "__main__":
    main(
        {
            "noise/discrete_laplace": noise,
            "ranges/RangeTreeHistogram": ranges,
            "k-means/DPKMeans": kmeans,
            "marginals/PairViewSynthesizer": marginals,
            "classify/PairViewSynthesizer": synthetic,
            "classify/PrivPfCTransformer": grid,
        }
    )
