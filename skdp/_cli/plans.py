"""``plan``: what a release would cost and measure, from public facts alone."""

from __future__ import annotations

import math
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from ..accounting import PrivacyLoss
from ..domain import Categorical, Domain
from ..kernels.dpcube import MOST_CELLS
from ..kernels.grid import grid_sides, grid_size
from ..kernels.hdpview import hdpview_parameters
from ..kernels.marginals import plan_views, used_sets
from ..kernels.marginals.wide import joint_share
from ..kernels.pairviews import (
    DIRECT,
    MOST_CLASSES,
    Rules,
    ViewShares,
    single_shares,
    view_shares,
)
from ..kernels.pairviews.rules import Zeros
from ..kernels.privbayes.budget import used_attributes
from ..mechanisms import discrete_laplace_variance
from ..synthesis.workloads import as_workload
from .csv_lines import Declared, read_records
from .declared import read_domain
from .describe import text_table
from .methods import estimator_of

__all__ = ["plan"]


class Step(NamedTuple):
    """One measurement of a release.

    Attributes
    ----------
    name : str
        The part of the budget, or a share of it.
    epsilon : Fraction
        Of one record.
    what : str
        What is measured.
    cell : Fraction or None
        Budget of one cell, which scales its noise; None if nothing is counted.
    """

    name: str
    epsilon: Fraction
    what: str
    cell: Fraction | None = None


def plan(options: Namespace) -> int:
    """Print the parts of the budget, what each measures, and its noise."""
    domain = read_domain(options.domain, options.structure)
    if options.rows is not None and options.rows < 0:
        raise ValueError(f"--rows must not be negative, got {options.rows}.")
    estimator = estimator_of(options, domain)
    columns: dict[str, Declared] = {name: domain[name] for name in domain.names}
    if options.unit is not None:
        columns[options.unit] = None
    # A trial fit without records: what it refuses, a release refuses, and it divides the budget.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(read_records([], list(columns), columns))
    loss: PrivacyLoss = estimator.privacy_loss_
    domain = estimator.domain_
    print(f"{options.method} on {len(domain.names)} columns, epsilon {float(loss.epsilon):g}")
    print(f"protects: {loss.neighbours}")
    print("Nothing was read or spent.\n")
    parts = loss.of_record.parts
    steps = _STEPS[options.method](parts, domain, options)
    most = loss.max_contributions or 1
    rows = [("part", "epsilon", "noise", "measures")]
    rows += [(s.name, _short(s.epsilon * most), _noise(s.cell), s.what) for s in steps]
    print(text_table(rows))
    print("\nnoise: standard deviation of the noise of one count, in records")
    if options.method in ("marginals", "pair-views"):
        _print_columns(steps, domain, options.rows, most)
    return 0


def _pair_views(parts: Mapping[str, Fraction], domain: Domain, options: Namespace) -> list[Step]:
    rules = _rules(domain)
    used = sum(size > 1 for size in _sizes(domain))
    classes = 1
    if options.target is not None and 1 < domain[options.target].size <= MOST_CLASSES:
        classes = domain[options.target].size
    each = f", in each of {classes} classes" if classes > 1 else ""
    total = Step("total", parts["total"], f"the number of records{each}", parts["total"])
    if options.rows is None:
        text = f"{used} single columns, and pairs of columns: how many depends on --rows N"
        views = [Step("views", parts["views"], text + each)]
    else:
        used -= classes > 1
        shares = view_shares(
            parts["views"],
            options.rows / classes,
            used,
            labelled=options.target is not None and classes == 1,
            tree_only=classes > 1,
            n_ruled=0 if rules is None else len(rules.forest()),
        )
        views = _views(shares, used, each)
    return [total, *views, *_errors(parts)]


def _errors(parts: Mapping[str, Fraction]) -> list[Step]:
    return [Step("errors", parts["errors"], "how far answers are off")] * ("errors" in parts)


def _marginals(parts: Mapping[str, Fraction], domain: Domain, options: Namespace) -> list[Step]:
    if sum(size > 1 for size in domain.shape) <= 2:
        return _pair_views(parts, domain, Namespace(rows=options.rows, target=None))
    sizes = _sizes(domain)
    used = sum(size > 1 for size in sizes)
    classes = 1
    if options.target is not None and 1 < domain[options.target].size <= MOST_CLASSES:
        classes = domain[options.target].size
        used -= 1
    each = f", in each of {classes} classes" if classes > 1 else ""
    total = Step("total", parts["total"], f"the number of records{each}", parts["total"])
    if options.rows is None:
        text = f"{used} single columns{each}, and sets of columns: how many depends on --rows N"
        return [total, Step("views", parts["views"], text), *_errors(parts)]
    label = None if classes == 1 else domain.index(options.target)
    asked = _asked(domain, options, label)
    joint = joint_share(parts["views"], options.rows, sizes, **asked)
    shares = plan_views(parts["views"] - joint, options.rows, sizes, labelled=classes > 1, **asked)
    none = "" if shares.n_views else "; no sets: too few records for this epsilon"
    sets = f"{shares.n_views} set{'s' * (shares.n_views > 1)} of two and more columns"
    sets = f"about {sets}" if shares.first_round else sets
    views = [
        Step("- joint", joint, "all columns together, cell by cell", joint),
        Step("- test", shares.test, "whether any two columns are dependent; if not, no sets"),
        Step("- single", shares.single, f"{used} single columns{none}"),
        Step("- classes", shares.classes, f"bins of {used} single columns{each}"),
        Step("- grid", shares.grid, f"one grid of the columns that tell most{each}"),
        Step("- choice", shares.choice, f"which {sets} are measured"),
        Step("- views", shares.views, sets),
    ]
    return [total, *(step for step in views if step.epsilon), *_errors(parts)]


def _asked(domain: Domain, options: Namespace, label: int | None) -> dict[str, Any]:
    """What the sets of columns are for, as the kernel wants it."""
    made = estimator_of(options, domain)
    workload = as_workload(made.workload, domain, made.max_order)
    return {
        "max_order": min(made.max_order, len(domain.shape)),
        "workload": used_sets(workload, _sizes(domain), label),
    }


def _views(shares: ViewShares, used: int, each: str) -> list[Step]:
    """How the part "views" is divided."""
    none = "" if shares.n_pairs or used < 2 else "; no pairs: too few records for this epsilon"
    steps = [Step("- single", shares.single, f"{used} single columns{none}{each}")]
    if shares.choice:
        chosen, possible = shares.n_pairs + shares.n_extra, used * (used - 1) // 2
        text = f"which {chosen} of {possible} pairs of columns are measured{each}"
        steps.append(Step("- choice", shares.choice, text))
    for name, budget, number in (
        ("- pairs", shares.pairs, shares.n_pairs),
        ("- extra", shares.extra, shares.n_extra),
    ):
        if number:
            text = f"{number} pair{'s' * (number > 1)} of columns, as boxes{each}"
            steps.append(Step(name, budget, text))
    return steps


def _rules(domain: Domain) -> Rules | None:
    zeros = [Zeros(each.axes, each.allowed) for each in domain.structure.zeros]
    return Rules.of(domain.shape, zeros) if zeros else None


def _sizes(domain: Domain) -> tuple[int, ...]:
    """Number of codes of each column that records can have."""
    rules = _rules(domain)
    return domain.shape if rules is None else rules.sizes


def _print_columns(steps: list[Step], domain: Domain, rows: int, most: int) -> None:
    """The single columns: their budgets, and records of a code beside the noise of its count."""
    single = [step.epsilon for step in steps if step.name == "- single"]
    if not single:
        return
    lines = [("column", "codes", "epsilon", "noise", "records of a code")]
    as_ranges = False
    sizes = _sizes(domain)
    for (name, attribute), size, share in zip(
        domain.items(), sizes, single_shares(sizes), strict=True
    ):
        budget = single[0] * share
        noise = _noise(budget) if budget else ""
        if size >= DIRECT and (not isinstance(attribute, Categorical) or attribute.ordered):
            noise, as_ranges = "ranges", True
        lines.append((name, str(size), _short(budget * most), noise, _rounded(rows / size)))
    print(f"\nsingle columns, with {rows:,} records spread evenly over the codes:")
    print(text_table(lines))
    if as_ranges:
        print("ranges: measured as ranges of codes, which are divided where there are records")


def _hdpview(parts: Mapping[str, Fraction], domain: Domain, options: Namespace) -> list[Step]:
    steps = []
    if "converge" in parts:
        known = hdpview_parameters(parts, domain.shape)
        steps = [
            Step("converge", parts["converge"], "which blocks are divided"),
            Step("cut", parts["cut"], f"where, at most {known.kappa} times, or for counts"),
        ]
    return [*steps, Step("counts", parts["counts"], "each final block", parts["counts"])]


def _privtree(parts: Mapping[str, Fraction], domain: Domain, options: Namespace) -> list[Step]:
    return [
        Step("tree", parts["tree"], "which boxes are divided"),
        Step("counts", parts["counts"], "each final box", parts["counts"]),
    ]


def _kdtree(parts: Mapping[str, Fraction], domain: Domain, options: Namespace) -> list[Step]:
    cells = f"all {math.prod(domain.shape):,} cells, which decide the boxes"
    return [
        Step("cells", parts["cells"], cells, parts["cells"]),
        Step("boxes", parts["boxes"], "each box again", parts["boxes"]),
    ]


def _grid(parts: Mapping[str, Fraction], domain: Domain, options: Namespace) -> list[Step]:
    counts = parts["counts"]
    text = "each box; how many depends on --rows N"
    if options.rows is not None:
        size = grid_size("extended", options.rows, counts, len(domain.shape))
        sides = grid_sides(domain.shape, min(size, MOST_CELLS))
        text = f"about {math.prod(sides):,} boxes ({' x '.join(map(str, sides))} parts)"
    return [
        Step("total", parts["total"], "the number of records, for the size", parts["total"]),
        Step("counts", counts, text, counts),
    ]


def _privbayes(parts: Mapping[str, Fraction], domain: Domain, options: Namespace) -> list[Step]:
    used = used_attributes(domain.shape)
    steps = [Step("total", parts["total"], "the number of records", parts["total"])]
    if "network" in parts:
        text = f"the parents of each column, in {len(used) - 1} rounds"
        steps.append(Step("network", parts["network"], text))
    cell = parts["tables"] / max(len(used), 1)
    text = f"{len(used)} tables of a column and its parents"
    return [*steps, Step("tables", parts["tables"], text, cell)]


_STEPS: dict[str, Callable[[Mapping[str, Fraction], Domain, Namespace], list[Step]]] = {
    "grid": _grid,
    "hdpview": _hdpview,
    "kdtree": _kdtree,
    "marginals": _marginals,
    "pair-views": _pair_views,
    "privbayes": _privbayes,
    "privtree": _privtree,
}


def _short(value: Fraction) -> str:
    return f"{float(value):.4g}"


def _noise(budget: Fraction | None) -> str:
    return "" if budget is None else f"{math.sqrt(discrete_laplace_variance(budget)):.3g}"


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
