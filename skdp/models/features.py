"""The public features of a linear model: which numbers each column of a domain becomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import FloatArray, IntArray
from ..domain import Attribute, Domain, Numeric
from ..exceptions import DomainError
from ..kernels.linear import Column, Design
from .base import group_values

__all__ = ["check_pairs", "coded_features", "design_of", "feature_columns"]

# Tables of a column and of all pairs of features take the square of this many numbers: 128 MB.
_MOST_FEATURES = 4096


@dataclass(frozen=True, eq=False)
class _FeatureColumn:
    """One column of the domain as features.

    Attributes
    ----------
    name : str
    labels : tuple of str
        Names of the features.
    groups : ndarray of shape (n_codes,)
        Group of each code.
    column : Column
        Features of each group, scaled into [-1, 1].
    codes : ndarray of shape (n_codes, n_features)
        Scaled features of each code, by which rows are predicted.
    shift, scale : ndarray of shape (n_features,)
        A feature in the units of the user is ``shift + scale *`` the scaled one.
    """

    name: str
    labels: tuple[str, ...]
    groups: IntArray
    column: Column
    codes: FloatArray
    shift: FloatArray
    scale: FloatArray


def feature_columns(domain: Domain, one_hot: Any, max_groups: int) -> list[_FeatureColumn]:
    """Features of all columns of a domain.

    Parameters
    ----------
    domain : Domain
    one_hot : {"categories", "all"} or sequence of str
        Which columns of numbers become indicators too: none, all, or those named.
    max_groups : int
        Most indicators of ordered values.

    Raises
    ------
    DomainError, TypeError, ValueError
        If ``one_hot`` is none of these, or a column has too many categories.
    """
    wanted = _one_hot(domain, one_hot)
    for name, attribute in domain.items():
        # Ordered ones are merged.
        if attribute.order() is None and attribute.size > _MOST_FEATURES:
            raise DomainError(
                f"Column {name!r} has {attribute.size:,} categories, and a linear model needs an "
                f"indicator of each: at most {_MOST_FEATURES:,}. Declare the frequent ones and "
                "other= for the rest, or a taxonomy, or take PrivateNaiveBayes, a tree or an "
                "additive model."
            )
    return [
        _indicators(name, attribute, max_groups)
        if name in wanted or not _is_number(attribute)
        else _number(name, attribute)
        for name, attribute in domain.items()
    ]


def design_of(columns: Sequence[_FeatureColumn]) -> Design:
    """The features of all columns together."""
    return Design(tuple(each.column for each in columns))


def check_pairs(columns: Sequence[_FeatureColumn]) -> None:
    """Refuse more features than products of all pairs fit into memory.

    Raises
    ------
    DomainError
        If there are too many.
    """
    n_features = sum(len(each.labels) for each in columns)
    if n_features > _MOST_FEATURES:
        raise DomainError(
            f"The columns have {n_features:,} features, and sums of the products of all pairs are "
            f"measured: at most {_MOST_FEATURES:,} features. Declare fewer columns or categories, "
            "or take solver='auto' where there is one."
        )


def _one_hot(domain: Domain, one_hot: Any) -> set[str]:
    if isinstance(one_hot, str):
        if one_hot not in ("categories", "all"):
            raise ValueError(
                f"one_hot must be 'categories', 'all' or a list of columns, got {one_hot!r}."
            )
        return {*domain.names} if one_hot == "all" else set()
    if not isinstance(one_hot, Sequence):
        raise TypeError(
            f"one_hot must be 'categories', 'all' or a list of columns, got {one_hot!r}."
        )
    if unknown := [name for name in one_hot if name not in domain.names]:
        raise DomainError(
            f"one_hot names {unknown}, which are no features of the domain; it has "
            f"{list(domain.names)}."
        )
    return {*one_hot}


def _is_number(attribute: Attribute) -> bool:
    return isinstance(attribute, Numeric) and attribute.summable


def _indicators(name: str, attribute: Attribute, max_groups: int) -> _FeatureColumn:
    grouping = group_values(attribute, max_groups)
    n = len(grouping.labels)
    column = Column(np.eye(n), True, grouping.chain)
    labels = tuple(f"{name} = {label}" for label in grouping.labels)
    codes = np.eye(n)[grouping.groups]
    return _FeatureColumn(name, labels, grouping.groups, column, codes, np.zeros(n), np.ones(n))


def _number(name: str, attribute: Any) -> _FeatureColumn:
    """The mean of the bin, and an indicator of each special value and of missing ones."""
    grouping = group_values(attribute, attribute.bins)
    means = attribute.means()[: attribute.bins]
    groups, n_bins = grouping.groups, len(grouping.chain or ())
    n_others = len(grouping.labels) - n_bins
    low, high = float(attribute.lower), float(attribute.upper)
    # A range of one value says nothing: its codes are 0.
    middle, half = low / 2 + high / 2, (high / 2 - low / 2) or 1.0
    codes = np.zeros((len(groups), 1 + n_others))
    codes[: len(means), 0] = np.clip((means - middle) / half, -1.0, 1.0)
    codes[np.arange(len(means), len(groups)), 1 + groups[len(means) :] - n_bins] = 1.0
    sizes = np.bincount(groups, minlength=len(grouping.labels))[:, None]
    sums = np.stack([np.bincount(groups, each, len(sizes)) for each in codes.T], axis=1)
    labels = (name, *(f"{name} = {label}" for label in grouping.labels[n_bins:]))
    return _FeatureColumn(
        name,
        labels,
        groups,
        Column(sums / sizes, False, None, n_bins),
        codes,
        np.array([middle, *np.zeros(n_others)]),
        np.array([half, *np.ones(n_others)]),
    )


def coded_features(columns: Sequence[_FeatureColumn], codes: IntArray) -> Iterator[FloatArray]:
    """Scaled features of rows, column by column; those of an unknown value are 0."""
    for position, each in enumerate(columns):
        found = each.codes[codes[:, position]]
        found[codes[:, position] < 0] = 0.0
        yield found
