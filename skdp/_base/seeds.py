"""Seeds of private noise are hidden: anyone who knows one can subtract the noise."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

__all__ = ["HidesSeed", "Seed", "as_seed"]


class Seed(int):
    """The seed of private noise: an integer whose repr hides its value.

    Pipelines, searches and notebooks print the parameters of the estimators inside them.
    """

    def __repr__(self) -> str:
        return "<seeded: no guarantee>"

    __str__ = __repr__

    def __reduce__(self) -> tuple[type[Seed], tuple[int]]:
        return Seed, (int(self),)

    # As for an int: clone() compares parameters by identity.
    def __copy__(self) -> Seed:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Seed:
        return self


class HidesSeed:
    """Keeps an integer ``random_state``, which draws private noise, as a `Seed`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "random_state":
            value = as_seed(value)
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Files of other libraries hold a plain number.
        if "random_state" in state:
            state = {**state, "random_state": as_seed(state["random_state"])}
        # Some base classes have none, and object has none.
        getattr(super(), "__setstate__", self.__dict__.update)(state)


def as_seed(value: Any) -> Any:
    """``value``, as a `Seed` if it is an integer."""
    known = isinstance(value, bool | np.bool_ | Seed)
    return Seed(value) if isinstance(value, numbers.Integral) and not known else value
