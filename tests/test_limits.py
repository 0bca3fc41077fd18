"""Hardly any noise, and hardly any signal: what is released at both ends of epsilon."""

import warnings

import numpy as np
import pytest
from estimators import released_arrays
from loops import over
from replays import CHARGED

# From 745 on the float of exp(-epsilon) is zero, from 700 on nearly so; estimators divide epsilon.
MUCH = [700, 745, 1500, 1e4, 1e6]
LITTLE = [1e-3, 1e-4]
# Tests among which the runs are dealt.
_PARTS = 8
# Those refuse it before the charge; plans take seconds and depend on epsilon hardly at all.
REFUSE = ("HDMMSynthesizer, persons", "paper, mutual_information")
NOT_WITH_LITTLE = (
    "many columns",
    "pmost",
    "PrivateClassifier",
    "optimized",
    "consistency in",
    *REFUSE,
)
# Unmeasured nodes of a histogram have no finite variance, coinciding centroids no validity.
MAY_BE_INFINITE = {"blue_.noise_variances", "blue_._subtree", "blue_._known", "validity_"}
# Searches do not know how their noise moves coefficients, nor do medians of blocks.
MAY_BE_UNKNOWN = {"coef_std_", "intercept_std_", "std_"}


def runs(everything=False):
    """Every branch of every estimator, with hardly any epsilon and with much of it, by turns."""
    for turn, branch in enumerate(CHARGED):
        few = [] if any(name in branch.name for name in NOT_WITH_LITTLE) else LITTLE
        for epsilon in [*few, *MUCH] if everything else [*few[-1:], MUCH[turn % len(MUCH)]]:
            yield branch, epsilon


def without_warnings(estimator, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # With little epsilon nobody shows, which is what it says.
        warnings.filterwarnings("ignore", message=".*nearly no records")
        warnings.filterwarnings("ignore", message=".*less than one record times epsilon")
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than")
        return estimator.fit(*data)


def assert_finite(branch, epsilon):
    estimator = without_warnings(branch.make(epsilon), *branch.usual)
    for path, array in released_arrays(estimator).items():
        if path in MAY_BE_UNKNOWN and np.isnan(array).all():
            continue
        assert not np.isnan(array).any(), path
        path = path.split("[")[0]
        assert path in MAY_BE_INFINITE or np.isfinite(array).all(), path


@pytest.mark.parametrize("part", range(_PARTS))
def test_every_release_is_finite_and_nothing_warns(part):
    over("branch, epsilon", list(runs())[part::_PARTS])(assert_finite)()


@pytest.mark.slow
def test_every_release_is_finite_and_nothing_warns_at_every_epsilon():
    over("branch, epsilon", runs(everything=True))(assert_finite)()
