"""Results that hold exact numbers about the records refuse to be published."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["NOT_PRIVATE", "OwnerOnly"]

NOT_PRIVATE = "NOT PRIVATE: computed from the exact records, for the data owner only"


class OwnerOnly:
    """A result that cannot be pickled, and that nothing in this library publishes."""

    # Whether anything of it was computed from private rows.
    publishable = False

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} was computed from the exact records and is not private: it "
            "refuses to be stored or sent. Make it again where the records are."
        )
