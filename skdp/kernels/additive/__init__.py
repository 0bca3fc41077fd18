"""Additive models: one function of each column, learnt from noisy sums over its groups.

===============  =================================================================================
``fitting``      `fit_additive`: the plan of the budget, and the steps one after the other
``first``        the first round: histograms of each column and the label
``histograms``   noisy sums over the groups of all columns, and what each may spend
``scaling``      weights of known functions: a Newton step on noisy moments
``calibration``  one shift and factor for all functions of two classes, from a histogram of scores
``effects``      functions of a column from noisy sums: priors and posteriors
``pairs``        functions of two columns: the choice of pairs, and what residuals say of them
``draft``        the model while it is fitted, with the covariance of its noise
``model``        `AdditiveModel`: what is released
``links``        classes and numbers: what a record tells about scores, in integers
``records``      distinct records by groups and label, and their noisy number
===============  =================================================================================
"""

from .calibration import calibrate
from .effects import Prior
from .first import first_round, located
from .fitting import (
    additive_parts,
    calibration_share,
    fit_additive,
    location_share,
    shared_weight,
)
from .links import UNIT, Identity, Link, Logit, fixed
from .model import AdditiveModel, PairTerm, mean_size
from .pairs import PairPlan
from .records import Records, released_total

__all__ = [
    "UNIT",
    "AdditiveModel",
    "Identity",
    "Link",
    "Logit",
    "PairPlan",
    "PairTerm",
    "Prior",
    "Records",
    "additive_parts",
    "calibrate",
    "calibration_share",
    "fit_additive",
    "first_round",
    "fixed",
    "located",
    "location_share",
    "mean_size",
    "released_total",
    "shared_weight",
]
