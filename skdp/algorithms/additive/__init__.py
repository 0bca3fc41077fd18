"""Additive models: one function of each column, learnt from noisy sums over its groups.

===============  =================================================================================
``fitting``      `fit_additive`: first histograms, rounds of residuals, and the plan of the budget
``calibration``  how much all functions count
``model``        links, priors and posteriors of functions, the model, records, and tuned numbers
===============  =================================================================================
"""

from .calibration import calibrate, shared_weight
from .fitting import (
    additive_parts,
    column_shares,
    first_round,
    fit_additive,
    known_share,
    located,
    located_share,
)
from .model import (
    TUNING,
    UNIT,
    Identity,
    Logit,
    Prior,
    Records,
    class_shares,
    mean_size,
    released_total,
)

__all__ = [
    "TUNING",
    "UNIT",
    "Identity",
    "Logit",
    "Prior",
    "Records",
    "additive_parts",
    "calibrate",
    "class_shares",
    "column_shares",
    "first_round",
    "fit_additive",
    "known_share",
    "located",
    "located_share",
    "mean_size",
    "released_total",
    "shared_weight",
]
