"""Attacks on releases: what the bounds prove, copies are caught, private releases are not."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from estimators import DOMAIN, people
from scipy import stats

import skdp
from skdp import Domain, GridSynthesizer, MarginalSynthesizer, Numeric
from skdp.attacks import attack_report, canary_audit
from skdp.attacks._attacks import (
    Guesses,
    Target,
    confident_guesses,
    epsilon_lower_bound,
    nearest,
    occurrences,
    rows_as_numbers,
    some_rows,
)
from skdp.attacks._report import allowed_hits, allowed_right
from skdp.exceptions import PrivacyLeakWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore:attack_report reads"),
    pytest.mark.filterwarnings("ignore:canary_audit with X"),
    pytest.mark.filterwarnings("ignore:Domain.infer reads"),
]
FOUR = Domain({name: Numeric(0, 9, integer=True) for name in "abcd"})
PLANE = Domain({name: Numeric(0, 39, integer=True) for name in "ab"})
ROWS = people(1600)
COIN = np.random.default_rng(1).random(len(ROWS)) < 0.5
IN, OUT = ROWS[COIN].reset_index(drop=True), ROWS[~COIN].reset_index(drop=True)


# --- bounds


@pytest.mark.parametrize("right, made", [(0, 0), (0, 9), (50, 100), (73, 100), (100, 100)])
def test_the_bound_is_that_of_the_binomial_law(right, made):
    bound = epsilon_lower_bound(right, made, 0.01)
    if right <= made / 2:
        assert bound == 0
        return
    # At the bound, so many right guesses have a probability of exactly alpha.
    chance = stats.binom.sf(right - 1, made, allowed_right(bound))
    assert chance == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_bound_holds_for_randomized_response_and_is_near(epsilon):
    rng = np.random.default_rng(0)
    coins = rng.random((2_000, 1_000)) < 0.5
    told = coins == (rng.random(coins.shape) < allowed_right(epsilon))
    bounds = np.array([epsilon_lower_bound(int(n), 1_000, 0.05) for n in (told == coins).sum(1)])
    # More than 128 of 2,000 have a probability of 0.3% if each is wrong with 5%.
    assert (bounds > epsilon).sum() <= 128
    assert np.median(bounds) > 0.8 * epsilon - 0.05


def test_what_is_allowed():
    assert allowed_right(0) == 0.5 and allowed_right(1e4) == 1
    assert allowed_hits(0, 0.3) == pytest.approx(0.3)
    assert allowed_hits(1, 0.1) == pytest.approx(math.e * 0.1)
    # Near 1 the misses bound it.
    assert allowed_hits(1, 0.9) == pytest.approx(1 - 0.1 / math.e)
    assert allowed_hits(1e4, 0.5) == 1 and allowed_hits(2, 0.0) == 0


def test_guesses():
    member = np.array([True, True, False, False, True])
    guesses = Guesses(np.array([1, -1, -1, 1, 0]), member)
    assert (guesses.n, guesses.right) == (4, 2)
    assert guesses.share_of(True) == 1 / 3 and guesses.share_of(False) == 1 / 2
    rng = np.random.default_rng(0)
    made = confident_guesses(np.array([3.0, 1.0, 2.0, 9.0, 5.0]), 0.8, rng)
    assert made.tolist() == [0, -1, -1, 1, 1]
    ties = sum(confident_guesses(np.zeros(4), 0.5, rng) for _ in range(400))
    assert (abs(ties) < 90).all()


# --- parts


def test_counts_and_numbers_of_rows():
    rows = np.array([[0, 1], [0, 1], [2, 2]], dtype=np.int32)
    asked = np.array([[2, 2], [0, 1], [1, 0]], dtype=np.int32)
    assert occurrences(asked, rows)[0].tolist() == [1, 1, 1]
    assert occurrences(asked, rows)[1].tolist() == [1, 2, 0]
    here, there = rows_as_numbers(rows, asked)
    assert here[0] == here[1] == there[1] and here[2] == there[0] and len({*here, *there}) == 3


def test_counts_of_a_release_are_those_of_its_model():
    view = GridSynthesizer(50.0, domain=PLANE, rule="identity")
    codes = np.array([[3, 4]] * 30 + [[9, 9]] * 5, dtype=np.int32)
    view.fit(PLANE.decode(codes, 0))
    target = Target(view, PLANE, 10, np.random.default_rng(0))
    counts, total = target.counts(np.array([[3, 4], [9, 9], [0, 0]], dtype=np.int32))
    assert np.abs(counts - [30, 5, 0]).max() < 2 and abs(total - 35) < 30


def test_distances_by_hand():
    domain = Domain(
        {"x": Numeric(0, 4, integer=True, nullable=True), "s": skdp.Categorical(["a", "b", "c"])}
    )
    codes = np.array([[0, 0], [5, 2]], dtype=np.int32)
    rows = np.array([[2, 0], [4, 1]], dtype=np.int32)
    # x: 2 of 4 steps; s equal. A missing value is 1 from all others.
    assert nearest(domain, codes, rows).tolist() == [0.5, 2.0]


def test_neighbours_of_many_rows_are_drawn():
    rows = np.arange(60_000, dtype=np.int32).reshape(-1, 2)
    rng = np.random.default_rng(0)
    assert np.array_equal(some_rows(rows[:50], rng), rows[:50])
    drawn = some_rows(rows, rng)
    assert drawn.shape == (20_000, 2) and len(np.unique(drawn[:, 0])) == 20_000


# --- reports


@pytest.fixture(scope="module")
def reports():
    view = MarginalSynthesizer(1.0, domain=DOMAIN).fit(IN)
    return {
        "view": attack_report(view, IN, OUT, random_state=0, max_rows=300),
        "copy": attack_report(IN, IN, OUT, domain=DOMAIN, epsilon=1, random_state=0, max_rows=300),
    }


def test_a_private_release_passes_and_a_copy_is_convicted():
    # Numbers with many values: copies can be told.
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 10, (1_600, 4)), columns=list("abcd"))
    inside, outside = wide[COIN], wide[~COIN]
    view = MarginalSynthesizer(1.0, domain=FOUR).fit(inside)
    report = attack_report(view, inside, outside, random_state=0, max_rows=300)
    assert report.passed and report.epsilon == 1 and report.copy_caught
    assert (report.attacks["epsilon_lower_bound"] <= 1).all()
    assert "would be caught" in report.verdict
    copied = attack_report(
        inside, inside, outside, domain=FOUR, epsilon=1, random_state=0, max_rows=300
    )
    assert not copied.passed and "likelihood ratio" in copied.convicted
    assert "CONVICTED" in copied.verdict and copied.epsilon_lower_bound > 1
    # A copy is attacked as the copy beside it.
    table = copied.attacks.set_index("attack")
    assert table.loc["exact match", "success"] == table.loc["exact match", "copy"] > 0.5


def test_the_table(reports):
    report = reports["view"]
    table = report.attacks.set_index("attack")
    assert list(table.index) == [
        "likelihood ratio",
        "nearest neighbours",
        "exact match",
        "singling out",
        *(f"inference of {name}" for name in DOMAIN.names),
    ]
    assert table.loc["likelihood ratio", "allowed"] == pytest.approx(allowed_right(1))
    assert (table["right"] <= table["guesses"]).all()
    assert report.n_members + report.n_others <= 600
    assert (table[["success", "baseline", "allowed", "copy"]].apply(lambda c: c.between(0, 1))).all(
        axis=None
    )
    curve = report.curves["likelihood ratio"]
    assert curve["guesses"].is_monotonic_increasing and curve["release"].between(0, 1).all()


def test_it_is_labelled_and_refuses_to_be_published(reports):
    report = reports["view"]
    assert repr(report).startswith("NOT PRIVATE") and "NOT PRIVATE" in report._repr_html_()
    with pytest.raises(TypeError, match="refuses"):
        pickle.dumps(report)
    with pytest.warns(PrivacyLeakWarning, match="not private"):
        attack_report(IN, IN, OUT, domain=DOMAIN, max_rows=20, secrets=[])


def test_without_a_claim_and_for_any_library():
    polars = pytest.importorskip("polars")
    synthetic = polars.from_pandas(people(300, 4))
    report = attack_report(synthetic, IN, polars.from_pandas(OUT), max_rows=60, secrets=["sex"])
    assert report.epsilon is None and report.passed and "no claim" in report.verdict
    assert report.attacks["allowed"].isna().all()
    weak = attack_report(synthetic, IN[:30], OUT[:30], epsilon=9, max_rows=60, secrets=[])
    assert not weak.copy_caught and "take more rows" in weak.verdict


def test_releases_of_files_and_estimators_are_attacked_alike(tmp_path):
    view = MarginalSynthesizer(1.0, domain=DOMAIN).fit(IN)
    view.synopsis_.save(tmp_path / "release")
    loaded = skdp.Synopsis.load(tmp_path / "release")
    both = [attack_report(one, IN, OUT, max_rows=50, random_state=2) for one in (view, loaded)]
    pd.testing.assert_frame_equal(both[0].attacks, both[1].attacks)


def test_tables_of_different_sizes_have_even_odds():
    few = attack_report(IN, IN, OUT[:120], domain=DOMAIN, epsilon=1, secrets=[], random_state=0)
    assert abs(few.n_members - few.n_others) < 5 * math.sqrt(few.n_members + few.n_others)


def test_wrong_parameters_are_refused():
    given = {"domain": DOMAIN, "epsilon": 1}
    for wrong in (
        {"max_rows": 3},
        {"guessed": 0.0},
        {"confidence": 1.0},
        {"secrets": ["nobody"]},
        {"epsilon": -1},
    ):
        with pytest.raises((ValueError, KeyError)):
            attack_report(IN, IN, OUT, **{**given, **wrong})
    with pytest.raises(ValueError, match="nobody to attack"):
        attack_report(IN, IN, OUT[:0], **given)
    with pytest.raises(ValueError, match="nothing to attack"):
        attack_report(IN.assign(sex="martian"), IN, OUT, **given)
    with pytest.raises(skdp.DomainError):
        attack_report(IN, IN.drop(columns="sex"), OUT, **given)
    view = MarginalSynthesizer(1.0, domain=DOMAIN).fit(IN)
    with pytest.raises(ValueError, match="differs"):
        attack_report(view, IN[["sex"]], OUT[["sex"]], domain=DOMAIN.select(["sex"]))


def test_rows_outside_of_the_domain_are_skipped():
    strange = IN.assign(sex=["martian"] * 100 + list(IN["sex"][100:]))
    report = attack_report(strange, strange, OUT, domain=DOMAIN, max_rows=2000, secrets=["sex"])
    assert report.n_members < len(IN) - 100


def test_picture(reports):
    matplotlib = pytest.importorskip("matplotlib")
    figure = reports["view"].plot()
    assert all("NOT PRIVATE" in ax.get_title() for ax in figure.axes)
    assert len(figure.axes[0].get_yticks()) == len(reports["view"].attacks)
    matplotlib.pyplot.close("all")


# --- canaries


def test_canaries_convict_a_copy_and_pass_pair_views():
    view = MarginalSynthesizer(1.0, domain=FOUR)
    audit = canary_audit(view, random_state=0)
    assert audit.passed and audit.epsilon_lower_bound < 1 < audit.copy_epsilon_lower_bound
    assert audit.publishable and pickle.loads(pickle.dumps(audit)).verdict == audit.verdict
    copied = canary_audit(lambda rows: rows, domain=FOUR, epsilon=1, random_state=0)
    assert not copied.passed and "CONVICTED" in repr(copied) and copied.n_right == copied.n_guesses


def test_noise_that_is_too_small_is_convicted_and_honest_noise_is_not():
    def broken(rows):
        return GridSynthesizer(8.0, domain=PLANE, rule="identity").fit(rows)

    found = canary_audit(broken, domain=PLANE, epsilon=1, guessed=0.1, random_state=0)
    assert not found.passed and found.name == "broken"
    honest = GridSynthesizer(1.0, domain=PLANE, rule="identity")
    audit = canary_audit(honest, n_runs=30, guessed=0.5, random_state=0)
    # Not for want of trying: for counts with noise in separate cells the attack is the best one.
    assert audit.passed and audit.epsilon_lower_bound > 0.85
    assert audit.n_canaries == 30_000 and audit.n_guesses == 15_000


def test_records_make_it_private_and_cost_nothing():
    ledger = skdp.PrivacyLedger(1)
    view = MarginalSynthesizer(1.0, domain=DOMAIN, ledger=ledger, random_state=3)
    with pytest.warns(PrivacyLeakWarning, match="outside of the ledger"):
        audit = canary_audit(view, IN[:300], n_canaries=100, n_runs=2, random_state=0)
    assert ledger.spent == 0 and not hasattr(view, "synopsis_")
    assert not audit.publishable and repr(audit).startswith("NOT PRIVATE")
    with pytest.raises(TypeError, match="refuses"):
        pickle.dumps(audit)


def test_canaries_of_nearest_neighbours():
    audit = canary_audit(
        lambda rows: rows, domain=FOUR, epsilon=1, attack="nearest neighbours", random_state=0
    )
    assert not audit.passed


def test_canaries_keep_the_structure():
    from replays import RULED

    drawn = []

    def synthesizer(rows):
        drawn.append(rows)
        return rows

    audit = canary_audit(synthesizer, domain=RULED, epsilon=1, n_canaries=20, random_state=0)
    assert audit.n_canaries == 20 and (RULED.encode(drawn[0]) >= 0).all()


def test_wrong_canary_audits_are_refused():
    view = MarginalSynthesizer(1.0, domain=DOMAIN)
    for params, error in [
        ({"n_canaries": 3}, ValueError),
        ({"n_runs": 0}, ValueError),
        ({"n_canaries": 1_000}, ValueError),
        ({"attack": "guess"}, ValueError),
        ({"confidence": 0}, ValueError),
        ({"guessed": 2}, ValueError),
    ]:
        with pytest.raises(error):
            canary_audit(view, **params)
    with pytest.raises(ValueError, match="epsilon= is required"):
        canary_audit(lambda rows: rows, domain=DOMAIN)
    with pytest.raises(ValueError, match="domain= is required"):
        canary_audit(lambda rows: rows, epsilon=1)
    with pytest.raises(TypeError, match="needs an estimator or a function"):
        canary_audit(3, domain=DOMAIN, epsilon=1)
    with pytest.raises(TypeError, match="release a synopsis"):
        canary_audit(skdp.DataCube(1, domain=FOUR), n_canaries=20)
    persons = MarginalSynthesizer(1.0, domain=DOMAIN, unit="who", max_contributions=1)
    with pytest.raises(ValueError, match="different canaries"):
        canary_audit(lambda rows: rows, domain=DOMAIN.select(["sex"]), epsilon=1)
    with pytest.raises(ValueError, match="person"):
        canary_audit(persons)


@pytest.mark.slow
def test_pair_views_at_epsilon_one_among_the_records_of_nist():
    from benchmarks._fidelity_tables import load

    nist = load("nist")
    view = MarginalSynthesizer(1.0, domain=nist.domain)
    assert canary_audit(view, nist.rows, n_runs=3, random_state=0).epsilon_lower_bound < 1
    copied = canary_audit(
        lambda rows: rows, nist.rows, domain=nist.domain, epsilon=1, random_state=0
    )
    assert not copied.passed
