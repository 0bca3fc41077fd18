"""How the budget of pair views is divided: exact fractions of public and released numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ..._validation import as_fraction

__all__ = [
    "ViewShares",
    "group_limit",
    "pair_views_parts",
    "used_attributes",
    "view_shares",
]

# Largest number of codes of an attribute in a pair table; more codes are grouped. A single pair can
# have a larger table.
_GROUPS, _GROUPS_OF_TWO = 512, 2048
# Share of single views beside the only pair: they order and group codes, and show single codes that
# stand out.
_BESIDE = Fraction(3, 100)
# If the number of records times epsilon is below this, pairs are too noisy to be useful.
_LEAST_SIGNAL = 2000.0


def pair_views_parts(
    epsilon: Fraction, shape: Sequence[int], error_share: Any
) -> dict[str, Fraction]:
    """Divide epsilon into the parts that are fixed before a record is read.

    Parameters
    ----------
    epsilon : Fraction
    shape : sequence of int
        Number of codes of each attribute.
    error_share : number
        Share of epsilon for the error bars, in [0, 1).

    Returns
    -------
    dict of str to Fraction
        "total", "views" and, if the share is positive, "errors"; they sum to epsilon. How
        "views" is divided further depends on the released total, see `view_shares`.

    Raises
    ------
    TypeError, ValueError
        If ``error_share`` is not a number in [0, 1).
    """
    share = as_fraction(error_share, "error_share")
    if not 0 <= share < 1:
        raise ValueError(
            f"error_share must lie in [0, 1), got {error_share!r}: it is the share of epsilon that "
            "is kept for the error bars; 0.05 is usual, and 0 releases none."
        )
    rest = epsilon * (1 - share)
    total = rest * (Fraction(2, 100) if len(used_attributes(shape)) > 1 else Fraction(5, 100))
    parts = {"total": total, "views": rest - total, "errors": epsilon * share}
    return {name: part for name, part in parts.items() if part}


def used_attributes(shape: Sequence[int]) -> list[int]:
    """Attributes with more than one code; the others carry no information."""
    return [axis for axis, size in enumerate(shape) if size > 1]


def group_limit(shape: Sequence[int]) -> int:
    """Largest number of codes of an attribute in pair tables; more codes are grouped."""
    n_used = len(used_attributes(shape))
    if n_used < 2:
        return max(shape)
    return _GROUPS_OF_TWO if n_used == 2 else _GROUPS


class ViewShares(NamedTuple):
    """Division of the part "views": exact, public given the released total.

    Attributes
    ----------
    single : Fraction
        For the one-way marginals.
    choice : Fraction
        For the choice of pairs.
    pairs : Fraction
        For the pairs of the tree.
    extra : Fraction
        For the pairs beyond the tree.
    n_pairs, n_extra : int
        Number of measured pairs of the tree, and beyond it.
    n_choices : int
        How many of ``n_pairs`` are chosen with noise.
    """

    single: Fraction
    choice: Fraction
    pairs: Fraction
    extra: Fraction
    n_pairs: int
    n_extra: int
    n_choices: int


def view_shares(
    views: Fraction,
    total: float,
    n_columns: int,
    *,
    labelled: bool = False,
    tree_only: bool = False,
    n_ruled: int = 0,
) -> ViewShares:
    """Divide the part "views" between single attributes, the choice of pairs, and pairs.

    Parameters
    ----------
    views : Fraction
    total : float
        The released number of records.
    n_columns : int
        Attributes with more than one code.
    labelled : bool, default=False
        Whether all pairs contain the label.
    tree_only : bool, default=False
        Whether pairs beyond the tree are left out.
    n_ruled : int, default=0
        Pairs that public rules put into the tree. If all pairs of the tree are measured, these
        need no choice, and its budget goes to the pairs.

    Returns
    -------
    ViewShares
        Its four budgets sum to ``views``.
    """
    zero = Fraction(0)
    if n_columns < 2:
        return ViewShares(views, zero, zero, zero, 0, 0, 0)
    if n_columns == 2:
        single = views * _BESIDE
        return ViewShares(single, zero, views - single, zero, 1, 0, 0)
    # Shares of everything except the errors; the total has taken 2% of it.
    everything = views / Fraction(98, 100)
    records = max(total, 1.0)
    signal = records * float(everything)
    if signal < _LEAST_SIGNAL:
        return ViewShares(views, zero, zero, zero, 0, 0, 0)
    if labelled:
        share = Fraction(4, 10)
    else:
        wanted = min(max(0.4 + 0.39 * math.log10(5e4 / signal), 0.3), 0.8)
        share = Fraction(round(1000 * wanted), 1000)
    single, choice = everything * share, everything * Fraction(4, 100)
    pairs = views - single - choice
    power = records * float(pairs)
    n_pairs = int(min(max(power / 200, 1), n_columns - 1))
    left = 0 if tree_only else n_columns * (n_columns - 1) // 2 - n_pairs
    n_extra = int(min(max(0.4 * (power - 300 * (n_columns - 1)) / 500, 0), left))
    n_choices = n_pairs
    if n_ruled and n_pairs == n_columns - 1:
        n_choices = n_pairs - n_ruled
        saved = choice * Fraction(n_ruled, n_pairs + n_extra)
        choice, pairs = choice - saved, pairs + saved
    extra = pairs * Fraction(4, 10) if n_extra else zero
    return ViewShares(single, choice, pairs - extra, extra, n_pairs, n_extra, n_choices)
