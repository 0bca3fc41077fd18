"""HDPView: recursive bisection of a table by aggregation error.

==============  ====================================================================================
``bisection``   `hdpview`: blocks of all levels, from the whole table to the counts
``parameters``  the parts of the budget, calibrations
``errors``      aggregation errors, in exact integers
``cuts``        scores of cuts, and the private choice
==============  ====================================================================================
"""

from .bisection import HDPViewRelease, hdpview
from .parameters import (
    CALIBRATIONS,
    Calibration,
    HDPViewParameters,
    hdpview_parameters,
    hdpview_parts,
    published,
)

__all__ = [
    "CALIBRATIONS",
    "Calibration",
    "HDPViewParameters",
    "HDPViewRelease",
    "hdpview",
    "hdpview_parameters",
    "hdpview_parts",
    "published",
]
