"""What all private estimators share: schema check, charge, noise source, published state.

==============  ====================================================================================
``estimator``   `PrivateEstimator`: parts of the budget, charge, noise; what copies and pages hold
``labels``      rows matched with a label, its declared values; statistics of a release as methods
``schema``      rows and labels matched with the declared domain by names and types; weights refused
==============  ====================================================================================
"""

from .estimator import (  # noqa: F401 (pickles name _Kept)
    HidesSeed,
    PrivateEstimator,
    Published,
    Seed,
    ShowsPrivacy,
    _Kept,
    as_seed,
    for_travel,
    warn_of_emptiness,
)
from .labels import AnswersStatistics, feature_rows, label_classes, match_labelled, without_label
from .schema import (
    RefusesWeights,
    declare_label,
    feature_bounds,
    full_domain,
    match_rows,
    named_bounds,
    refuse_beside_rows,
    require_y,
    take_features,
    without_unit,
)

__all__ = [
    "AnswersStatistics",
    "HidesSeed",
    "PrivateEstimator",
    "Published",
    "RefusesWeights",
    "Seed",
    "ShowsPrivacy",
    "as_seed",
    "declare_label",
    "feature_bounds",
    "named_bounds",
    "feature_rows",
    "for_travel",
    "full_domain",
    "label_classes",
    "match_labelled",
    "match_rows",
    "refuse_beside_rows",
    "require_y",
    "take_features",
    "warn_of_emptiness",
    "without_label",
    "without_unit",
]
