"""Additive models: one function of each column, learnt from noisy sums over its groups.

===============  =================================================================================
``fitting``      `fit_additive`: the plan of the budget, and the steps one after the other
``first``        the first round: histograms of each column and the label, and what each may spend
``calibration``  how much known functions count: a Newton step; one factor or one line for all
``pairs``        functions of two columns: the choice of pairs, and what residuals say of them
``model``        `AdditiveModel`; priors and posteriors of functions, the model while it is fitted
``links``        classes and numbers: what a record tells about scores, in integers
``records``      distinct records by groups and label, and their noisy number
``tuning``       the numbers that change a release
===============  =================================================================================
"""

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
    fixed,
    mean_size,
    released_total,
)
from .pairs import PairPlan, monotone, shared_factor, shared_weight

__all__ = [
    "TUNING",
    "UNIT",
    "Identity",
    "Logit",
    "PairPlan",
    "Prior",
    "Records",
    "additive_parts",
    "class_shares",
    "column_shares",
    "fit_additive",
    "first_round",
    "fixed",
    "known_share",
    "located",
    "located_share",
    "mean_size",
    "monotone",
    "released_total",
    "shared_factor",
    "shared_weight",
]
