"""What scikit-learn's models have and private ones have not, each with what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

__all__ = ["RefusesWeights", "refuse_beside_rows"]

_WEIGHTS = (
    "the noise hides records of weight 1, and a record of weight w would cost w times epsilon"
)
_REFUSED = {
    "class_weight": f"{_WEIGHTS}. To shift the balance of classes, fit without it and move the "
    "threshold of predict_proba.",
    "sample_weight": f"{_WEIGHTS}. Fit without it; to leave rows out, drop them by a rule that "
    "looks at one row at a time.",
    "warm_start": "every fit pays for what it releases, and none can go on from another. Make one "
    "fit with all of epsilon.",
}


def _refuse(place: str, params: Iterable[str]) -> None:
    """Refuse parameters that a private model cannot have.

    Raises
    ------
    TypeError
        With the reason and the remedy, if one of them is known.
    """
    for name in params:
        if name in _REFUSED:
            raise TypeError(f"{place} refuses {name}: {_REFUSED[name]}")


def refuse_beside_rows(name: str, fit_params: Iterable[str]) -> None:
    """Refuse what `fit` is given besides rows and labels.

    Raises
    ------
    TypeError
        If it is given anything.
    """
    _refuse(f"{name}.fit", fit_params)
    if fit_params:
        raise TypeError(f"{name}.fit takes X and y, got {sorted(fit_params)} too.")


class RefusesWeights:
    """Constructors of subclasses say why there are no weights and no warm start."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _refusing(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Any:
        """Set parameters, by name.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self
        """
        _refuse(type(self).__name__, params)
        return super().set_params(**params)  # type: ignore[misc]


def _refusing(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that looks at its names first; its signature stays."""

    @wraps(init)
    def checked(self: Any, *args: Any, **params: Any) -> None:
        _refuse(type(self).__name__, params)
        init(self, *args, **params)

    return checked
