"""Columns whose range nobody knows: found for a part of epsilon, and refused elsewhere."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from loops import over

import skdp
from skdp import Categorical, Domain, Numeric, PrivacyLedger
from skdp.__main__ import main
from skdp.algorithms.ranges import TUNING, find_range
from skdp.domain.bins import exponent_edges
from skdp.domain.data import editable
from skdp.exceptions import DomainError

OPEN = Domain({"pay": Numeric(), "visits": Numeric(integer=True), "sex": Categorical(["F", "M"])})
EDGES = exponent_edges()


def table(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "pay": rng.lognormal(10, 1, n),
            "visits": rng.geometric(0.05, n),
            "sex": rng.choice(["F", "M"], n),
        }
    )


def cells_of(numbers):
    places = np.searchsorted(EDGES, numbers, side="right") - 1
    return np.bincount(np.clip(places, 0, len(EDGES) - 2), minlength=len(EDGES) - 1)


def test_declarations_without_a_range():
    whole = Numeric(integer=True, nullable=True, special=[0])
    assert repr(whole) == "Numeric(integer=True, nullable=True, special=[0])"
    assert whole.open and not Numeric(0, 1).open
    assert whole != Numeric(nullable=True, special=[0])
    assert pickle.loads(pickle.dumps(whole)) == whole
    domain = Domain({"n": whole, "cents": Numeric(decimals=2)})
    assert Domain.from_json(domain.to_json()) == domain
    assert domain.open == ("n", "cents")
    text = editable(OPEN.to_json())
    assert "lower" not in text and "upper" not in text and skdp.Domain.from_json(text) == OPEN
    assert domain.closed({"n": (0, 500), "cents": (1, 2)}).open == ()
    for wrong in ({"bins": 5}, {"scale": "log"}, {"step": 5}, {"decimals": 12}):
        with pytest.raises(DomainError, match="without"):
            Numeric(**wrong)
    with pytest.raises(DomainError, match="leave out both"):
        Numeric(0)


@over(
    "given",
    [
        {},
        {"integer": True},
        {"decimals": 2},
        {"decimals": -8, "special": [0]},
        {"integer": True, "special": [0, 1, 2, 999]},
        {"decimals": 0, "special": [0, -1, 1], "nullable": True},
    ],
)
def test_no_range_that_may_be_found_is_an_error(given):
    """An error after the charge would depend on a value."""
    for low in EDGES[:-1:97]:
        for high in EDGES[EDGES > low][::97]:
            closed = Numeric(**given).closed(low, high)
            assert closed.size > 0 and closed.resolved(32).size > 0
            assert np.isfinite(closed.means()).all()


def test_ranges_hold_the_bulk_and_little_more():
    """1% may be wrong: 3 of 40 have a probability of 0.8%; what holds on a column holds by far."""
    rng = np.random.default_rng(1)
    columns = {
        "skewed": rng.lognormal(10, 1, 20_000),
        "both signs": rng.standard_t(3, 20_000) * 1e4,
        "zeros": np.where(rng.random(20_000) < 0.4, 0, rng.exponential(40, 20_000)),
        "one value": np.full(20_000, 7.0),
        "tiny": rng.exponential(1e-12, 20_000),
    }
    for name, numbers in columns.items():
        counts, lost, wide = cells_of(numbers), 0, 0
        for seed in range(40):
            low, high, found = find_range(counts, EDGES, Fraction(1, 30), seed)
            lost += not found or np.mean((numbers < low) | (numbers > high)) > 0.02
            wide += max(abs(low), high) > 1000 * np.abs(numbers).max()
        assert max(lost, wide) <= 2, name


def test_a_range_without_records_is_a_guess_and_says_so():
    low, high, found = find_range(np.zeros(len(EDGES) - 1, int), EDGES, Fraction(1, 10), 0)
    assert not found and low < high
    # Zeros alone are no certain range.
    low, high, found = find_range(cells_of(np.zeros(20_000)), EDGES, Fraction(1, 10), 0)
    assert low == 0 < high and not found
    with pytest.warns(UserWarning, match="'pay' stands out of the noise"):
        skdp.MarginalSynthesizer(epsilon=0.01, domain=OPEN).fit(table(20))


def test_a_release_finds_ranges_for_a_stated_part_of_epsilon():
    rows, ledger = table(), PrivacyLedger(1)
    made = skdp.MarginalSynthesizer(epsilon=1, domain=OPEN, ledger=ledger).fit(rows)
    assert ledger.spent == 1
    assert made.privacy_loss_.parts["ranges"] == Fraction(99, 100) * TUNING.share
    assert sum(made.privacy_loss_.parts.values()) == 1
    assert made.domain_.open == () and made.synopsis_.domain == made.domain_
    assert made.domain_["visits"].integer and made.domain_["pay"].auto
    for name in ("pay", "visits"):
        assert made.quantile(name) == pytest.approx(rows[name].median(), rel=0.05)
        assert {made.domain_[name].lower, made.domain_[name].upper} <= {*EDGES.tolist()}
    drawn = made.sample(100, 0)
    assert (drawn["visits"] == drawn["visits"].round()).all()


def test_ranges_of_persons_protect_the_person():
    rows = table(4_000).assign(who=np.repeat(np.arange(400), 10))
    made = skdp.GridSynthesizer(epsilon=2, domain=OPEN, privacy_id="who", max_rows_per_id=2).fit(
        rows
    )
    assert made.privacy_loss_.parts["ranges"] == 2 * Fraction(99, 100) * TUNING.share
    assert made.domain_.open == ()


def test_who_cannot_pay_refuses_before_the_charge():
    ledger, rows = PrivacyLedger(1), table(50)
    for made in (
        skdp.DataCube(domain=OPEN, ledger=ledger),
        skdp.RangeTreeHistogram(domain=Domain({"pay": Numeric()}), ledger=ledger),
    ):
        given = rows if isinstance(made, skdp.DataCube) else rows[["pay"]]
        with pytest.raises(DomainError, match="does not pay for finding one"):
            made.fit(given)
    rule = skdp.at_most("pay", "visits")
    bound = Domain(OPEN, structure=[rule])
    with pytest.raises(DomainError, match="whose range is not known"):
        skdp.MarginalSynthesizer(domain=bound, ledger=ledger).fit(rows)
    with pytest.raises(DomainError, match="declare a guess"):
        skdp.MarginalSynthesizer(domain=OPEN).expected_error(100)
    assert ledger.spent == 0


def test_a_plan_answers_no_question_without_ranges(tmp_path, capsys):
    (tmp_path / "open.json").write_text(OPEN.to_json())
    asked = ["plan", "--domain", tmp_path / "open.json", "--epsilon", 1, "--rows", 100, "--ask"]
    assert main([*map(str, asked), "mean(pay)"]) == 2
    assert "needs the range of every number" in capsys.readouterr().err
