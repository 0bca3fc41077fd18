"""Fidelity: how near a release comes to the truth, from little signal to a lot of it.

NIST's k-marginal score of sampled rows of ten columns, pairs and triples; with ``--method
bootstrap`` that of a bootstrap of the records, which no release exceeds by more than chance. Every
line has the mean and its standard error. Run as ``python -m benchmarks.fidelity --method
MarginalSynthesizer HDPViewSynthesizer``. If the file of the table is missing, a small generated one
replaces it; ``--small`` does so always.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import _data
from benchmarks._fidelity_releases import release
from benchmarks._fidelity_tables import Table, load
from skdp.quality import k_marginal

__all__ = ["Result", "main"]

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
    parser.add_argument("--small", action="store_true", help="a small generated table")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    chosen = parser.parse_args(arguments)
    results = []
    table = load("nist", chosen.small)
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
