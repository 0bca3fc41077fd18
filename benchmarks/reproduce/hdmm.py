"""HDMM (McKenna, Miklau, Hay and Machanavajjhala, PVLDB 2018) as a comparison: expected errors.

A strategy is chosen for a workload that is known in advance, its queries are measured with Laplace
noise, and the answers are those of least squares. The error depends on the workload alone, so it
is computed, not simulated. Workloads are the products of one kind of query on each of k attributes,
over all sets of k attributes. `rmse` takes the best of the paper's three searches: one product of
p-identity strategies (`product`), marginals (`marginals`), or a product for each set of attributes
(`union`). Numbers are for the mean query and Laplace noise of variance 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["GRAMS", "marginals", "p_identity", "product", "rmse", "union"]

Floats = NDArray[np.float64]


def _random_ranges(n: int) -> Floats:
    """Ends are two uniform draws, sorted: the share of ranges that hold both of two cells."""
    first, last = np.sort(np.indices((n, n)), axis=0)
    inside = np.maximum(last - first - 1, 0)
    shares: Floats = 1 - ((n - 1 - first) ** 2 + last**2 - inside**2) / n**2
    return shares


def _all_ranges(n: int) -> Floats:
    first, last = np.sort(np.indices((n, n)), axis=0)
    shares: Floats = (first + 1) * (n - last) / (n * (n + 1) / 2)
    return shares


def _prefixes(n: int) -> Floats:
    shares: Floats = 1 - np.max(np.indices((n, n)), axis=0) / n
    return shares


# W'W / (number of queries) of each kind of query on an attribute of n values.
GRAMS: dict[str, Callable[[int], Floats]] = {
    "random ranges": _random_ranges,
    "ranges": _all_ranges,
    "prefixes": _prefixes,
    "marginals": lambda n: np.eye(n) / n,
}


def p_identity(gram: Floats, p: int | None = None, seed: int = 0) -> tuple[float, Floats]:
    """Strategy [I; B] with columns scaled to one, B >= 0 of p rows, by L-BFGS.

    Returns the error tr(G X) and X, the inverse of the strategy's A'A.
    """
    n = len(gram)
    p = p or max(1, n // 16)
    start = np.random.default_rng(seed).random((p, n))

    def error(flat: Floats) -> tuple[float, Floats]:
        rows = flat.reshape(p, n)
        scale = 1 + rows.sum(axis=0)
        inner = rows.T @ np.linalg.inv(np.eye(p) + rows @ rows.T)
        inverse = np.eye(n) - inner @ rows
        scaled = scale[:, None] * gram * scale
        slope = 2 * ((gram * scale) * inverse.T).sum(axis=1) - 2 * rows @ inverse @ scaled @ inverse
        return float((scaled * inverse).sum()), slope.ravel()

    found = minimize(
        error, start.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (p * n)
    )
    rows = found.x.reshape(p, n)
    scale = 1 + rows.sum(axis=0)
    x = np.linalg.inv(np.eye(n) + rows.T @ rows) * scale[:, None] * scale
    # Without B the strategy counts every cell.
    plain = float(np.trace(gram))
    return (float(found.fun), x) if found.fun < plain else (plain, np.eye(n))


def product(grams: Sequence[Floats], k: int, passes: int = 3) -> float:
    """One product of p-identity strategies for all sets, each attribute improved in turn."""
    d = len(grams)
    alone = [p_identity(gram) for gram in grams]
    if k == d:
        return math.prod(error for error, _ in alone)
    inverses = [x for _, x in alone]
    best = math.inf
    for _ in range(passes):
        for axis in range(d):
            # Error of an attribute that a set holds, and of one it adds up.
            held = [float((g * x).sum()) for g, x in zip(grams, inverses, strict=True)]
            summed = [float(x.sum()) for x in inverses]
            rest = [i for i in range(d) if i != axis]
            inside, outside = (_sets(held, summed, rest, size) for size in (k - 1, k))
            gram = inside * grams[axis] + outside
            error, inverses[axis] = p_identity(gram / (inside + outside))
        # tr(G X) of the last attribute, with the others as they are, is the whole error.
        best = min(best, error * (inside + outside) / math.comb(d, k))
    return best


def _sets(held: Sequence[float], summed: Sequence[float], axes: Sequence[int], size: int) -> float:
    """Sum over all sets of ``size`` of the axes: held inside the set times summed outside."""
    sums = [1.0] + [0.0] * size
    for axis in axes:
        for place in range(size, 0, -1):
            sums[place] = sums[place] * summed[axis] + sums[place - 1] * held[axis]
        sums[0] *= summed[axis]
    return sums[size]


def marginals(grams: Sequence[Floats], k: int) -> float:
    """Marginals of at most k attributes, each with a weight of its own, by L-BFGS.

    On the contrasts of a set s, A'A is a number: the squared weights of all marginals that hold s,
    times the sizes of what each adds up.
    """
    d = len(grams)
    sizes = [len(gram) for gram in grams]
    sets = [each for size in range(k + 1) for each in itertools.combinations(range(d), size)]
    place = {each: i for i, each in enumerate(sets)}
    mean = [float(gram.sum()) / n for gram, n in zip(grams, sizes, strict=True)]
    contrast = [float(np.trace(gram)) - m for gram, m in zip(grams, mean, strict=True)]
    cells = math.prod(sizes)
    asked = np.zeros(len(sets))
    held = np.zeros((len(sets), len(sets)))
    for each in sets:
        outside = cells / math.prod(sizes[i] for i in each)
        for size in range(len(each) + 1):
            for part in itertools.combinations(each, size):
                held[place[part], place[each]] = outside
                if len(each) == k:
                    inside = math.prod(contrast[i] if i in part else mean[i] for i in each)
                    asked[place[part]] += outside * inside / math.comb(d, k)

    def error(logs: Floats) -> tuple[float, Floats]:
        weights = np.exp(logs - logs.max())
        level = held @ weights**2
        variance, total = float((asked / level).sum()), weights.sum()
        slope = -2 * weights * (held.T @ (asked / level**2)) / variance + 2 / total
        return math.log(variance * total**2), slope * weights

    start = np.array([0.0 if len(each) == k else -3.0 for each in sets])
    return math.exp(minimize(error, start, jac=True, method="L-BFGS-B").fun)


def union(grams: Sequence[Floats], k: int) -> float:
    """A product for each set of k attributes on a part of epsilon, without joining them."""
    each = [p_identity(gram)[0] for gram in grams]
    errors = [math.prod(some) for some in itertools.combinations(each, k)]
    return sum(error ** (1 / 3) for error in errors) ** 3 / len(errors)


def rmse(sizes: Sequence[int], kind: str, k: int, epsilon: float = 1.0) -> float:
    """Error of the best strategy for all queries of a kind on k attributes."""
    grams = [GRAMS[kind](size) for size in sizes]
    best = min(search(grams, k) for search in (product, marginals, union))
    return math.sqrt(2 * best) / epsilon
