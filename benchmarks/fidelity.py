"""Fidelity: how near a release comes to the truth, from little signal to a lot of it.

NIST's k-marginal score of sampled rows of ten columns, pairs and triples; with ``--method
bootstrap`` that of a bootstrap of the records, which no release exceeds by more than chance. Every
line has the mean and its standard error. Run as ``python -m benchmarks.fidelity --method
MarginalSynthesizer HDPViewSynthesizer``.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import skdp
from benchmarks import _data
from benchmarks._fidelity_tables import Table, load
from skdp.quality import k_marginal

EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0, 30.0)


class Result(NamedTuple):
    """A mean over runs or folds, and its standard error."""

    method: str
    epsilon: float
    measure: str
    value: float
    standard_error: float
    runs: int

    @classmethod
    def of(cls, method: str, epsilon: float, measure: str, values: Sequence[float]) -> Result:
        """Mean and standard error of these values."""
        n = len(values)
        error = statistics.stdev(values) / n**0.5 if n > 1 else float("nan")
        return cls(method, epsilon, measure, statistics.fmean(values), error, n)


def release(name: str, table: Table, epsilon: float, seed: int, **given: Any) -> Any:
    """A fitted synthesizer of the library.

    Parameters
    ----------
    name : str
        The name of its class, with parameters if they are not the defaults, such as
        "MarginalSynthesizer(max_order=2)".
    table : Table
    epsilon : float
    seed : int
        Makes the benchmark repeatable.
    **given
        More parameters, such as the label.
    """
    title, parameters = parsed(name)
    made = getattr(skdp, title, None)
    if not title.endswith("Synthesizer") or made is None:
        here = sorted(each for each in skdp.__all__ if each.endswith("Synthesizer"))
        raise SystemExit(f"skdp has no synthesizer {title!r}. It has {', '.join(here)}.")
    with warnings.catch_warnings():
        # Seeds, columns whose codes are grouped, and totals near zero are expected here.
        warnings.simplefilter("ignore", UserWarning)
        synthesizer = made(
            epsilon=epsilon, domain=table.domain, random_state=seed, **{**given, **parameters}
        )
        return synthesizer.fit(table.rows)


def parsed(name: str) -> tuple[str, dict[str, Any]]:
    """The class and the keywords of "Class" or "Class(keyword=value, ...)"."""
    try:
        call = ast.parse(name, mode="eval").body
        if not isinstance(call, ast.Call):
            return name, {}
        keywords = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        return ast.unparse(call.func), keywords
    except (SyntaxError, ValueError):
        raise SystemExit(
            f"The method {name!r} is not understood. Write the name of a class, with keywords in "
            "parentheses if it needs any."
        ) from None


def scores(table: Table, method: str, epsilon: float, runs: int) -> Iterator[Result]:
    """Scores of the rows of releases, one for each run."""
    truth, shape = table.codes, table.domain.shape
    drawn = []
    for seed in range(runs):
        if method == "bootstrap":
            draws = np.random.default_rng(seed).integers(0, len(truth), len(truth))
            drawn.append(truth[draws])
        else:
            sample = release(method, table, epsilon, seed).sample(random_state=seed)
            drawn.append(table.domain.encode(sample))
    for order in (2, 3):
        values = [k_marginal(truth, codes, shape, order) for codes in drawn]
        yield Result.of(method, epsilon, f"{order}-way score", values)


def main(arguments: Sequence[str] | None = None) -> list[Result]:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", nargs="+", default=["MarginalSynthesizer"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    chosen = parser.parse_args(arguments)
    results = []
    table = load("nist")
    for method in chosen.method:
        for epsilon in chosen.epsilon:
            for result in scores(table, method, epsilon, chosen.runs):
                print(
                    f"{method:<22} epsilon {epsilon:<5g} {result.measure:<15} "
                    f"{result.value:>8.4g} +- {result.standard_error:.2g}",
                    flush=True,
                )
                results.append(result)
    _data.write_json(chosen.out, "fidelity", [each._asdict() for each in results])
    return results


if __name__ == "__main__":
    main()
