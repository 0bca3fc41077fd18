"""Releases of one table that answer counts together."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import skdp
from skdp import Categorical, DataCube, Domain, Numeric, QueryResult, RangeTreeHistogram
from skdp.release import combine

RNG = np.random.default_rng(8)
TABLE = pd.DataFrame({"age": RNG.integers(0, 60, 4_000), "sex": RNG.choice(["F", "M"], 4_000)})
DOMAIN = Domain({"age": Numeric(0, 59, integer=True), "sex": Categorical(["F", "M"])})
AGE = DOMAIN.select(["age"])


class Stated:
    """A release that answers every count with the same interval."""

    def __init__(self, value, std, lower, upper, epsilon=1):
        self.answer = QueryResult(value, std, lower, upper, "")
        self.privacy_loss = None if epsilon is None else skdp.PrivacyLoss(epsilon)

    def count(self, query=None, *, return_interval=False, level=0.95):
        return self.answer


def histogram(epsilon, **other):
    return RangeTreeHistogram(epsilon=epsilon, domain={"age": (0, 59)}, **other).fit(TABLE[["age"]])


def test_answers_are_weighted_by_inverse_variance():
    both = combine([Stated(100, 10, 80.4, 119.6), Stated(130, 20, 90.8, 169.2)])
    assert both.count("x") == pytest.approx((100 * 4 + 130) / 5)
    result = both.count(return_interval=True)
    assert result.std == pytest.approx(np.sqrt(100 * 400 / 500))
    assert result.upper - result.value == pytest.approx(1.96 * result.std, rel=1e-3)
    assert result.value - result.lower == pytest.approx(1.96 * result.std, rel=1e-3)
    assert both.count(["x", "y"]).tolist() == [106.0, 106.0]
    assert len(both.count(["x", "y"], return_interval=True)) == 2


def test_what_is_beyond_the_noise_is_averaged_and_cut_intervals_count_whole():
    beyond = combine([Stated(100, 10, 60.4, 139.6), Stated(100, 10, 60.4, 139.6)])
    result = beyond.count(return_interval=True)
    assert result.upper - 100 == pytest.approx(19.6 / np.sqrt(2) + 20, rel=1e-3)
    # An interval that ends at zero would have gone on below it.
    cut = combine([Stated(5, 10, 0, 24.6), Stated(5, 10, 0, 24.6)]).count(return_interval=True)
    assert cut.lower == 0 and cut.upper == pytest.approx(5 + 19.6 / np.sqrt(2), rel=1e-3)
    # All of it below zero: no point, but the end of what is possible.
    below = combine([Stated(-50, 10, 0, 1), Stated(-50, 10, 0, 1)]).count(return_interval=True)
    assert below.value == -50 and below.lower == 0 < below.upper < 40
    unknown = combine([Stated(100, np.nan, 90, 110), Stated(100, 10, 80.4, 119.6)])
    result = unknown.count(return_interval=True)
    assert np.isnan(result.std) and 10 < result.upper - 100 < 19.6


def test_epsilons_are_added_and_the_ledger_is_charged_by_the_fits_alone():
    ledger = skdp.PrivacyLedger(2)
    both = combine([histogram(0.1, ledger=ledger), histogram(Fraction(1, 3), ledger=ledger)])
    both.count("age < 9", return_interval=True)
    assert both.privacy_loss.epsilon == ledger.spent == Fraction(13, 30)
    assert not both.privacy_loss.seeded
    assert combine([histogram(1, random_state=0), histogram(1)]).privacy_loss.seeded
    assert combine([Stated(1, 1, 0, 3), Stated(1, 1, 0, 3, None)]).privacy_loss is None


@pytest.mark.slow
def test_intervals_cover_and_are_narrower_than_those_of_each():
    """A fair 95% interval misses more than 70 of 600 with a probability below 1e-9."""
    queries = ["10 <= age < 20", "age >= 50", "age < 7"]
    truth = [len(TABLE.query(query)) for query in queries]
    misses, narrower = 0, []
    cube = DataCube(epsilon=0.5, domain=DOMAIN)
    for _ in range(200):
        parts = histogram(0.5), cube.fit(TABLE)
        alone = [part.count(queries, return_interval=True) for part in parts]
        found = combine(parts).count(queries, return_interval=True)
        misses += sum(
            not answer.lower <= n <= answer.upper for answer, n in zip(found, truth, strict=True)
        )
        narrower += [
            (answer.upper - answer.lower) / min(b.upper - b.lower for b in both)
            for answer, both in zip(found, zip(*alone, strict=True), strict=True)
        ]
    assert misses <= 70
    assert np.mean(narrower) < 0.95


def test_what_cannot_be_combined_is_refused():
    one = histogram(1)
    narrow = RangeTreeHistogram(epsilon=1, domain=Domain({"age": Numeric(0, 39, integer=True)}))
    person = Stated(1, 1, 0, 3)
    person.privacy_loss = skdp.PrivacyLoss(1, max_rows_per_id=2)
    for releases, error, message in (
        ([one, RangeTreeHistogram(epsilon=1, domain=AGE)], NotFittedError, "fit"),
        ([one, person], ValueError, "max_rows_per_id differs"),
        ([one, narrow.fit(TABLE[["age"]])], ValueError, "'age' is declared differently"),
    ):
        with pytest.raises(error, match=message):
            combine(releases)
    # Other bins count the same values.
    coarse = Domain({"age": Numeric(0, 59, integer=True, bins=12)})
    combine([one, RangeTreeHistogram(epsilon=1, domain=coarse).fit(TABLE[["age"]])])
