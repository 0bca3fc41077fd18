"""Noise that drawing adds to a release: rows with rounded counts against independent ones.

A release of Adult (14 columns, epsilon 1) draws rows both ways. Each table has the mean total
variation, times 1,000, between the views of one, two and three columns of the rows and those of the
model itself, over all columns, all pairs and `TRIPLES` random triples; and the CPU seconds of
drawing codes and of writing values for them.

``weighted rows``
    Marginals as they come.
``boxes``
    HDPView. Its views of three columns are not computed.

Run as ``python -m benchmarks.sampling --out sampling.json``.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import _data
from skdp import Categorical, Domain, HDPViewSynthesizer, MarginalSynthesizer, Numeric, Synopsis
from skdp.exceptions import InsecureSeedWarning
from skdp.release import BoxModel, ViewsModel

SIZES = (27_000, 1_000_000)
METHODS = ("independent", "rounded")
TRIPLES = 60
RUNS = 3

Axes = tuple[int, ...]
View = Callable[[Axes], NDArray[np.float64] | None]


def releases() -> dict[str, tuple[Synopsis, View]]:
    """Releases of Adult, and what each says of any few columns, as shares of all cells."""
    rows = _data.frame("adult").drop(columns="fnlwgt")
    numbers = {
        "age": Numeric(17, 90, integer=True),
        "education-num": Numeric(1, 16, integer=True),
        "capital-gain": Numeric(0, 99_999, bins=50),
        "capital-loss": Numeric(0, 4_400, bins=50),
        "hours-per-week": Numeric(1, 99, integer=True),
    }
    domain = Domain(
        {name: numbers.get(name) or Categorical(sorted(rows[name].unique())) for name in rows}
    )
    rows = rows.astype(dict.fromkeys(numbers, float))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        pairs = MarginalSynthesizer(1.0, domain=domain, random_state=0).fit(rows).synopsis_
        boxes = HDPViewSynthesizer(1.0, domain=domain, random_state=0).fit(rows).synopsis_
    model = pairs.model
    assert isinstance(model, ViewsModel) and isinstance(boxes.model, BoxModel)
    return {
        "weighted rows": (pairs, of_rows(model)),
        "boxes": (boxes, of_boxes(boxes.model)),
    }


def tally(
    codes: NDArray[np.int32], axes: Axes, shape: Sequence[int], weights: Any = None
) -> NDArray[np.float64]:
    """Shares of all cells of some columns."""
    sizes = [shape[axis] for axis in axes]
    cell = np.ravel_multi_index([codes[:, axis] for axis in axes], sizes)
    counts = np.bincount(cell, weights=weights, minlength=math.prod(sizes))
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def of_rows(model: ViewsModel) -> View:
    return lambda axes: tally(model.rows, axes, model.shape, model.row_weights)


def of_boxes(model: BoxModel) -> View:
    positive = BoxModel(model.boxes, np.maximum(model.counts, 0), model.shape)

    def view(axes: Axes) -> NDArray[np.float64] | None:
        if len(axes) > 2:
            return None
        table = positive.view(axes).ravel()
        shares: NDArray[np.float64] = table / table.sum()
        return shares

    return view


def views_of(n_columns: int) -> list[list[Axes]]:
    """Sets of one, two and three columns."""
    sets = [list(itertools.combinations(range(n_columns), order)) for order in (1, 2, 3)]
    some = np.random.default_rng(0).permutation(len(sets[2]))[:TRIPLES]
    return [*sets[:2], [sets[2][place] for place in sorted(some)]]


def measure(release: Synopsis, view: View) -> list[dict[str, Any]]:
    """Distances and times, for each number of rows and method."""
    shape = release.domain.shape
    wanted = [{axes: view(axes) for axes in same} for same in views_of(len(shape))]
    found = []
    for n in SIZES:
        for method in METHODS:
            gaps: list[list[float]] = [[], [], []]
            seconds = []
            for seed in range(RUNS):
                start = time.process_time()
                codes = release.sample_codes(n, seed, method=method)
                drawn = time.process_time()
                release.domain.decode(codes, np.random.default_rng(seed))
                seconds.append([drawn - start, time.process_time() - drawn])
                for order, same in enumerate(wanted):
                    for axes, shares in same.items():
                        if shares is not None:
                            gap = np.abs(tally(codes, axes, shape) - shares).sum() / 2
                            gaps[order].append(1000 * float(gap))
            found.append(
                {
                    "rows": n,
                    "method": method,
                    "distance": [float(np.mean(gap)) if gap else None for gap in gaps],
                    "seconds": np.median(seconds, axis=0).tolist(),
                }
            )
    return found


def show(name: str, found: list[dict[str, Any]]) -> None:
    """Print the table of a release."""
    print(
        f"\n{name}\n{'rows':>9}  {'method':<12}{'1-way':>8}{'2-way':>8}{'3-way':>8}   draw  values"
    )
    for one, two in zip(found[::2], found[1::2], strict=True):
        for each in (one, two):
            gaps = "".join(" " * 7 + "-" if g is None else f"{g:8.3f}" for g in each["distance"])
            draw, values = each["seconds"]
            print(f"{each['rows']:>9,}  {each['method']:<12}{gaps}{draw:7.2f}{values:8.2f}")
        pairs = zip(one["distance"], two["distance"], strict=True)
        gaps = "".join(" " * 7 + "-" if a is None else f"{a / b:8.1f}" for a, b in pairs)
        print(f"{'':>9}  {'ratio':<12}{gaps}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = {}
    for name, (release, view) in releases().items():
        results[name] = measure(release, view)
        show(name, results[name])
    _data.write_json(arguments.out, "sampling", results)


if __name__ == "__main__":
    main()
