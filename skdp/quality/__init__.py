"""How close synthetic rows are to the records, for synthetic rows of any library.

================  ==================================================================================
``_frames``       `quality_report`: tables of any library, and which columns are compared how
``_report``       `QualityReport`: exact, for the data owner only; propensity, five learners
``_private``      `PrivateQualityReport`: with noise, to be published
``_marginals``    total variation of marginals, and NIST's k-marginal score; moved values
================  ==================================================================================
"""

from ._frames import quality_report
from ._marginals import k_marginal, total_variation
from ._private import PrivateQualityReport
from ._report import QualityReport, compare, spearman_difference

__all__ = [
    "PrivateQualityReport",
    "QualityReport",
    "compare",
    "k_marginal",
    "quality_report",
    "spearman_difference",
    "total_variation",
]
