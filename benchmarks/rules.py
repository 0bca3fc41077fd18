"""Marginals with and without the rules of a table: error, impossible rows, CPU time.

The tables are generated: groups of columns under known rules (a bound, columns of some records
only, a hierarchy), joined by one hidden factor, and free columns between them. ``wide`` adds rules
that no forest of pairs can hold: one of three columns, and a circle of two.

Run as ``python -m benchmarks.rules``.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skdp.domain import Zeros
from skdp.exceptions import InsecureSeedWarning
from skdp.kernels.views import Asked, measured_views
from skdp.release import Model
from skdp.rows import CountTable

EPSILONS = (0.3, 1.0, 3.0)
N_RECORDS, N_RELEASES, N_DRAWN = 20_000, 3, 20_000
BINS = 20

Codes = NDArray[np.int32]
Rng = np.random.Generator
Group = tuple[list[NDArray[np.int64]], list[int], list[tuple[int, int, NDArray[np.bool_]]]]


def _clipped(values: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    return np.clip(values.astype(np.int64), 0, size - 1)


def _bound(rng: Rng, factor: NDArray[np.float64]) -> Group:
    """An amount, and a part of it."""
    amount = rng.gamma(2, 1, len(factor)) * np.exp(0.5 * factor)
    part = amount * rng.beta(4, 1.5, len(factor))
    top = np.quantile(amount, 0.995)
    columns = [_clipped(each / top * BINS, BINS) for each in (amount, part)]
    return columns, [BINS, BINS], [(0, 1, np.tri(BINS, dtype=bool))]


def _some_only(rng: Rng, factor: NDArray[np.float64]) -> Group:
    """A kind, and two columns that only one of the kinds has; their last code is a gap."""
    n = len(factor)
    kind = (factor + rng.normal(size=n) > 0.8).astype(np.int64)
    columns = [kind]
    for sign in (1, -1):
        value = _clipped((rng.normal(size=n) + sign * factor) * 3 + 8, BINS)
        columns.append(np.where(kind == 1, value, BINS))
    allowed = np.zeros((2, BINS + 1), dtype=bool)
    allowed[1, :BINS] = allowed[0, BINS] = True
    return columns, [2, BINS + 1, BINS + 1], [(0, 1, allowed), (0, 2, allowed)]


def _hierarchy(rng: Rng, factor: NDArray[np.float64]) -> Group:
    """A group, and a member of it."""
    n = len(factor)
    group = np.minimum(np.abs(rng.normal(size=n) + factor).astype(np.int64) * 2, 5)
    member = group * 4 + rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    return [group, member], [6, 24], [(0, 1, np.repeat(np.eye(6, dtype=bool), 4, axis=1))]


def _free(rng: Rng, factor: NDArray[np.float64]) -> Group:
    n = len(factor)
    value = _clipped(factor * 2 + rng.normal(size=n) * 2 + 5, 10)
    return [value, rng.choice(5, n, p=[0.4, 0.3, 0.2, 0.06, 0.04])], [10, 5], []


def table(n_columns: int, wide: bool, seed: int = 1) -> tuple[Codes, tuple[int, ...], list[Zeros]]:
    """Codes of the records, sizes of the columns, and the rules."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=N_RECORDS)
    columns: list[NDArray[np.int64]] = []
    shape: list[int] = []
    zeros: list[Zeros] = []
    for make in itertools.cycle((_bound, _some_only, _hierarchy, _free)):
        if len(columns) >= n_columns:
            break
        first = len(columns)
        more, sizes, rules = make(rng, factor)
        columns, shape = columns + more, shape + sizes
        zeros += [Zeros((first + a, first + b), allowed) for a, b, allowed in rules]
    zeros = [each for each in zeros if max(each.axes) < n_columns]
    codes = np.stack(columns[:n_columns], axis=1).astype(np.int32)
    if wide:
        zeros += _wide(shape)
        codes = codes[~breaks(codes, zeros)]
    return codes, tuple(shape[:n_columns]), zeros


def _wide(shape: Sequence[int]) -> list[Zeros]:
    three = np.ones((shape[0], shape[5], shape[7]), dtype=bool)
    three[:5, 0, 0] = False
    found = [Zeros((0, 5, 7), three)]
    for axis, first in ((1, 12), (0, 16)):
        allowed = np.ones((shape[axis], shape[5]), dtype=bool)
        allowed[first:, 0] = False
        found.append(Zeros((axis, 5), allowed))
    return found


def breaks(codes: Codes, zeros: Sequence[Zeros]) -> NDArray[np.bool_]:
    """Whether each row breaks a rule."""
    broken = np.zeros(len(codes), dtype=bool)
    for each in zeros:
        broken |= ~each.allowed[tuple(codes[:, axis] for axis in each.axes)]
    return broken


def variation(model: Model, codes: Codes, pairs: Sequence[Sequence[int]]) -> float:
    """Mean total variation between released and exact tables of pairs."""
    errors = []
    for a, b in pairs:
        found = model.view([a, b])
        exact = np.zeros(found.shape)
        np.add.at(exact, (codes[:, a], codes[:, b]), 1 / len(codes))
        errors.append(0.5 * np.abs(found / found.sum() - exact).sum())
    return float(np.mean(errors))


def main() -> None:
    """Print one line for each table, epsilon, and with or without rules."""
    warnings.simplefilter("ignore", InsecureSeedWarning)
    print("columns rules  epsilon  honoured  all pairs  ruled pairs  impossible rows  CPU s")
    for n_columns, wide in itertools.product((10, 20, 30), (False, True)):
        codes, shape, zeros = table(n_columns, wide)
        counts = CountTable.from_codes(codes, shape)
        pairs = list(itertools.combinations(range(n_columns), 2))
        ruled = [each.axes for each in zeros if len(each.axes) == 2]
        for epsilon, honoured in itertools.product(EPSILONS, (False, True)):
            whole = Fraction(str(epsilon))
            parts = {"total": whole / 50, "views": whole * 49 / 50}
            orders = [np.arange(size) for size in shape]
            asked = Asked(orders, zeros=zeros if honoured else (), max_order=2)
            results = []
            for seed in range(N_RELEASES):
                start = time.process_time()
                model = measured_views(counts, parts, asked, random_state=seed)
                cpu = time.process_time() - start
                drawn = model.sample_codes(N_DRAWN, np.random.default_rng(seed))
                errors = [variation(model, codes, some) for some in (pairs, ruled)]
                results.append([*errors, breaks(drawn, zeros).mean(), cpu])
            all_pairs, ruled_pairs, impossible, cpu = np.mean(results, axis=0)
            print(
                f"{n_columns:7} {'wide' if wide else 'pairs'} {epsilon:8} {honoured!s:>9} "
                f"{all_pairs:10.4f} {ruled_pairs:12.4f} {impossible:16.4f} {cpu:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
