"""Hardly any noise, and hardly any signal: what every estimator releases at both ends of epsilon."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people, released_arrays, ways

import skdp

ROWS = people(300)
# From 745 on the float of exp(-epsilon) is zero, from 700 on nearly so; estimators divide epsilon.
MUCH = [700, 745, 1500, 1e4, 1e6]
LITTLE = [1e-4, 1e-6]
# Unmeasured nodes of a histogram have no finite variance, coinciding centroids no validity.
MAY_BE_INFINITE = {"blue_.noise_variances", "blue_._subtree", "blue_._known", "validity_"}


def fits(epsilons):
    for case, changes, name in ways():
        for epsilon in epsilons:
            # Planning takes seconds and depends on epsilon hardly at all.
            slow = changes.get("strategy") == "optimized" or changes.get("consistency") in {
                "l1",
                "linf",
            }
            marks = [pytest.mark.slow] if slow and epsilon != epsilons[-1] else []
            yield pytest.param(case, changes, epsilon, id=f"{name}, {epsilon:g}", marks=marks)


def fit(case, changes, epsilon, rows=ROWS):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return case.fit(case.make(**changes, epsilon=epsilon), rows)


@pytest.mark.parametrize(("case", "changes", "epsilon"), list(fits(LITTLE + MUCH)))
def test_every_release_is_finite_and_nothing_warns(case, changes, epsilon):
    estimator = fit(case, changes, epsilon)
    for path, array in released_arrays(estimator).items():
        assert not np.isnan(array).any(), path
        path = path.split("[")[0]
        assert path in MAY_BE_INFINITE or np.isfinite(array).all(), path
