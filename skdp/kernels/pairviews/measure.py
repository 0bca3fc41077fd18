"""The whole measurement of pair views, from a table of counts to a released model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource, noise_source, sampling_generator
from ..._types import FloatArray, IntArray
from ...domain import Zeros
from ...mechanisms import discrete_laplace, discrete_laplace_variance
from ...release import MixtureModel, PairTable, TreeDensity, TreeModel
from ...rows import Counts, CountTable
from .attributes import Attribute
from .budget import ViewShares, group_limit, used_attributes, view_shares
from .choice import BinnedPairs, choose_extra_pairs, choose_pairs, pair_scores
from .errors import publish_errors
from .pairs import margins_of, measure_only_pair, measure_pairs
from .raking import SAMPLED_ROWS, rake
from .rules import Rules, within_class
from .simulation import draw_records
from .single import single_views
from .structured import (
    Masks,
    complete,
    fit_tree,
    masks_of,
    possible_rows,
    supported,
    unmeasured,
)

__all__ = ["MOST_CLASSES", "measure_class", "measure_table", "pair_views"]

Widths = Mapping[int, FloatArray] | None

# A label with at most this many codes gets a model for each of them.
MOST_CLASSES = 20
# How often records drawn from a release are measured again. If few records or much noise give few
# boxes, all errors of a release depend on a handful of draws (mainly that of the total), and the
# errors of a single simulation can be small by chance.
_SIMULATIONS = 8
# Rounds of raking where there are pairs beyond the tree, and where there are none.
_ROUNDS, _FEW_ROUNDS = 20, 6


def pair_views(
    table: Counts,
    parts: dict[str, Fraction],
    *,
    orders: Sequence[IntArray | None] | None = None,
    label: int | None = None,
    zeros: Sequence[Zeros] = (),
    widths: Widths = None,
    random_state: NoiseSource | int | None = None,
) -> TreeModel | MixtureModel:
    """Measure the views of a table within the parts of `pair_views_parts`.

    Parameters
    ----------
    table : CountTable or ProjectedCounts
        Exact and private.
    parts : dict of str to Fraction
    orders : sequence of ndarray of int or None, default=None
        For each attribute its codes in an order in which neighbours are similar; None for
        attributes without one. By default all are in the order of their codes.
    label : int, default=None
        The attribute to be predicted. The records of each of its codes get a model of their own;
        if it has more than 20 codes, all pairs of the tree contain it instead.
    zeros : sequence of Zeros, default=()
        Combinations of codes that records can have, by public rules: others have no count in the
        release and are never drawn. Records that break a rule must not be in the table.
    widths : mapping of int to ndarray of float64, default=None
        Attributes whose counts are smooth on a scale, with the width of each code on it, nan for
        codes that are no bins. These counts are smoothed.
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    TreeModel or MixtureModel

    Raises
    ------
    ValueError
        If no record satisfies the rules.
    """
    # Privacy. The part "errors" follows the others, one after the other. Without a label all
    # records are measured together; with one, the records of each class by themselves, each class
    # within the same parts: a record lies in one class, so the classes compose in parallel. That
    # all classes are measured (but those that public rules leave empty), and how, is public. Rules
    # change no sensitivity: whether a record breaks one depends on this record alone, and it is
    # then skipped before anything is counted.
    source = noise_source(random_state)
    if orders is None:
        orders = [np.arange(size) for size in table.shape]
    rules = Rules.of(table.shape, zeros) if zeros else None
    if zeros and rules is None:
        raise ValueError("The structural zeros leave no possible record.")
    model: TreeModel | MixtureModel
    if label is not None and 1 < table.shape[label] <= MOST_CLASSES:
        classes = (
            measure_class(table, code, label, parts, orders, source, zeros, widths)
            for code in range(table.shape[label])
        )
        model = MixtureModel([each for each in classes if each is not None])
    else:
        model = _measure_ruled(table, parts, orders, source, rules, label, widths=widths)
    if "errors" in parts:
        model.error_bars = publish_errors(
            table,
            model,
            parts["errors"],
            [order is not None for order in orders],
            simulated=_simulate(model, parts, orders, source, rules, widths),
            random_state=source,
        )
    return model


def measure_class(
    table: Counts,
    code: int,
    label: int,
    parts: dict[str, Fraction],
    orders: Sequence[IntArray | None],
    source: NoiseSource,
    zeros: Sequence[Zeros] = (),
    widths: Widths = None,
) -> TreeModel | None:
    """Measure the records of one class, as a table whose label has this code only.

    None if the rules leave the class empty. There are no pairs beyond the tree: synthetic rows
    drawn from weighted ones trained worse classifiers than those of the tree.
    """
    members = table.where(label, code)
    alone = [np.zeros(1, dtype=np.int64) if i == label else o for i, o in enumerate(orders)]
    rules = Rules.of(members.shape, within_class(zeros, label, code)) if zeros else None
    if zeros and rules is None:
        return None
    n_rows = SAMPLED_ROWS // table.shape[label]
    part = _measure_ruled(
        members, parts, alone, source, rules, tree_only=True, n_rows=n_rows, widths=widths
    )
    marginals = list(part.density.marginals)
    marginals[label] = np.zeros(table.shape[label])
    marginals[label][code] = 1.0
    tree = TreeDensity(marginals, part.density.edges, part.density.groups)
    if part.rows is not None:
        part.rows[:, label] = code
    return TreeModel(
        tree, part.total, rows=part.rows, row_weights=part.row_weights, budget=part.budget
    )


def _measure_ruled(
    table: Counts,
    parts: dict[str, Fraction],
    orders: Sequence[IntArray | None],
    source: NoiseSource,
    rules: Rules | None,
    label: int | None = None,
    *,
    tree_only: bool = False,
    n_rows: int = SAMPLED_ROWS,
    widths: Widths = None,
) -> TreeModel:
    """Measure a table over the codes that records can have; the others get the count 0."""
    if rules is not None:
        table, orders = rules.compressed(table), rules.orders(orders)
        widths = {axis: each[rules.codes[axis]] for axis, each in (widths or {}).items()}
    informative = label if label is not None and table.shape[label] > 1 else None
    model = measure_table(
        table,
        parts,
        orders,
        source,
        label=informative,
        tree_only=tree_only,
        rules=rules,
        n_rows=n_rows,
        widths=widths,
    )
    return model if rules is None else rules.expanded(model)


def measure_table(
    table: Counts,
    parts: dict[str, Fraction],
    orders: Sequence[IntArray | None],
    source: NoiseSource,
    *,
    label: int | None = None,
    tree_only: bool = False,
    rules: Rules | None = None,
    n_rows: int = SAMPLED_ROWS,
    widths: Widths = None,
) -> TreeModel:
    """Measure a table within "total" and "views"."""
    # Privacy. The total (sensitivity 1), the views of single attributes, the choice of pairs (those
    # of the tree, then the extra ones), and the pair views (a record lies in each of them) compose
    # one after the other; their budgets add up to the two parts. Their parameters depend on the
    # data through released values only. Rules are public: they name pairs that need no choice and
    # cells that are known to be empty.
    used = used_attributes(table.shape)
    first_total = int(discrete_laplace(table.n, parts["total"], random_state=source))
    ruled = rules.forest() if rules is not None else []
    shares = view_shares(
        parts["views"],
        first_total,
        len(used),
        labelled=label is not None,
        tree_only=tree_only,
        n_ruled=len(ruled),
    )
    views, total = single_views(
        table,
        shares.single,
        first_total,
        parts["total"],
        orders,
        widths=widths,
        random_state=source,
    )
    whole = max(total, 1.0)
    limit = group_limit(table.shape)
    attributes = [
        Attribute.of(view, order, limit) for view, order in zip(views, orders, strict=True)
    ]
    budget = _budget(parts["total"], shares)
    binned = BinnedPairs.of(table, attributes) if shares.choice else None
    masks, rest = masks_of(rules, attributes) if rules is not None else ({}, [])
    pairs = _pairs_of_tree(used, binned, attributes, whole, shares, label, source, ruled, masks)
    if len(used) == 2:
        known = float(first_total), discrete_laplace_variance(parts["total"])
        allowed = masks.get(pairs[0])
        edge, total = measure_only_pair(table, pairs[0], attributes, shares, known, source, allowed)
        edges = [edge]
    else:
        edges = measure_pairs(table, pairs, attributes, shares.pairs, whole, source, masks)
        edges += unmeasured([pair for pair in ruled if pair not in pairs], attributes, masks)
    tree = _join(attributes, edges, masks, alone=len(used) == 2)
    if not rest and (binned is None or not shares.n_extra):
        return TreeModel(tree, total, budget=budget)
    extra = []
    if binned is not None and shares.n_extra:
        more = choose_extra_pairs(
            binned,
            tree,
            whole,
            shares.n_extra,
            shares.choice * shares.n_extra / (shares.n_choices + shares.n_extra),
            among=used,
            but=pairs,
            random_state=source,
        )
        if rules is not None:
            attributes, masks = supported(tree, attributes, ruled, more, masks)
        extra = measure_pairs(table, more, attributes, shares.extra, whole, source, masks)
    elif n_rows == SAMPLED_ROWS:
        # The tree answers most queries well; rows are cheaper than its accuracy asks for.
        n_rows = SAMPLED_ROWS // 2
    generator = sampling_generator(source)
    if rest and rules is not None:
        rows = possible_rows(tree, rules, rest, n_rows, generator)
    else:
        rows = tree.sample(n_rows, generator)
    # Without extra pairs the rows agree with the views but for what the rules take away.
    weights = rake(rows, tree, [*edges, *extra], _ROUNDS if extra else _FEW_ROUNDS)
    return TreeModel(tree, total, extra=extra, rows=rows, row_weights=weights, budget=budget)


def _pairs_of_tree(
    used: Sequence[int],
    binned: BinnedPairs | None,
    attributes: Sequence[Attribute],
    total: float,
    shares: ViewShares,
    label: int | None,
    source: NoiseSource,
    ruled: Sequence[tuple[int, int]],
    masks: Masks,
) -> list[tuple[int, int]]:
    """Pairs to measure: the only one, none, or as many as the budget allows, chosen privately.

    Pairs under rules are in the tree in any case. If not all pairs of the tree can be measured,
    they compete with the others: their score is the distance from what the rules alone imply.
    """
    if not shares.n_pairs:
        return []
    if binned is None:
        return list(ruled) or [(used[0], used[1])]
    measured = shares.n_choices < shares.n_pairs
    expected = binned.independent(attributes, total)
    if ruled and not measured:
        implied = fit_tree(attributes, unmeasured(ruled, attributes, masks), masks)
        expected = binned.expect(expected, implied, ruled, total)
    chosen = choose_pairs(
        pair_scores(binned.counts, expected, binned.starts),
        shares.n_choices,
        shares.choice * shares.n_choices / (shares.n_choices + shares.n_extra),
        among=used,
        label=label,
        joined=ruled,
        measured=measured,
        random_state=source,
    )
    return [*ruled, *chosen] if measured else chosen


def _join(
    attributes: Sequence[Attribute], edges: Sequence[PairTable], masks: Masks, *, alone: bool
) -> TreeDensity:
    """Join single and pair views into the tree model; a single pair replaces its single views."""
    if masks and not alone:
        return fit_tree(attributes, edges, masks)
    if masks:
        edges = [complete(edge, masks[edge.axes]) for edge in edges]
    groups = {axis: each.groups for axis, each in enumerate(attributes) if each.groups is not None}
    marginals = [each.mu for each in attributes]
    if alone:
        marginals = margins_of(edges[0], marginals, groups)
    return TreeDensity(marginals, edges, groups)


def _budget(total: Fraction, shares: ViewShares) -> dict[str, float]:
    """How the parts were divided, under the names that releases and their files use."""
    parts = {
        "total": total,
        "single": shares.single,
        "choice": shares.choice,
        "forest": shares.pairs,
        "extra": shares.extra,
    }
    return {name: float(part) for name, part in parts.items() if part}


def _simulate(
    model: TreeModel | MixtureModel,
    parts: dict[str, Fraction],
    orders: Sequence[IntArray | None],
    source: NoiseSource,
    rules: Rules | None,
    widths: Widths,
) -> tuple[CountTable, list[TreeModel]] | None:
    """Records drawn from a model of at most two attributes, and their measurements."""
    if not isinstance(model, TreeModel) or len(used_attributes(model.shape)) > 2:
        return None
    drawn = draw_records(model, source)
    if drawn is None:
        return None
    again = range(_SIMULATIONS)
    return drawn, [
        _measure_ruled(drawn, parts, orders, source, rules, widths=widths) for _ in again
    ]
