"""Figures 3.4 to 3.7 of the dissertation: PrivPfC and all its competitors against epsilon.

Three ways to a classifier: a release that a tree, a support vector machine with radial kernel, or
logistic regression is trained on; a private classifier; and, without privacy, the majority label
and the true rows. Each run has its own split of the rows, 80% to train, the same for all methods.
Of the dissertation's tables there is *Adult* only; NLTCS, phoneme and electricity replace *Bank*,
*US* and *BR*.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks import _fidelity_tables
from benchmarks import privpfc as tables
from benchmarks._fidelity_tables import Table
from benchmarks.reproduce import MARKERS, PALETTE, TIE, UNTESTED, Figure, Finding, compare, save
from benchmarks.reproduce.private_erm import PrivateERM
from skdp import (
    DiffGenTransformer,
    Domain,
    Numeric,
    PrivateClassifier,
    PrivateDecisionTreeClassifier,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivBayesSynthesizer,
    PrivPfCTransformer,
    ProjectedHistogramTransformer,
)

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0)
REPETITIONS = 2
TEST_SHARE = 0.2
# Rows that a support vector machine is trained on: with all of them it takes hours.
SVM_ROWS = 2_000

PUBLISHED = "PrivPfC, as published"
BAYES = partial(
    PrivBayesSynthesizer, encoding="hierarchical", negatives="zero", calibration="paper"
)
# All rivals are as published; the library's defaults are drawn in addition.
RELEASES: dict[str, Callable[..., Any]] = {
    "PrivPfC": PrivPfCTransformer,
    PUBLISHED: partial(PrivPfCTransformer, calibration="paper"),
    "DiffGen": partial(DiffGenTransformer, calibration="paper"),
    "PPH": partial(ProjectedHistogramTransformer, calibration="paper"),
    "PrivBayes": BAYES,
    "DiffGen, ours": DiffGenTransformer,
    "PPH, ours": ProjectedHistogramTransformer,
}
BASELINES = ("majority", "true rows")


def _searches(estimator: Any) -> dict[str, Callable[..., Any]]:
    return {
        "PrivLocal": partial(estimator, solver="local-search"),
        "PrivGene": partial(estimator, solver="genetic"),
        "PrivGene, no crossover": partial(estimator, solver="genetic", crossover=False),
    }


CLASSIFIERS: dict[str, dict[str, Callable[..., Any]]] = {
    "tree": {
        "DiffPC-4.5": partial(PrivateDecisionTreeClassifier, algorithm="c4.5"),
        "DiffPID3": partial(PrivateDecisionTreeClassifier, algorithm="id3"),
    },
    "svm": _searches(PrivateLinearSVC),
    "logistic": {
        **_searches(PrivateLogisticRegression),
        "FunctionalMechanism": partial(PrivateLogisticRegression, solver="functional"),
    },
}
ERM = {"svm": "huber", "logistic": "logistic"}

TWO_CLASSES = {
    "adult": tables.adult,
    "nltcs": _fidelity_tables.nltcs,
    "phoneme": _fidelity_tables.phoneme,
    "electricity": _fidelity_tables.electricity,
}


THREE_CLASSES = {"adult, marital status": partial(tables.adult, multiclass=True)}


def features(domain: Domain, rows: pd.DataFrame) -> NDArray[np.float64]:
    """Numbers scaled from their public range to -1 to 1, and an indicator of each category."""
    columns = []
    for name, attribute in domain.items():
        values = rows[name].to_numpy()
        if isinstance(attribute, Numeric):
            lower, upper = float(attribute.lower), float(attribute.upper)
            within = np.clip(values.astype(np.float64), lower, upper)
            columns.append(2 * (within[:, None] - lower) / (upper - lower) - 1)
        else:
            columns.append((values[:, None] == np.asarray(attribute.categories)).astype(float))
    return np.hstack(columns)


def learner(kind: str) -> Any:
    """The dissertation's classifiers: a tree, a support vector machine, logistic regression."""
    if kind == "tree":
        return DecisionTreeClassifier(min_weight_fraction_leaf=0.003, random_state=0)
    return _DrawnSVC() if kind == "svm" else LogisticRegression(max_iter=300)


class _DrawnSVC(SVC):
    """An SVM without weights: rows are drawn for it in proportion."""

    def fit(self, X: Any, y: Any) -> _DrawnSVC:
        """Fit to rows of equal weight."""
        super().fit(X, y)
        return self


def _features(problem: Table) -> Any:
    domain = problem.domain.select(list(problem.predictors))
    return FunctionTransformer(partial(features, domain))


def _on_features(problem: Table, kind: str) -> Any:
    return make_pipeline(_features(problem), learner(kind))


def train(problem: Table, release: Any, kind: str, seed: int) -> PrivateClassifier:
    """A classifier to be fitted, that a release is made for."""
    # Releases on grids bring their own indicators.
    synthetic = isinstance(getattr(release, "estimator", release), PrivBayesSynthesizer)
    estimator = _on_features(problem, kind) if synthetic else learner(kind)
    size = SVM_ROWS if kind == "svm" else None
    return PrivateClassifier(estimator, release, n_samples=size, random_state=seed)


def _cell(
    problem: Table, epsilon: float, repetition: int, kinds: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Misclassification by classifier and method, on one split."""
    seed = zlib.crc32(f"{problem.name} {epsilon:g} {repetition}".encode())
    X, y = problem.predictors, problem.labels
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=TEST_SHARE, stratify=y, random_state=seed
    )

    def error(model: Any, X: Any = X_train, y: Any = y_train) -> float:
        return round(float(np.mean(model.fit(X, y).predict(X_test) != y_test)), 5)

    if not np.isfinite(epsilon):
        # Not the first ones: some tables are sorted by label.
        drawn = np.random.default_rng(seed).permutation(len(y_train))[:SVM_ROWS]
        rows = dict.fromkeys(kinds, (X_train, y_train)) | {
            "svm": (X_train.iloc[drawn], y_train[drawn])
        }
        return {
            kind: {
                "majority": error(DummyClassifier()),
                "true rows": error(_on_features(problem, kind), *rows[kind]),
            }
            for kind in kinds
        }

    given = {"domain": problem.domain, "target": problem.target, "random_state": seed}
    found: dict[str, dict[str, float]] = {kind: {} for kind in kinds}
    for name, method in RELEASES.items():
        release = FrozenEstimator(method(epsilon=epsilon, **given).fit(X_train, y_train))
        for kind in kinds:
            found[kind][name] = error(train(problem, release, kind, seed))
    for kind in kinds:
        for name, method in CLASSIFIERS[kind].items():
            found[kind][name] = error(method(epsilon=epsilon, **given))
        if kind in ERM:
            classes = problem.domain[problem.target].categories
            model = PrivateERM(epsilon, classes, loss=ERM[kind], random_state=seed)
            found[kind]["PrivateERM"] = error(make_pipeline(_features(problem), model))
    return found


@cache
def measure(quick: bool, three: bool = False) -> pd.DataFrame:
    """Errors of all runs on the tables of two classes, or of three, which has no SVMs."""
    made = THREE_CLASSES if three else TWO_CLASSES
    kinds = ("tree", "logistic") if three else ("tree", "svm", "logistic")
    epsilons = (0.1, 1.0) if quick else EPSILONS
    rows = []
    for name in list(made)[: 1 if quick else None]:
        problem = made[name]()
        for epsilon, repetition in itertools.product((*epsilons, np.inf), range(REPETITIONS)):
            # Without privacy, a line from side to side.
            ats = (epsilon,) if np.isfinite(epsilon) else epsilons
            rows += [
                (name, kind, at, method, repetition, error)
                for kind, errors in _cell(problem, epsilon, repetition, kinds).items()
                for method, error in errors.items()
                for at in ats
            ]
    columns = ["table", "classifier", "epsilon", "method", "repetition", "misclassification"]
    return pd.DataFrame(rows, columns=columns)


def before(frame: pd.DataFrame, better: str, worse: str) -> bool | str:
    """Whether a method has a smaller error than another: TIE within two standard errors.

    The difference is the mean over settings of the mean over repetitions. Its variance is that of
    the repetitions within settings, which have splits and noise of their own.
    """
    errors = frame.pivot_table(
        index=["table", "epsilon", "repetition"], columns="method", values="misclassification"
    )
    settings = (errors[worse] - errors[better]).groupby(["table", "epsilon"])
    variance = (settings.var() / settings.size()).sum() / len(settings) ** 2
    return compare(float(settings.mean().mean()), float(variance) ** 0.5)


def steadier(frame: pd.DataFrame, method: str, others: Iterable[str]) -> bool | str:
    """Whether a method's errors vary less over the repetitions than each other method's."""
    spread = frame.groupby(["table", "epsilon", "method"])["misclassification"].std().unstack()
    # Where all runs predict the majority, a spread is nearly none.
    logs = np.log(spread.clip(lower=1e-4))
    ratios = [logs[other] - logs[method] for other in others]
    return _all([compare(each.mean(), each.std() / len(each) ** 0.5) for each in ratios])


def _all(found: Sequence[bool | str]) -> bool | str:
    """Whether all comparisons hold: not if one does not, and TIE if one is."""
    return False if False in found else TIE if TIE in found else True


def _worst(frame: pd.DataFrame, method: str, others: Iterable[str]) -> bool | str:
    """Whether every other method has a smaller error."""
    return _all([before(frame, other, method) for other in others if other != method])


def _wins(frame: pd.DataFrame, method: str, others: Sequence[str]) -> tuple[int, int]:
    """In how many settings a method has the smallest mean error, and how many there are."""
    means = frame.groupby(["table", "epsilon", "method"])["misclassification"].mean().unstack()
    won = means[method] <= means[[name for name in others if name != method]].min(axis=1)
    return int(won.sum()), len(won)


def _means(frame: pd.DataFrame) -> str:
    means = frame.groupby("method")["misclassification"].mean().sort_values()
    return ", ".join(f"{name} {value:.4f}" for name, value in means.items())


def _groups(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Adult, and the tables that replace those of the dissertation."""
    adult = frame["table"].str.startswith("adult")
    groups = {"Adult": frame[adult], "other tables": frame[~adult]}
    return {name: part for name, part in groups.items() if len(part)}


def _label(method: str) -> str:
    return "PrivPfC" if method == PUBLISHED else method


def _figure(
    name: str,
    kind: str,
    claim: str,
    order: Sequence[str],
    more: Callable[[pd.DataFrame], dict[str, bool | str]],
    untested: Mapping[str, str] = MappingProxyType({}),
) -> Figure:
    def figure(out_dir: Path, quick: bool) -> Finding:
        frame = measure(quick)
        frame = frame[frame["classifier"] == kind]
        draw(out_dir, name, frame, "epsilon", "misclassification", panel="table", log_x=True)
        found, checks = [], {}
        for group, part in _groups(frame).items():
            won, settings = _wins(part, PUBLISHED, order)
            found.append(
                f"{group}: as published PrivPfC has the smallest error in {won} of {settings} "
                f"settings; means {_means(part)}"
            )
            rules = {"PrivPfC is best in most settings": won > settings / 2}
            rules |= {
                f"{_label(better)} before {_label(worse)}": before(part, better, worse)
                for better, worse in zip(order, order[1:], strict=False)
            }
            checks |= {f"{group}, {rule}": held for rule, held in (rules | more(part)).items()}
        return Finding(claim, ". ".join(found) + ".", checks | dict(untested))

    return figure


def _figure_3_7(out_dir: Path, quick: bool) -> Finding:
    """Releases by a tree, and searches by logistic regressions of a class against the others."""
    frame = measure(quick, three=True)
    draw(
        out_dir,
        "privpfc_figure_3_7",
        frame,
        "epsilon",
        "misclassification",
        panel="classifier",
        log_x=True,
    )
    released = frame["method"].isin([*RELEASES, *BASELINES, *CLASSIFIERS["tree"]])
    frame = frame[(frame["classifier"] == "tree") == released]
    rivals = ("DiffGen", "PPH", "PrivLocal", "PrivGene")
    won, settings = _wins(frame, PUBLISHED, rivals)
    return Finding(
        "PrivPfC wins in most multiclass settings.",
        f"as published PrivPfC has the smallest error in {won} of {settings} settings; means "
        f"(releases by trees, others by logistic regression) {_means(frame)}.",
        {"PrivPfC is best in most settings": won > settings / 2}
        | {f"PrivPfC before {name}": before(frame, PUBLISHED, name) for name in rivals},
    )


# As many values on an axis are all written there.
_MOST_MARKS = 8


def draw(
    out_dir: Path,
    name: str,
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    label: str = "method",
    panel: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
) -> None:
    """Write the numbers, and panels, two in a row, with a line for each method."""
    from matplotlib.figure import Figure as Canvas

    panels = [None] if panel is None else list(frame[panel].unique())
    across = min(len(panels), 2)
    down = -(-len(panels) // across)
    size = (3.4 * across + 2.4, 3.0 * down + 0.4)
    figure = Canvas(figsize=size, layout="constrained", dpi=130)
    lines = [each for each in frame[label].unique() if each not in BASELINES]
    handles: dict[str, Any] = {}
    for number, each in enumerate(panels):
        axes = figure.add_subplot(down, across, number + 1)
        part = frame if each is None else frame[frame[panel] == each]
        for method, line in part.groupby(label, sort=False):
            drawn = line.groupby(x)[y].mean()
            if method in BASELINES:
                style = {"color": "#777777", "linestyle": ":" if method == "majority" else "--"}
            else:
                place = lines.index(method)
                again = place >= len(PALETTE)
                style = {
                    "color": PALETTE[place % len(PALETTE)],
                    "marker": MARKERS[place % len(MARKERS)],
                    "linestyle": "-." if again else "-",
                    "markerfacecolor": "white" if again else None,
                }
            (handles[str(method)],) = axes.plot(
                drawn.index, drawn.to_numpy(), markersize=4, linewidth=1.2, **style
            )
        if log_x:
            axes.set_xscale("log")
            marks = sorted(part[x].unique())
            if len(marks) <= _MOST_MARKS:
                axes.set_xticks(marks, [f"{mark:g}" for mark in marks])
                axes.minorticks_off()
        if log_y:
            axes.set_yscale("log")
        axes.set_xlabel(x if number >= len(panels) - across else "")
        axes.set_ylabel(y if number % across == 0 else "")
        axes.set_title("" if each is None else str(each), fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.25)
    figure.legend(
        list(handles.values()), list(handles), fontsize=8, frameon=False, loc="outside right center"
    )
    save(out_dir, name, figure, frame)


_TREES = (PUBLISHED, "DiffGen", "PPH", "DiffPC-4.5", "PrivBayes")
_SVMS = (PUBLISHED, "DiffGen", "PrivLocal", "PPH", "PrivateERM", "PrivBayes", "PrivGene")
_LOGISTIC = (
    PUBLISHED, "PrivLocal", "DiffGen", "PPH", "PrivBayes", "FunctionalMechanism", "PrivGene",
)  # fmt: skip

FIGURES: dict[str, Figure] = {
    "privpfc_figure_3_4": _figure(
        "privpfc_figure_3_4",
        "tree",
        "with decision trees PrivPfC is best in most cases and varies least, followed by DiffGen, "
        "PPH, DiffPC-4.5 and PrivBayes.",
        _TREES,
        lambda part: {"PrivPfC varies least": steadier(part, PUBLISHED, _TREES[1:])},
    ),
    "privpfc_figure_3_5": _figure(
        "privpfc_figure_3_5",
        "svm",
        "with SVMs PrivPfC is best, followed by DiffGen, PrivLocal, PPH, PrivateERM, PrivBayes and "
        "PrivGene, whose crossover is to blame.",
        _SVMS,
        lambda part: {
            "PrivGene is worst": _worst(part, "PrivGene", _SVMS),
            "PrivGene is better without crossover": before(
                part, "PrivGene, no crossover", "PrivGene"
            ),
        },
    ),
    "privpfc_figure_3_6": _figure(
        "privpfc_figure_3_6",
        "logistic",
        "with logistic regression PrivPfC is best overall, followed by PrivLocal, DiffGen, PPH, "
        "PrivBayes, FunctionalMechanism and PrivGene; with a large budget PrivLocal is slightly "
        "better than PrivPfC on US and BR.",
        _LOGISTIC,
        lambda part: {"PrivGene is worst": _worst(part, "PrivGene", _LOGISTIC)},
        {"PrivLocal is better on US and BR": UNTESTED},
    ),
    "privpfc_figure_3_7": _figure_3_7,
}
