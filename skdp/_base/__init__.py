"""What all private estimators share: schema check, charge, noise source, published state."""

from .estimator import PrivateEstimator, warn_of_emptiness
from .published import Published, _Kept, for_travel  # noqa: F401 (pickles name _Kept)
from .schema import declare_label, feature_bounds, full_domain, match_rows, require_y, without_unit
from .seeds import HidesSeed, Seed, as_seed
from .shown import ShowsPrivacy

__all__ = [
    "HidesSeed",
    "PrivateEstimator",
    "Published",
    "Seed",
    "ShowsPrivacy",
    "as_seed",
    "declare_label",
    "feature_bounds",
    "for_travel",
    "full_domain",
    "match_rows",
    "require_y",
    "warn_of_emptiness",
    "without_unit",
]
