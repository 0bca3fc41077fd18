"""Synthesizers of boxes and grids, and questions to their releases."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from boxed import WIDE, asked, reach_of
from loops import over
from sklearn.base import clone

import skdp
from skdp.mechanisms import discrete_laplace
from skdp.release import Boxes, BoxModel, Intervals


def test_uneven_boxes_are_covered_whatever_is_in_them():
    # All records of every box at its worst place; 95% nominal on each of 400 releases.
    n, missed_above, missed_below = 400, 0, 0
    records, boxes = np.array([100, 300, 50]), Boxes([[0], [4], [8]], [[4], [8], [16]])
    inside = {0: ((np.arange(16) >= 2) & (np.arange(16) < 12)).astype(float)}
    for seed in range(n):
        counts = discrete_laplace(records, 0.2, random_state=seed)
        model = BoxModel(boxes, counts, (16,), Intervals(0.2, "any"))
        _, below, above, guarantee = reach_of(model, inside, 0.95)
        [value] = model.answer(asked([inside]))
        missed_above += value + above < 450
        missed_below += value - below > 300
        assert "any spread" in guarantee
    # Each side misses 2.5%: below 2.5% + 4 standard errors, and not never.
    assert 0 < missed_above <= 0.025 * n + 4 * math.sqrt(0.025 * n)
    assert 0 < missed_below <= 0.025 * n + 4 * math.sqrt(0.025 * n)


# --- estimators

PLANE = skdp.Domain({"x": skdp.Numeric(0, 1, bins=16), "y": skdp.Numeric(0, 1, bins=16)})
ROWS = pd.DataFrame(np.random.default_rng(0).beta(2, 5, size=(3000, 2)), columns=["x", "y"])
VARIANTS = {
    "privtree": (skdp.PrivTreeSynthesizer, {}),
    "privtree paper": (skdp.PrivTreeSynthesizer, {"calibration": "paper", "split_attributes": 1}),
    "two-step": (skdp.KDTreeSynthesizer, {}),
    "cell": (skdp.KDTreeSynthesizer, {"strategy": "cell"}),
    "hierarchical": (skdp.KDTreeSynthesizer, {"strategy": "hierarchical", "height": 5}),
    "identity": (skdp.GridSynthesizer, {"rule": "identity"}),
    "uniform": (skdp.GridSynthesizer, {"rule": "uniform"}),
    "extended": (skdp.GridSynthesizer, {"rule": "extended"}),
    "m-estimator": (skdp.GridSynthesizer, {"rule": "m-estimator"}),
    "eight": (skdp.GridSynthesizer, {"rule": 8}),
}


def made(name, **more):
    estimator, params = VARIANTS[name]
    return estimator(**{"domain": PLANE, **params, **more})


def test_intervals_cover_fresh_queries():
    # 100 fresh ranges a release at nominal 90%: at least that less three standard errors, taking
    # the answers of one release for ten.
    for name in VARIANTS:
        rng, covered = np.random.default_rng(5), []
        view = made(name, epsilon=0.5, random_state=0).fit(ROWS)
        # Ranges of whole bins, so that the truth is that of the codes.
        low = np.floor(rng.random((100, 2)) * 13) / 16
        high = np.minimum(low + np.ceil(rng.random((100, 2)) * 16) / 16, 1)
        for (a, c), (b, d) in zip(low.tolist(), high.tolist(), strict=True):
            query = {"x": (a, b - 1e-9), "y": (c, d - 1e-9)}
            answer = view.count(query, return_interval=True, level=0.9)
            inside = ROWS["x"].between(a, b, "left") & ROWS["y"].between(c, d, "left")
            covered.append(answer.lower <= inside.sum() <= answer.upper)
        assert np.mean(covered) >= 0.9 - 3 * math.sqrt(0.09 / 10), name


def test_domains_too_large_are_refused_before_the_charge(monkeypatch):
    ledger = skdp.PrivacyLedger(1)
    rows = pd.DataFrame(np.random.default_rng(0).random((5, 12)), columns=WIDE.names)
    monkeypatch.setattr(
        skdp.Domain, "encode_columns", lambda *_: pytest.fail("values were read before the refusal")
    )
    for name in ("two-step", "cell", "identity", "eight"):
        with pytest.raises(skdp.DomainError, match=r"hierarchical|extended") as refusal:
            made(name, domain=WIDE, ledger=ledger).fit(rows)
        assert "Nothing was read or spent" in str(refusal.value)
    assert ledger.spent == 0


@over(
    "kind, given",
    [
        (skdp.HDPViewSynthesizer, {}),
        (skdp.PrivTreeSynthesizer, {}),
        (skdp.KDTreeSynthesizer, {}),
        (skdp.KDTreeSynthesizer, {"strategy": "hierarchical"}),
        (skdp.GridSynthesizer, {}),
        (skdp.HDMMSynthesizer, {}),
        (skdp.PrivBayesSynthesizer, {}),
    ],
)
def test_as_published_all_of_epsilon_is_for_the_papers_steps(kind, given):
    rows = np.random.default_rng(0).uniform(0, 1, (300, 2))
    made = kind(domain=skdp.Numeric(0, 1, bins=8), calibration="paper", epsilon=0.5, **given)
    fitted = made.fit(rows)
    assert "skipped" not in fitted.privacy_loss_.parts and fitted.synopsis_.skipped is None
    assert sum(fitted.privacy_loss_.parts.values()) == Fraction(1, 2)
    with pytest.raises(ValueError, match="on_loss"):
        clone(made).set_params(on_loss="stop").fit(rows)


def test_an_interval_reaches_what_was_measured_and_the_answer():
    boxes = Boxes([[0], [4]], [[4], [8]])
    model = BoxModel(boxes, [10.5, 20], (8,), Intervals(1, "any", [5000, 21]))
    # An unlucky measurement far from the answer: the interval reaches both.
    _, below, above, _ = reach_of(model, {}, 0.9)
    assert below == 0 and above > 4990
