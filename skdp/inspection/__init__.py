"""What a pipeline reads and spends, and linear models from what was released.

===========  ======================================================================================
``privacy``  `privacy_report` and `assert_private`: the steps of a composed estimator
``moments``  `covariance`, and the moments that linear models need
``linear``   `linear_regression`, with standard errors that include the noise of the release
``axes``     `pca`: principal components
===========  ======================================================================================
"""

from .axes import PrincipalComponents, pca
from .linear import LinearFit, linear_regression, regression_workload
from .moments import covariance
from .privacy import PrivacyReport, assert_private, privacy_report

__all__ = [
    "LinearFit",
    "PrincipalComponents",
    "PrivacyReport",
    "assert_private",
    "covariance",
    "linear_regression",
    "pca",
    "privacy_report",
    "regression_workload",
]
