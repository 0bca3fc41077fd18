"""What all private estimators share: schema check, charge, noise source, published state.

=============  ===================================================================================
``estimator``  `PrivateEstimator`: parts of the budget, charge, noise; what copies and pages hold
``schema``     rows and labels matched with the declared domain by names and types; weights
               refused
``scores``     exact scores, which warn; where estimators belong that have none
=============  ===================================================================================
"""

from .estimator import (  # pickles name _Kept
    SAID,
    HidesSeed,
    PrivateEstimator,
    Published,
    Seed,
    ShowsPrivacy,
    _Kept,
    as_seed,
    epsilon_of_row,
    for_travel,
    warn_of_emptiness,
)
from .schema import (
    AnswersStatistics,
    RefusesWeights,
    declare_label,
    declared_rows,
    feature_codes,
    feature_ranges,
    full_domain,
    label_classes,
    match_labelled,
    match_rows,
    range_of,
    refuse_beside_rows,
    require_y,
    without_id,
    without_label,
)
from .scores import ExactScore, KeepsTrueRows, Likelihood, NoScore, composed, warn_of_score
