"""The tasks: the same data, bounds and epsilon for every peer, and the score of the results."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks import _data
from benchmarks.kmeans import best_nicv, nicv
from benchmarks.peers import _worker
from benchmarks.privpfc import adult, boosting, folds
from skdp import Categorical, Domain, Numeric

# Bins of numbers in ACSIncome.
_BINS = {"AGEP": 16, "WKHP": 10, "PINCP": 5}
# Of the methods that cannot do without one: below one over the square of the number of records.
DELTA = 1e-10
_GAINS = np.array([1, 1000, 2000, 3000, 4000, 5000, 6000, 8000, 10_000, 15_000, 20_000, 50_000])
_LOSSES = np.array([1, 1200, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 2200, 2400, 3000])


class Method(NamedTuple):
    """What a peer offers for a task."""

    peer: str
    task: str
    name: str
    delta: float = 0.0
    note: str = ""


_LEARNS = "learns the categories from the data at no cost and passes on the number of rows"
METHODS = (
    Method("skdp", "noise", "discrete_laplace", note="exact; tables included"),
    Method("OpenDP", "noise", "make_laplace", note="exact; a Python list in and out"),
    Method("diffprivlib", "noise", "Geometric", note="floats; one value a call, 20,000 calls"),
    Method("skdp", "ranges", "RangeTreeHistogram"),
    Method("OpenDP", "ranges", "b-ary tree", note="the branching that it recommends"),
    Method("diffprivlib", "ranges", "histogram", note="bins alone; counts below 0 become 0"),
    Method("skdp", "top-k", "top_k", note="ten selections; in order"),
    Method("skdp", "top-k", "top_k, canonical", note="ten selections; a set"),
    Method("OpenDP", "top-k", "noisy_top_k", note="ten selections; in order"),
    Method("skdp", "marginals", "MarginalSynthesizer"),
    Method("OpenDP", "marginals", "MST", note="pure, unlike the published MST"),
    Method("OpenDP", "marginals", "AIM", note="pure, unlike the published AIM"),
    Method("SmartNoise", "marginals", "MST", DELTA, _LEARNS),
    Method("SmartNoise", "marginals", "AIM", DELTA, _LEARNS),
    Method("skdp", "classify", "PrivPfCTransformer", note="logistic regression on its cells"),
    Method("skdp", "classify", "MarginalSynthesizer", note="boosting on synthetic rows"),
    Method("diffprivlib", "classify", "GaussianNB", note="a model, not a release"),
    Method("diffprivlib", "classify", "LogisticRegression", note="a model, not a release"),
    Method("diffprivlib", "classify", "DecisionTreeClassifier", note="a model, not a release"),
    Method("diffprivlib", "classify", "RandomForestClassifier", note="a model, not a release"),
    Method("interpret", "classify", "DP-EBM", DELTA, "a model, not a release"),
    Method("OpenDP", "classify", "MST", note="boosting on synthetic rows"),
    Method("OpenDP", "classify", "MST, sampled", note='method="sample"'),
    Method("OpenDP", "classify", "AIM", note="boosting on synthetic rows"),
    Method("SmartNoise", "classify", "MST", DELTA, f"boosting on synthetic rows; {_LEARNS}"),
    Method("SmartNoise", "classify", "AIM", DELTA, f"boosting on synthetic rows; {_LEARNS}"),
    Method("skdp", "conduct", "as it comes"),
    Method("diffprivlib", "conduct", "as it comes"),
    Method("OpenDP", "conduct", "as it comes", note="its mbi"),
    Method("skdp", "k-means", "DPKMeans"),
    Method("diffprivlib", "k-means", "KMeans"),
    Method("skdp", "regress", "PrivateLinearRegression"),
    Method("diffprivlib", "regress", "LinearRegression"),
)


class Task(NamedTuple):
    """Data for the workers, and the score of their results; ``baselines`` need no release."""

    name: str
    setting: str
    epsilon: float
    data: dict[str, Any]
    score: Callable[[dict[str, Any]], dict[str, float]]
    baselines: dict[str, dict[str, float]]


def tasks(quick: bool, names: Container[str]) -> Iterator[Task]:
    """The tasks of these names in every setting."""
    if "noise" in names:
        yield _noise(1_000_000)
    if "ranges" in names:
        for epsilon in (0.1,) if quick else (0.1, 1.0):
            yield _ranges(epsilon)
    if "top-k" in names:
        for name in ("retail", "kosarak_head"):
            for epsilon in (0.1,) if quick else (0.01, 0.1, 0.5):
                yield _top_k(name, epsilon)
    if "marginals" in names:
        for table in ("small", "adult"):
            for epsilon in (1.0,) if quick else (0.1, 1.0):
                yield _marginals(table, epsilon, 500 if quick else 3000)
    if "classify" in names:
        for epsilon in (1.0,) if quick else (0.1, 1.0):
            yield _classify(epsilon)
    if "conduct" in names:
        yield Task("conduct", "one fit at epsilon 1", 1.0, {}, _conduct, {})
    if "k-means" in names:
        for name in ("adult_numeric", "gauss2d_k15"):
            for epsilon in (0.5,) if quick else (0.1, 0.5):
                yield _kmeans(name, epsilon)
    if "regress" in names:
        for epsilon in (1.0,) if quick else (0.1, 0.5, 1.0, 4.0):
            yield _regress(epsilon)


_CONDUCT = {
    "spent d 2": "epsilon of all mechanisms of a k-means fit, 2 columns",
    "spent d 10": "epsilon of all mechanisms of a k-means fit, 10 columns",
    "spent d 50": "epsilon of all mechanisms of a k-means fit, 50 columns",
    "folds": "folds of cross_val_score that ran under a budget for one",
    "recorded": "epsilon that the accountant then says was spent",
    "keeps": "k-means keeps the label of each record, without noise (1: yes)",
    "failed": "scikit-learn's estimator checks of k-means that fail",
    "checks": "of so many",
    "rows": "correlation of two columns of synthetic rows that are independent in the model",
    "sampled": 'the same, with method="sample"',
}


def _conduct(result: dict[str, Any]) -> dict[str, float]:
    return {text: float(result[key]) for key, text in _CONDUCT.items() if key in result}


def _noise(n: int) -> Task:
    def score(result: dict[str, Any]) -> dict[str, float]:
        return {"ns a sample": result["cpu"] / result["n"] * 1e9}

    return Task("noise", "a million integers", 0.1, {"n": n}, score, {})


def _ranges(epsilon: float) -> Task:
    histogram = _data.dpbench_1d()[0]
    counts = histogram.counts
    bins = len(counts)
    ends = np.sort(np.random.default_rng(0).integers(0, bins, size=(1000, 2)), axis=1)

    def score(result: dict[str, Any]) -> dict[str, float]:
        error = result["released"] - counts
        sums = np.concatenate([[0.0], np.cumsum(error)])
        ranges = sums[ends[:, 1] + 1] - sums[ends[:, 0]]
        return {
            "RMSE of ranges": float(np.sqrt(np.mean(ranges**2))),
            "RMSE of bins": float(np.sqrt(np.mean(error**2))),
        }

    setting = f"{histogram.name}, {bins:,} bins"
    return Task("ranges", setting, epsilon, {"counts": counts}, score, {})


def _top_k(name: str, epsilon: float, k: int = 50) -> Task:
    """The items that most persons have; a person adds at most one to each count."""
    counts = np.random.default_rng(0).permutation(_data.item_frequencies(name))
    best = int(np.sort(counts)[-k:].sum())

    def score(result: dict[str, Any]) -> dict[str, float]:
        found = counts[result["selected"]].sum(axis=1)
        return {"score error": float(1 - found.mean() / best)}

    setting = f"{name}, {k} of {len(counts):,} items"
    return Task("top-k", setting, epsilon, {"counts": counts, "k": k}, score, {})


def _marginals(name: str, epsilon: float, n_queries: int) -> Task:
    table = _data.hdpview_table(name)
    queries = table.queries[:n_queries]
    truth = table._replace(queries=queries).true_answers()
    codes = np.repeat(table.codes, table.counts, axis=0)

    def score(result: dict[str, Any]) -> dict[str, float]:
        return {"RMSE of 2-D ranges": float(np.sqrt(np.mean((result["answers"] - truth) ** 2)))}

    data = {"codes": codes, "shape": np.array(table.shape), "queries": queries}
    setting = f"{name}, {len(table.shape)} columns"
    return Task("marginals", setting, epsilon, data, score, {})


def _classify(epsilon: float) -> Task:
    problem = adult()
    train, test = folds(problem)[0]
    labels = (problem.labels == ">50K").astype(np.int64)
    names = list(problem.predictors)
    numbers = [name for name in names if isinstance(problem.domain[name], Numeric)]
    texts = [name for name in names if name not in numbers]
    categories = problem.domain.select(texts).encode(problem.rows[texts]).astype(np.int64)
    raw = problem.rows[numbers].to_numpy(dtype=float)
    # Public bins for the releases that need few values: cut points that say nothing of the data.
    cut = {"capital-gain": _GAINS, "capital-loss": _LOSSES}
    cuts = [
        cut.get(name, np.linspace(low, high, 16, endpoint=False)[1:])
        for name, (low, high) in zip(numbers, _bounds(problem, numbers), strict=True)
    ]
    binned = np.column_stack(
        [np.searchsorted(edges, column, "right") for edges, column in zip(cuts, raw.T, strict=True)]
    )
    codes = np.column_stack([binned, categories, labels])
    sizes = [problem.domain[name].size for name in texts]
    shape = [len(edges) + 1 for edges in cuts] + sizes + [2]
    low, high = np.array(_bounds(problem, numbers), dtype=float).T
    data = {
        "numbers": raw, "low": low, "high": high, "texts": categories, "sizes": np.array(sizes),
        "labels": labels, "train": train, "test": test,
        "codes": codes[train], "shape": np.array(shape),
    }  # fmt: skip

    def score(result: dict[str, Any]) -> dict[str, float]:
        predicted = result.get("predictions")
        if predicted is None:
            predicted = _trained_on(result["synthetic"], codes[test, :-1])
        return {"misclassification": float(np.mean(predicted != labels[test]))}

    share = labels[train].mean()
    majority = float(np.mean(labels[test] != int(share > 0.5)))
    own = boosting(problem).fit(problem.predictors.iloc[train], labels[train])
    error = float(np.mean(own.predict(problem.predictors.iloc[test]) != labels[test]))
    baselines = {
        "the majority label": {"misclassification": majority},
        "boosting on the true rows": {"misclassification": error},
    }
    return Task("classify", "Adult, income", epsilon, data, score, baselines)


def _bounds(problem: Any, numbers: list[str]) -> list[tuple[float, float]]:
    return [(problem.domain[name].lower, problem.domain[name].upper) for name in numbers]


def _trained_on(rows: NDArray[np.int64], X: NDArray[np.int64]) -> NDArray[np.int64]:
    """Predictions of boosting trained on synthetic rows; the label is the last column."""
    if len(np.unique(rows[:, -1])) < 2:
        return np.full(len(X), rows[0, -1])
    model = HistGradientBoostingClassifier(random_state=0).fit(rows[:, :-1], rows[:, -1])
    predicted: NDArray[np.int64] = model.predict(X)
    return predicted


def _kmeans(name: str, epsilon: float) -> Task:
    file = _data.kmeans_set(name)
    X, k = np.asarray(file["X"], dtype=np.float64), int(file["n_clusters"])
    best = best_nicv(X, k)

    def score(result: dict[str, Any]) -> dict[str, float]:
        return {"excess NICV": nicv(X, result["centers"]) - best}

    setting = f"{name}, k {k}"
    return Task("k-means", setting, epsilon, {"X": X, "k": k}, score, {})


def _acs() -> tuple[Domain, pd.DataFrame, pd.DataFrame]:
    """Domain with few bins, training rows and test rows of ACSIncome."""
    with np.load(_data.data_path("acs_income_lin.npz"), allow_pickle=True) as data:
        names = [str(name) for name in data["columns"]]
        sizes = [int(size) for size in data["shape"]]
        train, test = (pd.DataFrame(data[part], columns=names) for part in ("train", "test"))
    domain = Domain(
        {
            name: Numeric(-0.5, size - 0.5, bins=_BINS[name])
            if name in _BINS
            else Categorical(list(range(size)))
            for name, size in zip(names, sizes, strict=True)
        }
    )
    return domain, train, test


def _regress(epsilon: float, n: int = 50_000) -> Task:
    """Income of ACSIncome, a code from 0 to 19, by the bins and categories of eight columns."""
    domain, train, test = _acs()
    train = train.sample(min(n, len(train)), random_state=0)
    columns = domain.select([name for name in domain.names if name != "PINCP"])
    codes, asked = (
        columns.encode(part[list(columns.names)]).astype(np.int64) for part in (train, test)
    )
    target, truth = train["PINCP"].to_numpy(), test["PINCP"].to_numpy()
    data = {
        "codes": codes, "asked": asked, "target": target, "shape": np.array(columns.shape),
        "ordered": np.array([isinstance(kind, Numeric) for kind in columns.attributes]),
        "low": np.array(0.0), "high": np.array(19.0),
    }  # fmt: skip

    def score(result: dict[str, Any]) -> dict[str, float]:
        missed = np.clip(result["predictions"], 0, 19) - truth
        return {"squared error": float(np.mean(missed**2) / 19**2)}

    features, others = (_worker.indicators(part, data["shape"]) for part in (codes, asked))
    coef = np.linalg.lstsq(features, target, rcond=None)[0]
    baselines = {
        "the mean": score({"predictions": np.full(len(truth), target.mean())}),
        "least squares on the true rows": score({"predictions": others @ coef}),
    }
    return Task("regress", "ACSIncome", epsilon, data, score, baselines)
