"""What all private estimators share: schema check, charge, noise source, published state.

==============  ====================================================================================
``estimator``   `PrivateEstimator`: parts of the budget, charge, source of noise, bound per person
``labels``      rows matched with a label, its declared values, rows without its column
``schema``      rows and labels matched with the declared domain, by names and types
``published``   what a fitted estimator takes along when it is copied or stored
``refused``     weights and warm starts, refused with the remedy
``seeds``       seeds of noise, which copies and files must not contain
``shown``       what notebooks show above an estimator: what a fit spends
``statistics``  statistics of a release as methods of the estimator
==============  ====================================================================================
"""

from .estimator import UNREAD, PrivateEstimator, warn_of_emptiness
from .labels import feature_rows, label_classes, match_labelled, without_label
from .published import Published, _Kept, for_travel  # noqa: F401 (pickles name _Kept)
from .refused import RefusesWeights, refuse_beside_rows
from .schema import (
    declare_label,
    feature_bounds,
    full_domain,
    match_rows,
    named_bounds,
    require_y,
    take_features,
    without_unit,
)
from .seeds import HidesSeed, Seed, as_seed
from .shown import ShowsPrivacy
from .statistics import AnswersStatistics

__all__ = [
    "UNREAD",
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
