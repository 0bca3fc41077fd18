"""Histograms of one column: ours, all partitions, against six published methods.

Five DPBench histograms of 4,096 bins at epsilon 0.01, 0.1 and 1. Each release answers random ranges
(both ends uniform), ranges of six lengths, all ranges from the first bin (prefixes), nine deciles,
and single bins.

*Methods*: ours (`RangeTreeHistogram`: the default, ``non_negative=True``, and every ``partition``);
Identity; Privelet (Xiao et al. 2010); HB, which is also the b-ary tree of OpenDP (a uniform budget
on all levels, consistent counts, 16 children); DAWA as published, with Laplace noise and without
the extra penalty of ours; PrivTree. The errors are those of unbiased or projected estimates as each
method gives them; deciles are read from counts without the negative part (the library itself always
reads them from projected counts, so that its default has the deciles of ``non_negative=True``).

*HDMM*: its p-identity strategy is optimised for all ranges (an implementation of our own, with
scipy), which takes minutes beyond 512 bins; so it is compared with the planned tree in closed form,
at 256 and 512 bins, together with the same tree with the best budget for each node, and with the
spectral bound of Li and Miklau.

The constants of ``partition="adaptive"`` and ``"dawa"`` were chosen on generated histograms, not on
these. Run as ``python -m benchmarks.ranges --out ranges.json --figure ranges.png``; ``--runs``
sets the number of releases, ``--plan`` adds the comparison with HDMM.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks import _data
from skdp import hierarchy
from skdp._random import noise_source
from skdp.hierarchy import Blue, Tree
from skdp.kernels import lines
from skdp.kernels.lines.dawa import bucket_costs
from skdp.kernels.privtree import privtree, privtree_parts
from skdp.mechanisms import discrete_laplace
from skdp.mechanisms._buckets import least_cost_edges
from skdp.rows import CountTable

N_BINS = 4096
EPSILONS = (0.01, 0.1, 1.0)
LENGTHS = (1, 4, 16, 64, 256, 1024)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Method = Callable[[Ints, Fraction, int], Floats]


# --- ours


def planned(n: int, workload: str = "lengths") -> tuple[Tree, Ints]:
    """The planned tree and its shares."""
    read = hierarchy.as_workload(workload, n)
    tree = hierarchy.level_tree(n, hierarchy.plan_levels(n, read).counts)
    return tree, hierarchy.exact_shares(tree, hierarchy.optimal_shares(tree, read))


def spread_leaves(tree: Tree, nodes: Floats) -> Floats:
    """Counts of the bins, equal inside a leaf."""
    width = tree.leaf_widths
    return np.repeat(nodes[tree.leaves] / width, width)


def tree_counts(
    counts: Ints, epsilon: Fraction, seed: int, design: tuple[Tree, Ints], projected: bool = False
) -> Floats:
    """A range tree, by weighted least squares."""
    tree, shares = design
    noisy = hierarchy.measure(tree, counts, shares, epsilon, random_state=seed)
    blue = Blue(tree, noisy.variances)
    return spread_leaves(
        tree,
        hierarchy.non_negative(blue, noisy.values) if projected else blue.estimate(noisy.values),
    )


def partitioned(kind: str, counts: Ints, epsilon: Fraction, seed: int) -> Floats:
    """`RangeTreeHistogram` with a partition."""
    n = len(counts)
    if kind == "adaptive":
        plan = hierarchy.plan_levels(n, hierarchy.as_workload("lengths", n))
        release = lines.adaptive_tree(counts, n, epsilon, plan, random_state=seed)
    elif kind == "dawa":
        parts = {name: epsilon * share for name, share in lines.DAWA_SHARES.items()}
        release = lines.dawa(
            counts, n, parts, lambda m: hierarchy.as_workload("lengths", m), random_state=seed
        )
    else:
        parts = {name: epsilon * share for name, share in lines.AHP_SHARES.items()}
        release = lines.ahp(counts, n, parts, random_state=seed)
    blue = Blue(release.tree, hierarchy.measured_variances(release.shares, epsilon))
    if kind == "adaptive":
        nodes = hierarchy.non_negative(blue, release.values, even=True)
    else:
        nodes = blue.estimate(release.values)
    out = np.empty(n)
    out[release.order] = spread_leaves(release.tree, nodes)
    return out


# --- others


def identity(counts: Ints, epsilon: Fraction, seed: int) -> Floats:
    """All of epsilon for the bins."""
    return discrete_laplace(counts, epsilon, random_state=seed).astype(np.float64)


def uniform_tree(n: int, branching: int) -> tuple[Tree, Ints]:
    """A perfect tree without its root, with a uniform budget."""
    tree = hierarchy.balanced_tree(n, branching)
    level = np.ones(tree.n_levels)
    level[0] = 0
    return tree, hierarchy.exact_shares(tree, hierarchy.level_shares(tree, level))


def privelet(counts: Ints, epsilon: Fraction, seed: int) -> Floats:
    """Haar wavelets; a coefficient over m bins moves by 1 / m, so it has the weight m."""
    rng = np.random.default_rng(seed)
    n = len(counts)
    scale = (1 + math.log2(n)) / float(epsilon)
    means = counts.astype(np.float64)
    details = []
    while len(means) > 1:
        left, right = means[::2], means[1::2]
        size = n / len(left)
        details.append((left - right) / 2 + rng.laplace(0, scale / size, len(left)))
        means = (left + right) / 2
    means = means + rng.laplace(0, scale / n, 1)
    for detail in reversed(details):
        means = np.stack([means + detail, means - detail], axis=1).ravel()
    return means


def published_dawa(costs: list[Ints]) -> Method:
    """DAWA with Laplace noise of the published form; step 2 is the planned tree."""

    def release(counts: Ints, epsilon: Fraction, seed: int) -> Floats:
        first, second = float(epsilon) / 4, 3 * epsilon / 4
        flat = np.concatenate(costs)
        noise = np.random.default_rng(seed).laplace(0, 2 / first, len(flat))
        noisy = np.rint(flat + noise).astype(np.int64)
        lengths = [len(each) for each in costs]
        edges = least_cost_edges(noisy, lengths, len(counts), round(1 / second))
        design = planned(len(edges) - 1)
        sums = np.add.reduceat(counts, edges[:-1])
        buckets = tree_counts(sums, second, seed, design)
        width = np.diff(edges)
        return np.repeat(buckets / width, width)

    return release


def private_tree(counts: Ints, epsilon: Fraction, seed: int) -> Floats:
    """PrivTree in one dimension."""
    full = np.flatnonzero(counts)
    table = CountTable(full[:, None].astype(np.int32), counts[full], (len(counts),))
    parts = privtree_parts(epsilon, table.shape)
    release = privtree(table, parts, random_state=noise_source(seed))
    order = np.argsort(release.lower[:, 0])
    width = (release.upper - release.lower)[order, 0]
    return np.repeat(release.counts[order] / width, width)


def methods(counts: Ints) -> dict[str, Method]:
    """All methods, for one histogram."""
    design, hb = planned(N_BINS), uniform_tree(N_BINS, 16)
    return {
        "ours": lambda x, e, s: tree_counts(x, e, s, design),
        "ours, non-negative": lambda x, e, s: tree_counts(x, e, s, design, projected=True),
        "ours, adaptive": lambda x, e, s: partitioned("adaptive", x, e, s),
        "ours, dawa": lambda x, e, s: partitioned("dawa", x, e, s),
        "ours, ahp": lambda x, e, s: partitioned("ahp", x, e, s),
        "Identity": identity,
        "Privelet": privelet,
        "HB, OpenDP": lambda x, e, s: tree_counts(x, e, s, hb),
        "DAWA": published_dawa(bucket_costs(counts)),
        "PrivTree": private_tree,
    }


# --- errors


def random_ranges(seed: int = 5) -> Ints:
    """Ranges with uniform ends, (m, 2)."""
    ends = np.sort(np.random.default_rng(seed).integers(0, N_BINS + 1, (3000, 2)), axis=1)
    return ends[ends[:, 0] < ends[:, 1]]


def errors_of(estimate: Floats, counts: Ints, ranges: Ints) -> Floats:
    """Mean squared errors: random ranges, prefixes, ranges by length; then that of deciles."""
    gap = np.append(0.0, np.cumsum(estimate - counts))
    found = [np.mean((gap[ranges[:, 1]] - gap[ranges[:, 0]]) ** 2), np.mean(gap[1:] ** 2)]
    found += [np.mean((gap[n:] - gap[:-n]) ** 2) for n in LENGTHS]
    running = np.append(0.0, np.cumsum(np.maximum(estimate, 0.0)))
    exact = np.append(0, np.cumsum(counts))
    asked = np.arange(1, 10) / 10
    at = np.interp(asked * running[-1], running, np.arange(N_BINS + 1)) if running[-1] else asked
    ranks = np.interp(at, np.arange(N_BINS + 1), exact) / exact[-1]
    return np.array([*found, np.mean((ranks - asked) ** 2)])


COLUMNS = ("random", "prefix", *(f"{n} bins" for n in LENGTHS), "deciles")


def measure(runs: int) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Root mean squared errors by epsilon, histogram and method, in the order of `COLUMNS`."""
    ranges = random_ranges()
    results: dict[str, Any] = {}
    for name, counts in _data.dpbench_1d():
        every = methods(counts.astype(np.int64))
        for epsilon in EPSILONS:
            exact = Fraction(str(epsilon))
            for method, release in every.items():
                squares = [
                    errors_of(release(counts.astype(np.int64), exact, seed), counts, ranges)
                    for seed in range(runs)
                ]
                rmse = np.sqrt(np.mean(squares, axis=0)).tolist()
                results.setdefault(f"{epsilon:g}", {}).setdefault(name.split(".")[0], {})[
                    method
                ] = rmse
    return results


def ratios(results: dict[str, Any], method: str, others: tuple[str, ...], column: int) -> Floats:
    """Error of a method by that of the best of others, for each epsilon and histogram."""
    return np.array(
        [
            table[method][column] / min(table[other][column] for other in others)
            for tables in results.values()
            for table in tables.values()
        ]
    )


def geometric(values: Floats) -> float:
    """Geometric mean."""
    return float(np.exp(np.log(values).mean()))


# --- against the optimum of linear strategies


def all_ranges(n: int) -> Floats:
    """Gram matrix of all ranges: how many hold both of two bins."""
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    return (np.minimum(i, j) + 1.0) * (n - np.maximum(i, j))


def p_identity(gram: Floats, p: int, seed: int = 0) -> float:
    """Total error at unit noise of HDMM's p-identity strategy, optimised from one start."""
    n = len(gram)

    def loss(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(p, n)
        scale = 1.0 + theta.sum(axis=0)
        inverse = np.linalg.inv(np.eye(n) + theta.T @ theta)
        scaled = gram * np.outer(scale, scale)
        gradient = -2.0 * theta @ inverse @ scaled @ inverse
        gradient += 2.0 * ((inverse * gram) @ scale)
        return float((inverse * scaled).sum()), gradient.ravel()

    start = np.random.default_rng(seed).random(p * n)
    options = {"maxiter": 600, "maxfun": 900}
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (p * n), options=options
    )
    return float(found.fun)


def best_node_budgets(gram: Floats, tree: Tree, start: Floats) -> float:
    """Total error of a tree whose nodes have budgets of their own, optimised from given shares."""
    n, parent = tree.n_bins, np.maximum(tree.parent, 0)
    held = np.zeros((tree.n_nodes, n))
    for node, (low, high) in enumerate(zip(tree.lower, tree.upper, strict=True)):
        held[node, low:high] = 1.0
    inner = np.flatnonzero(~tree.is_leaf)
    levels = tree.level_starts

    def shares_of(part: Floats) -> tuple[Floats, Floats]:
        left = np.ones(tree.n_nodes)
        for a, b in zip(levels[1:-1], levels[2:], strict=True):
            left[a:b] = (left * (1.0 - part))[parent[a:b]]
        return left * part, left

    def loss(flat: Floats) -> tuple[float, Floats]:
        part = np.ones(tree.n_nodes)
        part[inner] = flat
        shares, left = shares_of(part)
        inverse = np.linalg.inv((held.T * shares**2) @ held)
        middle = inverse @ gram @ inverse
        by_share = -2.0 * shares * np.einsum("vi,ij,vj->v", held, middle, held, optimize=True)
        # What a node leaves is shared by all below it.
        below = by_share * part
        slope = np.zeros(tree.n_nodes)
        for k in range(len(levels) - 2, -1, -1):
            a, b = levels[k], levels[k + 1]
            slope[a:b] = left[a:b] * by_share[a:b]
            if k < len(levels) - 2:
                c, d = levels[k + 1], levels[k + 2]
                from_children = np.zeros(tree.n_nodes)
                np.add.at(from_children, parent[c:d], below[c:d])
                slope[a:b] -= left[a:b] * from_children[a:b]
                below[a:b] += (1.0 - part[a:b]) * from_children[a:b]
        return float((inverse * gram).sum()), slope[inner]

    flat = np.clip(start[inner], 1e-3, 0.97)
    bounds = [(0.0, 0.98)] * len(inner)
    found = minimize(loss, flat, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(found.fun)


def spectral_bound(gram: Floats) -> float:
    """No strategy of unit sensitivity has a smaller total error (Li and Miklau 2013).

    It is a bound for columns of Euclidean norm 1, which those of absolute sum 1 do not exceed.
    """
    values = np.linalg.eigvalsh(gram)
    return float(np.sqrt(np.maximum(values, 0.0)).sum() ** 2 / len(gram))


def parts_of_path(tree: Tree, shares: Floats) -> Floats:
    """Share of each node by what its path has left."""
    used = tree.spread_down(shares) - shares
    return shares / np.maximum(1.0 - used, 1e-12)


def plans(n: int) -> dict[str, float]:
    """Root mean squared errors of all ranges of n bins at epsilon 1, by strategy."""
    gram = all_ranges(n)
    number = n * (n + 1) / 2

    def rmse(total: float) -> float:
        return math.sqrt(2.0 * total / number)

    tree, shares = planned(n, "all")
    share = shares / 1e6
    held = np.zeros((tree.n_nodes, n))
    for node, (low, high) in enumerate(zip(tree.lower, tree.upper, strict=True)):
        held[node, low:high] = 1.0
    total = float((np.linalg.inv((held.T * share**2) @ held) * gram).sum())
    return {
        "planned tree": rmse(total),
        "planned tree, a budget for each node": rmse(
            best_node_budgets(gram, tree, parts_of_path(tree, share))
        ),
        "p-identity": rmse(p_identity(gram, n // 16)),
        "spectral bound": rmse(spectral_bound(gram)),
    }


# --- output


def draw(results: dict[str, Any], path: Path) -> None:
    """Error against the length of the range, one picture for each histogram and epsilon."""
    import matplotlib.pyplot as plt

    shown = {
        "ours, adaptive": ("#c8500a", "-", "partition='adaptive'"),
        "ours, non-negative": ("#c8500a", ":", "non_negative=True"),
        "ours": ("#1f6fb4", "-", "the default"),
        "DAWA": ("#2e7d32", "--", "DAWA"),
        "HB, OpenDP": ("#777777", "-", "HB, OpenDP"),
        "Identity": ("#777777", ":", "Identity"),
        "PrivTree": ("#8e44ad", "--", "PrivTree"),
    }
    epsilons = list(results)[:2]
    names = list(next(iter(results.values())))
    figure, axes = plt.subplots(
        len(epsilons),
        len(names),
        figsize=(13, 5.4),
        sharex=True,
        sharey="row",
        layout="constrained",
    )
    for row, epsilon in zip(axes, epsilons, strict=True):
        for ax, name in zip(row, names, strict=True):
            for method, (colour, line, label) in shown.items():
                values = results[epsilon][name][method][2 : 2 + len(LENGTHS)]
                ax.loglog(LENGTHS, values, line, color=colour, label=label, lw=1.8)
            ax.set_title(f"{name}, epsilon {epsilon}", fontsize=10)
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_xticks([1, 16, 256], ["1", "16", "256"])
            ax.minorticks_off()
        row[0].set_ylabel("RMSE in records")
    figure.supxlabel("length of the range in bins", fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=7, frameon=False)
    figure.savefig(path, dpi=90)


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="releases of each method")
    parser.add_argument("--plan", action="store_true", help="compare plans with HDMM")
    parser.add_argument("--figure", type=Path, help="picture to write")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    results = measure(arguments.runs)
    for epsilon, tables in results.items():
        for name, table in tables.items():
            print(f"\nepsilon {epsilon}, {name}: RMSE in records; deciles in ranks")
            print(f"{'':<20}" + "".join(f"{column:>10}" for column in COLUMNS))
            for method, row in table.items():
                print(f"{method:<20}" + "".join(f"{x:>10.4g}" for x in row))
    bars = []
    for column, title in (
        (0, "random ranges"),
        (1, "prefixes"),
        (2, "single bins"),
        (8, "deciles"),
    ):
        print(f"\n{title}: error by that of the better of ours and DAWA, mean and worst")
        for method in next(iter(next(iter(results.values())).values())):
            by = ratios(results, method, ("ours", "ours, dawa", "DAWA"), column)
            print(f"{method:<20}{geometric(by):>8.3f}{by.max():>8.2f}")
    ranged = ratios(results, "ours, adaptive", ("ours", "ours, dawa", "DAWA"), 0)
    single = ratios(results, "ours, adaptive", ("ours, non-negative", "PrivTree"), 2)
    bars = [
        (
            f"adaptive at most 1.05 of the better ({geometric(ranged):.3f})",
            geometric(ranged) <= 1.05,
        ),
        (f"and 1.2 on the worst histogram ({ranged.max():.2f})", bool(ranged.max() <= 1.2)),
        (
            f"single bins within 1.1 of the best of ours ({geometric(single):.3f}, worst "
            f"{single.max():.2f})",
            geometric(single) <= 1.1,
        ),
    ]
    compared = {n: plans(n) for n in (256, 512)} if arguments.plan else {}
    for n, table in compared.items():
        print(f"\nall ranges of {n} bins: RMSE at epsilon 1")
        for method, value in table.items():
            print(f"{method:<40}{value:>8.2f}{value / table['p-identity']:>8.3f} of p-identity")
    print()
    for promise, kept in bars:
        print(f"{'yes' if kept else 'NO':<4} {promise}")
    if arguments.figure:
        draw(results, arguments.figure)
    _data.write_json(
        arguments.out,
        "ranges",
        {"columns": COLUMNS, "rmse": results, "all ranges": compared, "bars": bars},
    )


if __name__ == "__main__":
    main()
