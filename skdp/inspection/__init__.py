"""What a pipeline reads and spends, and expected errors.

===========  ======================================================================================
``privacy``  `privacy_report` and `assert_private`: the steps of a composed estimator
``columns``  expected errors of the functions for one column
===========  ======================================================================================
"""

from ..expected import ExpectedError
from ..kernels.dpcube.usefulness import sufficient_epsilon, usefulness
from .columns import expected_item_error, expected_quantile_error
from .privacy import PrivacyReport, assert_private, privacy_report

__all__ = [
    "ExpectedError",
    "PrivacyReport",
    "assert_private",
    "expected_item_error",
    "expected_quantile_error",
    "privacy_report",
    "sufficient_epsilon",
    "usefulness",
]
