"""Methods that Su's dissertation describes and does not draw: chapters 2 and 5.1.

Randomised response (section 2.2), sparse vector with a history of answers (section 5.1), and the
enhanced exponential mechanism (section 2.6.4), each beside what it is an alternative to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score

from benchmarks import _data
from benchmarks import privpfc as tables
from benchmarks.reproduce import MARKERS, PALETTE, Finding, compare, panels, save
from skdp import PrivateLogisticRegression
from skdp._random import NoiseSource, noise_source
from skdp.algorithms import linear
from skdp.algorithms.additive import UNIT
from skdp.algorithms.linear import TUNING
from skdp.mechanisms import (
    SparseVector,
    discrete_laplace,
    exponential,
    noisy_max,
    randomised_response,
    response_counts,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class History:
    """Answers to a stream of counting queries, most of them from earlier answers.

    A public guess of the histogram, at first flat, answers a query if a sparse vector does not find
    its error above a threshold. Else the query is answered with noise, and the guess moves towards
    the answer by multiplicative weights. The sparse vector is paid by a half of epsilon, the
    answers by the rest, an equal part each.

    Privacy. Given the answers so far the guess is fixed, so the error of its answer, |true -
    guessed|, changes by at most 1 with a record: a query for `SparseVector`, which pays for all
    comparisons up to ``cutoff`` positive ones. Each of these pays for one noisy count.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_cells,)
        The private histogram.
    total : int
        Public number of records.
    epsilon : Fraction
    threshold : int
        Largest error that is not corrected, in records.
    cutoff : int
        Most corrections.
    source : NoiseSource
    """

    def __init__(
        self,
        counts: Ints,
        total: int,
        epsilon: Fraction,
        threshold: int,
        cutoff: int,
        source: NoiseSource,
    ) -> None:
        self.counts, self.total, self.source = counts, total, source
        self.guess = np.full(len(counts), total / len(counts))
        self.each = epsilon / 2 / cutoff
        self.left = cutoff
        self.test = SparseVector(epsilon / 2, threshold, cutoff, random_state=source)

    def answer(self, query: NDArray[np.bool_]) -> float:
        """The answer to how many records lie in the cells of the query."""
        guessed = round(float(self.guess[query].sum()))
        true = int(self.counts[query].sum())
        if not self.left or not self.test.query(abs(true - guessed)):
            return float(guessed)
        self.left -= 1
        told = int(discrete_laplace(true, self.each, random_state=self.source))
        told = min(max(told, 0), self.total)
        # The factor with which the query has exactly the answer that was told.
        inside = min(max(guessed / self.total, 1e-9), 1 - 1e-9)
        wanted = min(max(told / self.total, 1e-9), 1 - 1e-9)
        self.guess[query] *= wanted / inside
        self.guess[~query] *= (1 - wanted) / (1 - inside)
        return float(told)


def _drawn(out: Path, name: str, table: pd.DataFrame, x: str, y: str, title: str) -> pd.DataFrame:
    """Draw a line for each method, and return the means: one row for each method."""
    means = table.pivot_table(index="method", columns=x, values=y, sort=False)
    figure, ax = panels(grid=False)
    for colour, marker, (method, line) in zip(PALETTE, MARKERS, means.iterrows(), strict=False):
        ax.plot(line.index, line, marker=marker, color=colour, label=method)
    ax.set(xlabel=x, ylabel=y, xscale="log", yscale="log", title=title)
    ax.legend(frameon=False)
    save(out, name, figure, table)
    return means


def _told(means: pd.DataFrame, form: str) -> str:
    return "; ".join(
        f"{method}: " + ", ".join(f"{value:{form}} at {at:g}" for at, value in line.items())
        for method, line in means.iterrows()
    )


def local(out: Path, quick: bool) -> Finding:
    """Counts of Adult's ages in tens, from randomised response and from a trusted curator."""
    ages = _data.frame("adult")["age"].astype(int).to_numpy()
    codes = np.clip((ages - 10) // 10, 0, 7)
    n, k = len(codes), 8
    truth = np.bincount(codes, minlength=k)
    rows = []
    for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0):
        for seed in range(20 if quick else 400):
            reports = randomised_response(codes, k, epsilon, random_state=seed)
            # A change of a code moves two counts of the curator's histogram.
            noisy = discrete_laplace(truth, Fraction(epsilon) / 2, random_state=noise_source(seed))
            for method, found in (
                ("randomised response", response_counts(reports, k, epsilon)),
                ("a trusted curator", noisy),
            ):
                error = float(np.mean((found - truth) ** 2))
                rows.append({"method": method, "epsilon": epsilon, "squared error": error})
        share = 1 / (1 + (k - 1) * math.exp(-epsilon))
        lie = (1 - share) / (k - 1)
        # The mean over the codes of the variance of the number that tells a code.
        variance = n / k * share * (1 - share) + n * (k - 1) / k * lie * (1 - lie)
        error = variance / (share - lie) ** 2
        rows.append({"method": "its closed form", "epsilon": epsilon, "squared error": error})
    table = pd.DataFrame(rows)
    name = "background_randomised_response"
    means = np.sqrt(_drawn(out, name, table, "epsilon", "squared error", "8 groups of ages"))
    response, curator = means.loc["randomised response"], means.loc["a trusted curator"]
    near = (response / means.loc["its closed form"] - 1).abs().max()
    return Finding(
        "a record reports its value with a probability, and another one otherwise; no curator need "
        "be trusted, unlike in the other settings.",
        f"root mean square error of 8 counts over {n:,} records: {_told(means, '.4g')}. Without a "
        f"trusted curator errors are {(response / curator).min():.0f} to "
        f"{(response / curator).max():.0f} times as large.",
        {
            "estimates from the answers have the error of the closed form, within a tenth": bool(
                near <= 0.1
            ),
            "a trusted curator is more accurate at every epsilon": bool((curator < response).all()),
        },
    )


def _ranges(n_cells: int, n: int, rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    ends = np.sort(rng.integers(0, n_cells, size=(n, 2)), axis=1)
    return [(np.arange(n_cells) >= low) & (np.arange(n_cells) <= high) for low, high in ends]


def history(out: Path, quick: bool) -> Finding:
    """Random ranges of Adult's ages, answered one by one, and from a history, at epsilon 1."""
    ages = _data.frame("adult")["age"].astype(int).to_numpy()
    counts = np.bincount(ages - ages.min())
    cutoff, threshold = 20, 500
    rows = []
    for n in (10, 100, 1000, 10_000):
        for seed in range(3 if quick else 20):
            source = noise_source(seed)
            queries = _ranges(len(counts), n, np.random.default_rng([seed, n]))
            truth = np.array([counts[query].sum() for query in queries])
            teller = History(counts, len(ages), Fraction(1), threshold, cutoff, source)
            told = np.array([teller.answer(query) for query in queries])
            single = discrete_laplace(truth, Fraction(1, n), random_state=source)
            for method, found in (("SVT with a history", told), ("one by one", single)):
                error = float(np.abs(found - truth).mean())
                rows.append({"method": method, "queries": n, "mean error": error})
            rows[-2]["paid"] = cutoff - teller.left
    table = pd.DataFrame(rows)
    means = _drawn(out, "background_history", table, "queries", "mean error", "ranges of ages")
    kept, single = means.loc["SVT with a history"], means.loc["one by one"]
    paid = table.dropna().groupby("queries")["paid"].mean()
    most = table.dropna()["paid"].max()
    return Finding(
        "a query whose answer from the history is accurate enough costs nothing; only others pay.",
        f"mean absolute error: {_told(means, '.4g')}. Of {paid.index[-1]:,} queries "
        f"{paid.iloc[-1]:.1f} are paid for on average.",
        {
            f"at most {cutoff} queries pay, however many there are": bool(most <= cutoff),
            "of 1,000 queries and more less than one in twenty pays": bool(
                (paid[paid.index >= 1000] < 0.05 * paid.index[paid.index >= 1000]).all()
            ),
            "with 1,000 queries and more its error is below that of answers one by one": bool(
                (kept[kept.index >= 1000] < single[single.index >= 1000]).all()
            ),
        },
    )


def loss_range(rounds: int) -> int:
    """Range of the logistic losses themselves that scores of so many rounds can reach."""
    reach = float(np.geomspace(TUNING.first, TUNING.first / 8, rounds).sum())
    return math.ceil(UNIT * np.logaddexp(0, reach))


def _with_losses(
    total: float, scores: Ints, epsilon: Fraction, spread: int, *, random_state: Any
) -> Any:
    """EM with the sensitivity of the losses, not of their differences between candidates."""
    rounds = math.ceil(total / epsilon)
    return exponential(scores, epsilon, loss_range(rounds), random_state=random_state)


def enhanced(out: Path, quick: bool) -> Finding:
    """PrivLocal's logistic regression on Adult, by three ways to select a step."""
    problem = tables.adult()
    ways: dict[str, Callable[..., Any]] = {
        "EM": exponential,
        "enhanced EM": exponential,
        "noisy maximum": noisy_max,
    }
    X, y = problem.predictors, problem.labels
    rows = []
    for epsilon in (0.05, 1.0) if quick else (0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        for fold, (fitted, tested) in enumerate(tables.folds(problem)[: 1 if quick else 3]):
            for method, select in ways.items():
                choose = partial(_with_losses, epsilon) if method == "EM" else select
                with patch.object(linear, "noisy_max", choose):
                    model = PrivateLogisticRegression(
                        epsilon=epsilon,
                        solver="local-search",
                        domain=problem.domain,
                        target=problem.target,
                        random_state=fold,
                    ).fit(X.iloc[fitted], y[fitted])
                error = 1 - accuracy_score(y[tested], model.predict(X.iloc[tested]))
                rows.append({"method": method, "epsilon": epsilon, "error": error})
    table = pd.DataFrame(rows)
    means = _drawn(out, "background_enhanced_exponential", table, "epsilon", "error", "PrivLocal")
    differences = _paired(table, "EM", "enhanced EM")
    ours = _paired(table, "enhanced EM", "noisy maximum")
    return Finding(
        "the range over the candidates of a round is smaller than that of the losses, so that the "
        "enhanced mechanism selects more accurately.",
        f"misclassification: {_told(means, '.4f')}. On average the enhanced mechanism "
        f"gains {differences.mean():.4f}, and the noisy maximum, which this library takes, "
        f"{ours.mean():.4f} more.",
        {
            "the enhanced mechanism has smaller errors than the exponential mechanism": compare(
                float(differences.mean()), float(differences.std() / math.sqrt(len(differences)))
            )
        },
    )


def _paired(table: pd.DataFrame, left: str, right: str) -> Floats:
    """Differences of the errors of two methods in the same runs."""
    first, second = (
        table.loc[table["method"] == method, "error"].to_numpy() for method in (left, right)
    )
    return np.asarray(first - second)


FIGURES = {
    "background_randomised_response": local,
    "background_history": history,
    "background_enhanced_exponential": enhanced,
}
