"""What a pipeline reads and spends, linear models from a release, and expected errors.

===========  ======================================================================================
``privacy``  `privacy_report` and `assert_private`: the steps of a composed estimator
``moments``  `covariance`, and the moments that linear models need
``linear``   `linear_regression`, with standard errors that include the noise of the release
``noise``    how the noise of a release moves the coefficients of a linear model
``axes``     `pca`: principal components
``columns``  expected errors of the functions for one column
===========  ======================================================================================
"""

from ..expected import ExpectedError
from .axes import PrincipalComponents, pca
from .columns import expected_item_error, expected_quantile_error
from .linear import LinearFit, linear_regression, regression_workload
from .moments import covariance
from .privacy import PrivacyReport, assert_private, privacy_report

__all__ = [
    "ExpectedError",
    "LinearFit",
    "PrincipalComponents",
    "PrivacyReport",
    "assert_private",
    "covariance",
    "expected_item_error",
    "expected_quantile_error",
    "linear_regression",
    "pca",
    "privacy_report",
    "regression_workload",
]
