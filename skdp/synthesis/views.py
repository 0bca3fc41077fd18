"""What releases made of views have in common: views are noisy tables of a few columns each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .._random import warn_after_charge
from ..domain import Numeric
from ..exceptions import DomainError
from ..kernels.pairviews import MOST_CLASSES, Rules, group_limit, pair_views_parts
from ..kernels.pairviews.budget import used_attributes
from ..release import Synopsis
from .base import Synthesizer

__all__ = ["ViewSynthesizer"]

# The least part of a budget, for each column. A part is divided further, into a few thousandths at
# least; noise of a rate below 2**-50 does not fit into 64-bit integers.
_LEAST_PART = Fraction(1, 10**12)


class ViewSynthesizer(Synthesizer):
    """A release of views that are joined into one model; subclasses say how they are measured."""

    _honours_zeros = True
    # What the release calls its tables of more than one column.
    _tables: str

    @property
    def _mechanism(self) -> str:
        """What the release calls itself."""
        raise NotImplementedError

    def _together(self, domain):
        if self.target is None or domain[self.target].size > MOST_CLASSES:
            return ()
        return (domain.index(self.target),)

    def _parts(self, epsilon, domain):
        zeros = domain.structure.zeros
        if zeros and Rules.of(domain.shape, zeros) is None:
            raise DomainError(
                "No record that satisfies all rules of the domain was found, in a search of "
                "limited length. Leave out rules, or give domain.without_structure()."
            )
        parts = pair_views_parts(epsilon, domain.shape, self.error_share)
        _check_least(parts, len(used_attributes(domain.shape)))
        return parts

    def _release(self, table, domain, loss, source):
        most = self._most_groups(domain.shape)
        # The fine bins of "auto" are meant to be joined.
        coarse = [
            i
            for i in used_attributes(domain.shape)
            if domain.shape[i] > most and not getattr(domain.attributes[i], "auto", False)
        ]
        mechanism = self._mechanism
        if coarse:
            names = ", ".join(repr(domain.names[axis]) for axis in coarse)
            mechanism += f"; {self._tables} tell groups of codes apart in {names}"
            warn_after_charge(
                f"{self._tables.capitalize()} do not tell all codes of {names} apart. A "
                f"column has at most {most} groups in them, with about equal numbers of records. "
                "Declare fewer bins or categories to choose the groups yourself."
            )
        model = self._measure(
            table,
            domain,
            loss.parts,
            orders=[attribute.order() for attribute in domain.attributes],
            label=None if self.target is None else domain.index(self.target),
            zeros=domain.structure.zeros,
            widths=_widths(domain),
            random_state=source,
        )
        return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)

    def _most_groups(self, shape):
        """Most codes, or groups of them, of an attribute in tables of more than one column."""
        return group_limit(shape)

    def _measure(self, table, domain, parts, **known):
        """Measure the views within the parts; ``known`` are the public facts of a kernel."""
        raise NotImplementedError


def _check_least(parts, n_columns):
    """Refuse a part whose noise might not fit into integers, before anything is spent."""
    least = _LEAST_PART * max(n_columns, 1)
    name = min(parts, key=parts.get)
    if parts[name] < least:
        raise ValueError(
            f"The part {name!r} of epsilon is {float(parts[name]):.3g} for one row, which is too "
            f"little to be divided: noise would not fit into 64-bit integers. Use a larger "
            f"epsilon; with {n_columns} columns every part needs {float(least):.3g}."
        )


def _widths(domain):
    """Widths on their scale of the bins of columns that are declared with a scale or edges."""
    found = {}
    for axis, each in enumerate(domain.attributes):
        if isinstance(each, Numeric) and each.uneven:
            others = np.full(each.size - each.bins, np.nan)
            found[axis] = np.concatenate([each.contents.widths(), others])
    return found
