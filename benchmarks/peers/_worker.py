"""What all programs that run inside a peer's environment share; needs NumPy alone."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Work = Callable[[Mapping[str, Any], dict[str, Any], "Clock"], dict[str, Any]]


class Clock:
    """CPU seconds of all threads spent inside ``with clock:``."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._begin = time.process_time()

    def __exit__(self, *error: object) -> None:
        self.seconds += time.process_time() - self._begin


def main(works: Mapping[str, Work]) -> None:
    """Do the job on the standard input, and print the result as one line of JSON.

    ``works`` maps "task/method" to a function of the data, the job and the clock. What it returns
    is written to the job's ``.npz`` file; its scalars come back in JSON.
    """
    warnings.simplefilter("ignore")
    job = json.loads(sys.stdin.read())
    with np.load(job["data"]) as file:
        data = {key: file[key] for key in file.files}
    before = _peak()
    clock = Clock()
    result = works[f"{job['task']}/{job['method']}"](data, job, clock)
    arrays = {key: value for key, value in result.items() if isinstance(value, np.ndarray)}
    np.savez(job["out"], **arrays)
    answer = {key: value for key, value in result.items() if key not in arrays}
    print(json.dumps({**answer, "cpu": clock.seconds, "imports_mb": before, "peak_mb": _peak()}))


def _peak() -> float:
    """Most memory that this process has held so far, MB."""
    # What getrusage says may be the parent's, from before this program was loaded.
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def indicators(codes: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """A column of 0 and 1 for each code of each attribute."""
    columns = [np.eye(int(size))[column] for column, size in zip(codes.T, shape, strict=True)]
    return np.hstack(columns)


def answers_from_tables(
    table_of: Callable[[int, int], np.ndarray], queries: np.ndarray
) -> np.ndarray:
    """Answers of closed 2-D ranges, (attribute, first, last) twice, from tables of pairs."""
    answers = np.zeros(len(queries))
    pairs = queries[:, [0, 3]]
    for a, b in np.unique(pairs, axis=0).tolist():
        mine = np.flatnonzero((pairs == (a, b)).all(axis=1))
        sums = np.pad(np.asarray(table_of(a, b), dtype=float), ((1, 0), (1, 0)))
        sums = sums.cumsum(axis=0).cumsum(axis=1)
        _, low_a, high_a, _, low_b, high_b = queries[mine].T
        answers[mine] = (
            sums[high_a + 1, high_b + 1]
            - sums[low_a, high_b + 1]
            - sums[high_a + 1, low_b]
            + sums[low_a, low_b]
        )
    return answers


def answers_from_rows(codes: np.ndarray, shape: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Answers of closed 2-D ranges counted on rows of codes."""

    def table_of(a: int, b: int) -> np.ndarray:
        cells = codes[:, a].astype(np.int64) * int(shape[b]) + codes[:, b]
        size = int(shape[a]) * int(shape[b])
        return np.bincount(cells, minlength=size).reshape(int(shape[a]), int(shape[b]))

    return answers_from_tables(table_of, queries)
