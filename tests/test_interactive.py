"""A curator: what it compares, pays for and refuses; its privacy by replay and by its exact law."""

import copy
import itertools
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from boxed import one_box_each
from fitted import refuse_to_read
from loops import over
from scipy.stats import dlaplace

import skdp
from skdp import interactive
from skdp._random import recording
from skdp.audit._tapes import Alignment, Recorder
from skdp.interactive import Curator
from skdp.release import Intervals

DOMAIN = skdp.Domain({"v": skdp.Categorical(["a", "b", "c"])})


def public_release(counts=(40, 30, 20), std=5.0):
    """A release of public numbers: one box for each value."""
    return one_box_each(DOMAIN, counts, Intervals(1 / std))


def table(a, b, c):
    return pd.DataFrame({"v": ["a"] * a + ["b"] * b + ["c"] * c})


A, AB, C = "v == 'a'", {"v": ["a", "b"]}, "v == 'c'"

# --- answers


def test_it_pays_only_where_the_release_is_off():
    ledger = skdp.PrivacyLedger(60)
    rows = table(40, 3000, 20)
    how = {"epsilon": 50, "threshold": 100, "max_paid": 2, "ledger": ledger}
    curator = Curator(rows, public_release(), **how)
    assert ledger.spent == 50 == sum(curator.privacy_loss.parts.values())
    assert {*curator.privacy_loss.parts} == {"threshold", "comparisons", "answers"}
    # What is known is right.
    known = curator.ask(A)
    assert known.lower == 0  # no number of records is negative
    assert known.value == 40 and curator.remaining == 2 and "known answers" in known.guarantee
    paid = curator.ask("v == 'b'")
    assert abs(paid.value - 3000) < 1 and curator.remaining == 1 and "paid for" in paid.guarantee
    assert paid.lower < 3000 < paid.upper and paid.std < 0.2
    # What was paid for is known, and improves what depends on it.
    assert abs(curator.ask("v == 'b'").value - 3000) < 5
    assert abs(curator.ask(AB).value - 3040) < 5
    assert curator.remaining == 1
    assert np.flatnonzero(curator.history["paid"]).tolist() == [1]
    assert repr(curator) == "<Curator: epsilon=50, 4 answers, 1 of them paid for, 1 left>"
    # After the last of these it refuses.
    last = Curator(rows, public_release(), epsilon=50, threshold=100, max_paid=1)
    assert "paid for" in last.ask("v == 'b'").guarantee and last.remaining == 0
    with pytest.raises(RuntimeError, match="All 1 answers that epsilon=50 pays for"):
        last.ask(A)
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            act(curator)


@over(
    "release",
    [skdp.MarginalSynthesizer, skdp.HDPViewSynthesizer, skdp.PrivBayesSynthesizer, skdp.DataCube],
)
def test_it_works_with_any_release(release):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(0, 64, 5_000), "sex": rng.choice(["F", "M"], 5_000)})
    domain = skdp.Domain({"age": skdp.Numeric(0, 63, bins=16, integer=True), "sex": ["F", "M"]})
    known = release(epsilon=1.0, domain=domain).fit(rows)
    # Columns that the release does not have are not read.
    curator = Curator(rows.assign(name="x"), known, epsilon=5, threshold=200, max_paid=3)
    for low in (8, 16, 8, 32):
        answer = curator.ask(f"age < {low} and sex == 'F'")
        exact = ((rows["age"] < low) & (rows["sex"] == "F")).sum()
        assert answer.lower <= exact <= answer.upper


def test_intervals_of_known_answers_hold_together():
    # The release is off by the threshold, so that comparisons are nearly even.
    missed, known = 0, 0
    for seed in range(80):
        curator = Curator(
            table(58, 30, 20), public_release(), epsilon=2, threshold=10, max_paid=3, level=0.8,
            random_state=seed,
        )  # fmt: skip
        answers = [curator.ask(A) for _ in range(10) if curator.remaining]
        intervals = [each for each in answers if "known answers" in each.guarantee]
        known += len(intervals) > 0
        missed += any(not each.lower <= 58 <= each.upper for each in intervals)
    assert known > 50 and missed / known < 0.2


# --- charges and refusals


def test_it_is_charged_before_a_value_is_read(monkeypatch):
    person = {"privacy_id": "who", "max_rows_per_id": 1}
    cube = skdp.DataCube(domain=DOMAIN, **person).fit(table(20, 30, 10).assign(who=range(60)))
    refuse_to_read(monkeypatch)
    ledger, rows = skdp.PrivacyLedger(0.5), table(1, 1, 1)
    for given, release, changes, message in [
        (rows, public_release(), {"epsilon": 1}, "remain"),
        (rows, cube, {}, "protects persons"),
        (rows, "release", {}, "must be a Synopsis"),
        (rows, public_release(), {"threshold": 0}, "threshold must be positive, got 0"),
        (rows.rename(columns={"v": "w"}), public_release(), {}, "'v'"),
    ]:
        how = {"epsilon": 0.1, "threshold": 5, "max_paid": 1, "ledger": ledger, **changes}
        with pytest.raises((TypeError, ValueError, skdp.BudgetExceededError), match=message):
            Curator(given, release, **how)
    assert ledger.spent == 0


def test_values_never_raise_and_a_bad_query_uses_nothing_up():
    odd = pd.DataFrame({"v": ["a", None, 3, b"x", object(), "unheard of"] * 50}, dtype=object)
    curator = Curator(odd, public_release((50, 0, 0)), epsilon=50, threshold=20, max_paid=1)
    with pytest.raises(ValueError, match="nowhere"):
        curator.ask("nowhere == 3")
    assert curator.ask(A).value == 50 and len(curator.history) == 1


# --- what is compared and released


class Forced(Recorder):
    """Gives the signs and noisy counts that it is told to, and keeps what mechanisms are given."""

    def __init__(self, signs, noisy):
        super().__init__(0, "exact", Alignment([], []))
        self.signs, self.noisy = iter(signs), iter(noisy)

    def _enter(self, entry):
        self.calls.append(entry)
        if entry.mechanism == "stream":
            hit = next(self.signs)
            return [0] * hit, np.zeros(hit, dtype=np.int64)
        assert entry.mechanism == "discrete_laplace"
        return np.array(next(self.noisy)).reshape(entry.values.shape)


def forced(rows, queries, signs, noisy, release=None, **how):
    """What mechanisms are given in a session with these outputs."""
    tape = Forced(signs, noisy)
    with recording(tape):
        curator = Curator(rows, release or public_release(), **how)
        answers = [curator.ask(query).value for query in queries]
    return tape.calls, answers


def test_differences_are_compared_and_the_noise_stands_outside():
    how = {"epsilon": 1, "threshold": 7, "max_paid": 2}
    calls, answers = forced(
        table(10, 80, 20), [A, C, "v == 'b'", "v == 'b'"], [0, 0, 1, 0], [60 * 1024], **how
    )
    streams = [call for call in calls if call.mechanism == "stream"]
    # Distances of 30, 0, 50, and then from the paid answer, without signs.
    offset = 7 * 1024 - 30 * 1024 + int(streams[0].values.item())
    given = [(int(call.values.item()) + 7 * 1024 - offset) / 1024 for call in streams]
    assert given[:3] == [30, 0, 50] and given[3] == pytest.approx(80 - answers[3], abs=1e-3)
    for call in streams:
        _, _, threshold_rate, _, shift, one_sided, refreshing, monotonic = call.public
        assert (shift, one_sided, refreshing, monotonic) == (1024, True, False, False)
        # 1 in eps1, and 2c in eps2.
        assert float(threshold_rate) * 1024 + float(call.public[0]) * 2 * 2 * 1024 == pytest.approx(
            0.5, rel=1e-5
        )
    [paid] = [call for call in calls if call.mechanism == "discrete_laplace"]
    assert int(paid.values.item()) == 80 * 1024
    assert float(paid.public[0]) == pytest.approx(0.5 / (2 * 1024), rel=1e-5)
    # Between the release and the paid answer, nearer to the more accurate one.
    assert answers[:3] == [40, 20, 60] and 45 < answers[3] < 60


def test_weights_are_rounded_record_by_record():
    domain = skdp.Domain({"x": skdp.Numeric(0.0, 3.0, bins=3)})
    release = one_box_each(domain, [0, 0, 0], Intervals(1.0))
    rows = np.array([[0.5]] * 7 + [[2.5]])
    how = {"epsilon": 1, "threshold": 7, "max_paid": 1}
    calls, _ = forced(rows, ["x < 0.3 or x > 2"], [1], [0], release, **how)
    # A third of a bin, seven times, and one whole record.
    assert int(calls[-1].values.item()) == 7 * round(0.3 * 1024) + 1024


# --- privacy


def log_probability(calls, signs):
    """Exact logarithm of the probability of signs and paid answers, given what was compared."""
    streams = [call for call in calls if call.mechanism == "stream"]
    query_rate, _, threshold_rate = map(float, streams[0].public[:3])
    rho = np.arange(int(60 / threshold_rate))
    total = np.log(-np.expm1(-threshold_rate)) - threshold_rate * rho
    for call, hit in zip(streams, signs, strict=True):
        # P(nu >= rho - margin)
        above = -query_rate * np.maximum(rho - int(call.values.item()), 0)
        with np.errstate(divide="ignore"):
            total = total + (above if hit else np.log(-np.expm1(above)))
    found = float(np.logaddexp.reduce(total))
    for call in calls:
        if call.mechanism == "discrete_laplace":
            found += dlaplace.logpmf(call.noisy - int(call.values.item()), float(call.public[0]))
    return found


def worst_loss(pair, queries, epsilon, max_paid, threshold):
    """Largest log ratio of two neighbours over all signs and some paid answers, exactly."""
    worst = 0.0
    how = {"epsilon": epsilon, "threshold": threshold, "max_paid": max_paid}
    places = range(len(queries))
    for hits in (each for k in range(max_paid + 1) for each in itertools.combinations(places, k)):
        # After the last paid answer it refuses.
        n = hits[-1] + 1 if len(hits) == max_paid else len(queries)
        signs = [int(place in hits) for place in range(n)]
        for noisy in itertools.product([0, 45, 90], repeat=len(hits)):
            logs = []
            for rows in pair:
                calls, _ = forced(rows, queries[:n], signs, noisy, **how)
                paid = [call for call in calls if call.mechanism == "discrete_laplace"]
                for call, value in zip(paid, noisy, strict=True):
                    call.noisy = value
                logs.append(log_probability(calls, signs))
            worst = max(worst, abs(logs[0] - logs[1]))
    return worst


# Added to "a", a record takes A farther from what is known and AB nearer.
FAR = (table(50, 19, 20), table(51, 19, 20))
CASES = [
    (FAR, [*[A] * 16, AB], Fraction(2), 1, 4, 0.95),
    (FAR, [A, A, AB, A, AB], Fraction(1), 2, 4, 0.7),
]


@over("case", CASES)
def test_the_exact_law_keeps_the_bound_and_nearly_reaches_it(case, monkeypatch):
    # In whole records, the sums over the noise of the threshold are short.
    monkeypatch.setattr(interactive, "_STEPS", 1)
    pair, queries, epsilon, max_paid, threshold, least = case
    worst = worst_loss(pair, queries, epsilon, max_paid, threshold)
    assert least * float(epsilon) < worst <= float(epsilon) * (1 + 1e-9)
