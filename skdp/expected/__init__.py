"""What a release will cost in accuracy, before anything is spent: ``expected_error``.

=============  =====================================================================================
``mixin``      `ExpectsErrors`, `ExpectsScores`: ``expected_error``, ``epsilon_for``; tables to try
=============  =====================================================================================

Nothing here reads private rows or touches a ledger: estimators are tried out on public tables.
"""

from .mixin import (
    ExpectedError,
    ExpectsErrors,
    ExpectsScores,
    TrialTable,
    bar_of,
    errors_of_answers,
    generated_codes,
    generated_points,
    generated_table,
)

__all__ = [
    "ExpectedError",
    "ExpectsErrors",
    "ExpectsScores",
    "TrialTable",
    "bar_of",
    "errors_of_answers",
    "generated_codes",
    "generated_points",
    "generated_table",
]
