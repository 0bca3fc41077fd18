"""Several releases of one table, which answer counts together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from .._validation import as_level
from ..accounting import PrivacyLoss
from ..domain import Categorical
from .result import QueryResult
from .statistics import Confidence, possible_ends

# Privacy. Nothing is measured here: the combination is a function of what was released, and costs
# nothing. All releases together cost the sum of their epsilons, because each was made from the same
# records with noise of its own (sequential composition); `privacy_loss` is that sum, exactly. The
# ledger was charged by each fit, so it is not charged again.


def combine(releases: Sequence[Any]) -> CombinedRelease:
    """Answer counts from several releases of the same table, each weighted by its accuracy.

    Parameters
    ----------
    releases : sequence of at least two fitted estimators or releases
        What has a method ``count`` with intervals: `Synopsis`, every synthesizer, `DataCube`,
        `RangeTreeHistogram`. All must be of the same records, from separate fits: a copy of a
        release has the same noise and adds no information.

    Returns
    -------
    CombinedRelease

    Raises
    ------
    TypeError
        If there are fewer than two, or something has no ``count``.
    ValueError
        If one is given twice, also as an estimator and its release; if one protects persons and
        another records, persons count with different numbers of records, or a column was declared
        with other ranges or categories: such releases count different things.
    sklearn.exceptions.NotFittedError
        If an estimator is not fitted.

    Notes
    -----
    Combining costs no privacy, but the releases together cost the sum of their epsilons. One
    release with that sum is nearly always better than two with a half each: combine what was made
    for other reasons, such as a cube and a histogram of the same records.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from skdp import Domain, Numeric, RangeTreeHistogram
    >>> from skdp.release import combine
    >>> ages = pd.DataFrame({"age": np.random.default_rng(0).integers(0, 90, 5_000)})
    >>> domain = Domain({"age": Numeric(0, 89, integer=True)})
    >>> both = combine([RangeTreeHistogram(epsilon=e, domain=domain).fit(ages) for e in (0.5, 1)])
    >>> both.privacy_loss.epsilon
    Fraction(3, 2)
    >>> result = both.count("age < 30", return_interval=True)
    >>> result.lower < 2_000 and result.upper > 1_400
    True
    """
    parts = list(releases)
    if len(parts) < 2 or not all(callable(getattr(part, "count", None)) for part in parts):
        given = ", ".join(type(part).__name__ for part in parts)
        raise TypeError(f"combine needs two or more releases that answer counts, got {given or 0}.")
    # Of estimators that which answers.
    asked = [part._asked() if hasattr(part, "get_params") else part for part in parts]
    if min(len({*map(id, each)}) for each in (parts, asked)) < len(parts):
        raise ValueError("A release is given twice: its noise is the same, so it adds nothing.")
    losses = [getattr(each, "privacy_loss", None) for each in asked]
    most = {loss.max_rows_per_id for loss in losses if loss is not None}
    if len(most) > 1:
        raise ValueError(
            f"max_rows_per_id differs, {sorted(most, key=str)}: the releases count different "
            "records of the same persons. Combine releases with the same number."
        )
    seen: dict[str, Any] = {}
    for name, each in (item for one in asked for item in getattr(one, "domain", {}).items()):
        # What values count as themselves; bins do not matter.
        values = {*each.categories} if isinstance(each, Categorical) else (each.lower, each.upper)
        if seen.setdefault(name, values) != values:
            raise ValueError(
                f"Column {name!r} is declared differently: {seen[name]} and {values}. Values "
                "outside of a range count at its ends, so that the releases count different "
                "things. Combine releases with the same ranges and categories; bins may differ."
            )
    return CombinedRelease(asked, None if None in losses else reduce(add, losses))


class CombinedRelease:
    """Releases of one table that answer counts together; made by `combine`.

    Attributes
    ----------
    releases : tuple
        Of estimators their synopses.
    privacy_loss : PrivacyLoss or None
        What all releases cost together; None if it is not known of one of them.
    """

    def __init__(self, releases: Sequence[Any], privacy_loss: PrivacyLoss | None) -> None:
        self.releases, self.privacy_loss = tuple(releases), privacy_loss

    def count(
        self, query: Any = None, *, return_interval: bool = False, level: float = 0.95
    ) -> Any:
        """Estimate how many records satisfy a query: the mean of the answers by inverse variance.

        Parameters
        ----------
        query : dict, str, None, or a list of these, default=None
            What all releases can answer; see :meth:`skdp.Synopsis.count`.
        return_interval : bool, default=False
            Whether to return a `QueryResult` with an interval.
        level : float, default=0.95
            Confidence of the interval, for a query fixed before looking at the releases.

        Returns
        -------
        float, ndarray of float64, QueryResult or list of QueryResult
            As :meth:`skdp.Synopsis.count`.

        Raises
        ------
        ValueError
            If a release cannot answer the query, or does not describe its noise.

        Notes
        -----
        The noise of the releases is independent, so that of the mean is smaller than that of each.
        What an interval covers beyond the noise, such as records that lie unevenly in the boxes of
        a partition, may be wrong in all releases alike: it is averaged, not reduced. So is the
        whole interval of synthesizers whose error bars are calibrated (marginals,
        PrivBayes), whose models may share an error: their mean is better than each, but its
        interval is between theirs. Each weight is the inverse of the squared half width of the
        interval.
        """
        single, level = not isinstance(query, list | tuple), as_level(level)
        results: Any = [self._combined(each, level) for each in ([query] if single else query)]
        if not return_interval:
            results = np.array([result.value for result in results])
        return results[0] if single else results

    def _combined(self, query: Any, level: float) -> QueryResult:
        """The answer of all releases to one query."""
        confidence, n = Confidence(level), len(self.releases)
        answers = [each.count(query, return_interval=True, level=level) for each in self.releases]
        numbers = [(each.value, each.std, each.lower, each.upper) for each in answers]
        values, stds, lower, upper = np.array(numbers, dtype=np.float64).T
        up = upper - values
        # As if an interval had not been cut off at zero.
        down = np.where(lower > 0, values - lower, np.maximum(values - lower, up))
        weights = np.maximum(np.maximum(down, up), 1e-9) ** -2.0
        weights /= weights.sum()
        # What marginals and networks cover is also the error of a model, which two models of the
        # same table may share.
        models = [getattr(each, "model", None) for each in self.releases]
        known = [model is None or model.independent for model in models] & np.isfinite(stds)
        noise = confidence.quantile * np.where(known, stds, 0.0)
        value, width = float(weights @ values), float(np.linalg.norm(weights * noise))
        down, up = (width + weights @ np.maximum(each - noise, 0.0) for each in (down, up))
        low, high = map(float, possible_ends(value, down, up, confidence))
        return QueryResult(
            value,
            width / confidence.quantile if np.isfinite(stds).all() else math.nan,
            low,
            high,
            f"At least about {100 * level:g}%, from {n} releases of the same table: "
            "their noise is independent and taken as normal; what their intervals cover beyond the "
            "noise is averaged.",
        )
