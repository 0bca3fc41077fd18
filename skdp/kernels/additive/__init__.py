"""Additive models: one function of each column, learnt from noisy sums over its groups.

===============  =================================================================================
``fitting``      `fit_additive`: the plan of the budget, and the steps one after the other
``first``        the first round: histograms of each column and the label, and what each may spend
``calibration``  how much known functions count: a Newton step; one factor or one line for all
``pairs``        functions of two columns: the choice of pairs, and what residuals say of them
``model``        `AdditiveModel`; priors and posteriors of functions, the model while it is fitted
``links``        classes and numbers: what a record tells about scores, in integers
``records``      distinct records by groups and label, and their noisy number
===============  =================================================================================
"""

from .calibration import monotone
from .first import OF_MEAN, first_round, located
from .fitting import additive_parts, calibration_share, fit_additive, location_share
from .links import UNIT, Identity, Logit, fixed
from .model import Prior, mean_size
from .pairs import PairPlan
from .records import Records, released_total

__all__ = [
    "OF_MEAN",
    "UNIT",
    "Identity",
    "Logit",
    "PairPlan",
    "Prior",
    "Records",
    "additive_parts",
    "calibration_share",
    "fit_additive",
    "first_round",
    "fixed",
    "located",
    "location_share",
    "mean_size",
    "monotone",
    "released_total",
]
