"""How close synthetic rows are to the records, for synthetic rows of any library.

================  ==================================================================================
``_frames``       `quality_report`: tables of any library, and which columns are compared how
``_report``       `QualityReport`: exact, for the data owner only
``_beside``       exact counts drawn beside a release, for the data owner only
``_private``      `PrivateQualityReport`: with noise, to be published
``_marginals``    total variation of marginals, and NIST's k-marginal score
``_wasserstein``  how far values of a column would have to move
``_correlation``  differences of rank correlations
``_propensity``   how well records can be told from synthetic rows
``_learners``     five learners trained on synthetic rows and tested on records
================  ==================================================================================
"""

from ._beside import plot_with_records
from ._correlation import spearman_difference
from ._frames import quality_report
from ._marginals import k_marginal, total_variation
from ._private import PrivateQualityReport
from ._report import QualityReport, compare

__all__ = [
    "PrivateQualityReport",
    "QualityReport",
    "compare",
    "k_marginal",
    "plot_with_records",
    "quality_report",
    "spearman_difference",
    "total_variation",
]
