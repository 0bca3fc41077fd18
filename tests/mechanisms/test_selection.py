"""Selections: closed forms of their laws, the exact loss, and draws that follow them."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np
from exact_laws import fit, law_of_noisy_max, law_of_permute_and_flip, product, series
from loops import over

from skdp._random import noise_source
from skdp._validation import as_epsilon, dyadic_floor
from skdp.mechanisms import (
    exponential,
    geometric,
    laplace,
    noisy_max,
    permute_and_flip,
    selection,
    top_k,
)

# Every statistical test below has a fixed seed and this false-alarm rate for another one.
ALARM = 1e-6

# ---------------------------------------------------------------------------------------------
# The laws in closed form, for r = exp(-epsilon / R) of any number type: exact for a Fraction.


def law_of_top_two(scores, r):
    law = {}
    for i, j in itertools.permutations(range(len(scores)), 2):
        others = [(index, q) for index, q in enumerate(scores) if index not in (i, j)]
        late = i > j  # then the first must be strictly above the second
        total = 0
        top = max(scores)
        for u in range(max([scores[j], *(q for _, q in others)]), top):
            reach = r ** max(0, u + late - scores[i])
            below = math.prod(1 - r ** (u + (index > j) - q) for index, q in others)
            total += (1 - r) * r ** (u - scores[j]) * reach * below
        factors = [r ** ((index > j) - q) for index, q in others]
        tail = series(r, top, product(factors), 2)
        law[i, j] = total + (1 - r) * r ** (late - scores[i] - scores[j]) * tail
    return law


def normalised(weights):
    return {outcome: weight / sum(weights.values()) for outcome, weight in weights.items()}


def law_of_canonical(scores, r, k=2):
    """Of all sets, by enumeration."""
    places = set(range(len(scores)))
    losses = {
        inside: max((scores[i] for i in places - set(inside)), default=0)
        - min(scores[i] for i in inside)
        for inside in itertools.combinations(sorted(places), k)
    }
    least = min(losses.values())
    return normalised({inside: r ** (loss - least) for inside, loss in losses.items()})


def exponential_law(scores, r):
    weights = [r ** (max(scores) - q) for q in scores]
    return normalised(dict(enumerate(weights)))


def law_of_peeling(scores, r):
    """The exponential mechanism, and again among those that are left."""
    weights = [r ** (max(scores) - q) for q in scores]
    return {
        (i, j): weights[i] / sum(weights) * weights[j] / (sum(weights) - weights[i])
        for i, j in itertools.permutations(range(len(scores)), 2)
    }


def several(method, k=2):
    def mechanism(scores, epsilon, score_range, **keywords):
        keywords |= {"method": method, "ordered": method != "canonical"}
        return tuple(top_k(scores, k, epsilon, score_range, **keywords).tolist())

    return mechanism


# name -> (mechanism of scores, epsilon, score_range; its law; how many ranges share epsilon)
MECHANISMS = {
    "noisy_max": (noisy_max, law_of_noisy_max, 1),
    "permute_and_flip": (permute_and_flip, law_of_permute_and_flip, 1),
    "exponential": (exponential, exponential_law, 1),
    "top_k": (several("one-shot"), law_of_top_two, 2),
    "top_k, peeling": (several("peeling"), law_of_peeling, 2),
    "top_k, canonical": (several("canonical"), law_of_canonical, 2),
}


@over("score_range", [1, 2])
@over("name", MECHANISMS)
def test_privacy_bound_holds_exactly(name, score_range):
    # Neighbours: all changes of the scores in one interval of length R, wherever it lies. With
    # r = exp(-epsilon / (k R)) rational, every probability is an exact fraction, and the bound
    # exp(epsilon) is r**(-k R).
    _, law, winners = MECHANISMS[name]
    r = Fraction(1, 2)
    law = lru_cache(maxsize=None)(law)
    worst = 0
    # The laws depend on differences alone: the smallest score is 0.
    for scores in itertools.product(range(4), repeat=3):
        if min(scores):
            continue
        before = law(scores, r)
        assert sum(before.values()) == 1
        for change in itertools.product(range(score_range + 1), repeat=3):
            after = law(tuple(q + d for q, d in zip(scores, change, strict=True)), r)
            worst = max(worst, *(before[o] / after[o] for o in before))
            worst = max(worst, *(after[o] / before[o] for o in before))
    bound = r ** (-winners * score_range)
    assert worst <= bound
    # The test sees a broken coefficient: much of the bound is used.
    assert worst > bound * Fraction(3, 4 * winners)


def drawn(mechanism, scores, epsilon, score_range, size, seed):
    source = noise_source(seed)
    return Counter(
        mechanism(scores, epsilon, score_range, random_state=source) for _ in range(size)
    )


# Chosen so that 6,000 selections tell scales that are off by a fifth: the chi-square statistic of a
# wrong scale exceeds 100 on average, and 45 rejects.
CASES = [((0, 4, 8, 1), 1.0, 2), ((0, 50, 90, 20), 0.1, 3), ((-2, -2, 0, -2, -3, -2, -2), 1.5, 1)]


@over("name", MECHANISMS)
def test_selections_have_the_exact_law(name):
    mechanism, law, winners = MECHANISMS[name]
    size = 6_000
    for scores, epsilon, score_range in CASES:
        rate = float(dyadic_floor(as_epsilon(epsilon)) / (score_range * winners))
        exact = law(scores, math.exp(-rate))
        assert fit(drawn(mechanism, scores, epsilon, score_range, size, 1), exact) > ALARM
    scores, epsilon, score_range = CASES[0]
    exact = law(scores, math.exp(-float(dyadic_floor(as_epsilon(epsilon))) / score_range / winners))
    for wrong in (0.8 * epsilon, epsilon / 0.8):
        assert fit(drawn(mechanism, scores, wrong, score_range, size, 2), exact) < ALARM


# ---------------------------------------------------------------------------------------------
# Exactly which noise is drawn, and what is done with it.


def test_log_weights_are_those_of_the_decimals(monkeypatch):
    """The floating-point weights of a race, against the exact ones that decide close races."""
    weights, exact = [], []

    class Race(selection.Race):
        def enter(self, log_weights, margin):
            weights.extend((weight, margin) for weight in log_weights.tolist())
            super().enter(log_weights, margin)

        def winner(self, log_weight):
            context = laplace.decimal_context(60)
            exact.extend(float(log_weight(entry, context)) for entry in range(len(weights)))
            return super().winner(log_weight)

    monkeypatch.setattr(selection, "Race", Race)
    scores = np.random.default_rng(0).integers(0, 10**6, 60) // 1000 * 1000
    top_k(scores, 25, 0.001, 3, method="canonical", ordered=False)
    assert len(weights) == len(exact) > 500
    for (weight, margin), true in zip(weights, exact, strict=True):
        assert abs(weight - true) <= margin + 2.0**-48 * (100 + abs(weight))


@over(
    "gap, n, k, more, way, epsilon",
    [
        # The choice of a method has the rest.
        (1000, 500, 200, {"ordered": False}, "_together", Fraction(94, 1000)),
        (10, 500, 200, {"ordered": False}, "_one_shot", Fraction(94, 1000)),
        # Public: few winners, all of them, or in order.
        (1000, 200, 3, {"ordered": False}, "_one_shot", 0.1),
        (1000, 200, 200, {"ordered": False}, "_one_shot", 0.1),
        (1000, 200, 20, {}, "_one_shot", 0.1),
    ],
)
def test_auto_takes_a_set_where_scores_are_apart(gap, n, k, more, way, epsilon, monkeypatch):
    taken = []
    for name in ("_together", "_one_shot"):

        def note(scores, k, epsilon, *rest, name=name):
            taken.append((name, epsilon))
            return np.arange(k)

        monkeypatch.setattr(selection, name, note)
    top_k(gap * np.arange(n), k, 0.1, 1, random_state=3, **more)
    assert taken == [(way, epsilon)]


def test_segments_and_winners_follow_from_scores_and_noise():
    rng = np.random.default_rng(1)
    for seed in range(60):
        scores = rng.integers(-4, 5, size=rng.integers(1, 60))
        starts = np.flatnonzero(np.append(True, rng.random(scores.size - 1) < rng.random()))
        noisy = scores + geometric(scores.size, 2.0, 1, random_state=seed)
        segments = zip(starts, np.split(noisy, starts[1:]), strict=True)
        winners = noisy_max(scores, 2.0, 1, starts=starts, random_state=seed)
        assert winners.tolist() == [start + np.argmax(segment) for start, segment in segments]
        # The k largest, in a stable order.
        k = int(rng.integers(1, scores.size + 1))
        noisy = scores + geometric(scores.size, 3.0, 2 * k, random_state=seed)
        chosen = top_k(scores, k, 3.0, 2, random_state=seed)
        assert chosen.tolist() == sorted(range(scores.size), key=lambda i: (-noisy[i], i))[:k]
        assert winners.dtype == chosen.dtype == np.int64


@over("name", MECHANISMS)
def test_extreme_scores_do_not_overflow(name):
    mechanism, _, winners = MECHANISMS[name]
    low, high = -(2**63), 2**63 - 1
    best = (1, 3) if winners == 2 else 1
    for seed in range(5):
        assert mechanism([low, high, 0, high - 2**40], 1e-6, 1, random_state=seed) == best
    unsigned = np.array([0, 2**64 - 1, 2**63, 2**64 - 2**40], dtype=np.uint64)
    assert mechanism(unsigned, 1e-6, 1) == best
    small = np.array([-128, 127, 0, 100], dtype=np.int8)
    assert mechanism(small, 100.0, 1) == best
