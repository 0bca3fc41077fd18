"""What others see of an estimator: copies and pickles, notebooks, answers of its release."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any, Self, cast

from sklearn.base import clone
from sklearn.utils import estimator_html_repr

from .._random import NoiseSource, Seed
from .._validation import as_epsilon, markup
from ..accounting import PrivacyLedger
from ..release.page import TablePage

# --- the state of a fitted estimator when it is copied or stored: no ledger, no seed of noise


def for_travel(value: Any) -> Any:
    """``value`` of a fitted estimator's state, without ledgers and without seeds of noise.

    A release may be published. So its state contains neither the ledger, which is replaced by a
    stand-in that refuses charges, nor the seed, with which the noise could be subtracted.

    Parameters
    ----------
    value : object
        A parameter, an estimator, or a dict, list or tuple of them.
    """
    if isinstance(value, PrivacyLedger):
        return value.detached()
    if isinstance(value, Seed | NoiseSource):
        return None
    if type(value) is dict:
        return {key: for_travel(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(for_travel(one) for one in value)
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=True)
        left = {
            key: for_travel(one)
            for key, one in params.items()
            if isinstance(one, PrivacyLedger | Seed | NoiseSource)
        }
        return clone(value).set_params(**left) if left else value
    return value


class _Kept:
    """A parameter in the state of a fitted estimator: whole in memory, `for_travel` elsewhere."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.value, memo)

    def __getstate__(self) -> dict[str, Any]:
        return {"value": for_travel(self.value)}


class Published:
    """Copies keep the ledger of a fitted estimator; its pickles, which may be published, do not.

    A copy in memory, deep or not, may fit again and must pay for it. Before the fit, a pickle keeps
    ledger and seed: both are needed where the fit will run.
    """

    # Fitted attributes in which parameters are repeated.
    _repeats: tuple[str, ...] = ()

    get_params: Any  # of the estimator that this is mixed into

    def __getstate__(self) -> dict[str, Any]:
        # Deep copies use this method too. Wrappers that pass attributes on, such as
        # FrozenEstimator, would find a __deepcopy__ of the wrapped estimator and lose the wrapper.
        state = cast(dict[str, Any], super().__getstate__())
        if "privacy_loss_" in state:
            names = {*self.get_params(deep=False), *self._repeats}
            state = {k: _Kept(v) if k in names else v for k, v in state.items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {k: v.value if isinstance(v, _Kept) else v for k, v in state.items()}
        super().__setstate__(state)  # type: ignore[misc]  # of the estimator

    def __copy__(self) -> Self:
        # Not through __getstate__, which is for travel.
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin


# --- what notebooks show above an estimator: what a fit will spend, or has spent

# Fitted attributes that repeat what was declared.
_PUBLIC_FACTS = {"privacy_loss_", "n_features_in_", "feature_names_in_", "domain_", "classes_"}


def privacy_html(estimator: Any) -> str:
    """What a notebook shows above an estimator: what was spent, on what, and what is public."""
    loss = getattr(estimator, "privacy_loss_", None)
    if loss is None:
        return markup("<div>Not fitted; {price}</div>", price=estimator._price_text())
    released = sorted(
        name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")
    )
    ours = [name for name in released if name not in _PUBLIC_FACTS]
    public = [
        name
        for name in ("domain", "target", "classes", "n_samples", "target_range")
        if getattr(estimator, name, None) is not None
    ]
    names = f" ({', '.join(public)})" if public else ""
    facts = "<div>{loss}<br><small>public: parameters{names}; released: {ours}</small></div>"
    return markup(facts, loss=loss, names=names, ours=", ".join(ours))


class ShowsPrivacy:
    """Notebooks show what was spent above scikit-learn's diagram."""

    epsilon: Any  # of the estimator that this is mixed into
    # scikit-learn's diagram links the class to its page in the reference.
    _doc_link_module = "skdp"
    _doc_link_template = "https://example.org/skdp/docs/api/skdp.{estimator_name}.html"

    def _price(self) -> Fraction | None:
        """What a fit will spend; None where it is not known beforehand."""
        return as_epsilon(self.epsilon)

    def _price_text(self) -> str:
        try:
            price = self._price()
        except (TypeError, ValueError) as error:
            return f"a fit will refuse: {error}"
        if price is None:
            return "what a fit will spend is not known."
        return f"a fit will spend \u03b5 = {float(price):g}."

    def _repr_html_(self) -> str:
        return privacy_html(self) + estimator_html_repr(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


# --- `AnswersStatistics`: statistics of a release as methods of the estimator that made it


class AnswersStatistics:
    """Statistics with intervals; ``_asked()`` is the `Synopsis` that answers."""

    def _asked(self) -> Any:
        """The synopsis; NotFittedError without a fit."""
        raise NotImplementedError

    def count(self, query: Any = None, **how: Any) -> Any:
        """Expected number of records that satisfy a query; see :meth:`skdp.Synopsis.count`."""
        return self._asked().count(query, **how)

    def sum(self, column: str, query: Any = None, **how: Any) -> Any:
        """Sum of a numeric column over a query; see :meth:`skdp.Synopsis.sum`."""
        return self._asked().sum(column, query, **how)

    def mean(self, column: str, query: Any = None, **how: Any) -> Any:
        """Mean of a numeric column over a query; see :meth:`skdp.Synopsis.mean`."""
        return self._asked().mean(column, query, **how)

    def std(self, column: str, query: Any = None, **how: Any) -> Any:
        """Standard deviation of a column over a query; see :meth:`skdp.Synopsis.std`."""
        return self._asked().std(column, query, **how)

    def quantile(self, column: str, q: Any = 0.5, query: Any = None, **how: Any) -> Any:
        """Quantiles of a column over a query; see :meth:`skdp.Synopsis.quantile`."""
        return self._asked().quantile(column, q, query, **how)

    def proportion(self, query: Any, among: Any = None, **how: Any) -> Any:
        """Share of a query among another's records; see :meth:`skdp.Synopsis.proportion`."""
        return self._asked().proportion(query, among, **how)

    def covariance(self, first: str, second: str, query: Any = None, **how: Any) -> Any:
        """Covariance of two columns over a query; see :meth:`skdp.Synopsis.covariance`."""
        return self._asked().covariance(first, second, query, **how)

    def correlation(self, first: str, second: str, query: Any = None, **how: Any) -> Any:
        """Correlation of two columns over a query; see :meth:`skdp.Synopsis.correlation`."""
        return self._asked().correlation(first, second, query, **how)

    def aggregate(self, by: Any, column: Any = None, query: Any = None, **how: Any) -> Any:
        """Counts, sums and means of groups; see :meth:`skdp.Synopsis.aggregate`."""
        return self._asked().aggregate(by, column, query, **how)

    def crosstab(self, index: str, columns: str, query: Any = None, **how: Any) -> Any:
        """Counts of all combinations of two columns; see :meth:`skdp.Synopsis.crosstab`."""
        return self._asked().crosstab(index, columns, query, **how)

    def describe(self, *, level: float = 0.95) -> Any:
        """Statistics of every column with intervals; see :meth:`skdp.Synopsis.describe`."""
        return self._asked().describe(level=level)

    def page(self, path: Any = None, *, title: str = "A private release") -> Any:
        """Write a page of all released numbers, whom it protects and how much: one HTML file.

        Parameters
        ----------
        path : str or path-like, default=None
            An existing file is replaced. None returns the page, which a notebook shows.
        title : str, default="A private release"
            Title of the page.

        Returns
        -------
        page or None
            With the file as ``text``; None with a path.
        """
        self._asked()
        own: Any = self
        return TablePage(title, own.privacy_loss_, type(self).__name__, own.to_frame()).written(
            path
        )
