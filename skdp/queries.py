"""Where :mod:`skdp.release.queries` was before: for code of earlier versions."""

from .release.queries import first_moment, parse

__all__ = ["first_moment", "parse"]
