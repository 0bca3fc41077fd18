"""Error of a release against epsilon and the number of records.

Five columns of *Adult* (age, sex, education, hours, income; 73 x 2 x 16 x 20 x 2 cells), samples
of 1,000 to 48,842 rows, :class:`~skdp.MarginalSynthesizer` as it comes. The questions are ranges
of one and of two columns, the same for every release: between two random codes of a column of
numbers, a value of a column of categories. The error is the root mean square over all questions,
in percent of the records.

Run as ``python -m benchmarks.budget --out budget.json``; ``--quick`` takes two sizes and one run.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import _data
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SIZES = (1_000, 5_000, 20_000, 48_842)
N_RUNS, N_QUESTIONS = 3, 20
DOMAIN = Domain(
    {
        "age": Numeric(18, 90, integer=True),
        "sex": Categorical(["Female", "Male"]),
        "education-num": Numeric(1, 16, integer=True),
        "hours-per-week": Numeric(0, 100, bins=20),
        "income": Categorical(["<=50K", ">50K"]),
    }
)


def questions(rng: np.random.Generator) -> list[dict[str, Any]]:
    """As many random ranges of each column and of each pair of columns."""
    sizes = dict(zip(DOMAIN.names, DOMAIN.shape, strict=True))
    asked = []
    for width in (1, 2):
        for names in itertools.combinations(DOMAIN.names, width):
            for _ in range(N_QUESTIONS):
                question = {}
                for name in names:
                    codes = np.sort(rng.integers(0, sizes[name], 2))
                    question[name] = codes if sizes[name] > 2 else codes[[0, 0]]
                asked.append(question)
    return asked


def answers(counts: np.ndarray, asked: list[dict[str, Any]]) -> np.ndarray:
    """Sums of a table of all cells."""
    found = []
    for question in asked:
        where = [slice(None)] * counts.ndim
        for name, (low, high) in question.items():
            where[DOMAIN.names.index(name)] = slice(low, high + 1)
        found.append(counts[tuple(where)].sum())
    return np.array(found)


def table_of(rows: pd.DataFrame) -> np.ndarray:
    """Counts of all cells of rows."""
    codes = DOMAIN.encode(rows)
    return np.bincount(
        np.ravel_multi_index(codes.T, DOMAIN.shape), minlength=int(np.prod(DOMAIN.shape))
    ).reshape(DOMAIN.shape)


def errors(rows: pd.DataFrame, epsilon: float) -> tuple[float, float]:
    """Errors of one release for ranges of one and of two columns, in percent of the records."""
    asked = questions(np.random.default_rng(0))
    release = MarginalSynthesizer(epsilon, domain=DOMAIN).fit(rows)
    # Many rows, so that drawing them adds next to nothing; scaled to the released total.
    drawn = table_of(release.sample(200_000)) * (release.synopsis_.total / 200_000)
    off = (answers(drawn, asked) - answers(table_of(rows), asked)) / len(rows) * 100
    one = np.array([len(question) == 1 for question in asked])
    return float(np.sqrt(np.mean(off[one] ** 2))), float(np.sqrt(np.mean(off[~one] ** 2)))


def main() -> None:
    """Print a table of errors, a line for each number of records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    adult = _data.frame("adult")[list(DOMAIN.names)]
    numbers = ["age", "education-num", "hours-per-week"]
    adult[numbers] = adult[numbers].astype(int)
    results: dict[str, Any] = {}
    sizes = sorted({min(n, len(adult)) for n in (SIZES[:2] if options.quick else SIZES)})
    for n in sizes:
        rows = adult.sample(n, random_state=0)
        for epsilon in EPSILONS:
            runs = [errors(rows, epsilon) for _ in range(1 if options.quick else N_RUNS)]
            one, two = np.mean(runs, axis=0)
            results[f"{n}, {epsilon}"] = {"one": one, "two": two}
            print(f"{n:>7,} records, epsilon {epsilon:>4}: {one:.2f}% / {two:.2f}%", flush=True)
    _data.write_json(options.out, "budget", results)


if __name__ == "__main__":
    main()
