"""Replay: every estimator is certified on hostile pairs, and what is broken is convicted."""

from __future__ import annotations

import fnmatch
import functools
import itertools
import logging
import math
import os
import subprocess
import sys
import threading
import warnings
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from functools import partial
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from any_tables import PROGRAMS, assert_alike
from estimators import CASES
from loops import over
from odd_values import CONTAINERS, ODD_VALUES, odd_pair
from replays import (
    BRANCHES,
    CONTAINED,
    LINE,
    PARTS,
    PLANE,
    SLOW,
    Branch,
    each_of,
    families,
    pairs_of,
    spread,
)
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from worst import PARALLEL, SEVERAL, SHORT, WORST, assert_paid, assert_reached, watching

import skdp
from skdp import mechanisms
from skdp.audit import replay
from skdp.audit._released import first_difference
from skdp.audit._tapes import OUTPUTS, Alignment, _Comparisons, _log_side, _stream_loss
from skdp.exceptions import ReplayError
from skdp.mechanisms import (
    SparseVector,
    above_threshold,
    bounded_sum,
    discrete_laplace,
    exponential,
    geometric,
    noisy_max,
    permute_and_flip,
    top_k,
)
from skdp.model_selection import (
    PrivateKFold,
    make_private_scorer,
    private_cross_val_score,
)

MODES = list(OUTPUTS)

# --- every estimator


def certify(branch: Branch, everything: bool = False):
    """Replay all pairs of a branch.

    Returns
    -------
    tightest : float
        The largest part of epsilon that a run has cost.
    reached : dict of str to dict of str to float
        Of each call and pair the largest change of its values, as a share of what is declared.
    """
    tightest, most = 0.0, branch.most
    reached = defaultdict(lambda: defaultdict(float))
    for place, (pair, (data, neighbour)) in enumerate(branch.pairs().items()):
        if branch.runs == 1 and place % 2 and not everything:
            continue  # branches that take long: half of the pairs
        # Together the pairs see all epsilons and all ways to make up outputs.
        epsilon = branch.epsilons[place % len(branch.epsilons)]
        # All of the latter where every count is 0 on one side.
        runs = len(MODES) if pair == "nobody" and branch.runs > 1 else branch.runs
        if branch.runs == 2 and (pair != "nobody" or branch.needs) and not everything:
            # An engine only counts: the ways to make up outputs are tried in memory.
            runs = 1
        # Both directions, in one run by turns from pair to pair.
        first = place if runs == 1 else 0
        turns = [
            (epsilon, MODES[(place + turn) % len(MODES)], (first + turn) % 2 == 1)
            for turn in range(runs)
        ]
        if everything:
            turns += [(epsilon, mode, True) for mode in MODES]
            turns += [(each, MODES[(place + 1) % len(MODES)], False) for each in branch.epsilons]
        for epsilon, mode, backward in turns:
            with watching() as calls:
                result = replay(
                    branch.make(epsilon),
                    *((neighbour, data) if backward else (data, neighbour)),
                    outputs=mode,
                    n=1,
                    epsilon=None if branch.claim is None else branch.claim(epsilon),
                    random_state=place,
                    name=f"{branch.name}, {pair}, epsilon {epsilon:g}",
                )
            assert result.passed and not result.n_errors, str(result)
            assert_parts(result)
            assert_paid(branch.name, calls, result.epsilon, most)
            tightest = max(tightest, result.loss / result.epsilon)
            for call in calls:
                reached[call.step][pair] = max(reached[call.step][pair], call.share / most)
    return tightest, reached


def assert_parts(result):
    """What the steps of a part cost together is within its budget."""
    spent = defaultdict(float)
    for step, loss in result.by_part.items():
        spent[PARTS.get(step)] += loss
    for part, loss in spent.items():
        names = [] if part is None else part.split(" + ")
        if all(name in result.declared for name in names) and names:
            declared = sum(result.declared[name] for name in names)
            assert loss <= declared * (1 + 1e-9) + 1e-9, (part, str(result))


def check(branch: Branch, everything: bool = False):
    """All that is asked of a branch: on neighbours, on any two tables, and beside odd values."""
    tightest, reached = certify(branch, everything)
    if not everything:
        # A replay that never comes near epsilon would not notice a budget that is spent twice.
        assert tightest >= branch.tight - 1e-3, tightest
        # Nor would one in which a call never changes as much as it declares notice a lower
        # sensitivity.
        assert_reached(branch.name, reached)
    if everything or branch.name not in PROGRAMS:
        assert_alike(branch, everything)
    if branch in CONTAINED:
        certify_odd(branch, everything)


@pytest.mark.parametrize("branches", list(families()))
def test_every_branch_is_certified(branches):
    each_of(check, [branch for branch in branches if branch.name not in SLOW])


@pytest.mark.slow
@pytest.mark.parametrize("branches", list(families()))
def test_every_branch_is_certified_with_all_outputs(branches):
    each_of(partial(check, everything=True), branches)


def watched(function):
    with watching() as calls:
        assert replay(function, RECORDS, RECORDS[:-1], epsilon=5.0, n=1).passed
    return calls


def test_a_call_that_declares_too_little_is_noticed_beside_others_that_cost_less():
    def two_counts(records):
        return discrete_laplace([len(records), 2 * len(records)], 1.0, 2).tolist()

    [call] = watched(two_counts)
    assert (call.epsilon, call.share) == (1.0, 1.5) and call.step.endswith("discrete_laplace")
    with pytest.raises(AssertionError, match="share=1.5"):
        assert_paid("two counts", [call], 5.0, 1)
    # Two rows of a person may change so much.
    assert_paid("two counts", [call], 2.0, 2)


def test_calls_that_cost_more_than_epsilon_are_noticed_whatever_they_change():
    def twice(records):
        first = noisy_max([0, 1], 0.75, 1)
        return first, int(discrete_laplace(len(records), 0.5))

    calls = watched(twice)
    assert [call.share for call in calls] == [0.0, 1.0]
    assert_paid("twice", calls, 1.25, 1)
    with pytest.raises(AssertionError, match="1.25"):
        assert_paid("twice", calls, 1.0, 1)


def test_several_calls_in_a_function_are_told_apart():
    with watching() as calls:
        branch = next(each for each in BRANCHES if each.name == "PrivateStandardScaler")
        data, neighbour = branch.pairs()["two"]
        assert replay(branch.make(1.0), data, neighbour, n=1).passed
    step = "PrivateStandardScaler.fit, discrete_laplace"
    assert {call.step for call in calls} == {step, f"{step} (2)", f"{step} (3)"}


def test_a_call_that_no_pair_moves_as_far_as_it_declares_is_noticed():
    with pytest.raises(AssertionError, match="has no worst pair"):
        assert_reached("a branch", {"new, selection": {"nobody": 1.0}})
    step = "released_total, discrete_laplace"
    name, pair = WORST[step]
    assert_reached(name, {step: {pair: 0.98}})
    for by_pair in ({pair: 0.9}, {pair: 0.9, "another": 1.0}):
        with pytest.raises(AssertionError, match="reaches 0.9"):
            assert_reached(name, {step: by_pair})
    # Another branch may come less near if that is known.
    step = "DataCube.fit, discrete_laplace"
    assert_reached("DataCube, sums of persons", {step: {"few rows": 0.64}})
    with pytest.raises(AssertionError, match="below 0.636"):
        assert_reached("DataCube, sums of persons", {step: {"few rows": 0.6}})


def test_what_is_known_of_worst_pairs_is_of_branches_that_exist():
    names = {branch.name: branch for branch in BRANCHES}
    assert {step for step, worst in WORST.items() if worst is None} | {*SEVERAL} <= {*WORST}
    pairs = functools.cache(lambda name: {*names[name].pairs()})
    for step, worst in WORST.items():
        # What no branch reaches has a reason.
        assert step in SHORT if worst is None else worst[1] in pairs(worst[0])
        assert worst is None or worst[0] not in SHORT.get(step, ("", {}))[1]
    for why, shares in SHORT.values():
        assert why and {*shares} <= {*names, "*"} and max(shares.values()) < 0.97
    for pattern in PARALLEL:
        assert fnmatch.filter(names, pattern), pattern
    # Persons have their rows bounded and their noise scaled in every estimator.
    persons = {type(b.make(1.0)) for b in BRANCHES if b.claim is None and b.most > 1}
    every = {type(branch.make(1.0)) for branch in BRANCHES if branch.claim is None}
    bounded = {each for each in every if "max_rows_per_id" in signature(each).parameters}
    assert bounded <= persons, bounded - persons


def certify_odd(branch: Branch, everything: bool = False):
    """Replay a branch in other containers, where one record has a value of another type."""
    for place, (pair, both) in enumerate(branch.odd(everything)):
        epsilon = branch.epsilons[len(branch.epsilons) // 2]
        result = replay(
            branch.make(epsilon),
            *both,
            outputs=MODES[place % len(MODES)],
            n=1,
            epsilon=None if branch.claim is None else branch.claim(epsilon),
            random_state=place,
            name=f"{branch.name}, {pair}",
        )
        assert result.passed and not result.n_errors, str(result)


def test_turns_see_all_containers_and_odd_values():
    turns = [turn for branch in CONTAINED for turn in branch.turns()]
    boxes, values, _ = zip(*turns, strict=True)
    assert set(boxes) == set(CONTAINERS) and set(values) == set(ODD_VALUES)


def test_a_value_that_changes_the_type_of_all():
    def mean(records):
        array = np.asarray(records)
        return bounded_sum(array if array.dtype.kind in "if" else np.zeros(len(array)), 0, 1, 1.0)

    here, there = odd_pair(RECORDS, "lists", "text")
    assert here == [*RECORDS, "martian"] and there == [*RECORDS]
    assert "the loss is" in convicted(mean, here, there)
    # A record with two columns and a label, of which the odd value is in the last.
    pair = (pd.DataFrame({"x": [1, 2], "who": ["a", "b"]}), pd.Series([0, 1]))
    (X, y), (X_less, y_less) = odd_pair(pair, "columns of objects", "a list", 1, unit="who")
    assert X["who"].tolist() == ["a", "b", "a new person"] and y.tolist() == [0, 1, [1, 2]]
    assert len(X_less) == len(y_less) == 2
    assert [str(dtype) for dtype in X.dtypes] == ["object"] * 2


# --- scores and searches around foreign models, on values that fit no column

MISFITS = ["x", 1 + 2j, None, [1, 2], 2**70, b"x", {"a": 1}, np.array([1, 2]), pd.NA]


def objects(rows):
    """Rows, or labels, as an array of objects."""
    deep = isinstance(rows[0], list)
    array = np.empty((len(rows), len(rows[0])) if deep else len(rows), dtype=object)
    for place, row in enumerate(rows):
        for column, value in enumerate(row if deep else [row]):
            array[(place, column) if deep else place] = value
    return array


AS_TABLES = {
    "lists": (list, list),
    "objects": (objects, objects),
    "series": (
        lambda rows: pd.DataFrame(objects(rows), columns=["age", "other"][: len(rows[0])]),
        lambda labels: pd.Series(objects(labels)),
    ),
}


def scored(data):
    """A score of a public model."""
    model = DummyClassifier(strategy="constant", constant=0).fit([[0, 0], [1, 1]], [0, 1])
    return make_private_scorer(epsilon=1)(model, *data)


def classifier():
    release = skdp.GridSynthesizer(epsilon=1.0, domain=skdp.Numeric(0, 1, bins=2))
    tree = DecisionTreeClassifier(max_depth=1)
    return skdp.PrivateClassifier(tree, release, classes=[0, 1], n_samples=20)


AROUND = {
    "SampleAggregate": next(c for c in CASES if c.name == "SampleAggregate").make_for_arrays,
    "PrivateClassifier": classifier,
    "private_cross_val_score": lambda: (
        lambda data: private_cross_val_score(classifier(), *data, epsilon=1, cv=2)
    ),
    "make_private_scorer": lambda: scored,
}


def certify_around(name, container, odd, place, directions=(False, True)):
    """Replay rows of which the last has an odd value, in X or in y, without that row."""
    X = [[0.5, 1.0], [2, 0.1], [1.5, -2.0], [0.5, 3], [1.0, 2.0]]
    y = [0, 1, 0, 1, 1]
    (X[-1] if place == "X" else y)[0 if place == "X" else -1] = odd
    make_X, make_y = AS_TABLES[container]
    first, second = ((make_X(X[:n]), make_y(y[:n])) for n in (5, 4))
    claim = {"private_cross_val_score": 2.0, "make_private_scorer": 1.0}.get(name)
    for backward in directions:
        pair = (second, first) if backward else (first, second)
        result = replay(AROUND[name](), *pair, n=1, epsilon=claim, random_state=3)
        assert result.passed and not result.n_errors, str(result)


@over("name", AROUND)
def test_an_odd_value_around_a_model_is_one_record(name):
    turns = itertools.product(AS_TABLES, ("X", "y"))
    for turn, (container, place) in enumerate(turns):
        # Other values for each estimator.
        odd = MISFITS[(turn + len(name)) % len(MISFITS)]
        certify_around(name, container, odd, place, [turn % 2 == 1])


@pytest.mark.slow
@over("name", AROUND)
def test_every_odd_value_around_a_model_is_one_record(name):
    for container, odd, place in itertools.product(AS_TABLES, MISFITS, ("X", "y")):
        certify_around(name, container, odd, place)


def test_every_estimator_has_a_branch():
    made = [branch.make(1.0) for branch in BRANCHES if branch.claim is None]
    replayed = {type(each) for each in made if isinstance(each, BaseEstimator)}
    homes = (skdp, skdp.model_selection)
    public = {getattr(home, name) for home in homes for name in home.__all__}
    estimators = {c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)}
    assert replayed == estimators
    assert {case.estimator for case in CASES} <= replayed


# --- what is broken is convicted

RECORDS = np.array([0.2, 0.9, 0.4, 0.7])


def convicted(function, data=RECORDS, neighbour=RECORDS[:-1], epsilon=1.0, **options):
    result = replay(function, data, neighbour, epsilon=epsilon, **options)
    assert not result.passed, str(result)
    return " ".join(result.reasons)


def test_the_repaired_twins_are_certified():
    def mean(records):
        total = bounded_sum(records, 0, 1, 0.5)
        return total / max(int(discrete_laplace(len(records), 0.5)), 1)

    assert replay(mean, RECORDS, RECORDS[:-1], epsilon=1.0).passed


def test_too_little_noise():
    text = convicted(lambda records: int(discrete_laplace(len(records), Fraction(4, 3))))
    assert "the loss is 1.33" in text


def test_an_exact_size_divides():
    text = convicted(lambda records: bounded_sum(records, 0, 1, 1.0) / len(records))
    assert "released, and not the same" in text


def test_an_exact_size_divides_below_wide_noise():
    # The statistical audit needs events of its own for this; replay does not.
    convicted(lambda records: discrete_laplace(0, 1.0, 10**6) / len(records))


def test_an_exact_size_decides_a_shape():
    def grid(points):
        side = math.ceil(math.sqrt(len(points)))
        cells = np.minimum((points * side).astype(int), side - 1)
        return discrete_laplace(np.bincount(cells, minlength=side), 1.0)

    assert "of shape (3,)" in convicted(grid, np.linspace(0, 0.9, 5), np.linspace(0, 0.9, 5)[:4])


def test_an_exact_size_decides_a_budget():
    def count(records):
        return int(discrete_laplace(len(records), Fraction(1, 1 + len(records) % 2)))

    assert "rate 1 and 1/2" in convicted(count)


def test_an_exact_size_decides_a_number_of_rounds():
    def rounds(records):
        for _ in range(len(records)):
            noisy_max([1, 2], 0.01, 1)

    assert "on one data set only" in convicted(rounds)


def test_a_parity_bit():
    convicted(lambda records: 2 * int(discrete_laplace(0, 1e-6)) + len(records) % 2)


def centroids_in_place(records):
    """A round that moves centroids while it assigns: a record can be in two clusters."""
    where = [0.0, 1.0]
    for j in range(2):
        nearest = np.abs(records[:, None] - np.array(where)).argmin(axis=1) == j
        count = int(discrete_laplace(int(nearest.sum()), 0.5))
        total = bounded_sum(records[nearest], -1, 1, 0.5)
        where[j] = float(np.clip(total / max(count, 1), -1, 1))
    return where


def test_centroids_that_move_while_rows_are_assigned():
    data = np.array([-1.0] * 40 + [0.49])
    assert "the loss is" in convicted(centroids_in_place, data, data[:-1])


def test_an_empty_cluster_left_alone():
    def centroids(records):
        counts = [int((records < 0).sum()), int((records >= 0).sum())]
        return [int(discrete_laplace(each, 1.0)) if each else 0 for each in counts]

    data = np.array([-0.5] * 5 + [0.5])
    convicted(centroids, data, data[:-1])


def test_exact_empty_cells():
    def cells(records):
        counts = np.bincount((records * 4).astype(int), minlength=4)
        return np.where(counts, discrete_laplace(counts, 1.0), 0)

    data = np.array([0.1, 0.9])
    convicted(cells, data, data[:-1])


def test_one_cut_more_than_paid_for():
    def cuts(counts):
        left = np.cumsum(counts)[:-1]
        scores = -np.abs(2 * left - sum(counts))
        first = noisy_max(scores, 1.0, 2)
        return first, noisy_max(np.delete(scores, first), 1.0, 2)

    assert "the loss is" in convicted(cuts, [7, 7, 7, 1], [7, 7, 6, 1])


def test_an_error_that_depends_on_a_value():
    def checked(records):
        if (records > 10).any():
            raise ValueError("records must lie in [0, 10]")
        return bounded_sum(records, 0, 10, 1.0)

    data = np.array([5.0, 99.0])
    convicted(checked, data, data[:-1])


def test_an_error_text_that_depends_on_a_value():
    def checked(records):
        discrete_laplace(len(records), 1.0)
        raise ValueError(f"the largest is {records.max()}")

    # The same error everywhere would leave nothing to certify; with another text it is a leak.
    assert "the largest is" in convicted(checked, RECORDS[:2], RECORDS[:1])


def test_a_warning_and_a_print_that_depend_on_a_value():
    def warn(records):
        warnings.warn(f"{len(records)} rows", stacklevel=1)
        return int(discrete_laplace(len(records), 1.0))

    def show(records):
        print(f"{len(records)} rows")
        return int(discrete_laplace(len(records), 1.0))

    assert "warnings" in convicted(warn)
    assert "printed" in convicted(show)


def test_scores_that_move_further_than_declared():
    text = convicted(lambda scores: noisy_max(scores, 1.0, 1), [5, 5, 0], [6, 4, 0])
    assert "scores move 2 apart" in text and "1 was declared" in text
    for select in (exponential, permute_and_flip):
        convicted(lambda scores, f=select: f(scores, 1.0, 1), [5, 5, 0], [6, 4, 0])
    convicted(lambda scores: top_k(scores, 2, 1.0, 1).tolist(), [5, 5, 0], [6, 4, 0])
    convicted(
        lambda scores: top_k(scores, 2, 1.0, 1, method="peeling").tolist(), [5, 5, 0], [6, 4, 0]
    )


def test_a_selection_in_segments_pays_for_each():
    def select(scores):
        return noisy_max(scores, 1.0, 1, starts=[0, 2])

    assert replay(select, [1, 0, 1, 0], [2, 0, 1, 0], epsilon=1.0).passed
    assert "the loss is 2" in convicted(select, [1, 0, 1, 0], [2, 0, 2, 0])


def test_many_tests_without_a_bias():
    def tests(counts):
        return above_threshold(counts, 1.0, 2).tolist()

    assert replay(tests, [3], [2], epsilon=1.0).passed
    convicted(tests, [3, 3, 3, 3], [2, 2, 2, 2])


# Algorithms 20 and 22 of the dissertation ignore the number of positives in the noise of queries;
# here the budget of one positive answer is spent on three.
def test_a_sparse_vector_that_does_not_stop():
    def stream(answers):
        found = []
        while len(found) < 3:
            vector = SparseVector(1.0, 2, 1)
            found.append(vector.query_many(answers).tolist())
        return found

    assert "the loss is" in convicted(stream, [0, 0, 2], [1, 1, 1])


def test_a_sparse_vector_without_noise_on_queries():
    # Algorithm 21.
    def stream(answers):
        level = int(discrete_laplace(0, 1.0))
        return [answer >= level for answer in answers]

    convicted(stream, [0, 1], [1, 0])


def test_a_sparse_vector_that_publishes_what_it_compared():
    # Algorithm 19.
    def stream(answers):
        vector = SparseVector(0.5, 0, 1)
        signs = vector.query_many(answers).tolist()
        return signs, vector.gap, answers[len(signs) - 1]

    convicted(stream, [0, 0, 2], [1, 1, 1])


def test_a_sparse_vector_with_broken_promises():
    def stream(answers):
        return SparseVector(1.0, 2, 1, monotonic=True).query_many(answers).tolist()

    assert "both directions" in convicted(stream, [0, 0, 2], [1, 1, 1])
    assert "queries move by 5" in convicted(stream, [0, 0, 2], [5, 5, 2])


class Keeps(skdp.GridSynthesizer):
    """Keeps something exact, privately."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.synopsis_._rows = len(X)
        return self


class Peeks(skdp.GridSynthesizer):
    """Lets the number of rows choose the rule."""

    def fit(self, X, y=None):
        self.rule = "identity" if len(X) % 2 else "uniform"
        return super().fit(X, y)


def test_estimators_that_keep_or_peek():
    data, neighbour = pairs_of(PLANE)["from the middle"]
    assert "_rows" in convicted(Keeps(domain=PLANE), data, neighbour, epsilon=None)
    convicted(Peeks(domain=PLANE), data, neighbour, epsilon=None)


# --- the costs of calls


def laplace_law(rate, reach=400):
    k = np.arange(-reach, reach + 1)
    weight = np.exp(-rate * np.abs(k))
    return dict(zip(k.tolist(), (weight / weight.sum()).tolist(), strict=True))


@over("rate", [0.1, 1.0, 7.5])
def test_the_log_probability_of_a_side(rate):
    law = laplace_law(rate)
    for value, threshold in itertools.product([-3, 0, 2, 9], [0, 4]):
        above = sum(p for k, p in law.items() if value + k > threshold)
        for side, expected in ((True, above), (False, 1 - above)):
            found = _log_side(np.array([value]), threshold, rate, np.array([side]))[0]
            if expected > 1e-9:
                assert found == pytest.approx(math.log(expected), abs=1e-6)


def test_sides_far_out_do_not_overflow():
    found = _log_side(np.array([10**9, -(10**9)]), 0, 1000.0, np.array([False, True]))
    assert np.isfinite(found).all() and (found < -1e11).all()


@functools.cache
def stream_probability(margins, gaps, threshold_rate, query_rate, reach=300):
    """Exact law of signs and gaps (None: below) with geometric noise, no refreshing."""
    total = 0.0
    for rho in range(reach):
        p = math.exp(-threshold_rate * rho) * -math.expm1(-threshold_rate)
        for margin, gap in zip(margins, gaps, strict=True):
            if gap is None:  # margin + nu - rho < 0
                room = rho - margin
                p *= -math.expm1(-query_rate * room) if room > 0 else 0.0
            else:
                nu = gap + rho - margin
                p *= math.exp(-query_rate * nu) * -math.expm1(-query_rate) if nu >= 0 else 0.0
        total += p
    return total


def test_the_cost_of_a_stream_bounds_the_exact_ratio():
    threshold_rate, query_rate = 0.7, 0.3
    public = (query_rate, 1, threshold_rate, 2, 1, True, False, False)
    tightest = 0.0
    for here in itertools.product([-2, 0, 1], repeat=3):
        for change in itertools.product([-1, 0, 1], repeat=3):
            there = tuple(margin + more for margin, more in zip(here, change, strict=True))
            for gaps in ((None, None, None), (None, 2, None), (3, None, 0)):
                p, q = (
                    stream_probability(m, gaps, threshold_rate, query_rate) for m in (here, there)
                )
                if p < 1e-12 or q < 1e-12:
                    continue
                positive = np.array([gap is not None for gap in gaps])
                bound = _stream_loss([_Comparisons(np.array(change), positive, public)])
                exact = abs(math.log(p / q))
                assert exact <= bound + 1e-9
                if exact > 0.3:
                    tightest = max(tightest, exact / bound)
    assert tightest > 0.8


# --- coins


def test_public_coins_are_the_same_and_counted():
    # Candidates of PrivPfC are drawn at random, whatever the rows.
    domain = skdp.Domain({"x": skdp.Numeric(0, 8, bins=64), "s": PLANE["s"]})
    view = skdp.PrivPfCTransformer(domain=domain, target="s", max_grids=5)
    rows = spread(domain, 30)
    data = rows[["x"]], rows["s"]
    assert replay(view, data, tuple(part.iloc[:-1] for part in data), n=2).passed

    def draws(records):
        return [test.tolist() for _, test in PrivateKFold(2).split(np.zeros((len(records), 1)))]

    # A fold for each record is a secret, and not to be published.
    convicted(draws)


def test_folds_belong_to_records():
    def folds(rows):
        test = next(iter(PrivateKFold(2).split(rows)))[1]
        return int(discrete_laplace(len(test), 1.0))

    rows = np.zeros((30, 2))
    rows[:, 0] = np.arange(30)
    for gone in (0, 13, 29):
        assert replay(folds, rows, np.delete(rows, gone, axis=0), epsilon=1.0).passed


def test_coins_by_position_need_the_same_order():
    def folds(rows):
        return int(discrete_laplace(len(next(iter(PrivateKFold(2).split(rows)))[1]), 1.0))

    rows = np.arange(8.0)[:, None]
    with pytest.raises(ReplayError, match="same order"):
        replay(folds, rows, rows[::-1][1:], epsilon=1.0)
    with pytest.raises(ReplayError, match="by position"):
        replay(lambda rows: folds(rows[::2]), rows, rows[:-1], epsilon=1.0)


def test_alignment_finds_what_was_taken_out():
    rows = [1, 2, 2, 3]
    assert Alignment(rows, [1, 2, 3]).ids(1) == [0, 1, 3]
    assert Alignment([2, 2, 3], rows).ids(0) == [1, 2, 3]
    assert Alignment([2, 2, 3], rows).ids(1) == [0, 1, 2, 3]


# --- what cannot be replayed is refused


def test_worker_processes_and_threads_are_refused():
    rows = spread(PLANE, 20)
    data = rows[["x"]], rows["s"]
    neighbour = tuple(part.iloc[:-1] for part in data)
    forest = skdp.PrivateClassifier(
        RandomForestClassifier(n_estimators=2, n_jobs=2),
        skdp.HDPViewSynthesizer(domain=PLANE, target="s"),
    )
    with pytest.raises(ReplayError, match="n_jobs"):
        replay(forest, data, neighbour)

    def in_a_thread(records):
        worker = threading.Thread(target=discrete_laplace, args=(len(records), 1.0))
        worker.start()
        worker.join()

    with pytest.raises(ReplayError, match="thread"):
        replay(in_a_thread, RECORDS, RECORDS[:-1], epsilon=1.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_refused():
    def forked(records):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                discrete_laplace(len(records), 1.0)
                os.write(write, b"drew")
            except ReplayError:
                os.write(write, b"refused")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return os.read(read, 10)

    with pytest.raises(ReplayError, match="thread or process"):
        replay(forked, RECORDS, RECORDS[:-1], epsilon=1.0, n=1)
    from skdp._random import recording
    from skdp.audit._tapes import Recorder

    with recording(Recorder(0, "exact", Alignment([], []))):
        assert forked(RECORDS) == b"refused"


def test_bare_noise_is_refused_even_where_errors_are_handled():
    def quiet(records):
        try:
            return len(records) + int(geometric(1, 1.0)[0])
        except Exception:
            return 0

    with pytest.raises(ReplayError, match="noisy_max"):
        replay(quiet, RECORDS, RECORDS[:-1], epsilon=1.0)


def test_runs_that_all_fail_certify_nothing():
    def fails(records):
        raise RuntimeError("always")

    with pytest.raises(ReplayError, match="RuntimeError"):
        replay(fails, RECORDS, RECORDS[:-1], epsilon=1.0)


def test_parameters_are_checked():
    with pytest.raises(TypeError, match="empty after the first run"):
        replay(len, iter([1, 2]), [1], epsilon=1.0)
    with pytest.raises(TypeError, match="estimator"):
        replay(3, RECORDS, RECORDS[:-1])
    with pytest.raises(ValueError, match="outputs"):
        replay(len, RECORDS, RECORDS[:-1], outputs="loud")
    with pytest.raises(ValueError, match="n must"):
        replay(len, RECORDS, RECORDS[:-1], n=0)
    with pytest.raises(ValueError, match="epsilon is needed"):
        replay(lambda records: int(discrete_laplace(len(records), 1.0)), RECORDS, RECORDS[:-1])
    with pytest.raises(ReplayError, match="return an estimator"):
        replay(lambda: 3, RECORDS, RECORDS[:-1])


def test_a_replay_charges_nothing_and_leaves_no_tape():
    ledger = skdp.PrivacyLedger(5.0)
    view = skdp.GridSynthesizer(domain=LINE, ledger=ledger)
    rows = spread(LINE, 10)
    assert replay(view, rows, rows[:-1]).passed
    assert ledger.spent == 0 and not hasattr(view, "synopsis_")
    # Noise is noise again.
    assert len({int(discrete_laplace(0, 0.001)) for _ in range(9)}) > 1


def test_a_factory_and_an_estimator_give_the_same():
    rows = spread(LINE, 10)
    one = replay(skdp.GridSynthesizer(domain=LINE), rows, rows[:-1])
    other = replay(lambda: skdp.GridSynthesizer(domain=LINE), rows, rows[:-1])
    assert (one.loss, one.by_part) == (other.loss, other.by_part)


def test_the_result_says_what_was_found():
    result = replay(
        lambda records: int(discrete_laplace(len(records), 2.0)),
        RECORDS,
        RECORDS[:-1],
        epsilon=1.0,
        name="counting",
    )
    assert result.verdict == "convicted" and result.loss == 2.0
    assert list(result.by_part.values()) == [2.0]
    assert "counting: convicted" in str(result) and "counting" in result._repr_html_()
    frame = result.to_frame()
    assert frame.loc["counting", "verdict"] == "convicted"


# --- comparing what was released


@over(
    "here, there",
    [
        (1.0, np.nextafter(1.0, 2)),
        (0.0, -0.0),
        (1, 1.0),
        (True, 1),
        (Fraction(1, 2), Fraction(1, 3)),
        ([1, 2], [1, 2, 3]),
        ({"a": 1}, {"a": 2}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])),
        (np.array([1, 2]), np.array([1.0, 2.0])),
        (np.array(["a", None], dtype=object), np.array(["a", "b"], dtype=object)),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
        (pd.Series([1]), pd.Series([2])),
        (DecisionTreeClassifier().fit([[0], [1]], [0, 1]), DecisionTreeClassifier()),
        (np.random.default_rng(0), np.random.default_rng(1)),
        (lambda x=1: x, lambda x=2: x),
        ({1, 2}, {1, 3}),
        (np.add, np.subtract),
        ("a".upper, "b".upper),
        (threading.Lock(), 3),
    ],
)
def test_differences_are_found(here, there):
    assert first_difference(here, there, "x") is not None


@over(
    "make",
    [
        lambda: float("nan"),
        lambda: np.array([np.nan, 1.0]),
        lambda: pd.DataFrame({"a": [1, None], "b": ["x", "y"]}),
        lambda: DecisionTreeClassifier(random_state=0).fit([[0], [1]], [0, 1]),
        lambda: np.random.default_rng(3),
        threading.Lock,
        lambda: {"a": [1, (2, {3})]},
        lambda: skdp.GridSynthesizer(domain=LINE, random_state=0).fit(spread(LINE, 9)),
    ],
)
def test_equal_things_are_equal(make):
    assert first_difference(make(), make(), "x") is None


def test_cycles_end():
    here, there = [1], [1]
    here.append(here)
    there.append(there)
    assert first_difference(here, there) is None


def test_every_public_mechanism_passes_the_seam():
    """A new mechanism that draws by itself would give different outputs on the same tape."""
    calls = {
        "SparseVector": lambda: SparseVector(1.0, 5, 1).query_many([1, 2, 9]).tolist(),
        "above_threshold": lambda: above_threshold([1, 2, 3], 0.1, 2).tolist(),
        "bounded_sum": lambda: bounded_sum([0.5, 1.0], 0, 1, 0.01),
        "choose_buckets": lambda: mechanisms.choose_buckets(
            [[0] * 9, [1] * 8, [2] * 6, [3] * 2], 9, 0.01, 2
        ).tolist(),
        "discrete_laplace": lambda: discrete_laplace([1, 2, 3], 0.01).tolist(),
        "exponential": lambda: exponential(range(50), 0.01, 1),
        "noisy_max": lambda: noisy_max(range(50), 0.01, 1),
        "permute_and_flip": lambda: permute_and_flip(range(50), 0.01, 1),
        "select_on_line": lambda: mechanisms.select_on_line([0, 9], [5, 0], 10**9, 0.01, 1),
        "sparse_counts": lambda: mechanisms.sparse_counts([[1, 2]], [9], (4, 4), 0.1, 3)[1],
        "sparse_vector_top_k": lambda: mechanisms.sparse_vector_top_k([1, 9], 1, 1.0, 5).tolist(),
        "top_k": lambda: top_k(range(50), 5, 0.01, 1).tolist(),
    }
    drawing = {name for name in mechanisms.__all__ if not name.endswith(("variance", "quantile"))}
    assert set(calls) == drawing - {"geometric", "least_threshold"}
    for name, call in calls.items():
        result = replay(lambda _, f=call: f(), [1], [], epsilon=1.0, n=4)
        assert result.passed and result.n_calls >= 4 and result.loss == 0, name


def test_pictures():
    pytest.importorskip("matplotlib")
    from skdp.audit import plot_replays

    good = replay(
        lambda r: int(discrete_laplace(len(r), 1.0)), [1, 2], [1], epsilon=1.0, name="good"
    )
    bad = replay(lambda r: int(discrete_laplace(len(r), 2.0)), [1, 2], [1], epsilon=1.0, name="bad")
    leak = replay(len, [1, 2], [1], epsilon=1.0, name="leak")
    axes = plot_replays([good, bad, leak])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["good", "bad", "leak"]
    assert axes.get_title() == "2 of 3 convicted" and axes.get_xlim()[1] > 2
    assert plot_replays([good], axes) is axes


def test_the_library_is_replayed(tmp_path):
    from skdp.audit import AUDITS, replay_library

    results = replay_library(tmp_path, names=["discrete_laplace", "DPTopKSelector"], n=2, verbose=0)
    names = [each.name for each in results]
    assert names[:2] == ["discrete_laplace", "DPTopKSelector"]
    assert len(names) == 2 and all(each.passed for each in results)
    assert len(pd.read_csv(tmp_path / "replay.csv")) == 2
    assert [name for name, make in AUDITS.items() if not make().replays] == ["geometric"]
    with pytest.raises(ValueError, match="Bare noise"):
        replay_library(None, names=["geometric"])


# --- ways around it

ROWS = np.array([[0.5], [0.5], [1.5]])


class Slotted:
    """Two slots, one of them with a private name."""

    __slots__ = ("__exact", "shown")

    def __init__(self, exact):
        self.shown = 0
        self.__exact = exact


class Whole(int):
    """An integer that may hold more than its value."""


class Table(dict):
    """A dictionary that may hold more than its items."""


class Cells(np.ndarray):
    """An array that may hold more than its elements."""


def _with(item, size):
    item.size_seen = size
    return item


def _function(size):
    return lambda row, shift=size: row - shift


def _local(size):
    return _with(threading.local(), size)


HIDDEN = {
    "the same ids again": lambda n: [Decimal(1), Decimal(2), Decimal(n)],
    "a private slot": Slotted,
    "a default of a function": _function,
    "an attribute of a function": lambda n: _labelled(n),
    "an attribute of an integer": lambda n: _with(Whole(1), n),
    "an attribute of a dictionary": lambda n: _with(Table(), n),
    "an attribute of an array": lambda n: _with(np.zeros(2).view(Cells), n),
    "a default of a dictionary": lambda n: defaultdict(partial(int, n)),
    "a mask": lambda n: np.ma.array([1, 1], mask=[False, n > 2]),
    "the index of a frame": lambda n: pd.DataFrame({"a": [1]}, index=[n]),
    "the name of the columns": lambda n: pd.DataFrame({"a": [1]}).rename_axis(columns=str(n)),
    "categories": lambda n: pd.DataFrame({"a": pd.Categorical(["x"], ["x", "y", "z"][:n])}),
    "metadata of a type": lambda n: np.zeros(1, np.dtype("i8", metadata={"n": n})),
    "the layout of an array": lambda n: np.zeros((2, 2), order="CF"[n > 2]),
    "the type of a key": lambda n: {1 if n > 2 else True: 0},
    "the sign of a key": lambda n: {0.0 if n > 2 else -0.0: 0},
    "the type in a set": lambda n: {1 if n > 2 else True},
    "the order of a set": lambda n: {0, 8} if n > 2 else {8, 0},
    "an empty range": lambda n: range(n, n),
    "the sign of an imaginary part": lambda n: complex(0.0, 0.0 if n > 2 else -0.0),
    "a local of the thread": _local,
}
if hasattr(np.dtypes, "StringDType"):
    HIDDEN["long text"] = lambda n: np.array([f"text of {n} letters"], np.dtypes.StringDType())


def _labelled(size):
    def shown():
        return 0

    shown.size = size
    return shown


@over("make", HIDDEN.values())
def test_what_is_hidden_in_a_result_is_found(make):
    def hides(rows):
        discrete_laplace(len(rows), 1.0)
        return make(len(rows))

    result = replay(hides, ROWS, ROWS[:2], epsilon=1.0, n=2)
    assert not result.passed and result.loss == 1.0
    # The same of equal data is the same.
    assert first_difference(make(3), make(3)) is None


@over(
    "make",
    [
        lambda: pd.Series(["x", "y"], name="a"),
        lambda: pd.DataFrame([[1, "x"], [2, None]], columns=["a", "a"])["a"],
        lambda: pd.Series([1.5, 2.5], index=["x", "y"]),
        lambda: pd.Categorical(["x", None]),
        lambda: pd.MultiIndex.from_tuples([(1, "x"), (2, "y")]),
        lambda: pytest.importorskip("polars").Series("a", ["x", "y"]),
        lambda: pytest.importorskip("polars").DataFrame({"a": ["x", "y"]}),
        lambda: pytest.importorskip("pyarrow").table({"a": ["x", "y"]}),
    ],
)
def test_equal_columns_are_equal(make):
    assert first_difference(make(), make(), "x") is None


SHARED = {}


def test_what_later_runs_change_is_seen():
    def keeps_one_object(rows):
        discrete_laplace(len(rows), 1.0)
        SHARED["size"] = len(rows)
        return SHARED

    assert "size" in replay(keeps_one_object, ROWS, ROWS[:2], epsilon=1.0).differs

    class Counts(skdp.GridSynthesizer):
        sizes = ()

        def fit(self, X, y=None):
            type(self).sizes = (len(X),)
            return super().fit(X, y)

    result = replay(Counts(domain=LINE), spread(LINE, 9), spread(LINE, 9)[:-1])
    assert "sizes" in result.differs


def test_every_run_has_its_own_data():
    def overwrites(rows):
        size = len(rows)
        discrete_laplace(size, 1.0)
        if rows[0, 0] < 5:
            rows[:] = 10 + size
        return float(rows[0, 0])

    def looks_behind_a_view(rows):
        discrete_laplace(len(rows), 1.0)
        return len(rows if rows.base is None else rows.base) // 3

    rows = ROWS.copy()
    assert not replay(overwrites, rows, rows[:2], epsilon=1.0).passed
    assert (rows == ROWS).all()
    assert not replay(looks_behind_a_view, rows, rows[:2], epsilon=1.0).passed


def test_a_divergence_that_is_handled_counts():
    def swallows(rows):
        try:
            return int(discrete_laplace(0, 1.0 if len(rows) > 2 else 0.5))
        except BaseException:
            return 0

    result = replay(swallows, ROWS, ROWS[:2], epsilon=1.0)
    assert result.diverged_at is not None and result.loss == math.inf


def test_what_an_exception_carries_is_released():
    class Carries(skdp.GridSynthesizer):
        def fit(self, X, y=None):
            super().fit(X, y)
            if self.synopsis_.total < 9:
                error = ValueError("too few")
                error.size = len(X)
                raise error
            return self

    class LeavesBehind(skdp.GridSynthesizer):
        def fit(self, X, y=None):
            super().fit(X, y)
            if self.synopsis_.total < 9:
                self.size_ = len(X)
                raise ValueError("too few")
            return self

    pair = spread(LINE, 9), spread(LINE, 9)[:-1]
    for each in (Carries, LeavesBehind):
        result = replay(each(domain=LINE), *pair, n=24)
        assert result.n_errors and "size" in result.differs, str(result)
        assert f"{result.n_errors} pairs ended in an exception" in str(result)


def test_what_is_logged_is_released():
    log = logging.getLogger("skdp.tests")
    log.setLevel(logging.INFO)

    def logs(rows):
        log.info("%d rows", len(rows))
        return int(discrete_laplace(len(rows), 1.0))

    assert "3 rows" in replay(logs, ROWS, ROWS[:2], epsilon=1.0).differs


@over("noise", ["one-sided", "two-sided"])
def test_a_sparse_vector_of_another_run_is_refused(noise):
    vector = SparseVector(1.0, 10, 2, noise=noise)
    with pytest.raises(ReplayError, match="made before"):
        replay(lambda rows: vector.query(len(rows)), ROWS, ROWS[:2], epsilon=0.1)


DRAW = "from skdp.mechanisms import discrete_laplace as d; print(int(d({}, 50.0)) > -100)"


def test_draws_of_other_interpreters_are_noticed():
    def elsewhere(rows):
        command = [sys.executable, "-c", DRAW.format(len(rows))]
        return subprocess.run(command, capture_output=True, check=True).stdout

    with pytest.raises(ReplayError, match="thread or process"):
        replay(elsewhere, ROWS, ROWS[:2], epsilon=0.1, n=1)
    # It goes on where nothing is recorded.
    assert elsewhere(ROWS).strip() == b"True"


def test_changes_beyond_64_bits():
    def apart(rows):
        up = len(rows) > 2
        return noisy_max(np.array([2**62 * up, 2**62 * (not up) - 2**62 * up]), 1.0, 1)

    def around(rows):
        return noisy_max(np.array([2**63 - 1 if len(rows) > 2 else -(2**63), 0]), 1.0, 1)

    def unsigned(rows):
        lead = np.array([9, 0] if len(rows) > 2 else [0, 9], dtype=np.uint64)
        return noisy_max(np.uint64(2**63) + lead, 1.0, 1)

    def far_out(rows):
        return bool(above_threshold(2**58 + 20 * len(rows), 1.0, 2**58 + 50))

    for each, loss in ((apart, 2.0**62), (around, 2.0**60), (unsigned, 18.0), (far_out, 5.0)):
        result = replay(each, ROWS, ROWS[:2], epsilon=1.0)
        assert result.verdict == "convicted" and result.loss >= loss, str(result)
