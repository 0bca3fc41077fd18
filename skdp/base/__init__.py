"""What all private estimators share: schema check, charge, noise source, published state.

=============  ===================================================================================
``estimator``  `PrivateEstimator`: rows matched with the declared domain by names and types, parts
               of the budget, charge, noise
``labels``     features and labels of models; weights refused
``published``  what others see of an estimator: copies and pickles without ledger and seed,
               notebooks, answers of its release
``scores``     exact scores, which warn; where estimators belong that have none
=============  ===================================================================================
"""

from .._random import HidesSeed
from .estimator import (
    SAID,
    PrivateEstimator,
    epsilon_of_row,
    full_domain,
    match_rows,
    warn_of_emptiness,
    without_id,
)
from .labels import (
    RefusesWeights,
    declare_label,
    declared_rows,
    feature_codes,
    feature_ranges,
    label_classes,
    match_labelled,
    range_of,
    refuse_beside_rows,
    require_y,
    without_label,
)
from .published import AnswersStatistics, Published, ShowsPrivacy
from .scores import ExactScore, KeepsTrueRows, Likelihood, NoScore, composed, warn_of_score
