"""Replay: every estimator is certified on hostile pairs, and what is broken is convicted."""

import fnmatch
import itertools
import logging
import math
import subprocess
import sys
import threading
import warnings
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from inspect import signature
from types import CellType, FunctionType

import numpy as np
import pandas as pd
import pytest
from any_tables import assert_alike
from children import FORKS, in_children
from estimators import CASES
from exact_laws import probability_of_split
from loops import over
from neighbours import LINE, PLANE, spread
from odd_values import CONTAINERS, ODD_VALUES, odd_pair
from replays import BRANCHES, CONTAINED, SLOW, Branch, each_of, families
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from worst import PARALLEL, STEPS, assert_paid, assert_parts, assert_reached, watching

import skdp
from skdp import mechanisms
from skdp.audit import replay, replay_library
from skdp.audit._released import first_difference
from skdp.audit._tapes import OUTPUTS, Alignment, _Comparisons, _log_side, _stream_loss
from skdp.exceptions import ReplayError
from skdp.mechanisms import SparseVector, above_threshold, discrete_laplace, noisy_max, top_k
from skdp.model_selection import PrivateKFold

MODES = list(OUTPUTS)

# --- every estimator


def runs_of(branch: Branch, everything: bool):
    """Pairs of data sets with epsilon, a way to make up outputs, and whether they are exchanged.

    Together the pairs see all epsilons and all ways to make up outputs.
    """
    for place, (pair, both) in enumerate(branch.pairs().items()):
        epsilon = branch.epsilons[place % len(branch.epsilons)]
        modes = [MODES[(place + turn) % len(MODES)] for turn in range(len(MODES))]
        if everything:
            for mode, backward in itertools.product(modes, (False, True)):
                yield place, pair, both, epsilon, mode, backward
            for each in branch.epsilons:
                yield place, pair, both, each, modes[1], False
            continue
        if branch.runs == 1 and place % 2:
            continue  # branches that take long: half of the pairs
        # All of the ways where every count is 0 on one side, and an engine does not only count.
        nobody = pair == "nobody" and branch.runs > 1 and not branch.needs
        number = len(MODES) if nobody else 1 if branch.runs == 2 else branch.runs
        # Both directions, in one run by turns from pair to pair.
        first = place if number == 1 else 0
        for turn in range(number):
            mode = MODES[(place + turn) % len(MODES)]
            yield place, pair, both, epsilon, mode, (first + turn) % 2 == 1


def certified(branch: Branch, both: tuple, name: str, epsilon: float, mode: str, place: int):
    """The result of a replay on two data sets, which shows no difference."""
    result = replay(
        branch.make(epsilon),
        *both,
        outputs=mode,
        n=1,
        epsilon=branch.claim(epsilon),
        random_state=place,
        name=f"{branch.name}, {name}, epsilon {epsilon:g}",
    )
    assert result.passed and not result.n_errors, str(result)
    return result


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
    for place, pair, both, epsilon, mode, backward in runs_of(branch, everything):
        with watching() as calls:
            result = certified(branch, both[::-1] if backward else both, pair, epsilon, mode, place)
        assert_parts(result)
        assert_paid(branch.name, calls, result.epsilon, most)
        tightest = max(tightest, result.loss / result.epsilon)
        for call in calls:
            reached[call.step][pair] = max(reached[call.step][pair], call.share / most)
    return tightest, reached


def certify_odd(branch: Branch, everything: bool = False):
    """Replay a branch in other containers, where one record has a value of another type."""
    epsilon = branch.epsilons[len(branch.epsilons) // 2]
    for place, (pair, both) in enumerate(branch.odd(everything)):
        certified(branch, both, pair, epsilon, MODES[place % len(MODES)], place)


def check(branch: Branch, everything: bool = False):
    """All that is asked of a branch: on neighbours, on any two tables, and beside odd values."""
    tightest, reached = certify(branch, everything)
    if not everything:
        assert_reached(branch.name, reached, tightest)
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


def test_every_estimator_has_a_branch_and_persons_where_they_can_be():
    made = [branch.make(1.0) for branch in BRANCHES if branch.times is None]
    replayed = {type(each) for each in made if isinstance(each, BaseEstimator)}
    public = {getattr(home, name) for home in (skdp, skdp.model_selection) for name in home.__all__}
    assert replayed == {c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)}
    assert {case.estimator for case in CASES} <= replayed
    # Persons have their rows bounded and their noise scaled in every estimator.
    persons = {type(b.make(1.0)) for b in BRANCHES if b.times is None and b.most > 1}
    bounded = {each for each in replayed if "max_rows_per_id" in signature(each).parameters}
    assert bounded <= persons, bounded - persons


def test_what_is_known_of_worst_pairs_is_of_branches_that_exist():
    names = {branch.name: branch for branch in BRANCHES}
    assert len(names) == len(BRANCHES)
    pairs = cache(lambda name: {*names[name].pairs()})
    for step, known in STEPS.items():
        # What no branch reaches has a reason.
        assert ("least" in known) == ("why" in known) and ("worst" in known or "why" in known), step
        if "worst" in known:
            assert known["worst"][1] in pairs(known["worst"][0]), step
    for pattern in PARALLEL:
        assert fnmatch.filter(names, pattern), pattern


# --- what watches the calls


RECORDS = np.array([0.2, 0.9, 0.4, 0.7])


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
        return noisy_max([0, 1], 0.75, 1), int(discrete_laplace(len(records), 0.5))

    calls = watched(twice)
    assert [call.share for call in calls] == [0.0, 1.0]
    assert_paid("twice", calls, 1.25, 1)
    with pytest.raises(AssertionError, match="1.25"):
        assert_paid("twice", calls, 1.0, 1)


def test_parts_that_cost_more_than_they_say_are_noticed():
    branch = next(each for each in BRANCHES if each.name == "GridSynthesizer, one column")
    result = replay(branch.make(1.0), *branch.pairs()["two"], n=1)
    assert_parts(result)
    result.declared["skipped"] /= 2
    with pytest.raises(AssertionError, match="skipped"):
        assert_parts(result)


def test_a_call_that_no_pair_moves_as_far_as_it_declares_is_noticed():
    with pytest.raises(AssertionError, match="has no worst pair"):
        assert_reached("a branch", {"new, selection": {"nobody": 1.0}}, 1.0)
    step = "released_total, discrete_laplace"
    name, pair = STEPS[step]["worst"]
    assert_reached(name, {step: {pair: 0.98}}, 1.0)
    for by_pair in ({pair: 0.9}, {pair: 0.9, "another": 1.0}):
        with pytest.raises(AssertionError, match="reaches 0.9"):
            assert_reached(name, {step: by_pair}, 1.0)
    with pytest.raises(AssertionError, match="costs 0.5"):
        assert_reached("DPKMeans, persons", {}, 0.5)


# --- odd values


def test_turns_see_all_containers_and_odd_values():
    boxes, values, _ = zip(*[turn for branch in CONTAINED for turn in branch.turns()], strict=True)
    assert set(boxes) == set(CONTAINERS) and set(values) == set(ODD_VALUES)


def test_a_value_that_changes_the_type_of_all():
    def mean(records):
        array = np.asarray(records)
        return mechanisms.bounded_sum(
            array if array.dtype.kind in "if" else np.zeros(len(array)), 0, 1, 1.0
        )

    here, there = odd_pair(RECORDS, "lists", "text")
    assert here == [*RECORDS, "martian"] and there == [*RECORDS]
    assert "the loss is" in convicted(mean, here, there)
    # A record with two columns and a label, of which the odd value is in the last.
    pair = (pd.DataFrame({"x": [1, 2], "who": ["a", "b"]}), pd.Series([0, 1]))
    (X, y), (X_less, y_less) = odd_pair(pair, "columns of objects", "a list", 1, unit="who")
    assert X["who"].tolist() == ["a", "b", "a new person"] and y.tolist() == [0, 1, [1, 2]]
    assert len(X_less) == len(y_less) == 2


# --- what is broken is convicted


def convicted(function, data=RECORDS, neighbour=RECORDS[:-1], epsilon=1.0, **options):
    result = replay(function, data, neighbour, epsilon=epsilon, **options)
    assert not result.passed, str(result)
    return " ".join(result.reasons)


def count(records, epsilon=1.0):
    return int(discrete_laplace(len(records), epsilon))


def grid(points):
    side = math.ceil(math.sqrt(len(points)))
    cells = np.minimum((points * side).astype(int), side - 1)
    return discrete_laplace(np.bincount(cells, minlength=side), 1.0)


def rounds(records):
    for _ in range(len(records)):
        noisy_max([1, 2], 0.01, 1)


def centroids_in_place(records):
    """A round that moves centroids while it assigns: a record can be in two clusters."""
    where = [0.0, 1.0]
    for j in range(2):
        nearest = np.abs(records[:, None] - np.array(where)).argmin(axis=1) == j
        size = int(discrete_laplace(int(nearest.sum()), 0.5))
        total = mechanisms.bounded_sum(records[nearest], -1, 1, 0.5)
        where[j] = float(np.clip(total / max(size, 1), -1, 1))
    return where


def raises(records):
    if (records > 10).any():
        raise ValueError("records must lie in [0, 10]")
    return mechanisms.bounded_sum(records, 0, 10, 1.0)


def raises_with_a_value(records):
    count(records)
    raise ValueError(f"the largest is {records.max()}")


LOG = logging.getLogger("skdp.tests")
LOG.setLevel(logging.INFO)


def says(how):
    """A noisy count that also gives the exact one to a function."""

    def mechanism(records):
        how(f"{len(records)} rows")
        return count(records)

    return mechanism


def handles_a_divergence(records):
    try:
        return int(discrete_laplace(0, 1.0 if len(records) > 3 else 0.5))
    except BaseException:
        return 0


# Algorithms 19 to 22 of the dissertation; the last two ignore the number of positives.
def does_not_stop(answers):
    return [SparseVector(1.0, 2, 1).query_many(answers).tolist() for _ in range(3)]


def no_noise_on_queries(answers):
    level = int(discrete_laplace(0, 1.0))
    return [answer >= level for answer in answers]


def publishes_what_it_compared(answers):
    vector = SparseVector(0.5, 0, 1)
    signs = vector.query_many(answers).tolist()
    return signs, vector.gaps.tolist(), answers[len(signs) - 1]


def monotonic(answers):
    return SparseVector(1.0, 2, 1, monotonic=True).query_many(answers).tolist()


def overwrites(records):
    size = len(records)
    count(records)
    if records[0] < 5:
        records[:] = 10 + size
    return float(records[0])


def looks_behind_a_view(records):
    count(records)
    return len(records if records.base is None else records.base) // 4


def best_of_two(scores):
    return noisy_max(scores, 1.0, 1, starts=[0, 2])


def above_two(counts):
    return above_threshold(counts, 1.0, 2).tolist()


MOVED = [5, 5, 0], [6, 4, 0]
CLUSTERS = np.array([-1.0] * 40 + [0.49])
# What a replay is to say of each, and the pair on which it says so.
BROKEN = {
    "too little noise": (lambda r: count(r, Fraction(4, 3)), "the loss is 1.33"),
    "two cells move": (lambda r: discrete_laplace([len(r), -len(r)], 1.0), "the loss is 2"),
    "an exact size divides": (
        lambda r: mechanisms.bounded_sum(r, 0, 1, 1.0) / len(r),
        "released, and not the same",
    ),
    "the last bit": (lambda r: np.nextafter(discrete_laplace(0, 1.0, 10**6), len(r) % 2), ""),
    "a size decides a shape": (grid, "of shape (3,)", np.linspace(0, 0.9, 5)),
    "a size decides a budget": (lambda r: count(r, Fraction(1, 1 + len(r) % 2)), "rate 1 and 1/2"),
    "a size decides rounds": (rounds, "on one data set only"),
    "centroids move too early": (centroids_in_place, "the loss is", CLUSTERS),
    "an error by a value": (raises, "", np.array([5.0, 99.0])),
    # The same error everywhere would leave nothing to certify; with another text it is a leak.
    "a value in an error": (raises_with_a_value, "the largest is", np.array([0.2, 0.9])),
    "a warning": (says(warnings.warn), "warnings"),
    "a print": (says(print), "printed"),
    "a log": (says(LOG.info), "4 rows"),
    "a divergence that is handled": (handles_a_divergence, ""),
    "noisy_max": (lambda s: noisy_max(s, 1.0, 1), "scores move 2 apart", *MOVED),
    "one cut too many": (lambda s: [noisy_max(s, 1.0, 2) for _ in "ab"], "the loss is 2", *MOVED),
    "top_k": (lambda s: top_k(s, 2, 1.0, 1).tolist(), "", *MOVED),
    "peeling": (lambda s: top_k(s, 2, 1.0, 1, method="peeling").tolist(), "", *MOVED),
    "two segments": (best_of_two, "the loss is 2", [1, 0, 1, 0], [2, 0, 2, 0]),
    "tests without a bias": (above_two, "", [3, 3, 3, 3], [2, 2, 2, 2]),
    "does not stop": (does_not_stop, "the loss is", [0, 0, 2], [1, 1, 1]),
    "no noise on queries": (no_noise_on_queries, "", [0, 1], [1, 0]),
    "publishes comparisons": (publishes_what_it_compared, "", [0, 0, 2], [1, 1, 1]),
    "both directions": (monotonic, "both directions", [0, 0, 2], [1, 1, 1]),
    "a wider query": (monotonic, "queries move by 5", [0, 0, 2], [5, 5, 2]),
    "overwrites": (overwrites, ""),
    "looks behind a view": (looks_behind_a_view, ""),
}


@over("name", BROKEN)
def test_what_is_broken_is_convicted(name):
    function, text, *both = BROKEN[name]
    data, neighbour = both if len(both) == 2 else ((*both, RECORDS)[0], None)
    before = list(data)
    assert text in convicted(function, data, data[:-1] if neighbour is None else neighbour)
    # Every run has its own data.
    assert list(data) == before


def test_one_of_several_cells_or_tests_is_paid_for():
    assert replay(best_of_two, [1, 0, 1, 0], [2, 0, 1, 0], epsilon=1.0).passed
    assert replay(above_two, [3], [2], epsilon=1.0).passed


def of_grid(change):
    """A synthesizer that does something more after its fit."""

    class Changed(skdp.GridSynthesizer):
        sizes = ()

        def fit(self, X, y=None):
            super().fit(X, y)
            change(self, len(X))
            return self

    return Changed


def keeps(fitted, size):
    fitted.synopsis_._rows = size


def shares(fitted, size):
    type(fitted).sizes = (size,)


def carries(fitted, size):
    if fitted.synopsis_.total < 9:
        error = ValueError("too few")
        error.size = size
        raise error


def leaves_behind(fitted, size):
    if fitted.synopsis_.total < 9:
        fitted.size_ = size
        raise ValueError("too few")


@over(
    "change, text",
    [(keeps, "_rows"), (shares, "sizes"), (carries, "size"), (leaves_behind, "size")],
)
def test_what_an_estimator_keeps_shares_or_raises_is_released(change, text):
    rows = spread(LINE, 9)
    result = replay(of_grid(change)(domain=LINE), rows, rows[:-1], n=24)
    assert text in result.differs
    assert bool(result.n_errors) == (change in (carries, leaves_behind))


# Scores of three records and of four, and what is lost at least.
FAR = [
    ([0, 2**62], [2**62, -(2**62)], 2.0**62),
    ([-(2**63), 0], [2**63 - 1, 0], 2.0**60),
    (np.array([2**63, 2**63 + 9], "uint64"), np.array([2**63 + 9, 2**63], "uint64"), 18.0),
]


@over("three, four, loss", FAR)
def test_changes_beyond_64_bits(three, four, loss):
    def best(rows):
        return noisy_max(four if len(rows) > 3 else three, 1.0, 1)

    def above(rows):
        return bool(above_threshold(2**58 + 20 * len(rows), 1.0, 2**58 + 70))

    for function, least in ((best, loss), (above, 5.0)):
        result = replay(function, RECORDS, RECORDS[:-1], epsilon=1.0)
        assert not result.passed and result.loss >= least, str(result)


# --- the costs of calls


@over("rate", [0.1, 1.0, 7.5])
def test_the_log_probability_of_a_side(rate):
    for value, threshold in itertools.product([-3, 0, 2, 9], [0, 4]):
        above = probability_of_split(value - threshold, math.exp(-rate))
        for side, expected in ((True, above), (False, 1 - above)):
            found = _log_side(np.array([value]), threshold, rate, np.array([side]))[0]
            if expected > 1e-9:
                assert found == pytest.approx(math.log(expected), abs=1e-6)
    far = _log_side(np.array([10**9, -(10**9)]), 0, 1000.0, np.array([False, True]))
    assert np.isfinite(far).all() and (far < -1e11).all()


@cache
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


def folds(rows):
    """The noisy size of a fold."""
    return count(next(iter(PrivateKFold(2).split(rows)))[1])


def test_public_coins_are_the_same_and_folds_belong_to_records():
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
    rows = np.arange(60.0).reshape(30, 2)
    for gone in (0, 13, 29):
        assert replay(folds, rows, np.delete(rows, gone, axis=0), epsilon=1.0).passed
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


def test_worker_processes_are_refused():
    rows = spread(PLANE, 20)
    data = rows[["x"]], rows["s"]
    forest = skdp.PrivateClassifier(
        RandomForestClassifier(n_estimators=2, n_jobs=2),
        skdp.HDPViewSynthesizer(domain=PLANE, target="s"),
    )
    with pytest.raises(ReplayError, match="n_jobs"):
        replay(forest, data, tuple(part.iloc[:-1] for part in data))


def in_a_thread(records):
    worker = threading.Thread(target=count, args=(records,))
    worker.start()
    worker.join()


def forked(records):
    # It draws from the system, but not where a parent records.
    assert in_children(lambda: count(records)) == []


def elsewhere(records):
    draw = "from skdp.mechanisms import discrete_laplace as d; print(int(d({}, 50.0)) > -100)"
    command = [sys.executable, "-c", draw.format(len(records))]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"True\n"


def bare_noise(records):
    try:
        return len(records) + int(mechanisms.geometric(1, 1.0)[0])
    except Exception:
        return 0


OLD = {noise: SparseVector(1.0, 10, 2, noise=noise) for noise in ("one-sided", "two-sided")}


@over(
    "function, match",
    [
        (in_a_thread, "thread"),
        *([(forked, "thread or process")] if FORKS else []),
        (elsewhere, "thread or process"),
        (bare_noise, "noisy_max"),
        (lambda records: 1 / 0, "ZeroDivisionError"),
        *((lambda rows, v=vector: v.query(len(rows)), "made before") for vector in OLD.values()),
    ],
)
def test_what_cannot_be_followed_is_refused(function, match):
    with pytest.raises(ReplayError, match=match):
        replay(function, RECORDS, RECORDS[:-1], epsilon=1.0, n=1)


@over(
    "mechanism, neighbour, options, match",
    [
        (3, [], {}, "estimator"),
        (len, [], {"outputs": "loud"}, "outputs"),
        (len, [], {"n": 0}, "n must"),
        (count, RECORDS[:-1], {}, "epsilon is needed"),
        (len, iter([1, 2]), {"epsilon": 1.0}, "empty after the first run"),
    ],
)
def test_parameters_are_checked(mechanism, neighbour, options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        replay(mechanism, RECORDS, neighbour, **options)


def test_a_replay_charges_nothing_and_leaves_no_tape():
    ledger = skdp.PrivacyLedger(5.0)
    view = skdp.GridSynthesizer(domain=LINE, ledger=ledger)
    rows = spread(LINE, 10)
    one = replay(view, rows, rows[:-1])
    assert one.passed and ledger.spent == 0 and not hasattr(view, "synopsis_")
    # Noise is noise again.
    assert len({int(discrete_laplace(0, 0.001)) for _ in range(9)}) > 1
    other = replay(clone(view), rows, rows[:-1])
    assert (one.loss, one.by_part) == (other.loss, other.by_part)


def test_the_result_says_what_was_found():
    result = replay(lambda r: count(r, 2.0), RECORDS, RECORDS[:-1], epsilon=1.0, name="counting")
    assert not result.passed and result.loss == 2.0
    assert list(result.by_part.values()) == [2.0]
    assert "counting: refuted" in str(result)


# --- comparing what was released


class Slotted:
    """Two slots, one of them with a private name."""

    __slots__ = ("__exact", "shown")

    def __init__(self, exact):
        self.shown = 0
        self.__exact = exact


@cache
def derived_from(kind):
    """A class made from a built-in one, which may hold more than that does."""
    return type("Derived", (kind,), {})


def with_size(item, n):
    item.size_seen = n
    return item


def cycle(n):
    found = [n]
    found.append(found)
    return found


SHARED, LATE = {}, (lambda late: lambda: late)(0).__code__
# What a release of 3 and one of 4 records tell apart, and two of 3 do not.
TELLING = {
    "the sign of zero": lambda n: 0.0 if n > 3 else -0.0,
    "the order of a dictionary": lambda n: {"a": 1, "b": 2} if n > 3 else {"b": 2, "a": 1},
    "the type of an array": lambda n: np.array([1, 2], dtype=int if n > 3 else float),
    "an array of objects": lambda n: np.array(["a", None if n > 3 else "b"], dtype=object),
    "a value of a frame": lambda n: pd.DataFrame({"a": [n, None], "b": ["x", "y"]}),
    "the name of a series": lambda n: pd.Series([1], name=str(n)),
    "the name of the columns": lambda n: pd.DataFrame({"a": [1]}).rename_axis(columns=str(n)),
    "the object of a method of Python": lambda n: Fraction(1, n).limit_denominator,
    "a frame of Polars": lambda n: pytest.importorskip("polars").DataFrame({"a": [n]}),
    "a table of Arrow": lambda n: pytest.importorskip("pyarrow").table({"a": [n, 2]}),
    "a generator": np.random.default_rng,
    "a function": lambda n: np.add if n > 3 else np.subtract,
    "the object of a method": lambda n: "ab"[n > 3].upper,
    "beside something without a value": lambda n: [threading.Lock(), n],
    "a list that holds itself": cycle,
    "the same ids again": lambda n: [Decimal(1), Decimal(2), Decimal(n)],
    "a private slot": Slotted,
    "the code of a function": lambda n: (lambda: 0) if n > 3 else (lambda: 1),
    "what a function holds": lambda n: [FunctionType(LATE, {}, closure=(CellType(),)), lambda: n],
    "a default of a function": lambda n: lambda row, shift=n: row - shift,
    "an attribute of a function": lambda n: with_size(lambda: 0, n),
    "an attribute of a dictionary": lambda n: with_size(derived_from(dict)(), n),
    "a default of a dictionary": lambda n: defaultdict(partial(int, n)),
    "a local of the thread": lambda n: with_size(threading.local(), n),
    "a mask": lambda n: np.ma.array([1, 1], mask=[False, n > 3]),
    "the index of a frame": lambda n: pd.DataFrame({"a": [1]}, index=[n]),
    "categories": lambda n: pd.DataFrame({"a": pd.Categorical(["x"], [*"xyzw"[:n]])}),
    "metadata of a type": lambda n: np.zeros(1, np.dtype("i8", metadata={"n": n})),
    "the layout of an array": lambda n: np.zeros((2, 2), order="CF"[n > 3]),
    "the type of a key": lambda n: {1 if n > 3 else True: 0},
    "the order of a set": lambda n: {0, 8} if n > 3 else {8, 0},
    "an empty range": lambda n: range(n, n),
    "one object of all runs": lambda n: SHARED.update(size=n) or SHARED,
}
if hasattr(np.dtypes, "StringDType"):
    TELLING["long text"] = lambda n: np.array([f"text of {n} letters"], np.dtypes.StringDType())


@over("make", TELLING.values())
def test_whatever_a_result_tells_is_found_and_nothing_else(make):
    def tells(rows):
        count(rows)
        return make(len(rows))

    result = replay(tells, RECORDS, RECORDS[:-1], epsilon=1.0, n=2)
    assert not result.passed and result.loss == 1.0
    # The same of equal data is the same.
    assert first_difference(make(3), make(3)) is None


# --- the mechanisms and the audits of the library


def test_every_public_mechanism_passes_the_seam():
    """A new mechanism that draws by itself would give different outputs on the same tape."""
    calls = {
        "SparseVector": lambda: SparseVector(1.0, 5, 1).query_many([1, 2, 9]).tolist(),
        "above_threshold": lambda: above_threshold([1, 2, 3], 0.1, 2).tolist(),
        "bounded_sum": lambda: mechanisms.bounded_sum([0.5, 1.0], 0, 1, 0.01),
        "choose_buckets": lambda: mechanisms.choose_buckets(
            [[0] * 9, [1] * 8, [2] * 6, [3] * 2], 9, 0.01, 2
        ).tolist(),
        "discrete_laplace": lambda: discrete_laplace([1, 2, 3], 0.01).tolist(),
        "exponential": lambda: mechanisms.exponential(range(50), 0.01, 1),
        "noisy_max": lambda: noisy_max(range(50), 0.01, 1),
        "permute_and_flip": lambda: mechanisms.permute_and_flip(range(50), 0.01, 1),
        "select_on_line": lambda: mechanisms.select_on_line([0, 9], [5, 0], 10**9, 0.01, 1),
        "sparse_counts": lambda: mechanisms.sparse_counts([[1, 2]], [9], (4, 4), 0.1, 3)[1],
        "sparse_vector_top_k": lambda: mechanisms.sparse_vector_top_k([1, 9], 1, 1.0, 5).tolist(),
        "top_k": lambda: top_k(range(50), 5, 0.01, 1).tolist(),
    }
    # Randomised response has another guarantee, of one report by itself.
    numbers = ("variance", "quantile", "alpha", "rate", "response", "response_counts")
    drawing = {name for name in mechanisms.__all__ if not name.endswith(numbers)}
    assert set(calls) == drawing - {"geometric", "least_threshold"}
    for name, call in calls.items():
        result = replay(lambda _, f=call: f(), [1], [], epsilon=1.0, n=4)
        assert result.passed and result.n_calls >= 4 and result.loss == 0, name


def test_the_library_is_replayed():
    names = ["PrivatePCA", "DPTopKSelector"]
    results = replay_library(names, n=2)
    assert [each.name for each in results] == names
    assert all(each.passed for each in results)
    with pytest.raises(ValueError, match="no replay of 'nothing'"):
        replay_library(["nothing"])
