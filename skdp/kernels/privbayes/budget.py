"""The budget of PrivBayes, and how large a table may be to be useful (theta-usefulness)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..._validation import as_share

__all__ = ["check_parts", "largest_table", "privbayes_parts", "used_attributes"]

# Share of epsilon for the number of records.
_TOTAL_SHARE = Fraction(2, 100)
# The least rate of noise that fits into 64-bit integers is 2**-50; a budget is rounded down by less
# than half before noise is drawn.
_LEAST_RATE = Fraction(1, 2**49)


def used_attributes(shape: Sequence[int]) -> list[int]:
    """Attributes with more than one code; the others carry no information."""
    return [axis for axis, size in enumerate(shape) if size > 1]


def privbayes_parts(epsilon: Fraction, shape: Sequence[int], beta: Any) -> dict[str, Fraction]:
    """Divide epsilon between the number of records, the network and its tables.

    Parameters
    ----------
    epsilon : Fraction
    shape : sequence of int
        Number of codes of each attribute.
    beta : number
        Share of epsilon for the network, from 0.001 to 0.979.

    Returns
    -------
    dict of str to Fraction
        "total" (2%), "network" and "tables"; they sum to epsilon. With fewer than three
        attributes that have a choice there is only one network, and it costs nothing.

    Raises
    ------
    TypeError, ValueError
        If ``beta`` is not such a number.
    """
    told = "it chooses the network. The total takes 0.02 and the tables the rest; 0.3 is usual."
    share = as_share(beta, "beta", Fraction(979, 1000), meaning=told)
    total = epsilon * _TOTAL_SHARE
    if len(used_attributes(shape)) < 3:
        return {"total": total, "tables": epsilon - total}
    network = epsilon * share
    return {"total": total, "network": network, "tables": epsilon - total - network}


def check_parts(parts: Mapping[str, Fraction], n_attributes: int, score_range: int) -> None:
    """Refuse parts whose noise might not fit into integers, before anything is spent.

    Parameters
    ----------
    parts : mapping of str to Fraction
        From `privbayes_parts`.
    n_attributes : int
        Those with more than one code.
    score_range : int
        The largest that the score can have.

    Raises
    ------
    ValueError
        If a part is too little to be divided among what it pays for.
    """
    least = {
        "total": _LEAST_RATE,
        "network": _LEAST_RATE * score_range * max(n_attributes - 1, 1),
        "tables": _LEAST_RATE * max(n_attributes, 1),
    }
    for name, part in parts.items():
        if part < least[name]:
            raise ValueError(
                f"The part {name!r} of epsilon is {float(part):.3g} for one row, and with "
                f"{n_attributes} columns it needs {float(least[name]):.3g}: noise would not fit "
                "into 64-bit integers. Use a larger epsilon"
                + (", a larger beta, or score_function='R'." if name == "network" else ".")
            )


def largest_table(
    total: int, tables: Fraction, n_tables: int, theta: Fraction, max_cells: int
) -> int:
    """Largest number of cells of a theta-useful table.

    A table of m cells with noise of scale b is theta-useful if its mean count, n / m, is at least
    theta times b. Here b is ``n_tables / tables``: one record changes one cell of each table by
    one. (In the paper one record is replaced by another, which changes two cells, so that its
    scale is twice as large and its tables are half as large.)

    Parameters
    ----------
    total : int
        The released number of records, never the true one; negative counts as zero.
    tables : Fraction
        Budget of all tables together.
    n_tables : int
    theta : Fraction
    max_cells : int
        Public limit.
    """
    return min(max_cells, int(max(total, 0) * tables / (n_tables * theta)))
