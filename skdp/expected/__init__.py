"""What a release will cost in accuracy, before anything is spent: ``expected_error``.

=============  =====================================================================================
``mixin``      `ExpectsErrors`, `ExpectsScores`: ``expected_error``, ``epsilon_for`` of estimators
``tables``     public tables: rows that are given, or rows generated from a domain
``questions``  random questions of each kind and the errors of a release on them; given questions
=============  =====================================================================================

Nothing here reads private rows or touches a ledger: estimators are tried out on public tables.
"""

from .mixin import ExpectedError, ExpectsErrors, ExpectsScores
from .questions import bar_of, errors_of_answers
from .tables import TrialTable, generated_codes, generated_points, generated_table

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
