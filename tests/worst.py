"""How near each call of a mechanism comes to what it was paid for, in a replay.

A replay adds up losses, and a small part of epsilon hides behind the others. Here every call is
looked at by itself: by how much its exact values changed, as a share of the sensitivity or the
score range that its noise was drawn for, and what it was paid.

- No call changes by more than it declares, but for those in `SEVERAL`.
- What all calls of a run were paid adds up to no more than epsilon, but for `PARALLEL`.
- Every call reaches what it declares on the pair of `WORST`: a sensitivity that is too small shows.
  Where a branch does not reach it, `SHORT` says how near it comes.
"""

from __future__ import annotations

import ast
import contextlib
import fnmatch
import functools
import importlib
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from skdp.audit import _tapes
from skdp.mechanisms import laplace

# A change of this share is as large as declared: sensitivities are rounded up, and a record among
# n changes some scores by n / (n + 1) of the range.
REACHED = 0.97
_DRAWING = ("laplace", "selection", "sparse_counts", "sparse_vector")

# While replays are watched, another function has its place.
_noise_rate = laplace.noise_rate


class _Rate(Fraction):
    """A rate that remembers what it was made of."""

    epsilon: Fraction
    sensitivity: Fraction


def _rate(epsilon: Any, sensitivity: Any) -> _Rate:
    plain = _noise_rate(epsilon, sensitivity)
    rate = _Rate(plain.numerator, plain.denominator)
    rate.sensitivity = Fraction(sensitivity)
    rate.epsilon = plain * rate.sensitivity
    return rate


@dataclass(frozen=True)
class Call:
    """A call in both runs of a replay.

    Attributes
    ----------
    step : str
        Function and mechanism, and which one of several calls in the function; without the module.
    epsilon : float
        What it was paid, as drawn: the largest dyadic number up to the given epsilon. 0 for a
        comparison of a sparse vector, which pays for all of them at once.
    share : float
        Change of its exact values, in units of the declared sensitivity or score range.
    """

    step: str
    epsilon: float
    share: float


@contextlib.contextmanager
def watching() -> Iterator[list[Call]]:
    """The calls with exact values of all replays inside."""
    calls: list[Call] = []
    count = _tapes.Follower._count

    def counted(self: Any, told: Any, entry: Any) -> None:
        count(self, told, entry)
        calls.append(_call(told, entry))

    with contextlib.ExitStack() as stack:
        for name in _DRAWING:
            module = importlib.import_module(f"skdp.mechanisms.{name}")
            stack.callback(setattr, module, "noise_rate", module.noise_rate)
            module.noise_rate = _rate
        stack.callback(setattr, _tapes.Follower, "_count", count)
        _tapes.Follower._count = counted
        yield calls


# By how much more than one winner's range a selection is paid for.
_TIMES = {"top_k": lambda public: public[2], "top_k, together": lambda public: 2}


def _call(told: Any, entry: Any) -> Call:
    rate, here, there = entry.public[0], told.values, entry.values
    if entry.mechanism == "sparse_counts":
        here, there = _tapes._matched(here, there)
    elif entry.mechanism == "line":
        here, there = _tapes._on_common_pieces(here, there)
    change = _tapes._change(here, there)
    step = _step(entry)
    if entry.mechanism == "stream":
        return Call(step, 0.0, float(np.abs(change).max(initial=0)) / float(entry.public[4]))
    if entry.mechanism in ("discrete_laplace", "sparse_counts", "threshold"):
        share = float(np.abs(change).sum(dtype=np.float64)) / float(rate.sensitivity)
        return Call(step, float(rate.epsilon), share)
    width = entry.public[1]
    starts = entry.public[2] if entry.mechanism == "selection" else np.zeros(1, dtype=np.int64)
    spread = np.maximum.reduceat(change, starts) - np.minimum.reduceat(change, starts)
    epsilon = rate * width * _TIMES.get(entry.mechanism, lambda public: 1)(entry.public)
    return Call(step, float(epsilon), float(spread.sum(dtype=np.float64)) / float(width))


# What a mechanism is called by in the code, where a function may call it more than once.
_CALLED = {
    "discrete_laplace": ("discrete_laplace", "bounded_sum"),
    "selection": ("noisy_max", "exponential", "permute_and_flip"),
}


def _step(entry: Any) -> str:
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith((*_tapes._SEAMS, __name__)):
        frame = frame.f_back
    # Comprehensions are functions of their own before Python 3.12.
    function = frame.f_code.co_qualname.partition(".<locals>")[0]
    lines = _lines(frame.f_code.co_filename, function, _CALLED.get(entry.mechanism, ()))
    place = sum(line <= frame.f_lineno for line in lines)
    return f"{function}, {entry.mechanism}" + (f" ({place})" if place > 1 else "")


@functools.cache
def _lines(file: str, function: str, names: tuple[str, ...]) -> list[int]:
    """First lines of the calls of some functions within a function."""
    node: Any = ast.parse(Path(file).read_text(encoding="utf-8"))
    for name in function.split("."):
        inside = [each for each in ast.iter_child_nodes(node) if getattr(each, "name", "") == name]
        if not inside:
            return []
        node = inside[-1]
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    return sorted(each.lineno for each in calls if getattr(each.func, "id", None) in names)


def assert_paid(name: str, calls: list[Call], epsilon: float, most: int) -> None:
    """No call of a run changes by more than it declares, and all together cost epsilon.

    ``most``: rows that may count of what differs, each of which has its part of epsilon.
    """
    for call in calls:
        assert call.share <= most * (1 + 1e-9) or call.step in SEVERAL, (name, call)
    paid = math.fsum(call.epsilon * max(1.0, call.share / most) for call in calls)
    if not any(fnmatch.fnmatchcase(name, pattern) for pattern in PARALLEL):
        assert paid <= epsilon / most * (1 + 1e-9), (name, paid, epsilon)


def assert_reached(name: str, reached: dict[str, dict[str, float]]) -> None:
    """Calls of a branch have been as near to what they declare as is known.

    ``reached``: for each step the largest share on each pair, of what a person may contribute.
    """
    for step, by_pair in reached.items():
        assert step in WORST, f"{step} has no worst pair: add one to WORST in tests/worst.py"
        _, shares = SHORT.get(step, ("", {}))
        found, least = max(by_pair.values()), shares.get(name, shares.get("*", REACHED))
        assert found >= least - 5e-4, f"{name}: {step} reaches {found:.4f}, below {least}"
        branch, pair = WORST[step] or ("", "")
        if branch == name:
            share = by_pair[pair]
            assert share >= REACHED, f"{name}: {step} reaches {share:.4f} on its worst pair"


# --- what is known: steps by function and mechanism, branches and pairs as in tests/replays.py

# Calls in which a record changes several values that are each paid for, or thresholds of a path.
SEVERAL = {
    "PrivateStandardScaler.fit, discrete_laplace": "a number for each column, at its share",
    "PrivateStandardScaler.fit, discrete_laplace (2)": "a number for each column, at its share",
    "PrivateStandardScaler.fit, discrete_laplace (3)": "a number for each column, at its share",
    "_decompose, threshold": "a record is in a box of each level: the noise is calibrated to paths",
    "bisect, threshold": "a record is in a box of each level: the noise is calibrated to paths",
    "measure, discrete_laplace": "levels of a tree of equal shares",
    "sample_aggregate, discrete_laplace": "a number for each centroid and column, at its share",
}

# Branches whose calls add up to more than epsilon, because a record is in one of several parts; a
# name that ends with a star stands for all that begin so.
PARALLEL = {
    "HDPViewSynthesizer*": "thresholds of disjoint boxes, with a bias that bounds those of a path",
    "PrivTreeSynthesizer*": "thresholds of disjoint boxes, with a bias that bounds those of a path",
    "KDTreeSynthesizer*hierarchical*": "cuts of disjoint boxes",
    "RangeTreeHistogram*600 bins": "levels of trees over disjoint buckets",
    "DPKMeans, auto*": "sums of disjoint clusters",
    "DPKMeans, tree*": "sums of disjoint clusters",
    "DPKMeans, many*": "sums of disjoint clusters",
    "DPKMeans, narrow*": "sums of disjoint clusters",
    "DPKMeans, persons": "sums of disjoint clusters",
    "PrivateRandomForestClassifier, apart": "trees of disjoint rows",
    "PrivateRegressor": "of an HDPViewSynthesizer",
    "PrivateGridSearchCV, mean squared error": "of an HDPViewSynthesizer",
    "PrivateGridSearchCV, area*": "scores of disjoint labels",
    "private_cross_val_score*": "scores of disjoint folds",
    "private_score, roc_auc": "trees over scores of disjoint labels",
    "private_score, average_precision": "trees over scores of disjoint labels",
    "private_quantiles, recursive": "selections on disjoint intervals",
    "private_quantiles, real": "selections on disjoint intervals",
    "private_quantiles, persons": "selections on disjoint intervals",
}

# Of each call a branch and a pair on which it changes as much as it declares; None where none does:
# SHORT says why.
WORST: dict[str, tuple[str, str] | None] = {
    "Candidates.misfit, discrete_laplace": ("MarginalSynthesizer, more than 512 codes", "two"),
    "DPTopKSelector.fit, discrete_laplace": ("DPTopKSelector", "nobody"),
    "DPTopKSelector.fit, top_k": ("DPTopKSelector", "duplicates"),
    "DPTopKSelector.fit, top_k, together": ("DPTopKSelector, canonical", "duplicates"),
    "DataCube.fit, discrete_laplace": ("DataCube, defaults", "nobody"),
    "GridSynthesizer._release, discrete_laplace": (
        "GridSynthesizer, one column, rule=uniform",
        "nobody",
    ),
    "Growth.divide, selection": ("PrivateDecisionTreeClassifier, max", "duplicates"),
    "Judge.best, selection": ("PrivateGridSearchCV", "duplicates"),
    "PrivateEstimator._go_on, discrete_laplace": ("HDPViewSynthesizer, one column", "nobody"),
    "_Measured._numbers, discrete_laplace": ("quality_report", "nobody"),
    "PrivateStandardScaler.fit, discrete_laplace": ("PrivateStandardScaler", "nobody"),
    "PrivateStandardScaler.fit, discrete_laplace (2)": ("PrivateStandardScaler", "nobody"),
    "PrivateStandardScaler.fit, discrete_laplace (3)": ("PrivateStandardScaler", "nobody"),
    "ProjectedHistogramTransformer._choose, discrete_laplace": (
        "ProjectedHistogramTransformer",
        "nobody",
    ),
    "Task.measure_total, discrete_laplace": ("DPKMeans, auto", "nobody"),
    "_DefaultClassifier.fit, discrete_laplace": ("PrivateClassifier, default", "nobody"),
    "_PrivPfC._choose, discrete_laplace": ("PrivPfCTransformer", "nobody"),
    "_Views.__init__, discrete_laplace": ("MarginalSynthesizer, prior", "two"),
    "_Views._measure, discrete_laplace": ("MarginalSynthesizer, prior", "two"),
    "_Views.measure_columns, discrete_laplace": ("MarginalSynthesizer, prior", "two"),
    "_Views.measure_means, discrete_laplace": ("MarginalSynthesizer, workload of means", "two"),
    "_any_narrow, discrete_laplace": ("DPKMeans, auto", "tied"),
    "_choose, selection": ("PrivateAdditiveRegressor, pairs", "from the middle"),
    "_class_totals, discrete_laplace": ("PrivateDecisionTreeClassifier, defaults", "nobody"),
    "_decompose, threshold": ("PrivTreeSynthesizer, one column", "nobody"),
    "_find_range, stream": ("private_quantiles, no bounds", "the lowest"),
    "_measure, discrete_laplace": ("PrivateAdditiveRegressor, pairs", "nobody"),
    "_measured, discrete_laplace": ("RangeTreeHistogram, {'partition': 'adaptive'}", "nobody"),
    "_noisy_best, discrete_laplace": ("most_frequent_items, auto", "tenth"),
    "_noisy_best, discrete_laplace (2)": ("most_frequent_items, canonical", "three items"),
    "_noisy_best, top_k": ("most_frequent_items, auto", "all items"),
    "_noisy_best, top_k, together": ("most_frequent_items, canonical", "three items"),
    "_of_numbers, discrete_laplace": ("PrivateAdditiveRegressor, pairs", "nobody"),
    "Candidates.best, selection": ("MarginalSynthesizer, workload of means", "corners"),
    "_private_range, selection": ("DPKMeans, sample-aggregate", "alone in a corner"),
    "_published, discrete_laplace": ("PrivateDecisionTreeClassifier, id3", "tied"),
    "_published, discrete_laplace (2)": ("PrivateDecisionTreeClassifier, id3", "nobody"),
    "_quantile, line": ("SampleAggregate, winsorised", "corners"),
    "_reach, discrete_laplace": ("DPKMeans, many columns, few rows", "nobody"),
    "_release_accuracy, discrete_laplace": ("private_cross_val_score, models that draw", "nobody"),
    "_seen, discrete_laplace": ("PrivateAdditiveClassifier, two classes", "nobody"),
    "_selected, selection": ("DPKMeans, auto", "tied"),
    "adaptive_tree, discrete_laplace": ("RangeTreeHistogram, adaptive, 600 bins", "a row of nan"),
    "aggregate, discrete_laplace": ("SampleAggregate, mean", "nobody"),
    "ahp, discrete_laplace": ("RangeTreeHistogram, {'partition': 'ahp'}", "nobody"),
    "bisect, threshold": ("HDPViewSynthesizer, one column", "nobody"),
    "choose_cuts, selection": ("HDPViewSynthesizer, four columns", "a row of inf"),
    "dawa, buckets": ("RangeTreeHistogram, {'partition': 'dawa'}", "duplicates"),
    "diffgen, selection": ("DiffGenTransformer", "nobody"),
    "find_range, discrete_laplace": ("MarginalSynthesizer, unknown ranges", "two"),
    "fit_genetic, selection": ("PrivateLinearRegression, genetic", "a row of -inf"),
    "fit_genetic, top_k": ("PrivateLinearRegression, genetic", "nobody"),
    "fit_local_search, selection": ("PrivateLinearSVC, local-search", "nobody"),
    "genetic, selection": None,
    "genetic, top_k": ("DPKMeans, genetic", "crowded"),
    "grow_tree, discrete_laplace": ("PrivateDecisionTreeClassifier, defaults", "nobody"),
    "hdpview, discrete_laplace": ("HDPViewSynthesizer, one column", "nobody"),
    "hierarchical_kdtree, discrete_laplace": (
        "KDTreeSynthesizer, one column, strategy=hierarchical",
        "nobody",
    ),
    "hierarchical_kdtree, discrete_laplace (2)": (
        "KDTreeSynthesizer, one column, strategy=hierarchical",
        "nobody",
    ),
    "learn_network, selection": ("PrivBayesSynthesizer, rare codes", "as bac"),
    "lloyd_round, discrete_laplace": ("DPKMeans, lloyd", "nobody"),
    "lloyd_round, discrete_laplace (2)": ("DPKMeans, lloyd", "nobody"),
    "located, discrete_laplace": ("PrivateRidge", "nobody"),
    "located, discrete_laplace (2)": ("PrivateRidge", "nobody"),
    "measure, discrete_laplace": ("RangeTreeHistogram, defaults", "nobody"),
    "measure_cells, discrete_laplace": ("DPKMeans, auto", "nobody"),
    "measure_columns, discrete_laplace": ("PrivateAdditiveClassifier, two classes", "nobody"),
    "measure_grid, discrete_laplace": ("KDTreeSynthesizer, one column, strategy=cell", "nobody"),
    "measure_grid_counts, discrete_laplace": ("PrivPfCTransformer", "nobody"),
    "measure_joint, sparse_counts": ("MarginalSynthesizer, prior", "from the middle"),
    "measure_margins, discrete_laplace": ("DPKMeans, tree in five dimensions, small", "nobody"),
    "measure_tables, discrete_laplace": ("PrivBayesSynthesizer, one column", "nobody"),
    "merged_groupings, discrete_laplace": ("PrivPfCTransformer", "tied"),
    "newton_step, discrete_laplace": ("a step of Newton's method", "a score that is quite wrong"),
    "newton_step, discrete_laplace (2)": (
        "a step of Newton's method",
        "a score between, and a great value",
    ),
    "noisy_moments, discrete_laplace": (
        "PrivateLogisticRegression, functional, many classes",
        "nobody",
    ),
    "noisy_sums, discrete_laplace": ("DPKMeans, auto", "tied"),
    "noisy_sums, discrete_laplace (2)": (
        "DPKMeans, tree in five dimensions, with margins",
        "nobody",
    ),
    "paid_blocks, discrete_laplace": ("SampleAggregate, mean", "nobody"),
    "predicted_counts, discrete_laplace": ("private_score, f1", "right"),
    "private_confusion_matrix, discrete_laplace": ("private_confusion_matrix", "wrong"),
    "privbayes, discrete_laplace": ("PrivBayesSynthesizer, one column", "nobody"),
    "privtree, discrete_laplace": ("PrivTreeSynthesizer, one column", "nobody"),
    "projected_histogram, selection": ("ProjectedHistogramTransformer", "contrary"),
    "release_parts, discrete_laplace": ("private_score, mean_squared_error", "nobody"),
    "release_scores, discrete_laplace": ("PrivateGridSearchCV, area under the curve", "nobody"),
    "released_total, discrete_laplace": ("PrivateAdditiveClassifier, two classes", "nobody"),
    "sample_aggregate, discrete_laplace": ("DPKMeans, sample-aggregate", "nobody"),
    "scores, sparse_counts": ("sparse_counts", "nobody"),
    "select_grid, selection": None,
    "select_grid, selection (2)": ("PrivateClassifier, default", "from the middle"),
    "select_quantiles, line": ("private_quantiles, median", "the lowest"),
    "two_step_kdtree, discrete_laplace": ("KDTreeSynthesizer, one column, xi0=2, xi1=1", "nobody"),
    "two_step_kdtree, discrete_laplace (2)": (
        "KDTreeSynthesizer, one column, xi0=2, xi1=1",
        "nobody",
    ),
}

# Branches in which a call comes less near to what it declares, with the reason and the share that
# it must reach; "*" stands for all others, where the worst pair of another branch says it all.
SHORT: dict[str, tuple[str, dict[str, float]]] = {
    "Candidates.misfit, discrete_laplace": (
        "a record is nearer to the rows in some pairs of columns",
        {"*": 0},
    ),
    "DataCube.fit, discrete_laplace": (
        "no person has only values at the end of the range",
        {"DataCube, sums of persons": 0.636},
    ),
    "Growth.divide, selection": (
        "a split moves most where two large children hold one class each",
        {
            "PrivateDecisionTreeClassifier, many classes": 0.471,
            "PrivateDecisionTreeClassifier, id3": 0,
            "PrivateDecisionTreeClassifier, c4.5": 0.455,
            "PrivateDecisionTreeClassifier, persons": 0.252,
            "PrivateRandomForestClassifier, persons": 0.252,
        },
    ),
    "Judge.best, selection": (
        "squared errors of two models differ by less than the square of the range",
        {"PrivateGridSearchCV, mean squared error": 0.291},
    ),
    "_choose, selection": (
        "residuals of the first round are small",
        {
            "PrivateAdditiveClassifier, two classes": 0.002,
            "PrivateAdditiveClassifier, many classes": 0.449,
            "PrivateAdditiveClassifier, pairs chosen": 0.55,
            "PrivateAdditiveRegressor": 0.092,
            "PrivateRegressor, default": 0.092,
        },
    ),
    "_measure, discrete_laplace": (
        "residuals of the first round are small",
        {
            "PrivateAdditiveClassifier, two classes": 0,
            "PrivateAdditiveClassifier, pairs chosen": 0.845,
            "PrivateAdditiveRegressor": 0.346,
            "PrivateRegressor, default": 0.346,
        },
    ),
    "_of_numbers, discrete_laplace": (
        "a record's score would have to be the largest and its residual cut",
        {
            "PrivateLinearRegression, auto": 0.553,
            "PrivateLinearRegression, persons": 0.873,
            "PrivateRidge, persons": 0.873,
            "PrivateAdditiveRegressor, persons": 0.873,
            "PrivateRegressor, persons": 0.873,
            "PrivateRegressor, default": 0.685,
        },
    ),
    "Candidates.best, selection": (
        "no record moves one set up and another down by the full weight",
        {"*": 0},
    ),
    "aggregate, discrete_laplace": (
        "an output moves from the middle, which stands for no records, to one end",
        {"SampleAggregate, largest of blocks": 0.499},
    ),
    "choose_cuts, selection": ("no record is between a good cut and a bad one", {"*": 0}),
    "dawa, buckets": (
        "no record makes one bucket cheaper and another dearer",
        {"RangeTreeHistogram, dawa, 600 bins": 0.5, "RangeTreeHistogram, dawa, 9,000 bins": 0.5},
    ),
    "fit_genetic, selection": ("candidates are drawn: none is wrong by the whole range", {"*": 0}),
    "fit_genetic, top_k": ("candidates are drawn: none is wrong by the whole range", {"*": 0}),
    "fit_local_search, selection": (
        "neighbours of a candidate are alike",
        {
            "PrivateLogisticRegression, local-search": 0.588,
            "PrivateLinearRegression, local-search": 0.468,
        },
    ),
    "genetic, selection": (
        "candidates are drawn: none lies in a corner while another is farthest from it",
        {"DPKMeans, genetic": 0.888},
    ),
    "learn_network, selection": (
        "no column has rare codes; score F and the branch of rare codes reach their ranges",
        {
            "PrivBayesSynthesizer, four columns": 0.25,
            "PrivBayesSynthesizer, four columns, encoding=hierarchical, theta=1": 0.25,
            "PrivBayesSynthesizer, four columns, score_function=mutual_information": 0.215,
            "PrivBayesSynthesizer, four columns, max_candidates=2, negatives=zero, theta=0.01": 0.25,  # noqa: E501
            "PrivBayesSynthesizer, polars": 0,
            "PrivBayesSynthesizer, duckdb": 0,
        },
    ),
    "located, discrete_laplace": (
        "the target would have to be at an end of its range",
        {
            "PrivateAdditiveRegressor, pairs": 0.75,
            "PrivateAdditiveRegressor": 0.75,
            "PrivateLinearRegression, auto": 0.75,
            "PrivateLinearRegression, persons": 0.75,
            "PrivateRidge, persons": 0.75,
            "PrivateAdditiveRegressor, persons": 0.75,
            "PrivateRegressor, persons": 0.75,
            "PrivateRegressor, default": 0.75,
        },
    ),
    "located, discrete_laplace (2)": (
        "the target would have to be at an end of its range",
        {
            "PrivateAdditiveRegressor, pairs": 0.946,
            "PrivateAdditiveRegressor": 0.909,
            "PrivateLinearRegression, auto": 0.848,
            "PrivateLinearRegression, persons": 0.85,
            "PrivateRidge, persons": 0.85,
            "PrivateAdditiveRegressor, persons": 0.85,
            "PrivateRegressor, persons": 0.85,
            "PrivateRegressor, default": 0.848,
        },
    ),
    "measure, discrete_laplace": (
        "rows of a person that count lie in few of these pairs",
        {"private_quantiles, persons": 0.5},
    ),
    "newton_step, discrete_laplace": (
        "records are cut to a norm that scores of few functions do not come near",
        {"*": 0},
    ),
    "newton_step, discrete_laplace (2)": (
        "records are cut to a norm that scores of few functions do not come near",
        {"*": 0},
    ),
    "noisy_moments, discrete_laplace": (
        "a record would need all numbers at the end of their ranges",
        {
            "PrivateLogisticRegression, functional": 0.733,
            "PrivateLinearRegression, auto": 0.603,
            "PrivateLinearRegression, functional": 0.783,
            "PrivateLinearRegression, persons": 0.644,
            "PrivateRidge, persons": 0.644,
        },
    ),
    "projected_histogram, selection": (
        "no person is alone with a label in one column only",
        {"ProjectedHistogramTransformer, persons": 0},
    ),
    "select_grid, selection": (
        "the paper's constant is 2.2, and scores move by 1.18 at most",
        {"PrivPfCTransformer, as in the paper": 0.524, "PrivPfCTransformer, other shares": 0.526},
    ),
    "select_grid, selection (2)": ("no record is right in one grid and wrong in another", {"*": 0}),
}
