"""Parameters of all estimators refuse what they cannot mean, by name and before the charge.

Tests of a module have only what lies beyond this: values that do not fit each other, and remedies.
"""

import math
import warnings

import pytest
from estimators import CASES, people
from loops import over

import skdp

ODD = (object(), "no such thing", -1, math.nan)
# Common checks and the domain have their own tests; a target is looked up in the domain.
ELSEWHERE = {"epsilon", "random_state", "domain", "target", "verbose", "n_jobs"}
# Read by another strategy alone.
NOT_READ = {("KDTreeSynthesizer", "height")}
# The error is of what it holds.
UNNAMED = {("RangeTreeHistogram", "tree"), ("DataCube", "dimensions")}
ROWS = people(30)


@over("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_odd_values_of_parameters_are_refused_by_name_and_cost_nothing(case):
    for name in {*case.make().get_params(deep=False)} - ELSEWHERE:
        refusals = []
        for odd in ODD:
            ledger = skdp.PrivacyLedger()
            estimator = case.make(ledger=ledger).set_params(**{name: odd})
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    case.fit(estimator, ROWS)
            except (ValueError, TypeError) as error:
                refusals.append(str(error))
                assert ledger.spent == 0, (name, odd)
        key = case.name, name
        named = (text for text in refusals if name in text or key in UNNAMED)
        assert any(named) != (key in NOT_READ), (name, refusals)
