"""The state of a fitted estimator when it is copied or stored: no ledger, no seed of noise."""

from __future__ import annotations

import copy
from typing import Any, Self, cast

from sklearn.base import clone

from .._random import NoiseSource
from ..accounting import PrivacyLedger
from .seeds import Seed

__all__ = ["Published", "for_travel"]


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
