"""What a pipeline reads and spends, linear models from a release, expected errors.

===========  ======================================================================================
``privacy``  `privacy_report` and `assert_private`: the steps of a composed estimator
``linear``   `covariance`, `pca`, `linear_regression`, with standard errors that include the noise
``columns``  expected errors of the functions for one column
===========  ======================================================================================
"""

from ..expected import ExpectedError
from ..kernels.dpcube.usefulness import sufficient_epsilon, usefulness
from .columns import expected_item_error, expected_quantile_error
from .linear import (
    LinearFit,
    PrincipalComponents,
    covariance,
    linear_regression,
    pca,
    regression_workload,
)
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
    "sufficient_epsilon",
    "usefulness",
]
