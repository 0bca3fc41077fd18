"""Private selection of features and of frequent items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._random import NoiseSource, noise_source
from ._validation import (
    BoolArray,
    CodeArray,
    IntArray,
    as_between,
    as_epsilon,
    as_fraction,
    as_integer,
    check_choice,
    reraise_interrupts,
    split_epsilon,
)
from .accounting import PrivacyLoss, charge
from .base import (
    KeepsTrueRows,
    NoScore,
    PrivateEstimator,
    declare_label,
    epsilon_of_row,
    match_rows,
    require_y,
    warn_of_emptiness,
)
from .domain import Categorical, Numeric
from .exceptions import DomainError
from .mechanisms import discrete_laplace, discrete_laplace_variance, sparse_vector_top_k, top_k
from .mechanisms.selection import METHODS
from .tables import (
    TYPES_DECLARED,
    Column,
    as_column,
    as_frame,
    assumed,
    few_of_each,
    identities,
    object_array,
)

__all__ = ["DPTopKSelector", "most_frequent_items"]

# Weights of labels are integers up to this, so that scores are exact.
_GRID = 2**10
# Share of epsilon for the histogram of the label, which centres the scores.
_LABEL_SHARE = 0.05
# Classes smaller than this fraction of an equal share get the weight of a class of that size.
_RAREST = 0.25
# Methods of `top_k` that give no order.
_UNORDERED = ("canonical", "auto")
# Scales of its noise by which the threshold of a sparse vector is above the score of a constant.
_RAISED = 3
# How often it goes over the features. If all scores are far below, fewer than k are selected.
_MOST_PASSES = 100


@dataclass(eq=False, repr=False, kw_only=True)
class DPTopKSelector(NoScore, KeepsTrueRows, SelectorMixin, PrivateEstimator):
    """Select the k most informative features for a target, privately.

    Every feature is scored separately, on the cells of its public domain. For classes the score is
    the weighted number of correct predictions if every cell predicts one class; a record counts in
    inverse proportion to the size of its class, so that a rare class matters. For a numeric target
    it is the sum over cells of the distance between the cell's total and the total that the overall
    mean implies. The score that an uninformative feature with as many cells would get by chance is
    subtracted.

    Parameters
    ----------
    k : int, default=10
        Number of features to select.
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute is used for all
        columns of an array.
    target : str, default=None
        Column of the domain that the features should predict; it takes the y of ``fit(X, y)``.
        A Categorical is a class, a Numeric a number.
    classes : sequence, default=None
        Shorthand for a categorical label that the domain lacks.
    method : {"one-shot", "peeling", "canonical", "auto", "sparse-vector"}, default="auto"
        How the names are selected; see `skdp.mechanisms.top_k`. "canonical" and "auto" give no
        order. "sparse-vector" goes over the features in random order, up to 100 times, until k
        noisy scores are three scales of the noise above that of a constant, for comparison: see
        `skdp.mechanisms.sparse_vector_top_k`. It may find fewer.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: the release is then marked "seeded: no guarantee".

    Attributes
    ----------
    selected_ : list of str
        Columns of the domain that were selected, in its order; best first with a method that gives
        an order.
    label_counts_ : ndarray of int64, shape (n_labels,)
        Noisy number of records for each code of the target.
    domain_ : Domain
        With the column of the target.
    privacy_loss_ : PrivacyLoss
        Parts "label" and "selection".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the columns had names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    target, k. *Released*: which features, in order where the method gives one, and the noisy
    histogram of the target.
    *Sensitivity*: one record raises every score for classes by 0 to 1 and changes every score for a
    numeric target by at most 1 up or down, in units of the largest weight.

    The choice of names is private, the columns are not: `transform` returns the true values, and a
    model trained on them is not private. Selecting features first and releasing a synopsis of these
    columns costs the sum of both.

    References
    ----------
    D. Durfee, R. Rogers, "Practical differentially private top-k selection with
    pay-what-you-get composition", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPTopKSelector, Numeric
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (5000, 6))
    >>> y = np.where(X[:, 4] + X[:, 1] > 1, "yes", "no")
    >>> selector = DPTopKSelector(
    ...     k=2, epsilon=1.0, domain=Numeric(0, 1, bins=8), classes=["no", "yes"]
    ... ).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [1, 4]
    >>> selector.transform(X).shape
    (5000, 2)
    """

    # Privacy. 1. The histogram of the label: a record is in one bin, so discrete Laplace noise of
    # sensitivity 1. 2. The names, by top_k. Weights and the correction for chance follow from the
    # histogram and public sizes. Given them, one more record of label y in a cell raises the
    # largest of that cell's W_y n_y by 0 to max W, in every feature: R = max W. For numbers, one
    # more record moves one |sum of weights| by at most its own weight, up or down: R = 2 max W.
    # A sparse vector has sensitivity max W for both, and is monotonic for classes only; its
    # threshold follows from the histogram, and the order of the features is drawn from nothing else
    # than the noise source.

    k: Any = field(default=10, kw_only=False)
    domain: Any = None
    target: Any = None
    classes: Any = None
    method: Any = "auto"

    _belongs = (
        "Put a private model behind it: make_pipeline(DPTopKSelector(...), "
        "PrivateLogisticRegression(...)) goes into cross_validate and searches."
    )

    def fit(self, X: Any, y: Any = None) -> DPTopKSelector:
        """Charge epsilon, then select.

        Parameters
        ----------
        X : array-like or pandas, Polars or PyArrow frame of shape (n_rows, n_features)
            One row per record. Columns are matched to the domain by name, those of an array by
            position.
        y : array-like of shape (n_rows,), default=None
            Values of the target; may be left out where ``X`` has the column ``target``.

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter does not fit; nothing is spent. Values never raise: out
            of range is clipped, and a record that the domain cannot represent is skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        """
        frame = as_frame(X)
        if self.target is None:
            require_y(self, y, ": give y, or name a column of X in target=")
        declared, target = declare_label(self.domain, frame, self.target, self.classes)
        # Names of columns break no rule of the domain.
        rows, domain = match_rows(X, y, declared, target, structure=True, of=self)
        if target is None:
            raise DomainError(
                "The target is not declared: give classes=[...] for a class, or add a column to "
                "the domain and name it in target=."
            )
        label = domain[target]
        features = [name for name in domain.names if name != target]
        k = as_integer(self.k, "k", 1)
        if k > len(features):
            raise ValueError(
                f"k={k} features were asked for, but there are {len(features)} besides the target."
            )
        check_choice(self.method, "method", (*METHODS, "sparse-vector"))
        shares = {"label": _LABEL_SHARE, "selection": 1 - as_fraction(_LABEL_SHARE, "share")}
        loss, source = self._spend(rows, shares=shares)

        codes = domain.encode(rows)
        codes = codes[(codes >= 0).all(axis=1)]
        labels = codes[:, domain.index(target)]
        noisy = discrete_laplace(
            np.bincount(labels, minlength=label.size), loss.parts["label"], random_state=source
        )
        score = _ByNumber(label, noisy) if isinstance(label, Numeric) else _ByClass(label, noisy)
        scores = [
            score.of(codes[:, domain.index(name)], domain[name].size, labels) for name in features
        ]
        if self.method == "sparse-vector":
            order = np.argsort(source.words(len(features)), kind="stable")
            above = sparse_vector_top_k(
                np.array(scores)[order],
                k,
                loss.parts["selection"],
                score.least,
                _GRID,
                monotonic=isinstance(score, _ByClass),
                raise_by=_RAISED,
                max_passes=_MOST_PASSES,
                random_state=source,
            )
            best = order[above]
        else:
            best = top_k(
                scores,
                k,
                loss.parts["selection"],
                score.range,
                method=self.method,
                ordered=self.method not in _UNORDERED,
                random_state=source,
            )

        validate_data(self, X, skip_check_array=True)
        # Names of the columns of X in its order.
        names = list(frame.names)
        if frame.n_unnamed:
            taken = [] if y is None else [target]
            names = domain.names_for(frame.n_unnamed, taken) or list(domain.names)
        self._columns = names
        self.domain_ = domain
        self.label_counts_ = noisy
        self.selected_ = [features[place] for place in best]
        self.privacy_loss_ = loss
        variance = len(noisy) * discrete_laplace_variance(loss.parts["label"])
        warn_of_emptiness(self, float(noisy.sum()), math.sqrt(variance))
        return self

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return np.isin(self._columns, self.selected_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.target is None
        return tags


class _ByClass:
    """Weighted number of correct predictions if every cell predicts one class."""

    def __init__(self, label: Any, noisy: IntArray) -> None:
        n = label.n_values
        counts = np.maximum(noisy[:n], 1).astype(np.float64)
        total = counts.sum()
        weights = 1 / np.maximum(counts, _RAREST * total / n)
        # A missing label weighs nothing.
        self.weights = np.zeros(label.size, dtype=np.int64)
        self.weights[:n] = np.rint(_GRID * weights / weights.max())
        # What predicting one class everywhere gains.
        self.least = round(float((self.weights[:n] * counts).max()))
        self.range = _GRID
        self.total = total
        q = counts / total
        variance = float(np.sum(self.weights[:n] ** 2 * q * (1 - q)))
        # With two classes the deviations are opposite, so the gain is half of their distance.
        self.spread = math.sqrt(variance / 2 if n == 2 else variance)

    def of(self, codes: CodeArray, size: int, labels: CodeArray) -> int:
        n_labels = len(self.weights)
        pairs = codes.astype(np.int64) * n_labels + labels
        places, occupied = pd.factorize(pairs, sort=True)
        counts = np.bincount(places) * self.weights[occupied % n_labels]
        # Pairs of one cell follow each other.
        starts = np.flatnonzero(np.diff(occupied // n_labels, prepend=-1))
        gained = np.maximum.reduceat(counts, starts).sum()
        return int(gained) - round(_by_chance(self.spread, size, self.total))


class _ByNumber:
    """Sum over the cells of the distance between the cell's total and that of the overall mean."""

    def __init__(self, label: Numeric, noisy: IntArray) -> None:
        n = label.n_values
        counts = np.maximum(noisy[:n], 0).astype(np.float64)
        if not counts.any():
            counts[:] = 1
        centers = label.means()
        self.total = counts.sum()
        away = centers - counts @ centers / self.total
        self.weights = np.zeros(label.size, dtype=np.int64)
        self.weights[:n] = np.rint(_GRID * away / max(np.abs(away).max(), 1e-300))
        self.least = 0
        self.range = 2 * _GRID
        self.spread = math.sqrt(float(counts @ self.weights[:n].astype(float) ** 2) / self.total)

    def of(self, codes: CodeArray, size: int, labels: CodeArray) -> int:
        # Exact: sums of integers below 2**53.
        sums = np.bincount(pd.factorize(codes)[0], weights=self.weights[labels])
        return int(np.abs(sums).sum()) - round(_by_chance(self.spread, size, self.total))


def _by_chance(spread: float, size: int, total: float) -> float:
    """Largest mean gain of an uninformative feature of ``size`` cells.

    In a cell of m records it is at most spread * sqrt(m), and the sum over cells of sqrt(m) is
    largest where all have equally many.
    """
    return spread * math.sqrt(total * min(size, total))


def most_frequent_items(
    baskets: Any,
    k: int,
    items: Any,
    *,
    epsilon: Any = 1.0,
    max_items: int,
    persons: Any = None,
    count_share: Any = 0.2,
    method: str = "auto",
    ledger: Any = None,
    random_state: Any = None,
) -> pd.DataFrame:
    """Find the k most frequent items privately, counting each item once per person.

    Parameters
    ----------
    baskets : iterable of collections, or array-like of shape (n_rows,)
        One collection of items for each person. A value that is not a collection is a basket of one
        item; a collection that cannot be read is an empty basket. With ``persons``: a column of
        items, each belonging to the person in the same row of ``persons``.
    k : int
        Number of items to find.
    items : sequence or Categorical
        Public list of all candidates. Other items are ignored. A tuple among them is a set of
        items: a basket has it if it holds all of them.
    epsilon : number or Fraction, default=1.0
        Privacy parameter of everything that is returned, for one PERSON.
    max_items : int
        Contribution bound: a random subset of this size counts for a person with more different
        items. A small bound needs less noise but counts less of large baskets.
    persons : array-like of shape (n_rows,), default=None
        Numbers, text or dates that identify the person of each row. Rows without one are skipped,
        and so are those whose person a reader of files may have changed (:ref:`persons`).
    count_share : number, default=0.2
        Part of epsilon for noisy counts of the items found, if counts are not free. 0 gives no
        counts.
    method : {"one-shot", "peeling", "canonical", "auto"}, default="auto"
        How the items are selected; see `skdp.mechanisms.top_k`. "canonical" and "auto" give no
        order: the items are then ordered by their noisy counts, if there are any.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : None, int or NoiseSource, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: no guarantee.

    Returns
    -------
    DataFrame
        Columns "item", best first where that is known, and "count": the noisy number of persons
        with it, where each person counts for ``max_items`` items at most.
        ``attrs["privacy_loss"]`` says what it cost, by part, and whether it was seeded.

    Raises
    ------
    DomainError, TypeError, ValueError
        If a parameter is of the wrong type or out of range; nothing is spent.
    BudgetExceededError
        If the ledger cannot pay; no value has been read.

    Notes
    -----
    There are two ways. Either all counts get discrete Laplace noise of scale ``max_items`` /
    epsilon, and the k largest are reported with their counts; or k are selected by `top_k`, with
    noise of scale k / epsilon where ``method`` is "one-shot", and their counts are measured with
    the rest of epsilon. For "one-shot" and "auto" the one with less noise is taken; it depends on
    ``k``, ``max_items`` and ``count_share`` only. The other methods always select.

    Examples
    --------
    >>> from skdp import most_frequent_items
    >>> baskets = [["bread", "milk"]] * 700 + [["milk", "tea"]] * 500 + [["salt"]] * 20
    >>> found = most_frequent_items(
    ...     baskets, 2, ["bread", "milk", "salt", "tea"], epsilon=1.0, max_items=2
    ... )
    >>> found["item"].tolist()
    ['milk', 'bread']
    """
    # Privacy. One person changes at most b = min(max_items, number of items) counts, each by 1, all
    # upward or all downward. All counts with discrete Laplace noise of sensitivity b; the rest is
    # post-processing. Or: top_k with R = 1 at the part "selection", then the counts of the k found
    # with sensitivity min(b, k) at the part "counts". Which items of a person count depends on that
    # person and fresh randomness only. The same holds of sets: which ones a person has depends on
    # that person alone, and b of them count.
    catalogue, sets = _candidates(items)
    n_items = len(sets)
    number, bound = as_integer(k, "k", 1), as_integer(max_items, "max_items", 1)
    if number > n_items:
        raise ValueError(f"k={number} items were asked for, but there are {n_items} candidates.")
    share = as_between(count_share, "count_share", 0, Fraction(999, 1000))
    bound = min(bound, n_items)
    # Variances: 2 b**2 for Laplace, (k / (1 - share))**2 for geometric noise.
    check_choice(method, "method", METHODS)
    less_noise = 2 * bound**2 * (1 - share) ** 2 <= number**2
    everything = less_noise and method in ("one-shot", "auto")
    parts = {"selection": 1 - share, "counts": share}
    if everything:
        parts = {"counts": Fraction(1)}
    exact = as_epsilon(epsilon)
    epsilon_of_row(exact, bound, min(filter(None, parts.values())))
    entries = _entries(baskets, "baskets")
    people = None if persons is None else _entries(persons, "persons")
    if people is not None and len(entries) != len(people):
        raise ValueError(
            "baskets and persons have different numbers of entries: give one person for each item."
        )
    kinds = [entries.kind] if isinstance(entries, Column) else []
    source = noise_source(random_state)
    # A basket is a record. In long form a person has several records, of which ``bound`` count.
    loss = PrivacyLoss(
        exact,
        split_epsilon(exact, parts),
        seeded=source.seeded,
        max_rows_per_id=None if persons is None else bound,
        assumes=assumed(kinds) if persons is None else TYPES_DECLARED,
    )
    charge(ledger, "most_frequent_items", loss)

    owners = None if people is None else identities(_column(people))
    if owners is None and isinstance(entries, list):
        entries, owners = _flat(entries)
    codes = _column(entries).codes(catalogue.coding())
    if any(len(each) > 1 for each in sets):
        owners, codes = _held(owners, codes, sets)
    counts = _bounded_counts(codes, owners, n_items, bound, source)
    best, found = _noisy_best(counts, number, bound, loss.parts, method, source)
    names = [tuple(catalogue.categories[item] for item in each) for each in sets]
    shown = [names[place] if len(names[place]) > 1 else names[place][0] for place in best]
    table = pd.DataFrame({"item": shown})
    if found is not None:
        table["count"] = found
    # Plain values, which every file format of a frame can hold.
    table.attrs["privacy_loss"] = {
        "epsilon": float(loss.epsilon),
        "parts": {name: float(part) for name, part in loss.parts.items()},
        "seeded": loss.seeded,
    }
    return table


def _candidates(items: Any) -> tuple[Categorical, list[tuple[int, ...]]]:
    """All items that are asked for, and the candidates as sets of their places."""
    if isinstance(items, Categorical):
        return items, [(place,) for place in range(items.n_values)]
    listed = list(items) if isinstance(items, Iterable) and not isinstance(items, str) else []
    if not any(isinstance(each, tuple) for each in listed):
        catalogue = Categorical(items)
        return catalogue, [(place,) for place in range(catalogue.n_values)]
    members = [each if isinstance(each, tuple) else (each,) for each in listed]
    catalogue = Categorical(list(dict.fromkeys(item for each in members for item in each)))
    place = {item: number for number, item in enumerate(catalogue.categories)}
    sets = [tuple(sorted({place[item] for item in each})) for each in members]
    if not all(sets) or len(set(sets)) < len(sets):
        raise ValueError("items has an empty tuple, or one set of items twice.")
    return catalogue, sets


def _held(
    owners: IntArray | None, codes: CodeArray, sets: list[tuple[int, ...]]
) -> tuple[IntArray, CodeArray]:
    """The sets of items that each person has: persons, and numbers of sets."""
    owners = np.arange(len(codes)) if owners is None else owners
    n_items = 1 + max(item for each in sets for item in each)
    known = (owners >= 0) & (codes >= 0) & (codes < n_items)
    order = np.argsort(codes[known], kind="stable")
    ends = np.cumsum(np.bincount(codes[known], minlength=n_items))
    of_item = [np.unique(each) for each in np.split(owners[known][order], ends[:-1])]
    having = [reduce(np.intersect1d, [of_item[item] for item in each]) for each in sets]
    number = np.repeat(np.arange(len(sets), dtype=np.int32), list(map(len, having)))
    return np.concatenate(having), number


def _noisy_best(
    counts: IntArray,
    k: int,
    bound: int,
    parts: Mapping[str, Fraction],
    method: str,
    source: NoiseSource,
) -> tuple[IntArray, IntArray | None]:
    """The items with the largest counts, and their noisy counts if there is a part for them."""
    if "selection" not in parts:
        noisy = discrete_laplace(counts, parts["counts"], bound, random_state=source)
        best = np.argsort(-noisy, kind="stable")[:k]
        return best, noisy[best]
    ordered = method not in _UNORDERED
    best = top_k(
        counts, k, parts["selection"], 1, method=method, ordered=ordered, random_state=source
    )
    if "counts" not in parts:
        return best, None
    noisy = discrete_laplace(counts[best], parts["counts"], min(bound, k), random_state=source)
    order = np.arange(k) if ordered else np.argsort(-noisy, kind="stable")
    return best[order], noisy[order]


def _entries(values: Any, name: str) -> Column | list[Any]:
    """Entries of a column or a list, without looking into them; a column of a type of its own."""
    if (
        isinstance(values, str | bytes)
        or not isinstance(values, Iterable)
        or hasattr(values, "columns")
        or getattr(values, "ndim", 1) == 0
    ):
        raise TypeError(
            f"{name} must be a column or a list, got {type(values).__name__}. (baskets is a "
            "collection of collections of items, or with persons= a column of items.)"
        )
    typed = hasattr(values, "dtype") or hasattr(values, "type")
    if not typed or (
        isinstance(values, np.ndarray) and (values.ndim > 1 or values.dtype == object)
    ):
        return list(values)
    column = as_column(values, name)
    return column.objects() if column.kind in ("object", "other") else column


def _column(entries: Column | list[Any]) -> Column:
    return entries if isinstance(entries, Column) else as_column(object_array(entries), "item")


def _flat(baskets: list[Any]) -> tuple[list[Any], IntArray]:
    """Items of all baskets one after the other, and the number of the basket of each."""
    read = [_items(basket) for basket in baskets]
    sizes = np.fromiter(map(len, read), np.int64)
    return list(chain.from_iterable(read)), np.repeat(np.arange(len(read)), sizes)


def _items(basket: Any) -> list[Any]:
    """The items of one basket; a single value is a basket of one. Never raises."""
    try:
        if isinstance(basket, np.ndarray):
            # Arrays of no dimension, or of several, too.
            return basket.ravel().tolist()
        single = isinstance(basket, str | bytes) or not isinstance(basket, Iterable)
        return [basket] if single else list(basket)
    except BaseException as error:  # a basket that cannot be read: an error would reveal it
        reraise_interrupts(error)
        return []


def _bounded_counts(
    codes: CodeArray, owners: IntArray | None, n_items: int, bound: int, source: NoiseSource
) -> IntArray:
    """How many persons have each item, at most ``bound`` items of a person being counted.

    Without ``owners``, every item is that of another person, who has no other.
    """
    if owners is None:
        return np.bincount(codes[codes >= 0], minlength=n_items).astype(np.int64)
    known = (owners >= 0) & (codes >= 0) & (codes < n_items)
    pairs = np.sort(owners[known] * n_items + codes[known])
    owners, codes = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], n_items)
    # In random order within each person; the first ones count.
    coins = source.record_words(len(owners), codes, owners)
    counted = codes[few_of_each(owners, coins, bound)]
    return np.bincount(counted, minlength=n_items).astype(np.int64)
