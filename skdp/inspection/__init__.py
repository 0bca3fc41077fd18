"""What a pipeline reads and spends, model cards, linear models from a release, expected errors.

===========  ======================================================================================
``privacy``  `privacy_report` and `assert_private`: the steps of a composed estimator
``card``     `model_card`: a fitted estimator for its readers; `study_report`: a whole study
``linear``   `covariance`, `pca`, `linear_regression`, with standard errors that include the noise
``columns``  expected errors of the functions for one column
===========  ======================================================================================
"""

from ..expected import ExpectedError
from ..kernels.dpcube.usefulness import sufficient_epsilon, usefulness
from .card import ModelCard, StudyReport, model_card, study_report
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
    "ModelCard",
    "PrincipalComponents",
    "PrivacyReport",
    "StudyReport",
    "assert_private",
    "covariance",
    "expected_item_error",
    "expected_quantile_error",
    "linear_regression",
    "model_card",
    "pca",
    "privacy_report",
    "regression_workload",
    "study_report",
    "sufficient_epsilon",
    "usefulness",
]
