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
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from skdp.workloads import Workload, p_identity, product_strategy

Floats = NDArray[np.float64]


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


def product(sizes: Sequence[int], workload: Workload) -> float:
    """One product of p-identity strategies for all sets, as `skdp.HDMMSynthesizer` measures it."""
    return product_strategy(workload, sizes)[1]


def rmse(sizes: Sequence[int], kind: str, k: int, epsilon: float = 1.0) -> float:
    """Error of the best strategy for all queries of a kind on k attributes."""
    workload = Workload(kind, k)
    grams = [workload.gram(size) for size in sizes]
    best = min(product(sizes, workload), marginals(grams, k), union(grams, k))
    return math.sqrt(2 * best) / epsilon
