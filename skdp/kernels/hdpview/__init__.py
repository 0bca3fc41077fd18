"""HDPView: recursive bisection of a table by aggregation error."""

from .bisection import HDPViewRelease, hdpview
from .parameters import (
    CALIBRATIONS,
    Calibration,
    HDPViewParameters,
    hdpview_parameters,
    hdpview_parts,
)

__all__ = [
    "CALIBRATIONS",
    "Calibration",
    "HDPViewParameters",
    "HDPViewRelease",
    "hdpview",
    "hdpview_parameters",
    "hdpview_parts",
]
