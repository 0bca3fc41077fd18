"""Additive models: one function of each column, learnt from noisy sums over its groups."""

from .fitting import additive_parts, fit_additive
from .links import UNIT, Identity, Link, Logit
from .model import AdditiveModel
from .records import Records

__all__ = [
    "UNIT",
    "AdditiveModel",
    "Identity",
    "Link",
    "Logit",
    "Records",
    "additive_parts",
    "fit_additive",
]
