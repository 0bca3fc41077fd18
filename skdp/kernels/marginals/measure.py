"""The whole measurement: total, single attributes, then views in rounds, and a model of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..._random import NoiseSource, noise_source, sampling_generator
from ..._types import FloatArray, IntArray
from ...domain import Zeros
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...release import ErrorClasses, MixtureModel, TreeModel, group_sums
from ...rows import Counts
from ..pairviews.attributes import Attribute
from ..pairviews.budget import used_attributes
from ..pairviews.choice import BinnedPairs, choose_pairs, pair_scores
from ..pairviews.errors import publish_classes, publish_errors
from ..pairviews.measure import MOST_CLASSES, pair_views
from ..pairviews.rules import Rules
from ..pairviews.single import DIRECT, single_shares, single_views
from ..pairviews.structured import rescaled
from .candidates import Candidates
from .classes import Classes
from .evidence import Evidence
from .grid import measure_grid
from .lawful import Laws
from .model import as_model
from .plan import GROUPS, Plan, Workload, used_sets
from .population import Population, Target
from .schemes import aim_sets, annealed_views, planned
from .simulation import Alone, simulated_errors, variance_of_total
from .stepwise import stepwise_views
from .views import measure_sets
from .wide import JointCounts, joint_share, measure_joint, measure_whole, whole_share
from .worth import worth_views

__all__ = ["marginal_views"]

Widths = Mapping[int, FloatArray] | None

# Sweeps of fitting: after the first views, after those of a round, and of the last population.
_FIRST_SWEEPS, _SWEEPS, _LAST_SWEEPS = 5, 3, 5
# With fewer attributes of more than one code, one quantile of errors is published for queries on so
# many of them.
_FEWEST_OF_CLASSES = 3
_ORDERS = (1, 2)
# Rounds of proportional fitting of the weights in the end.
_SETTLED = 6
# Ranges of an attribute that was measured by a tree have about this share of the variance of sums
# of cells.
_TREE_VARIANCE = 0.05
# Those of few of its codes have so many times more.
_TREE_CODES = 40.0


def marginal_views(
    table: Counts,
    parts: dict[str, Fraction],
    *,
    orders: Sequence[IntArray | None] | None = None,
    label: int | None = None,
    zeros: Sequence[Zeros] = (),
    widths: Widths = None,
    max_order: int = 3,
    workload: Workload = "all",
    plan: str = "adaptive",
    progress: Callable[[str], None] = lambda text: None,
    random_state: NoiseSource | int | None = None,
) -> TreeModel | MixtureModel:
    """Measure views of a table, and fit a population of rows to all of them.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    parts : dict of str to Fraction
        From `pair_views_parts`: "total", "views" and, for error bars, "errors".
    orders : sequence of ndarray of int or None, default=None
        For each attribute its codes in an order in which neighbours are similar; None for
        attributes without one. By default all are in the order of their codes.
    label : int, default=None
        The attribute to be predicted: bins of single attributes are measured in each of its
        classes, and a grid, and views with it count half. If it has more than 20 codes, the first
        pairs contain it, and views without it count half.
    zeros : sequence of Zeros, default=()
        Combinations of codes that records can have, by public rules: others have no count in the
        release and are never drawn. Records that break a rule must not be in the table.
    widths : mapping of int to ndarray of float64, default=None
        Attributes whose counts are smooth on a scale, with the width of each code on it.
    max_order : int, default=3
        Most attributes of a view.
    workload : str or mapping of tuple of int to float, default="all"
        What the views should serve: "all", "ranges" (more budget for single attributes), "cells"
        (less), or sets of attributes with weights in (0, 1], the only ones to be measured.
    plan : str, default="adaptive"
        One of `PLANS`. With "mst" and "aim" the label is an attribute like the others, and joint
        counts are not measured.
    progress : callable, optional
        Is told, as text, which step begins, in numbers that are public or released.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    TreeModel
        Or what `pair_views` returns if at most two attributes have more than one code.

    Raises
    ------
    ValueError
        If no record satisfies the rules.
    """
    # Privacy. The parts "total" and "views" follow each other in `_measure`; "errors" follows them
    # on the released model. Their budgets add up to epsilon.
    source = noise_source(random_state)
    if orders is None:
        orders = [np.arange(size) for size in table.shape]
    if plan == "adaptive" and max_order > 1 and len(used_attributes(table.shape)) <= 2:
        progress("single columns and their pair")
        return pair_views(
            table,
            parts,
            orders=orders,
            label=label,
            zeros=zeros,
            widths=widths,
            random_state=source,
        )
    rules = Rules.of(table.shape, zeros) if zeros else None
    if zeros and rules is None:
        raise ValueError("The structural zeros leave no possible record.")
    label = label if plan == "adaptive" else None
    asked = _Asked(max_order, workload, label, plan, progress)
    if rules is None:
        model, known = _measure(table, parts, orders, widths or {}, asked, None, source)
    else:
        inside = {axis: each[rules.codes[axis]] for axis, each in (widths or {}).items()}
        possible = rules.compressed(table)
        own = rules.orders(orders)
        model, known = _measure(possible, parts, own, inside, asked, rules, source)
    simulated = model
    model = model if rules is None else rules.expanded(model)
    if "errors" in parts:
        progress("errors of the model")
        ordered = [order is not None for order in orders]
        if len(used_attributes(table.shape)) < _FEWEST_OF_CLASSES:
            model.error_bars = publish_errors(
                table, model, parts["errors"], ordered, orders=_ORDERS, random_state=source
            )
            return model
        errors = simulated_errors(simulated.density.marginals, model.total, known.alone, source)
        if known.joint is not None:
            errors = known.joint.column_errors(errors)
        if rules is not None:
            errors = rules.expanded_columns(errors)
        published = publish_classes(
            table, model, parts["errors"], ordered, errors, random_state=source
        )
        model.error_bars = ErrorClasses(
            {name: each.bars for name, each in published.items()},
            {name: each.typical for name, each in published.items()},
            {name: each.misfit for name, each in published.items()},
            {name: each.lower for name, each in published.items()},
            known.total_variance,
            known.noise,
            errors,
        )
    return model


class _Asked(NamedTuple):
    """What the views are for, and who is told of the steps."""

    max_order: int
    workload: Workload
    label: int | None
    plan: str
    progress: Callable[[str], None]


class _Known(NamedTuple):
    """What is known of the noise of a model.

    Attributes
    ----------
    alone : Alone
        How single attributes were measured.
    total_variance : float
        Of the number of records.
    noise : dict of (int, int) to float
        Standard deviation of a cell of each pair that was counted by cells.
    joint : JointCounts or None
        Of all columns together, where there are any.
    """

    alone: Alone
    total_variance: float
    noise: dict[tuple[int, int], float]
    joint: JointCounts | None


def _measure(
    table: Counts,
    parts: dict[str, Fraction],
    orders: Sequence[IntArray | None],
    widths: Mapping[int, FloatArray],
    asked: _Asked,
    rules: Rules | None,
    source: NoiseSource,
) -> tuple[TreeModel, _Known]:
    """Measure a table over the codes that records can have, within "total" and "views"."""
    # Privacy. Measured one after the other, within budgets that add up to the two parts: the total
    # or that of each class (sensitivity 1), perhaps whether any pair is dependent, perhaps the
    # joint counts, single attributes, with a label bins of them in each class and a grid, then in
    # rounds the choice of views and the views; with what is left single attributes once more. The
    # division depends on public facts and releases before it.
    label = asked.label if asked.label is not None and table.shape[asked.label] > 1 else None
    classes = None
    if label is not None and table.shape[label] <= MOST_CLASSES:
        classes = Classes.of(table, label, parts["total"], source)
    first_total = _first_total(table, parts["total"], classes, source)
    known_by = None if classes is None else label
    workload = used_sets(asked.workload, table.shape, known_by)
    if asked.plan == "aim":
        groups = [min(size, GROUPS) for size in table.shape]
        workload = aim_sets(workload, groups, asked.max_order)
    asked = asked._replace(workload=workload, label=label)
    joint = whole = Fraction(0)
    if asked.plan == "adaptive":
        given = parts["views"], first_total, table.shape
        joint = joint_share(*given, max_order=asked.max_order, workload=workload)
        if not joint and label is None:
            whole = whole_share(*given, max_order=asked.max_order, workload=workload)
    plan = planned(
        asked.plan,
        parts["views"] - joint - whole,
        first_total,
        table.shape,
        max_order=1 if whole else asked.max_order,
        workload=workload,
        labelled=classes is not None,
    )
    if plan.test:
        asked.progress("are there dependent columns?")
        if not worth_views(table, plan.test, orders, source):
            plan = plan.without_views()
    asked.progress("single columns")
    singles = _measure_singles(table, plan, first_total, parts, orders, widths, classes, source)
    alone = _how_alone(table.shape, plan, parts, orders, widths, classes)
    total_variance = variance_of_total(alone)
    counted = None
    if joint:
        counted = measure_joint(
            table, joint, singles.attributes, singles.whole, total_variance, source
        )
    generator = sampling_generator(source)
    laws = Laws.of(rules, singles.attributes)
    population = Population.of(singles.attributes, laws, plan.n_rows, generator)
    ordered = [order is not None for order in orders]
    if whole:
        asked.progress("all columns together")
        attributes = singles.attributes
        variances = _single_variances(table.shape, plan.single, orders, attributes)
        # Ranges are sums of its cells, whatever the tree of a single attribute tells.
        variances = _code_variances(table.shape, variances, orders)
        counted, targets, noise = measure_whole(
            table, whole, attributes, variances, singles.whole, total_variance, source
        )
    else:
        targets, plan = _measure_views(table, plan, singles, asked, population, ordered, source)
        if plan.again:
            asked.progress("single columns once more")
            _measure_again(table, plan.again, singles, parts, orders, widths, source)
            targets = singles.evidence.targets()
        noise = singles.evidence.noise_of_pairs()
        asked.progress("synthetic rows")
        _finish(population, targets, plan.n_last)
    budget = {"total": parts["total"], "joint": joint + whole} | plan.budget()
    model = as_model(
        population,
        targets,
        singles.attributes,
        singles.total if counted is None else counted.total,
        {name: float(part) for name, part in budget.items() if part},
        generator,
        laws=laws,
        joint=counted,
    )
    if counted is not None:
        total_variance = counted.variance
    if joint and counted is not None:
        # Joint counts replace the views.
        noise = {}
    return model, _Known(alone, total_variance, noise, counted)


def _how_alone(
    shape: tuple[int, ...],
    plan: Plan,
    parts: Mapping[str, Fraction],
    orders: Sequence[IntArray | None],
    widths: Mapping[int, FloatArray],
    classes: Classes | None,
) -> Alone:
    """How single attributes were measured, to simulate it."""
    if classes is None:
        return Alone(shape, plan.single, parts["total"], orders, widths)
    label = classes.label
    return Alone(
        (*shape[:label], 1, *shape[label + 1 :]),
        plan.single,
        parts["total"],
        orders,
        widths,
        label,
        shape[label],
        classes.variance,
    )


def _first_total(
    table: Counts, epsilon: Fraction, classes: Classes | None, source: NoiseSource
) -> int:
    """The released number of records, or of those of all classes."""
    if classes is not None:
        return classes.total
    return int(discrete_laplace(table.n, epsilon, random_state=source))


class _Singles(NamedTuple):
    """Released single attributes, and what is known from them.

    Attributes
    ----------
    attributes : list of Attribute
    total : float
        Estimated number of records.
    evidence : Evidence
    known : list of tuple of int
        Pairs that need no view: those of the label, where attributes are measured in its classes.
    """

    attributes: list[Attribute]
    total: float
    evidence: Evidence
    known: list[tuple[int, ...]]

    @property
    def whole(self) -> float:
        """The number of records, positive."""
        return max(self.total, 1.0)


def _measure_singles(
    table: Counts,
    plan: Plan,
    first_total: int,
    parts: Mapping[str, Fraction],
    orders: Sequence[IntArray | None],
    widths: Mapping[int, FloatArray],
    classes: Classes | None,
    source: NoiseSource,
) -> _Singles:
    """Measure every attribute alone, or in each class of the label."""
    alone, inside = table, list(orders)
    if classes is not None:
        # The label is known by the number of records of each class.
        label = classes.label
        alone = table.recode(label, np.zeros(table.shape[label], dtype=np.int64))
        inside[label] = np.zeros(1, dtype=np.int64)
    views, total = single_views(
        alone,
        plan.single,
        first_total,
        parts["total"],
        inside,
        widths=widths,
        random_state=source,
    )
    if classes is not None:
        views[label] = max(total, 1.0) * classes.shares
    attributes = [
        Attribute.of(view, order, GROUPS) for view, order in zip(views, orders, strict=True)
    ]
    variances = _single_variances(alone.shape, plan.single, inside, attributes)
    whole = max(total, 1.0)
    known: dict[tuple[int, ...], FloatArray] = {}
    if classes is not None:
        masses, known = classes.measure(
            table,
            plan.classes,
            attributes,
            [order is not None for order in orders],
            _code_variances(alone.shape, variances, inside),
            whole,
            source,
        )
        variances[label] = classes.variance
        attributes = [
            each._replace(mu=rescaled(each, mass), grouped=mass)
            for each, mass in zip(attributes, masses, strict=True)
        ]
    evidence = Evidence([whole * each.grouped for each in attributes], variances)
    for axes, shares in known.items():
        evidence.estimated(axes, shares)
    return _Singles(attributes, total, evidence, list(known))


def _measure_again(
    table: Counts,
    epsilon: Fraction,
    singles: _Singles,
    parts: Mapping[str, Fraction],
    orders: Sequence[IntArray | None],
    widths: Mapping[int, FloatArray],
    source: NoiseSource,
) -> None:
    """Measure every attribute alone a second time, and add what that tells to the evidence."""
    # Privacy. As the first time (`single_views`), with a budget that was left.
    views, _ = single_views(
        table, epsilon, round(singles.total), parts["total"], orders, widths=widths,
        random_state=source,
    )  # fmt: skip
    variances = _single_variances(table.shape, epsilon, orders, singles.attributes)
    for axis, (view, each) in enumerate(zip(views, singles.attributes, strict=True)):
        grouped = group_sums(view, each.groups, len(each.grouped))
        singles.evidence.counted(axis, singles.whole * grouped / view.sum(), variances[axis])


def _finish(population: Population, targets: Sequence[Target], n_rows: int) -> None:
    """Fit the rows that are released."""
    population.scale(targets)
    population.renew(n_rows)
    population.fit(targets, _LAST_SWEEPS)
    population.settle(targets, _SETTLED)


def _measure_views(
    table: Counts,
    plan: Plan,
    singles: _Singles,
    asked: _Asked,
    population: Population,
    ordered: Sequence[bool],
    source: NoiseSource,
) -> tuple[list[Target], Plan]:
    """Choose and measure views in rounds; the population follows them.

    All margins to be had, and the plan with what was spent.
    """
    attributes, total, evidence = singles.attributes, singles.whole, singles.evidence
    used = used_attributes(table.shape)
    taken = list(singles.known)
    if plan.n_first:
        asked.progress(f"{plan.n_first} of {plan.n_views} sets of columns")
        first = _first_pairs(table, plan, attributes, total, used, asked.label, source)
        measure_sets(
            table,
            first,
            attributes,
            plan.view(len(first)),
            total,
            population,
            evidence,
            source,
            by_cells=plan.by_cells,
        )
        taken += first
    targets = evidence.targets()
    population.fit(targets, _FIRST_SWEEPS)
    grids: list[Target] = []
    if plan.grid and asked.label is not None:
        known = {each.axes: each.table for each in targets}
        grid = measure_grid(
            table, asked.label, attributes, ordered, known, total, plan.grid, population, source
        )
        grids = [] if grid is None else [grid]
        population.fit([*targets, *grids], _FIRST_SWEEPS)
    candidates = Candidates(
        table,
        attributes,
        used,
        asked.max_order,
        asked.workload,
        asked.label,
        plan.most_cells,
        by_cells=plan.by_cells,
        label_known=bool(singles.known),
    )
    if plan.first_round and asked.plan == "aim":
        found = annealed_views(
            table, plan, attributes, total, candidates, population, evidence, source
        )
        return found, plan
    if plan.first_round:
        spent = stepwise_views(
            table, plan, attributes, total, candidates, population, evidence, taken, source
        )
        return evidence.targets(), spent
    for n_views in plan.rounds:
        sets = candidates.best(
            population, total, taken, n_views, plan.pick(n_views), plan.view(), source
        )
        if not sets:
            break
        taken += sets
        asked.progress(f"{len(sets)} of {plan.n_views} sets of columns")
        measure_sets(
            table, sets, attributes, plan.view(len(sets)), total, population, evidence, source
        )
        targets = evidence.targets()
        population.fit([*targets, *grids], _SWEEPS)
    return [*targets, *grids], plan


def _first_pairs(
    table: Counts,
    plan: Plan,
    attributes: Sequence[Attribute],
    total: float,
    used: Sequence[int],
    label: int | None,
    source: NoiseSource,
) -> list[tuple[int, ...]]:
    """Pairs furthest from independence that form a tree; with a label of many codes around it."""
    binned = BinnedPairs.of(table, attributes)
    scores = pair_scores(binned.counts, binned.independent(attributes, total), binned.starts)
    return list(
        choose_pairs(
            scores,
            plan.n_first,
            plan.pick(plan.n_first),
            among=used,
            label=label,
            random_state=source,
        )
    )


def _single_variances(
    shape: Sequence[int],
    epsilon: Fraction,
    orders: Sequence[IntArray | None],
    attributes: Sequence[Attribute],
) -> list[float]:
    """Variance of the count of a group of each attribute."""
    found = []
    for size, share, order, each in zip(
        shape, single_shares(shape), orders, attributes, strict=True
    ):
        if size < 2:
            found.append(1.0)
            continue
        variance = discrete_laplace_variance(epsilon * share) * size / len(each.grouped)
        by_tree = size >= DIRECT and order is not None
        found.append(variance * _TREE_VARIANCE if by_tree else variance)
    return found


def _code_variances(
    shape: Sequence[int], variances: Sequence[float], orders: Sequence[IntArray | None]
) -> list[float]:
    """The same where it matters how a few codes were counted: trees say less of them."""
    return [
        variance * _TREE_CODES if size >= DIRECT and order is not None else variance
        for size, variance, order in zip(shape, variances, orders, strict=True)
    ]
