"""What is steered by something exact is refuted by a replay on any tables of one schema."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from any_tables import MODES, SEARCHES, replay_any, turns
from loops import over
from replays import BRANCHES
from sklearn.base import BaseEstimator

from skdp.exceptions import ReplayError
from skdp.mechanisms import discrete_laplace, noisy_max


def test_every_table_and_every_epsilon_has_its_turn():
    taken = set()
    for branch in (each for each in BRANCHES if not each.name.startswith(SEARCHES)):
        names = [f"table {i}" for i in range(9)]
        dealt = list(turns(branch, dict.fromkeys(names)))
        assert {name for one, others, *_ in dealt for name in (one, *others)} == {*names}
        assert [epsilon for *_, epsilon, _ in dealt] == [*branch.epsilons]
        taken |= {mode for *_, mode in dealt}
    assert taken == {*MODES}


# --- what is steered by something exact is refuted


class Steered(BaseEstimator):
    """Releases a noisy size and counts, and decides something by one fact: a noisy one is fine."""

    def __init__(self, by="the noisy size", what="a budget"):
        self.by = by
        self.what = what

    def fit(self, X, y=None):
        x = X[:, 0]
        size = int(discrete_laplace(len(x), Fraction(1, 2)))
        fact = {
            "the noisy size": lambda: size > 30,
            "the size": lambda: len(x) > 30,
            "a zero": lambda: bool((x == 0).any()),
            "the order": lambda: bool(len(x) and x[0] > x[-1]),
            "the number of distinct rows": lambda: len(np.unique(x)) > 9,
        }[self.by]()

        def steered(what, one, other):
            return other if fact and what == self.what else one

        bins = steered("a shape", 8, 4)
        counts = np.bincount((x * bins).astype(int).clip(0, bins - 1), minlength=bins)
        rate = steered("a budget", Fraction(1, 2), Fraction(1, 4))
        counts = discrete_laplace(counts, rate, steered("a sensitivity", 1, 2))
        if steered("a call", False, True):
            counts = counts - discrete_laplace(np.zeros(len(counts), dtype=int), Fraction(1, 2))
        if steered("a mechanism", False, True):
            noisy_max(np.arange(3), Fraction(1, 2), 1)
        else:
            discrete_laplace(np.zeros(3, dtype=int), Fraction(1, 2))
        self.size_, self.counts_ = size, counts
        if steered("an attribute", False, True):
            self.large_ = True
        return self


LINE = np.linspace(0.01, 0.99, 12)[:, None]
# Of each fact, a table on its other side.
FACTS = {
    "the size": np.repeat(LINE, 3, axis=0),
    "a zero": np.append(LINE, [[0.0]], axis=0),
    "the order": LINE[::-1],
    "the number of distinct rows": np.repeat(LINE[:6], 2, axis=0),
}
FOUND = {
    "a shape": "the runs differ at call 2: discrete_laplace in Steered.fit of shape",
    "a budget": "the runs differ at call 2, discrete_laplace in Steered.fit: rate",
    "a sensitivity": "the runs differ at call 2, discrete_laplace in Steered.fit: rate",
    "a call": "the runs differ at call 3: discrete_laplace in Steered.fit of shape (",
    "a mechanism": "the runs differ at call 3: ",
    "an attribute": "released, and not the same: result: attributes ['large_']",
}


@over("by, what", itertools.product(FACTS, FOUND))
def test_what_is_steered_by_something_exact_is_refuted(by, what):
    tables = {other: table for other, table in FACTS.items() if other != by}
    steered = Steered(by, what)
    for here, there in ((LINE, FACTS[by]), (FACTS[by], LINE)):
        text = replay_any(steered, here, {"the other": there}, outputs="noisy")
        assert text.startswith("the other, outputs 'noisy': ") and FOUND[what] in text
    # The noisy size decides as it likes, on all tables.
    assert replay_any(Steered("the noisy size", what), LINE, tables | {by: FACTS[by]}) is None


def test_all_ways_to_make_up_outputs_are_tried():
    class Steps(BaseEstimator):
        """Decides by an exact number after a large answer only."""

        def fit(self, X, y=None):
            large = discrete_laplace(len(X), Fraction(1, 50)) > 60
            discrete_laplace(0, Fraction(1, 2 if large and len(X) < 9 else 1))
            return self

    tables = {"less": LINE[:3]}
    assert replay_any(Steps(), LINE, tables, outputs=["exact", "low", "blank"]) is None
    assert "less, outputs 'high': the runs differ at call 2" in replay_any(Steps(), LINE, tables)


def test_an_estimator_that_always_fails_is_not_alike():
    class Fails(BaseEstimator):
        def fit(self, X, y=None):
            raise ValueError("misspelt")

    with pytest.raises(ReplayError, match="Every run ended in ValueError.*: misspelt"):
        replay_any(Fails(), LINE, {"less": LINE[:3]})
