"""Sample and aggregate: the bounded output of any estimator, from fits on many blocks."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import get_tags

from ._random import copied, kept_apart, quietly, sampling_generator, shared_generators
from ._validation import (
    FloatArray,
    IntArray,
    as_integer,
    attempt,
    check_choice,
    places_by_group,
    split_epsilon,
)
from .base import NoScore, PrivateEstimator, require_y
from .exceptions import DomainError
from .mechanisms import discrete_laplace, discrete_laplace_variance, select_on_line
from .tables import as_frame, as_labels, row_taker

__all__ = ["SampleAggregate"]

AGGREGATES = ("mean", "winsorised", "median")
# Steps of the grid between the ends of the range of an output.
STEPS = 2**20
# The winsorised mean keeps what lies within so many distances between the quartiles of them.
_WIDENING = 2
# GUPT's N^0.4 blocks are too few: noise dominates (section 4.6.4 of the dissertation).
_POWER, _MOST_BLOCKS = 0.6, 2**16


@dataclass(eq=False, repr=False, kw_only=True)
class SampleAggregate(NoScore, MetaEstimatorMixin, PrivateEstimator):
    """Release a bounded output of any scikit-learn estimator: fit it on blocks and aggregate.

    Each record is in one block, drawn by its own secret coin. The estimator is fitted on every
    block, without noise; the mean of its outputs, each clipped to a public range, gets noise for
    the one block that a record can change. Nothing needs to be known about the estimator; the price
    is that it sees few records at a time. A solver made for the model is better where there is one.

    Parameters
    ----------
    estimator : estimator
        Any estimator with ``fit`` that `copy.deepcopy` can copy. A copy is fitted on each block;
        ``random_state`` of it and of its parts is set where it is None.
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    output_range : (low, high), default=None
        Public range of the output, required: two numbers, or two arrays of the shape of the output.
        Outputs beyond it are clipped.
    n_blocks : int, default=None
        Number of blocks, at least 2: public. None: N^0.6 of a noisy number of records, for a
        twentieth of epsilon. GUPT takes N^0.4, of the exact number.
    output : str or callable
        By default ``"coef_"``. Fitted attribute that is released, or a function from the fitted
        estimator to an array.
    aggregate : {"mean", "winsorised", "median"}, default="mean"
        "mean": best with few blocks, or a range little wider than the outputs vary. "winsorised":
        half of the budget finds where the outputs of blocks lie, and the mean of what lies there
        needs less noise. "median": best with hundreds of blocks and a wide range.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise and of the coins. None: the operating system's random source. An int is
        for experiments only: no guarantee.

    Attributes
    ----------
    value_ : float or ndarray
        The released output, within its range.
    std_ : float or ndarray
        Standard deviation of the noise, in units of the output; NaN for medians. How far fits on
        blocks are from a fit on all records is not in it.
    n_blocks_ : int
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (number of records, where it decides the number of blocks),
        "limits" (where the outputs lie), "output".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: the estimator, the range, the number of blocks
    where it is given. *Released*: the aggregate, the quartiles of the winsorised mean, the noisy
    number of records. *Cost*: a record changes the output of one block, by the width of the range
    at most; d numbers cost epsilon / d each.

    A block counts as the middle of the range if it is empty, if the estimator raises, or if its
    output has another shape; so does a number that is not finite. So errors and warnings of the
    estimator are not seen: try it with `rehearse` on public rows first.

    Each block has a copy of the estimator and of ``output``, and draws from generators of Python
    and NumPy that were seeded for it. *Not private* is what the estimator prints, stores or sends
    elsewhere (such as ``memory=`` of a pipeline), and what one block finds of another where it
    cannot be reached: in generators of other libraries, counters and caches on classes and in
    modules, and worker processes that joblib does not start.

    Columns of objects become what the values of a block are, but other types are those of the whole
    table, and public: one gap makes pandas read integers as floats, and one text makes NumPy read
    numbers as text. Declare types when you read a file, with room for gaps ("Int64").

    References
    ----------
    K. Nissim, S. Raskhodnikova and A. Smith, "Smooth sensitivity and sampling in private data
    analysis", STOC 2007; P. Mohan, A. Thakurta, E. Shi, D. Song and D. Culler, "GUPT: privacy
    preserving data analysis made easy", SIGMOD 2012; A. Smith, "Privacy-preserving statistical
    estimation with optimal convergence rates", STOC 2011 (winsorised mean).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skdp import SampleAggregate
    >>> X = np.linspace(0, 1, 20_000)[:, None]
    >>> y = 3 * X[:, 0] + 1
    >>> model = SampleAggregate(
    ...     LinearRegression(), epsilon=1.0, output_range=([-10], [10]), n_blocks=100
    ... )
    >>> bool(abs(model.fit(X, y).value_[0] - 3) < 0.5)
    True
    """

    estimator: Any = field(kw_only=False)
    output_range: Any = None
    n_blocks: Any = None
    output: Any = "coef_"
    aggregate: Any = "mean"

    _belongs = (
        "It releases numbers and predicts nothing: fit it by itself, and choose its parameters on "
        "public or synthetic rows. A model that predicts is PrivateClassifier or PrivateRegressor."
    )

    def fit(self, X, y=None) -> Self:
        """Charge epsilon, then release the aggregate of the outputs of blocks.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            In memory. The estimator gets rows of the same container: of a list, lists.
        y : array-like of shape (n_rows,), default=None
            Passed to the estimator.

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If a parameter is invalid or cannot be copied, or ``y`` is missing or not as long as
            ``X``; nothing is spent. Values never raise, nor does the estimator on them.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        """
        low, high = self._range()
        n_blocks = None if self.n_blocks is None else as_integer(self.n_blocks, "n_blocks", 2)
        check_choice(self.aggregate, "aggregate", AGGREGATES)
        template = self._template()
        rows = as_frame(X)
        n_rows, take_rows = _taker(X)
        takers = [take_rows, *self._labels(y, n_rows)]
        held = [template, self.output]
        generators = shared_generators(held, copied(held, "The estimator or output"))
        self._rehearse_made_up(X, y, low.shape, template, generators)
        loss, source = self._spend(
            rows, aggregate_parts(self._record_epsilon(), self.aggregate, n_blocks is None)
        )

        parts = loss.of_record.parts
        if n_blocks is None:
            n_blocks = paid_blocks(n_rows, parts["total"], source)
        coins = sampling_generator(source)
        _seed(template, coins)
        seed = coins.integers(2**32, size=4).tolist()
        # Privacy. The coin of a record does not depend on other records, nor does its block's
        # output on those of other blocks: adding or removing a record changes one row of `outputs`.
        # For that, a block has a copy of the estimator, types that follow from its own rows, and
        # generators seeded by its number. A fit that fails gives a public value, as no text of an
        # error may come out.
        block = source.record_below(n_blocks, n_rows)
        outputs = np.empty((n_blocks, low.size), dtype=np.int64)
        with kept_apart(generators) as seed_all:
            for number, mine in enumerate(places_by_group(block, n_blocks)):
                seed_all([*seed, number])
                outputs[number] = self._output_steps(template, mine, takers, low, high)
        values, stds = aggregate(outputs, self.aggregate, parts, source)
        width = (high - low).ravel() / STEPS
        self._remember_columns(X, rows)
        self.privacy_loss_ = loss
        self.n_blocks_ = n_blocks
        self.value_ = _shaped(low.ravel() + values * width, low.shape)
        self.std_ = _shaped(stds * width, low.shape)
        return self

    def rehearse(self, X, y=None) -> Any:
        """Fit the estimator once on PUBLIC rows and return its output, with errors shown.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Public or made up, of about as many rows as a block has.
        y : array-like of shape (n_rows,), default=None

        Returns
        -------
        ndarray
            The output, not clipped. Nothing is charged, and nothing is protected.

        Raises
        ------
        ValueError
            If the output does not have the shape of ``output_range``.
        """
        low, _ = self._range()
        model = clone(self._template())
        found = np.asarray(_read(model.fit(*([X] if y is None else [X, y])), self.output), float)
        if found.shape != low.shape:
            raise ValueError(
                f"The output has shape {found.shape}, and output_range has {low.shape}: give low "
                "and high as arrays of the shape of the output."
            )
        return found

    def _rehearse_made_up(self, X, y, shape, template, generators):
        """Refuse an output of another shape than the range, tried on made-up rows.

        What is read of ``X`` and ``y`` are names and types. Columns of other types than numbers are
        not made up, and an estimator that cannot be fitted to such rows is not judged by them.
        """
        made_up = _made_up(X)
        # As many labels as the output might have rows for.
        numbers = {2, *(n for n in shape[:1] if n > 2)}
        tried = [None] if y is None else [_made_up(y, n) for n in numbers]
        if made_up is None or (y is not None and tried[0] is None):
            return

        def found(labels):
            model, read = copy.deepcopy((template, self.output))
            output = _read(model.fit(*([made_up] if labels is None else [made_up, labels])), read)
            return np.shape(np.asarray(output, dtype=np.float64))

        with quietly(), kept_apart(generators) as seed_all:
            seed_all([0])
            shapes = [attempt(partial(found, each), shape) for each in tried]
        if shape not in shapes:
            raise ValueError(
                f"On made-up rows the output has shape {shapes[0]}, and output_range has {shape}: "
                "give low and high as arrays of the shape of the output. Nothing was read or "
                "spent; rehearse(X, y) shows the output for rows of your own."
            )

    def _range(self):
        """Ends of the range, as arrays of the shape of the output."""
        if self.output_range is None:
            raise DomainError(
                "output_range is required: the public range of the output, for example (-5, 5) for "
                "one number, or two arrays of the shape of the output. Reading it from the data "
                "would leak them."
            )
        try:
            low, high = (np.asarray(end, dtype=np.float64) for end in self.output_range)
            low, high = (np.array(end) for end in np.broadcast_arrays(low, high))
        except (TypeError, ValueError):
            raise DomainError(
                "output_range must be a pair (low, high) of numbers or of arrays of one shape, got "
                f"{self.output_range!r}."
            ) from None
        with np.errstate(over="ignore", invalid="ignore"):
            spans = high - low, high + low
        if not low.size or not (np.isfinite(spans).all() and (low < high).all()):
            raise DomainError(
                "output_range must be finite, with low < high everywhere, got "
                f"{self.output_range!r}."
            )
        return low, high

    def _template(self):
        """A copy of the estimator, unfitted."""
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise TypeError(
                f"estimator must be an estimator with a fit method, got {self.estimator!r}."
            )
        if not isinstance(self.output, str) and not callable(self.output):
            raise TypeError(
                f"output must be the name of a fitted attribute or a function, got {self.output!r}."
            )
        return clone(self.estimator)

    def _labels(self, y, n_rows):
        """What takes labels by position, if there are any; checks that they are as many as rows."""
        if y is None:
            if get_tags(self.estimator).target_tags.required:
                require_y(self, y)
            return []
        if not hasattr(y, "shape"):
            # Refuses what is no list of labels; no value is looked at.
            as_labels(y)
        n_labels, take = _taker(y)
        if n_labels != n_rows:
            raise ValueError("X and y must have the same number of rows.")
        return [take]

    def _output_steps(self, template, places, takers, low, high):
        """Output of a fit on some rows, in steps of its range; the middle if there is none."""
        middle = (low + high) / 2

        def output():
            # Copies: a generator or a cache in them would tell the next block of these rows.
            estimator, read = copy.deepcopy((template, self.output))
            fitted = estimator.fit(*(take(places) for take in takers))
            return np.asarray(_read(fitted, read), dtype=np.float64)

        with quietly():
            found = attempt(output, middle)
            if found.shape != low.shape:
                found = middle
            shares = np.clip(np.where(np.isfinite(found), found, middle), low, high) - low
            return np.rint(shares / (high - low) * STEPS).astype(np.int64).ravel()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = get_tags(self.estimator).target_tags.required
        return tags


def _made_up(data, n_labels=0):
    """Rows of the types of ``data``, or so many labels by turns; None if there is no such type."""
    kinds = getattr(data, "dtypes", getattr(data, "dtype", None))
    if kinds is None or not isinstance(data, np.ndarray | pd.DataFrame | pd.Series):
        return None
    types = list(data.dtypes) if isinstance(data, pd.DataFrame) else [kinds]
    if not all(isinstance(each, np.dtype) and each.kind in "iufb" for each in types):
        return None
    n = 64
    if n_labels and types[0].kind != "f":
        values = np.arange(n) % n_labels
    else:
        values = sampling_generator(0).normal(size=(n, *data.shape[1:]))
    if isinstance(data, np.ndarray):
        return values.astype(data.dtype)
    if isinstance(data, pd.Series):
        return pd.Series(values, name=data.name).astype(data.dtype)
    return pd.DataFrame(values, columns=data.columns).astype(dict(data.dtypes))


def _taker(data):
    """How many rows there are, and what takes some of them by position; a list gives lists.

    The estimator then makes an array of the rows of one block, whose type no other block sees.
    """
    if hasattr(data, "shape"):
        n_rows, take = row_taker(data)
        return n_rows, lambda places: _with_own_types(take(places))
    rows = list(data)
    # Copies: an estimator may change a list, and two records may be one object.
    return len(rows), lambda places: [copy.copy(rows[place]) for place in places]


def _with_own_types(rows):
    """Rows of a block, with columns of objects and complex ones as what their values are.

    One record with text, or a gap among truth values, makes objects of its whole column, and with
    labels that are objects a classifier fails in every block.
    """
    array = isinstance(rows, np.ndarray)
    if (array or isinstance(rows, pd.Series)) and rows.dtype.kind == "c":
        return rows if np.imag(rows).any() else rows.astype(np.float64)
    if isinstance(rows, pd.DataFrame | pd.Series):
        return rows.infer_objects()
    if array and rows.dtype == object and rows.ndim == 1:
        return pd.Series(rows, dtype=object).infer_objects().to_numpy()
    return rows


def _read(fitted, output):
    """The output of a fitted estimator."""
    return getattr(fitted, output) if isinstance(output, str) else output(fitted)


def _shaped(values, shape):
    """A number, or an array of the shape of the output."""
    return values.reshape(shape) if shape else float(values[0])


def _seed(estimator, coins):
    """Give public seeds to an estimator and its parts, so that blocks share no generator."""
    params = estimator.get_params(deep=True)
    seeds = {
        name: int(coins.integers(2**31))
        for name, value in sorted(params.items())
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    if seeds:
        estimator.set_params(**seeds)


# --- one output from those of many blocks: integers on a public grid


def aggregate_parts(epsilon: Fraction, how: str, counted: bool) -> dict[str, Fraction]:
    """Parts of epsilon: the number of records, where it is paid for, quartiles, and the output.

    Parameters
    ----------
    epsilon : Fraction
    how : {"mean", "winsorised", "median"}
    counted : bool
        Whether the number of blocks follows from a noisy number of records.
    """
    left = Fraction(19, 20) if counted else Fraction(1)
    limits = left / 2 if how == "winsorised" else Fraction(0)
    return split_epsilon(epsilon, {"total": 1 - left, "limits": limits, "output": left - limits})


def paid_blocks(n_records: int, epsilon: Fraction, source: Any) -> int:
    """N^0.6 blocks, from a noisy number of records."""
    # Privacy. Released: the number of records, sensitivity 1.
    total = float(discrete_laplace(n_records, epsilon, random_state=source))
    return int(np.clip(round(max(total, 1.0) ** _POWER), 2, _MOST_BLOCKS))


def aggregate(
    outputs: IntArray, how: str, parts: Mapping[str, Fraction], source: Any
) -> tuple[FloatArray, FloatArray]:
    """Mean or median of the outputs of blocks, in steps of the grid, with noise, and its spread.

    The standard deviation of the noise of a median is NaN.

    Parameters
    ----------
    outputs : ndarray of int, shape (n_blocks, n_outputs)
        From 0 to `STEPS`: private.
    how : {"mean", "winsorised", "median"}
    parts : mapping of str to Fraction
        See `aggregate_parts`.
    source : NoiseSource
    """
    # Privacy. A record replaces one row of `outputs`; their number is public or was released. Each
    # output has equal parts of epsilon, which add up. "mean": one value of a sum moves by at most
    # STEPS. "winsorised": the quartiles are two selections; clipped to limits that follow from
    # them, one value moves by at most their distance. "median": one selection.
    n_outputs = outputs.shape[1]
    each = {name: part / n_outputs for name, part in parts.items()}
    found: list[tuple[float, float]] = []
    for values in outputs.T:
        if how == "median":
            found.append((_quantile(values, 1, 2, each["output"], source), np.nan))
            continue
        low, high = 0, STEPS
        if how == "winsorised":
            low, high = _limits(values, each["limits"], source)
        sums = int((np.clip(values, low, high) - low).sum())
        noisy = discrete_laplace(sums, each["output"], high - low, random_state=source)
        std = np.sqrt(discrete_laplace_variance(each["output"], high - low)) / len(values)
        found.append((low + float(np.clip(noisy / len(values), 0, high - low)), std))
    values, stds = np.array(found, dtype=np.float64).T
    return values, stds


def _limits(values: IntArray, epsilon: Fraction, source: Any) -> tuple[int, int]:
    """Selected quartiles, widened; at least one step apart."""
    ends = [_quantile(values, p, 4, epsilon / 2, source) for p in (1, 3)]
    lower, upper = min(ends), max(ends)
    reach = _WIDENING * (upper - lower)
    low, high = max(lower - reach, 0), min(upper + reach, STEPS)
    return min(low, STEPS - 1), max(high, low + 1)


def _quantile(values: IntArray, p: int, t: int, epsilon: Fraction, source: Any) -> int:
    """A step of the grid whose rank is near p / t, selected among all steps."""
    # Privacy. With n values, `under` of them below z and `until` at or below it, the score of z is
    # -max(0, t under - p n, p n - t until). Replacing one value moves `under` and `until` by at
    # most one, so every score by at most t, up or down: a range of 2 t.
    distinct, counts = np.unique(values, return_counts=True)
    until = np.cumsum(counts)
    # Pieces: each value, and the gap after it; before the first value there may be a gap too.
    starts = np.stack([distinct, distinct + 1], axis=1).ravel()
    under = np.stack([until - counts, until], axis=1).ravel()
    upto = np.stack([until, until], axis=1).ravel()
    starts, under, upto = (np.append(0, each) for each in (starts, under, upto))
    ends = np.append(starts[1:], STEPS + 1)
    kept = ends > starts
    target = p * len(values)
    scores = -np.maximum(np.maximum(t * under - target, target - t * upto), 0)
    return select_on_line(
        starts[kept], scores[kept], STEPS + 1, epsilon, 2 * t, random_state=source
    )
