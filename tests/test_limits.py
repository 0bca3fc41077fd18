"""Hardly any noise, and hardly any signal: what is released at both ends of epsilon."""

import itertools
import warnings

import numpy as np
import pytest
from estimators import CASES, DOMAIN, people, released_arrays
from loops import over
from replays import CHARGED

from skdp.release import parse

ROWS = people(300)
# From 745 on the float of exp(-epsilon) is zero, from 700 on nearly so; estimators divide epsilon.
MUCH = [700, 745, 1500, 1e4, 1e6]
LITTLE = [1e-4, 1e-6]
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
    data = branch.usual
    estimator = without_warnings(
        branch.make(epsilon), *(data if isinstance(data, tuple) else (data,))
    )
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


# --- without noise


def exact_table(domain, rows=ROWS):
    codes = domain.encode(rows[list(domain.names)])
    table = np.zeros(domain.shape, dtype=np.int64)
    np.add.at(table, tuple(codes.T), 1)
    return table


def exact_view(table, axes):
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    return table.sum(axis=others)


def fit(case, changes, epsilon):
    data = ROWS[list(case.columns or DOMAIN.names)]
    target = case.make(**changes).get_params().get("target")
    parts = (data.drop(columns=target), data[target]) if target else (data,)
    return without_warnings(case.make(**changes, epsilon=epsilon), *parts)


# Changes of the parameters of estimators that lead another way.
CHANGES = {
    "MarginalSynthesizer": [{"target": None}, {"target": None, "workload": "cells"}],
    "GridSynthesizer": [{"rule": "identity"}, {"rule": "uniform"}, {"rule": 3}],
    "KDTreeSynthesizer": [{"strategy": "cell"}, {"strategy": "hierarchical"}],
}


def noiseless(*names):
    """Estimators of these names, in several ways, at much epsilon."""
    found = [
        (case, changes)
        for case in CASES
        if case.name in names
        for changes in ({}, *CHANGES.get(case.name, []))
    ]
    return [(*each, (1500, 1e6)[turn % 2]) for turn, each in enumerate(found)]


# Their boxes may hold several cells whatever epsilon is: what they know exactly is the total.
COARSE = ({"rule": 3}, {"rule": "uniform"}, {"strategy": "hierarchical"})
SYNTHESIZERS = ("GridSynthesizer", "KDTreeSynthesizer", "MarginalSynthesizer")


@over(
    "case, changes, epsilon",
    noiseless(*SYNTHESIZERS, "HDPViewSynthesizer", "PrivTreeSynthesizer"),
)
def test_without_noise_views_are_exact_and_intervals_hold_the_truth(case, changes, epsilon):
    release = fit(case, changes, epsilon).synopsis_
    exact = exact_table(release.domain)
    names = release.domain.names
    assert release.count() == pytest.approx(len(ROWS), abs=1e-6)
    if case.name in SYNTHESIZERS and changes not in COARSE:
        pairs = list(itertools.combinations(range(len(names)), 2))
        if case.name == "MarginalSynthesizer":
            known = release.model.coefficients.looks
            pairs = [pair for pair in pairs if release.model.cells or pair in known]
        for axes in [*pairs, *((axis,) for axis in range(len(names)))]:
            found = release.view([names[axis] for axis in axes])
            np.testing.assert_allclose(found, exact_view(exact, axes), atol=1e-3)
    if case.name in ("HDPViewSynthesizer", "GridSynthesizer") and changes in COARSE:
        return  # the intervals cover the noise, and the guarantee says that it is that alone
    for low, high in ((17, 40), (30, 35), (60, 90)):
        query = {"age": (low, high)}
        answer = release.count(query, return_interval=True)
        weights = parse(query, release.counted).products[0][0]
        truth = weights @ exact_view(exact_table(release.counted), (0,))
        assert answer.lower - 1e-6 <= truth <= answer.upper + 1e-6
