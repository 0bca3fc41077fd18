"""Which model when: misclassification of every kind of classifier on eight tables, by epsilon.

Adult (without "?"), electricity, phoneme, the tenure and the marital status of NIST's excerpt and
the answers of NLTCS (each the most frequent value against the others), ACS (personal income, upper
half against lower), and a generated survey, in which an answer depends on two others together. Of
large tables 20,000 rows are drawn. 80% of the rows are fitted and 20% predicted, with other rows
in each run. Beside the models stand boosting on the true rows in the declared bins ("true"), the
most frequent class ("majority") and, with ``--peers``, models of diffprivlib and the DP-EBM of
interpret-core with delta 1e-6 (its binning reads the number of rows and the categories), each in
an environment of its own, made at the first call.

Run as ``python -m benchmarks.models --out docs/_static/models/errors.csv --draw
docs/_static/models/errors.png``; results that the file has are not computed again. ``--tables``,
``--epsilon``, ``--methods`` and ``--runs`` choose.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from benchmarks import _fidelity_tables, _unseen_tables
from benchmarks.peers import _environments
from skdp import (
    Categorical,
    Domain,
    MarginalSynthesizer,
    Numeric,
    PrivateAdditiveClassifier,
    PrivateClassifier,
    PrivateDecisionTreeClassifier,
    PrivateLogisticRegression,
    PrivateNaiveBayes,
    PrivateRandomForestClassifier,
    PrivPfCClassifier,
)
from skdp.exceptions import InsecureSeedWarning

EPSILONS = (0.05, 0.1, 0.5, 1.0, 8.0)
# Name: the table, and the label if it is another than the table's own.
TABLES = {
    "adult": ("adult", None),
    "electricity": ("electricity", None),
    "phoneme": ("phoneme", None),
    "NIST, tenure": ("nist", None),
    "NIST, marital status": ("nist", "MSP"),
    "NLTCS": ("nltcs", None),
    "ACS, income": ("acs", None),
    "survey": ("survey", "yes4"),
}
_ROWS, _FEW = 20_000, 10_000
_BINS = 16  # of a number, for other libraries
# The labels and targets of the baseline: the rarer side of each.
LABELS = (
    "electricity: class", "phoneme: Class", "nist: OWN_RENT", "nist: DEYE", "nist: MSP",
    "nltcs: item 3", "acs: PINCP", "survey: yes5", "adult: native-country", "adult: capital-gain",
    "adult: income", "generated: rare", "generated: both", "generated: weak", "generated: even",
)  # fmt: skip
# Models whose best is the measure of the default.
FIVE = ("PrivPfC", "additive", "logistic regression", "naive Bayes", "tree")
MEASURES = ("error", "area", "log loss")
TARGETS = (
    ("acs", "PINCP"), ("adult", "hours-per-week"), ("adult", "capital-gain"), ("adult", "age"),
    ("electricity", "nswdemand"), ("electricity", "nswprice"), ("phoneme", "V1"),
    ("nist", "AGEP"), ("acs", "WKHP"), ("acs", "AGEP"), ("adult", "education-num"),
    ("phoneme", "V3"), ("electricity", "transfer"), ("electricity", "vicprice"),
)  # fmt: skip


class Task(NamedTuple):
    """Rows, labels as booleans, and the domain of both."""

    X: pd.DataFrame
    y: np.ndarray
    domain: Domain


def load(name: str) -> Task:
    """Rows, a label of two classes, and the domain of a table."""
    source, target = TABLES[name]
    table = _fidelity_tables.load(source)
    target = target or str(table.target)
    rows = table.rows[~(table.rows == "?").any(axis=1)]
    label = rows[target]
    if source == "acs":
        y = label >= label.median()
    else:
        y = label != label.value_counts().index[0]
    kept = np.random.default_rng(0).permutation(len(rows))[:_ROWS]
    domain = table.domain.select([each for each in table.domain.names if each != target])
    X = rows.drop(columns=target).iloc[kept].reset_index(drop=True)
    return Task(X, y.to_numpy()[kept], domain)


def private(estimator: type, **params: Any) -> Callable[[Task, float, int], Any]:
    """A private estimator, told the domain and the classes."""

    def make(task: Task, epsilon: float, seed: int) -> Any:
        public = {"domain": task.domain, "classes": [False, True]}
        return estimator(epsilon=epsilon, **public, **params, random_state=seed)

    return make


def boosting(task: Task, seed: int) -> Any:
    """Boosted trees in the declared bins."""
    codes = FunctionTransformer(task.domain.encode)
    return make_pipeline(codes, HistGradientBoostingClassifier(random_state=seed))


def from_marginals(task: Task, epsilon: float, seed: int) -> Any:
    """Boosting on synthetic rows of a release of marginals."""
    release = MarginalSynthesizer(epsilon=epsilon, domain=task.domain, random_state=seed)
    return PrivateClassifier(
        boosting(task, seed), release, classes=[False, True], random_state=seed
    )


def true(task: Task, epsilon: float, seed: int) -> Any:
    """Boosting on the rows themselves."""
    return boosting(task, seed)


def majority(task: Task, epsilon: float, seed: int) -> Any:
    """The most frequent class."""
    return DummyClassifier()


def default(task: Task, epsilon: float, seed: int) -> Any:
    """What is fitted where no estimator is given; its noise has no seed."""
    return PrivateClassifier(epsilon=epsilon, domain=task.domain, classes=[False, True])


METHODS: dict[str, Callable[[Task, float, int], Any]] = {
    "additive": private(PrivateAdditiveClassifier),
    "logistic regression": private(PrivateLogisticRegression),
    "naive Bayes": private(PrivateNaiveBayes),
    "tree": private(PrivateDecisionTreeClassifier),
    "forest": private(PrivateRandomForestClassifier),
    "PrivPfC": private(PrivPfCClassifier),
    "marginals, boosting": from_marginals,
    "default": default,
}
BASELINES = {"true": true, "majority": majority}
# Method: library, and the name of the method in its program in `benchmarks/peers`.
PEERS = {
    "diffprivlib, logistic": ("diffprivlib", "LogisticRegression"),
    "diffprivlib, naive Bayes": ("diffprivlib", "GaussianNB"),
    "diffprivlib, tree": ("diffprivlib", "DecisionTreeClassifier"),
    "diffprivlib, forest": ("diffprivlib", "RandomForestClassifier"),
    "DP-EBM, delta 1e-6": ("interpret", "DP-EBM"),
    "DP-SGD, delta 1e-6": ("DP-SGD", "softmax"),
    "OpenDP, MST": ("OpenDP", "MST"),
}
# Those of the baseline.
FROZEN_PEERS = ("DP-EBM, delta 1e-6", "DP-SGD, delta 1e-6", "OpenDP, MST")


def for_peer(task: Task, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """Numbers with their public bounds, codes of categories with their number, and bins of both.

    Of bins, "codes" has the rows to fit with their label at the end, and "asked" the others.
    """
    names = list(task.domain.names)
    numbers = [name for name in names if isinstance(task.domain[name], Numeric)]
    texts = [name for name in names if name not in numbers]
    kinds: list[Any] = [task.domain[name] for name in numbers]
    codes = np.zeros((len(task.X), 0), dtype=np.int64)
    if texts:
        codes = task.domain.select(texts).encode(task.X[texts]).astype(np.int64)
    low, high = (
        np.array([float(getattr(kind, end)) for kind in kinds]) for end in ("lower", "upper")
    )
    raw = task.X[numbers].to_numpy(dtype=float).reshape(len(task.X), len(numbers))
    sizes = np.array([task.domain[name].size for name in texts], dtype=np.int64)
    # Missing numbers, where there are any, are in the first bin.
    places = np.nan_to_num((raw - low) / (high - low) * _BINS).astype(np.int64)
    binned = np.column_stack([np.clip(places, 0, _BINS - 1), codes])
    labelled = np.column_stack([binned, task.y])
    shape = np.array([*[_BINS] * len(numbers), *sizes, 2])
    return {
        "numbers": raw, "low": low, "high": high, "texts": codes, "sizes": sizes, "shape": shape,
        "codes": labelled[train], "asked": binned[test], "labels": task.y.astype(np.int64),
        "train": train, "test": test,
    }  # fmt: skip


def peer_shares(method: str, data: dict[str, Any], epsilon: float) -> np.ndarray:
    """Shares of the labels of the test rows, by a model of another library."""
    library, name = PEERS[method]
    job = {"task": "classify", "method": name, "epsilon": epsilon, "delta": 1e-6}
    found = _environments.ask(_environments.PEERS[library], job, data, timeout=3_600)
    if "shares" in found:
        return found["shares"]
    if "synthetic" in found:
        X, y = found["synthetic"][:, :-1], found["synthetic"][:, -1]
        if len(np.unique(y)) > 1:
            model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
            return model.predict_proba(data["asked"])
        predicted = np.full(len(data["asked"]), y[0])
    else:
        predicted = found["predictions"]
    return np.eye(2)[(predicted > 0).astype(int)]


def error_of(task: Task, method: str, epsilon: float, runs: int) -> float:
    """Mean misclassification of a method."""
    errors = []
    splits = ShuffleSplit(runs, test_size=0.2, random_state=0).split(task.X)
    for seed, (train, test) in enumerate(splits):
        if method in PEERS:
            predicted = peer_shares(method, for_peer(task, train, test), epsilon)[:, 1] > 0.5
        else:
            make = {**METHODS, **BASELINES}[method]
            model = make(task, epsilon, seed)
            model.fit(task.X.iloc[train], task.y[train])
            predicted = model.predict(task.X.iloc[test])
        errors.append(float(np.mean(predicted != task.y[test])))
    return float(np.mean(errors))


def generated(kind: str) -> Task:
    """Eight generated columns and a label: rare, of two columns together, weak, or about even."""
    kinds = ("rare", "both", "weak", "even")
    rng = np.random.default_rng(1 + kinds.index(kind))
    z = rng.normal(size=(_FEW, 8))
    z[:, 1] = 0.7 * z[:, 0] + 0.7 * z[:, 1]
    z[:, 4] = 0.5 * z[:, 3] + 0.85 * z[:, 4]
    flag = z[:, 5] > 0.7
    columns = {
        **{name: np.clip(z[:, at], -3, 3) for name, at in (("a", 0), ("b", 1), ("h", 7))},
        "c": np.clip(np.exp(z[:, 2]), 0, 15),
        "d": np.clip(np.round(10 * z[:, 3] + 50), 0, 100).astype(int),
        "e": np.digitize(z[:, 4], [-1, -0.3, 0.3, 1]).astype(str),
        "f": np.where(flag, "y", "n"),
        "g": np.digitize(z[:, 6], np.linspace(-2, 2, 11)).astype(str),
    }
    attributes: dict[str, Any] = {
        **{name: Numeric(-3, 3, bins=bins) for name, bins in (("a", 48), ("b", 48), ("h", 32))},
        "c": Numeric(0, 15, bins=60),
        "d": Numeric(0, 100, integer=True),
        "e": Categorical([str(code) for code in range(5)]),
        "f": Categorical(["n", "y"]),
        "g": Categorical([str(code) for code in range(12)]),
    }
    score = {
        "rare": 0.7 * z[:, 0] + 0.6 * abs(z[:, 3]) + 0.5 * flag + 0.3 * np.sin(3 * z[:, 2]) - 3.9,
        "both": 1.6 * np.sign(z[:, 0] * z[:, 3]) + 0.5 * z[:, 6] - 0.5,
        "weak": 0.25 * z[:, 0] + 0.2 * z[:, 4] + 0.2 * flag - 1.1,
        "even": 1.2 * z[:, 0] - 0.9 * z[:, 3] + 0.6 * z[:, 2] ** 2 + 0.5 * flag - 0.6,
    }[kind]
    y = rng.random(_FEW) < 1 / (1 + np.exp(-score))
    return Task(pd.DataFrame(columns), y, Domain(attributes))


def labelled(table: _fidelity_tables.Table, target: str, y: pd.Series) -> Task:
    """A table without the column that a label was made of."""
    names = [each for each in table.domain.names if each != target]
    return Task(table.rows[names].reset_index(drop=True), y.to_numpy(), table.domain.select(names))


def rare(name: str) -> Task:
    """A table with another label, given as "table: column"."""
    source, target = name.split(": ")
    if source == "unseen":
        return unseen(target)
    if source == "generated":
        return generated(target)
    table = _fidelity_tables.subsample(_fidelity_tables.load(source), _FEW, 0)
    label = table.rows[target]
    y = label != label.value_counts().index[0]
    if len(label.unique()) > 2 and isinstance(table.domain[target], Numeric):
        y = label > label.quantile(0.9)
    return labelled(table, target, y)


def unseen(name: str) -> Task:
    """A label of a table on which nothing was chosen."""
    source, target, value = _unseen_tables.LABELS[name]
    table = _fidelity_tables.subsample(_unseen_tables.TABLES[f"unseen/{source}"](), _FEW, 0)
    label = table.rows[target]
    y = label > value if isinstance(table.domain[target], Numeric) else label == str(value)
    return labelled(table, target, y)


def measured(y: np.ndarray, shares: np.ndarray) -> tuple[float, ...]:
    """Error, what the area under the curve lacks to 1, and log loss."""
    share = np.clip(shares[:, 1], 1e-6, 1 - 1e-6)
    wrong = float(np.mean((share > 0.5) != y))
    return wrong, 1 - float(roc_auc_score(y, share)), float(log_loss(y, share))


def target_of(name: str) -> tuple[_fidelity_tables.Table, str]:
    """A table and one of its columns, given as "table: column"."""
    source, target = name.split(": ")
    return _fidelity_tables.subsample(_fidelity_tables.load(source), 2 * _FEW, 0), target


def draw(results: pd.DataFrame, path: Path) -> None:
    """One picture of each table: error of each method by epsilon."""
    import matplotlib.pyplot as plt

    styles: dict[str, dict[str, Any]] = {
        **{name: {"marker": "o", "linewidth": 1.4} for name in METHODS},
        "default": {"marker": "o", "linewidth": 2.2, "color": "black", "zorder": 3},
        **{
            name: {"marker": mark, "linewidth": 0.7, "color": "0.6", "zorder": 1}
            for name, mark in zip(PEERS, "x+12*34", strict=True)
        },
    }
    figure, axes = plt.subplots(2, 4, figsize=(13, 6.5), sharex=True)
    for axis, name in zip(axes.ravel(), TABLES, strict=True):
        errors = results[results["table"] == name].pivot(
            index="epsilon", columns="method", values="error"
        )
        for label, style in (("majority", ":"), ("true", "--")):
            axis.axhline(errors[label].max(), color="0.4", linestyle=style, label=label)
        for label in (each for each in styles if each in errors):
            line = errors[label].dropna()
            axis.plot(line.index, line, markersize=4, label=label, **styles[label])
        axis.set_xscale("log")
        axis.set_xticks(EPSILONS, [f"{each:g}" for each in EPSILONS])
        axis.minorticks_off()
        axis.set_title(name, fontsize=10)
        least, most = errors.min().min(), errors["majority"].max()
        # What is far worse than the majority is cut off.
        axis.set_ylim(least - 0.1 * (most - least), most + 0.3 * (most - least))
    figure.supylabel("error", fontsize=10)
    figure.supxlabel("epsilon", fontsize=10, y=0.1)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=5, fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(path, dpi=80)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    every = [*METHODS, *PEERS]
    parser.add_argument("--methods", nargs="+", default=every, choices=every)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--draw", type=Path, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)
    names = ["table", "method", "epsilon", "runs", "error"]
    found = pd.DataFrame(columns=names)
    if options.out and options.out.exists():
        found = pd.read_csv(options.out)
    have = set(zip(found["table"], found["method"], found["epsilon"], strict=True))
    methods = [each for each in options.methods if each not in PEERS or options.peers]
    asked = [(each, epsilon) for each in methods for epsilon in options.epsilon]
    for name in options.tables:
        task = load(name)
        for method, epsilon in [*asked, *((each, np.inf) for each in BASELINES)]:
            if (name, method, epsilon) in have:
                continue
            error = error_of(task, method, epsilon, options.runs)
            print(f"{name:22} {method:26} epsilon {epsilon:<5g} {error:.4f}", flush=True)
            row = [name, method, epsilon, options.runs, round(error, 4)]
            found.loc[len(found)] = row
            if options.out:
                found.to_csv(options.out, index=False)
    if options.draw:
        draw(found, options.draw)


if __name__ == "__main__":
    main()
