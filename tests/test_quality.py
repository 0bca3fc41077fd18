"""The quality report: distances, exact or with noise, and what each number may change by."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people

import skdp
from skdp import Categorical, Domain, Numeric
from skdp.exceptions import PrivacyLeakWarning
from skdp.quality import imbalance, quality_report

ROWS = people(1500)
pytestmark = pytest.mark.filterwarnings("ignore:quality_report compares")
CODED = Domain(
    {
        "a": Numeric(0, 5, integer=True),
        "b": Numeric(0, 3, integer=True),
        "c": Numeric(0, 1, integer=True),
    }
)


def coded(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.minimum(rng.poisson((2, 1, 0.4), (n, 3)), (5, 3, 1)).astype(np.int32)


def compare(records, synthetic, domain=CODED, **options):
    """A report on tables of whole numbers."""
    tables = [pd.DataFrame(rows, columns=list(domain.names)) for rows in (records, synthetic)]
    return quality_report(*tables, domain=domain, **options)


def test_an_exact_report_says_that_it_is_not_private():
    polars = pytest.importorskip("polars")
    with pytest.warns(PrivacyLeakWarning, match="not private"):
        synthetic, records = polars.from_pandas(people(1_000, 5)), ROWS.assign(person="a")
        report = quality_report(records, synthetic, domain=DOMAIN)
    assert report.privacy_loss is None and repr(report).startswith("NOT PRIVATE")
    assert list(report.columns["column"]) == list(DOMAIN.names)
    assert (report.columns["distance"] == report.columns["distance_lower"]).all()
    assert report.scores["value"][0] > 900


def test_distances_by_hand():
    domain = Domain({"a": Numeric(0, 31, integer=True), "b": Categorical(["p", "q"])})
    records = pd.DataFrame({"a": [0, 1, 31, 31], "b": [*"ppqq"]})
    synthetic = pd.DataFrame({"a": [0, 0, 31, 30], "b": [*"pqqq"]})
    # a: shares (1/4, 1/4, .., 0, 1/2) and (1/2, 0, .., 1/4, 1/4); b: (1/2, 1/2) and (1/4, 3/4).
    # In pairs the 32 codes of a are 20 groups, 0-1 the first: (0, p) 1/2 and 1/4, (0, q) 0 and 1/4,
    # (18, q) 0 and 1/4, (19, q) 1/2 and 1/4.
    for left, right, columns, pairs in (
        (records, synthetic, [0.5, 0.25], [0.5]),
        (records, records, [0, 0], [0]),
        (records[:2], records[2:], [1, 1], [1]),
    ):
        report = compare(left, right, domain)
        assert report.columns["distance"].tolist() == columns
        assert report.pairs["distance"].tolist() == pairs


def test_scores_against_brute_force():
    left, right = coded(300), coded(70, 1)
    report = compare(left, right)
    for place, order in enumerate((2, 3)):
        distances = []
        for axes in itertools.combinations(range(3), order):
            shares = [
                pd.DataFrame(codes[:, axes]).value_counts(normalize=True) for codes in (left, right)
            ]
            distances.append(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)
        expected = 1000 * (1 - np.mean(distances))
        assert report.scores["score"][place] == f"{order}-way k-marginal"
        assert report.scores["value"][place] == pytest.approx(expected)
        assert skdp.quality.k_marginal(left, right, (6, 4, 2), order) == pytest.approx(expected)


# --- with noise


def test_a_private_report_is_near_the_exact_one():
    rows, synthetic = people(20_000), people(5_000, 9)
    exact = quality_report(rows, synthetic, domain=DOMAIN)
    ledger = skdp.PrivacyLedger(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        report = quality_report(
            rows, synthetic, domain=DOMAIN, epsilon=2, level=0.9999, ledger=ledger
        )
    assert ledger.spent == 2 and report.pairs is None
    assert sum(report.privacy_loss.parts.values()) == 2
    noisy, true = report.scores, exact.scores["value"]
    assert noisy["lower"].le(true).all() and noisy["upper"].ge(true).all()
    assert noisy["upper"].sub(noisy["lower"]).lt(20).all()
    assert (report.columns["distance"] - exact.columns["distance"]).abs().max() < 0.02
    assert "epsilon = 2" in repr(pickle.loads(pickle.dumps(report)))


@pytest.mark.parametrize("axes", [(0,), (0, 1), (0, 1, 2)])
def test_sensitivities(axes):
    synthetic, records = coded(7, 1), coded(30)
    m, shape = len(synthetic), (6, 4, 2)
    before = imbalance(records, synthetic, shape, axes)
    changes = []
    for cell in itertools.product(*map(range, shape)):
        more = np.concatenate([records, np.array([cell], dtype=np.int32)])
        changes.append(abs(imbalance(more, synthetic, shape, axes) - before))
    assert max(changes) <= 2 * m
    # Reached by the first record, in a cell without synthetic rows.
    none = records[:0]
    first = imbalance(np.array([[5, 3, 1]], dtype=np.int32), synthetic, shape, axes)
    assert first - imbalance(none, synthetic, shape, axes) == 2 * m


def test_nothing_is_spent_where_there_is_nothing_to_compare():
    ledger = skdp.PrivacyLedger(1)
    with pytest.raises(ValueError, match="nothing to compare"):
        quality_report(ROWS, ROWS.assign(sex="martian"), domain=DOMAIN, epsilon=1, ledger=ledger)
    with pytest.raises(ValueError, match="level"):
        quality_report(ROWS, ROWS, domain=DOMAIN, epsilon=1, level=1.0, ledger=ledger)
    assert ledger.spent == 0
