"""HDPView: recursive bisection of a table by aggregation error.

==============  ====================================================================================
``bisection``   `hdpview`: blocks of all levels; cuts and their errors, exact and chosen with noise
``parameters``  the parts of the budget, calibrations
==============  ====================================================================================
"""

from .bisection import hdpview
from .parameters import (
    CALIBRATIONS,
    HDPViewParameters,
    hdpview_parameters,
    hdpview_parts,
    published,
)

__all__ = [
    "CALIBRATIONS",
    "HDPViewParameters",
    "hdpview",
    "hdpview_parameters",
    "hdpview_parts",
    "published",
]
