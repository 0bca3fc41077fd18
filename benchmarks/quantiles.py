"""Rank errors of `private_quantiles` against published methods, for 1 to 99 quantiles.

Columns of integers: eight generated histograms of 4,096 bins and 50,000 records (``generated``),
real ones of as many bins, cut to 50,000 records (``real``), and two real ones with wide bounds
(``long``). Evenly spaced quantiles, total epsilon 0.01, 0.1 and 1. The rank error of a released
value is the distance in records from the wanted rank to the nearest rank that the value has; the
mean over the quantiles, and then over runs.

- *plan*: `private_quantiles` with its defaults, which follows its plan
- *independent*, *recursive*, *tree*: the methods of `private_quantiles`
- *exponential*: Smith's exponential mechanism on the gaps between records, with an equal part of
  epsilon for each quantile
- *AppQuant*: Kaplan, Schnapp and Stemmer's splitting with the exponential mechanism and equal parts
  for all levels; where values are equal, records are divided as in ours
- *histogram*: `RangeTreeHistogram` of the same column with its defaults

The two published methods are drawn with NumPy's floating-point noise, at the score range that
adding or removing a record needs. Widths of the bounds: powers of two that hold the column.

A few runs of one quantile say little: its error is often 0 and sometimes hundreds. For the median
the expected errors of our selection and of the exponential mechanism are computed from their laws.

Run as ``python -m benchmarks.quantiles --out quantiles.json``; ``--quick`` makes fewer runs.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks import _data
from skdp import Numeric, RangeTreeHistogram, private_quantiles
from skdp._random import noise_source
from skdp.exceptions import InsecureSeedWarning
from skdp.kernels import quantiles as kernel

EPSILONS = (0.01, 0.1, 1.0)
COUNTS = (1, 2, 3, 9, 31, 99)
METHODS = (
    "plan", "independent", "recursive", "tree", "exponential", "AppQuant", "histogram",
)  # fmt: skip
N_RECORDS = 50_000
N_BINS = 4096
Ints = NDArray[np.int64]


def generated() -> Iterator[tuple[str, Ints]]:
    """Eight shapes on 4,096 integers."""
    rng = np.random.default_rng(0)
    places = np.arange(N_BINS)
    shapes = {
        "uniform": np.ones(N_BINS),
        "normal": np.exp(-(((places - 2000) / 400) ** 2) / 2),
        "narrow": np.exp(-(((places - 900) / 6) ** 2) / 2),
        "two hills": np.exp(-(((places - 700) / 90) ** 2)) + np.exp(-(((places - 3300) / 30) ** 2)),
        "exponential": np.exp(-places / 150),
        "power law": 1 / (1.0 + places),
        "spikes": np.where(places % 256 == 100, 1.0, 1e-4),
        "sparse": rng.pareto(0.7, N_BINS) * (rng.random(N_BINS) < 0.02),
    }
    for name, weights in shapes.items():
        yield name, rng.choice(N_BINS, N_RECORDS, p=weights / weights.sum())


def real() -> Iterator[tuple[str, Ints]]:
    """Histograms of DPBench, and columns of Adult."""
    rng = np.random.default_rng(1)

    def cut(values: Ints) -> Ints:
        return values if len(values) <= N_RECORDS else rng.choice(values, N_RECORDS, replace=False)

    for name, counts in _data.dpbench_1d():
        yield name.split(".")[0].lower(), cut(np.repeat(np.arange(len(counts)), counts))
    adult = _data.frame("adult")
    for name in ("age", "hours-per-week"):
        yield name, adult[name].astype(np.int64).to_numpy()


def long() -> Iterator[tuple[str, Ints]]:
    """A column of Adult, and electricity prices."""
    yield "fnlwgt", _data.frame("adult")["fnlwgt"].astype(np.int64).to_numpy()
    price = _data.frame("electricity")["nswprice"]
    yield "nswprice", np.rint(price.to_numpy() * 10**6).astype(np.int64)


def rank_errors(ordered: Ints, shares: Any, values: Any) -> float:
    """Mean distance of the wanted ranks from those of the values."""
    wanted = np.asarray(shares) * len(ordered)
    under, until = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return float(np.maximum(0, np.maximum(under - wanted, wanted - until)).mean())


def exponential_on_pieces(
    pieces: Any, size: int, epsilon: Any, score_range: int, *, random_state: Any
) -> int:
    """The exponential mechanism on the integers of a line, with floating-point noise."""
    starts, scores, widths = pieces.within(None)
    weights = np.log(widths) + float(epsilon) / score_range * scores
    piece = int(np.argmax(weights + _RNG.gumbel(size=len(weights))))
    return int(starts[piece]) + int(_RNG.integers(widths[piece]))


_RNG = np.random.default_rng(2)


def published(
    name: str, values: Ints, shares: list[float], epsilon: float, size: int
) -> Callable[[], Any]:
    """A published method on a column."""
    parts = [round(share * kernel.UNIT) for share in shares]
    exact = Fraction(str(epsilon))
    if name == "AppQuant" and len(parts) > 1:
        plan = kernel.Plan("recursive", kernel._split(parts, exact, Fraction(1)))
    else:
        plan = kernel.plan_quantiles(parts, exact)["independent"]
    source = noise_source()

    def run() -> Any:
        with mock.patch.object(kernel, "select_on_pieces", exponential_on_pieces):
            return np.sort(kernel.select_quantiles(values.copy(), size, plan, source))

    return run


def methods(
    values: Ints, shares: list[float], epsilon: float, size: int
) -> dict[str, Callable[[], Any]]:
    """What each method releases, by name."""

    def ours(method: str) -> Callable[[], Any]:
        bounds = (0, size - 1)
        return lambda: private_quantiles(values, shares, epsilon, bounds, method=method).values

    def histogram() -> Any:
        attribute = Numeric(0, size - 1, integer=True)
        return RangeTreeHistogram(epsilon, domain=attribute).fit(values).quantile(shares)

    found: dict[str, Callable[[], Any]] = {
        "plan": ours("auto"),
        "independent": ours("independent"),
        "recursive": ours("recursive"),
        **{
            name: published(name, values, shares, epsilon, size)
            for name in ("exponential", "AppQuant")
        },
    }
    return {**found, "tree": ours("tree"), "histogram": histogram} if size <= N_BINS else found


def measure(values: Ints, count: int, epsilon: float, runs: int) -> dict[str, float]:
    """Mean rank error of each method."""
    shares = [(i + 1) / (count + 1) for i in range(count)]
    size = max(N_BINS, 2 ** int(values.max()).bit_length())
    ordered = np.sort(values)
    return {
        name: float(np.mean([rank_errors(ordered, shares, run()) for _ in range(runs)]))
        for name, run in methods(values, shares, epsilon, size).items()
    }


def median_laws(widths: Any, errors: Any, epsilon: float) -> dict[str, Any]:
    """Probability of each piece of the line, by permute-and-flip (ours) and exponential mechanism.

    An integer with the coin p is the first to pass at time t with density p, if none passed before.
    """
    gaps = errors - errors.min()
    coins = np.exp(-epsilon * gaps)
    weights = widths * coins
    nodes, steps = np.polynomial.legendre.leggauss(400)
    end = min(1.0, 60.0 / weights.sum())
    times, steps = end * (1 + nodes) / 2, end * steps / 2
    left = 1 - np.outer(times, coins)
    none_before = np.exp(np.log(left) @ widths)
    return {
        "plan": weights * ((steps * none_before) @ (1 / left)),
        "exponential": weights / weights.sum(),
    }


def expected_medians(values: Ints, epsilon: float) -> dict[str, float]:
    """Expected rank error of the median by method."""
    size = max(N_BINS, 2 ** int(values.max()).bit_length())
    pieces = kernel.LinePieces(np.sort(values), 0, size, Fraction(1, 2))
    _, scores, widths = pieces.within(None)
    errors = -scores / 2
    laws = median_laws(widths, errors, epsilon)
    return {name: float(law @ errors) for name, law in laws.items()}


def shown(table: list[dict[str, float]]) -> str:
    """Means over columns."""
    cells = []
    for name in METHODS:
        each = [row[name] for row in table if name in row]
        cells.append(f"{np.mean(each):>13.1f}" if each else f"{'':>13}")
    return "".join(cells)


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)
    # The tree warns of small totals, which only epsilon 0.01 has.
    warnings.simplefilter("ignore", UserWarning)
    runs = 4 if arguments.quick else 10
    results: dict[str, Any] = {}
    for columns_of in (generated, real, long):
        half, columns = columns_of.__name__, list(columns_of())
        print(f"\n{half}: mean rank error over {len(columns)} columns, {runs} runs each")
        print(f"{'epsilon':>8}{'quantiles':>10}" + "".join(f"{name:>13}" for name in METHODS))
        for epsilon in EPSILONS:
            for count in COUNTS:
                rows = {name: measure(each, count, epsilon, runs) for name, each in columns}
                results[f"{half}, epsilon {epsilon:g}, {count} quantiles"] = rows
                print(f"{epsilon:>8g}{count:>10}" + shown(list(rows.values())), flush=True)
            law = {name: expected_medians(each, epsilon) for name, each in columns}
            results[f"{half}, epsilon {epsilon:g}, expected error of the median"] = law
            print(f"{epsilon:>8g}  expected" + shown(list(law.values())))
    values = np.random.default_rng(3).integers(0, 2**40, 10**6)
    begin = time.process_time()
    private_quantiles(values, np.arange(1, 100) / 100, 1.0, (0, 2**40))
    results["cpu"] = {"99 quantiles of 1e6 records": time.process_time() - begin}
    print(
        f"\n99 quantiles of 1e6 records: {results['cpu']['99 quantiles of 1e6 records']:.1f} s CPU"
    )
    _data.write_json(arguments.out, "quantiles", results)


if __name__ == "__main__":
    main()
