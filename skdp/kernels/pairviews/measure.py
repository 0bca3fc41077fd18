"""The whole measurement of pair views, from a table of counts to a released model."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..._random import NoiseSource, noise_source, sampling_generator
from ..._types import IntArray
from ...mechanisms import discrete_laplace
from ...release import MixtureModel, PairTable, TreeDensity, TreeModel
from ...rows import Counts, CountTable
from .attributes import Attribute
from .budget import ViewShares, group_limit, used_attributes, view_shares
from .choice import BinnedPairs, choose_extra_pairs, choose_pairs, pair_scores
from .errors import publish_errors
from .pairs import margins_of, measure_pairs
from .raking import SAMPLED_ROWS, rake
from .simulation import draw_records
from .single import single_views

__all__ = ["MOST_CLASSES", "measure_class", "measure_table", "pair_views"]

# A label with at most this many codes gets a model for each of them.
MOST_CLASSES = 20
# How often records drawn from a release are measured again. If few records or much noise give few
# boxes, all errors of a release depend on a handful of draws (mainly that of the total), and the
# errors of a single simulation can be small by chance.
_SIMULATIONS = 8


def pair_views(
    table: Counts,
    parts: dict[str, Fraction],
    *,
    orders: Sequence[IntArray | None] | None = None,
    label: int | None = None,
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
    random_state : None, int or NoiseSource, default=None

    Returns
    -------
    TreeModel or MixtureModel
    """
    # Privacy. The part "errors" follows the others, one after the other. Without a label all
    # records are measured together; with one, the records of each class by themselves, each class
    # within the same parts: a record lies in one class, so the classes compose in parallel. That
    # all classes are measured, and how, is public.
    source = noise_source(random_state)
    if orders is None:
        orders = [np.arange(size) for size in table.shape]
    model: TreeModel | MixtureModel
    if label is not None and 1 < table.shape[label] <= MOST_CLASSES:
        model = MixtureModel(
            [
                measure_class(table, code, label, parts, orders, source)
                for code in range(table.shape[label])
            ]
        )
    else:
        informative = label if label is not None and table.shape[label] > 1 else None
        model = measure_table(table, parts, orders, source, label=informative)
    if "errors" in parts:
        model.error_bars = publish_errors(
            table,
            model,
            parts["errors"],
            [order is not None for order in orders],
            simulated=_simulate(model, parts, orders, source),
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
) -> TreeModel:
    """Measure the records of one class, as a table whose label has this code only.

    There are no pairs beyond the tree: synthetic rows drawn from weighted ones trained worse
    classifiers than those of the tree.
    """
    members = table.where(label, code)
    alone = [np.zeros(1, dtype=np.int64) if i == label else o for i, o in enumerate(orders)]
    part = measure_table(members, parts, alone, source, tree_only=True)
    marginals = list(part.density.marginals)
    marginals[label] = np.zeros(table.shape[label])
    marginals[label][code] = 1.0
    tree = TreeDensity(marginals, part.density.edges, part.density.groups)
    return TreeModel(tree, part.total, budget=part.budget)


def measure_table(
    table: Counts,
    parts: dict[str, Fraction],
    orders: Sequence[IntArray | None],
    source: NoiseSource,
    *,
    label: int | None = None,
    tree_only: bool = False,
) -> TreeModel:
    """Measure a table within "total" and "views"."""
    # Privacy. The total (sensitivity 1), the views of single attributes, the choice of pairs (those
    # of the tree, then the extra ones), and the pair views (a record lies in each of them) compose
    # one after the other; their budgets add up to the two parts. Their parameters depend on the
    # data through released values only.
    used = used_attributes(table.shape)
    first_total = int(discrete_laplace(table.n, parts["total"], random_state=source))
    shares = view_shares(
        parts["views"], first_total, len(used), labelled=label is not None, tree_only=tree_only
    )
    views, total = single_views(
        table, shares.single, first_total, parts["total"], orders, random_state=source
    )
    whole = max(total, 1.0)
    limit = group_limit(table.shape)
    attributes = [
        Attribute.of(view, order, limit) for view, order in zip(views, orders, strict=True)
    ]
    budget = _budget(parts["total"], shares)
    binned = BinnedPairs.of(table, attributes) if shares.choice else None
    pairs = _pairs_of_tree(used, binned, attributes, whole, shares, label, source)
    edges = measure_pairs(table, pairs, attributes, shares.pairs, whole, source)
    tree = _join(attributes, edges, alone=len(used) == 2)
    if binned is None or not shares.n_extra:
        return TreeModel(tree, total, budget=budget)
    more = choose_extra_pairs(
        binned,
        tree,
        whole,
        shares.n_extra,
        shares.choice * shares.n_extra / (shares.n_pairs + shares.n_extra),
        among=used,
        but=pairs,
        random_state=source,
    )
    extra = measure_pairs(table, more, attributes, shares.extra, whole, source)
    rows = tree.sample(SAMPLED_ROWS, sampling_generator(source))
    weights = rake(rows, tree, [*edges, *extra])
    return TreeModel(tree, total, extra=extra, rows=rows, row_weights=weights, budget=budget)


def _pairs_of_tree(
    used: Sequence[int],
    binned: BinnedPairs | None,
    attributes: Sequence[Attribute],
    total: float,
    shares: ViewShares,
    label: int | None,
    source: NoiseSource,
) -> list[tuple[int, int]]:
    """Pairs to measure: the only one, none, or as many as the budget allows, chosen privately."""
    if binned is None:
        return [(used[0], used[1])] if shares.n_pairs else []
    return choose_pairs(
        pair_scores(binned.counts, binned.independent(attributes, total), binned.starts),
        shares.n_pairs,
        shares.choice * shares.n_pairs / (shares.n_pairs + shares.n_extra),
        among=used,
        label=label,
        random_state=source,
    )


def _join(
    attributes: Sequence[Attribute], edges: Sequence[PairTable], *, alone: bool
) -> TreeDensity:
    """Join single and pair views into the tree model; a single pair replaces its single views."""
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
) -> tuple[CountTable, list[TreeModel]] | None:
    """Records drawn from a model of at most two attributes, and their measurements."""
    if not isinstance(model, TreeModel) or len(used_attributes(model.shape)) > 2:
        return None
    drawn = draw_records(model, source)
    if drawn is None:
        return None
    return drawn, [measure_table(drawn, parts, orders, source) for _ in range(_SIMULATIONS)]
