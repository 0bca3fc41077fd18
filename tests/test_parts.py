"""Ledgers of parts of a table: parallel composition, and no record of another part is read."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from estimators import CASES
from loops import over

import skdp
from skdp.audit import replay
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.synthesis.base import Synthesizer

DOMAIN = {"sex": ["F"], "age": (18, 90), "pay": (0.0, 100.0), "job": ["a", "b"]}
FRAMES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
    "lazy": lambda frame: pytest.importorskip("polars").from_pandas(frame).lazy(),
    "objects": lambda frame: frame.astype(object),
}
SMALL = {"GridSynthesizer": {"rule": 4}, "KDTreeSynthesizer": {"xi0": 9, "xi1": 9}}
KINDS = [case.estimator for case in CASES if issubclass(case.estimator, Synthesizer)]


def rows(n=60, *more):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "sex": [*rng.choice(["F", "M", "x", None], n), *(each[0] for each in more)],
            "age": [*rng.integers(18, 90, n), *(each[1] for each in more)],
            "pay": [*rng.uniform(0, 100, n), *(each[2] for each in more)],
            "job": [*rng.choice(["a", "b", "c"], n), *(each[3] for each in more)],
        }
    )


def made(kind, **params):
    women = skdp.PrivacyLedger(9).divide("sex", {"F": 9})["F"]
    small = SMALL.get(kind.__name__, {})
    return kind(**{"epsilon": 1.0, "domain": DOMAIN, "ledger": women, **small, **params})


@over(
    "kind, frame",
    [*((kind, "pandas") for kind in KINDS), *((skdp.GridSynthesizer, frame) for frame in FRAMES)],
)
def test_a_record_of_another_part_changes_nothing_at_all(kind, frame):
    there = ("F", 40, 3.0, "a")
    for added, loses in (
        (("M", 40, 3.0, "a"), False),
        (("x", 40, np.nan, "zz"), False),
        ((None, 40, 3.0, "a"), False),
        (there, True),
    ):
        pair = [FRAMES[frame](table) for table in (rows(60), rows(60, added))]
        result = replay(made(kind), *pair, n=1, random_state=0)
        assert result.passed and (result.loss > 0) == loses, (added, str(result))


def test_parts_cost_the_largest_cap_whatever_they_spend():
    ledger = skdp.PrivacyLedger(1)
    parts = ledger.divide("sex", {"F": 0.5, ("M", "x"): 0.25})
    assert ledger.spent == Fraction(1, 2) and list(parts) == ["F", ("M", "x")]
    women, others = parts.values()
    table = rows()
    for epsilon in (0.3, 0.2):
        skdp.GridSynthesizer(epsilon=epsilon, domain=DOMAIN, rule=4, ledger=women).fit(table)
    assert women.remaining == 0 and ledger.spent == Fraction(1, 2) and others.spent == 0
    with pytest.raises(BudgetExceededError):
        skdp.GridSynthesizer(epsilon=0.1, domain=DOMAIN, rule=4, ledger=women).fit(table)
    # A part of a part's categories is as well; another handle spends the same.
    domain = {**DOMAIN, "sex": ["x"]}
    grid = skdp.GridSynthesizer(epsilon=0.2, domain=domain, rule=4, ledger=others.noted("a"))
    assert grid.fit(table).synopsis_.total < 60 and others.remaining == Fraction(1, 20)
    with pytest.raises(BudgetExceededError):
        ledger.divide("age", {30: 0.6})


@over(
    "changes",
    [
        {"domain": {**DOMAIN, "sex": ["F", "M"]}},
        {"domain": {name: each for name, each in DOMAIN.items() if name != "sex"}},
        {"domain": {**DOMAIN, "sex": skdp.Categorical(["F"], nullable=True)}},
        {"domain": {**DOMAIN, "sex": skdp.Categorical(["F"], other="F")}},
        {"privacy_id": "who", "max_rows_per_id": 2},
    ],
)
def test_what_may_depend_on_other_records_is_refused(changes):
    table = rows().assign(who=range(60))
    if "privacy_id" not in changes:
        table = table[list(changes["domain"])]
    estimator = made(skdp.GridSynthesizer, **changes)
    with pytest.raises(LedgerError, match="single records of sex = 'F'"):
        estimator.fit(table)
    assert estimator.ledger.spent == 0


def test_everything_else_refuses_ledgers_of_parts():
    part = skdp.PrivacyLedger(9).divide("sex", {"F": 9})["F"]
    labelled = {"domain": DOMAIN, "target": "job", "ledger": part}
    for release in (
        lambda: skdp.PrivateDecisionTreeClassifier(**labelled).fit(rows()),
        lambda: skdp.DataCube(domain=DOMAIN, ledger=part).fit(rows()),
        lambda: skdp.most_frequent_items([["a"]], 1, ["a"], max_items=1, ledger=part),
        lambda: part.charge("by hand", 1),
    ):
        with pytest.raises(LedgerError, match="single records"):
            release()
    assert part.spent == 0
