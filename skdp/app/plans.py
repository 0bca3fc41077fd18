"""``plan``: what a release would cost and measure, from public facts alone."""

from __future__ import annotations

import math
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from .._validation import as_epsilon, used_attributes
from ..accounting import PrivacyLoss
from ..algorithms.dpcube import MOST_CELLS
from ..algorithms.grid import grid_sides, grid_size
from ..algorithms.hdpview import hdpview_parameters
from ..algorithms.marginals import Asked, Rules, division_of
from ..algorithms.marginals.groups import column_plan
from ..domain import Domain
from ..mechanisms import discrete_laplace_variance
from ..release import SKIPPED
from ..synthesis.marginals import as_workload, means_of, used_sets
from .csv import no_records, try_out
from .domains import read_domain, text_table
from .outputs import estimator_of, number


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
    if options.ask and not options.rows:
        raise ValueError("--ask needs --rows N, a public guess of the number of records.")
    if options.at and not options.ask:
        raise ValueError("--at needs --ask, a question.")
    if options.ask and domain.open:
        raise ValueError(
            f"--ask needs the range of every number, and {domain.open[0]!r} has none: give a guess "
            "in a copy of the domain. Only the plan uses it."
        )
    estimator = estimator_of(options, domain)
    try_out(estimator, no_records(domain, options.privacy_id))
    loss: PrivacyLoss = estimator.privacy_loss_
    domain = estimator.domain_
    print(f"{options.method} on {len(domain.names)} columns, epsilon {float(loss.epsilon):g}")
    print(f"protects: {loss.neighbours}")
    print("Nothing was read or spent.\n")
    parts = dict(loss.of_record.parts)
    first = parts.pop(SKIPPED)
    steps = [Step(SKIPPED, first, "records kept, and skipped by each column", first)]
    if "ranges" in parts:
        ranges = parts.pop("ranges")
        steps.append(Step("ranges", ranges, "where the numbers of some columns lie"))
    steps += _STEPS[options.method](parts, domain, options)
    most = loss.max_rows_per_id or 1
    rows = [("part", "epsilon", "noise", "measures")]
    rows += [(s.name, _short(s.epsilon * most), _noise(s.cell), s.what) for s in steps]
    print(text_table(rows))
    print("\nnoise: standard deviation of the noise of one count, in records")
    if options.method == "marginals":
        _print_columns(steps, domain, options.rows, most)
    if options.ask:
        _print_bars(options, domain, loss.epsilon)
    return 0


def _print_bars(options: Namespace, domain: Domain, epsilon: Fraction) -> None:
    """Error bars of questions at several epsilons, from releases of generated tables."""
    at = [epsilon * Fraction(2) ** power for power in (-2, -1, 0, 1, 2)]
    if options.at is not None:
        at = [as_epsilon(number(part.strip(), "--at"), "--at") for part in options.at.split(",")]
    made = estimator_of(options, domain)
    found = made.expected_error(options.rows, at, questions=options.ask)
    rows = [
        (question, *(f"\u00b1 {bar:,.3g}" if bar < 1000 else f"\u00b1 {bar:,.0f}" for bar in bars))
        for question, *bars in found.errors.itertuples()
    ]
    print(f"\n{options.rows:,} records: half the 95% interval, by epsilon, {found.how}:")
    print(text_table([("question", *(f"{float(each):g}" for each in at)), *rows]))


def _marginals(parts: Mapping[str, Fraction], domain: Domain, options: Namespace) -> list[Step]:
    sizes = _sizes(domain)
    used = used_attributes(sizes)
    total = Step("total", parts["total"], "the number of records", parts["total"])
    single = f"{len(used)} single column{'s' * (len(used) != 1)}"
    if options.rows is None and len(used) > 1:
        text = f"{single}, and sets of columns: how many depends on --rows N"
        return [total, Step("views", parts["views"], text)]
    made = estimator_of(options, domain)
    workload = as_workload(made.workload, domain, made.max_order)
    label = None if options.target is None else domain.index(options.target)
    asked = Asked(
        [None] * len(sizes),
        label=label if label in used else None,
        max_order=made.max_order,
        workload=used_sets(workload, domain.shape),
        means=means_of(made.workload, domain),
    )
    with warnings.catch_warnings():
        # Nothing is released: the steps are those of a table without records.
        warnings.simplefilter("ignore")
        shares = division_of(sizes, parts["views"], options.rows or 0, asked)
    all_columns = "all columns together, cell by cell"
    sets = f"{shares.n_sets} set{'s' * (shares.n_sets != 1)} of two and more columns"
    pairs = f"coarse tables of {shares.n_coarse} pairs of columns"
    views = [
        Step("- means", shares.means, "sums of numbers by group"),
        Step("- columns", shares.columns, single),
        Step("- joint", shares.joint, all_columns, shares.joint),
        Step("- coarse", shares.coarse, pairs, shares.coarse / max(shares.n_coarse, 1)),
        Step("- choice", shares.choice, f"which {sets} are measured"),
        Step(
            "- sets",
            shares.sets,
            all_columns if shares.whole else sets,
            shares.sets / max(shares.n_sets, 1),
        ),
    ]
    return [total, *(step for step in views if step.epsilon)]


def _sizes(domain: Domain) -> tuple[int, ...]:
    """Number of codes of each column that records can have."""
    zeros = domain.structure.zeros
    rules = Rules.of(domain.shape, zeros) if zeros else None
    return domain.shape if rules is None else rules.sizes


def _print_columns(steps: list[Step], domain: Domain, rows: int | None, most: int) -> None:
    """The single columns: their budgets, and records of a code beside the noise of its count."""
    columns = [step.epsilon for step in steps if step.name == "- columns"]
    if not columns:
        return
    lines = [("column", "codes", "epsilon", "noise", "records of a code")]
    as_ranges = False
    sizes = _sizes(domain)
    each = columns[0] / max(len(used_attributes(sizes)), 1)
    for (name, attribute), size in zip(domain.items(), sizes, strict=True):
        if size == 1:
            lines.append((name, "1", _short(Fraction(0)), "", _rounded(rows or 0)))
            continue
        several = len(column_plan(size, attribute.order() is not None).shares) > 1
        as_ranges |= several
        noise = "ranges" if several else _noise(each)
        lines.append((name, str(size), _short(each * most), noise, _rounded((rows or 0) / size)))
    print(f"\nsingle columns, with {rows or 0:,} records spread evenly over the codes:")
    print(text_table(lines))
    if as_ranges:
        print("ranges: measured as ranges of codes, on several levels")


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
    "privbayes": _privbayes,
    "privtree": _privtree,
}


def _short(value: Fraction) -> str:
    return f"{float(value):.4g}"


def _noise(budget: Fraction | None) -> str:
    return "" if budget is None else f"{math.sqrt(discrete_laplace_variance(budget)):.3g}"


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
