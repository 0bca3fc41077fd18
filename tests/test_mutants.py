"""The mutation ring knows every call of a mechanism. Running it takes an hour: tests/mutants.py."""

import ast
from pathlib import Path

from loops import over
from mutants import (
    KINDS,
    MECHANISMS,
    NUMBERS,
    ROOT,
    WRITTEN,
    all_mutants,
    branches_of,
    killer_of,
    mutated,
    nearest,
    rewritten,
)
from replays import BRANCHES

from skdp import mechanisms

MUTANTS = all_mutants()


def test_every_mechanism_that_estimators_call_is_broken():
    # Those with a state of their own, that no estimator calls, or that draw nothing are covered by
    # their exact tests.
    alone = {
        "SparseVector",
        "geometric",
        "randomised_response",
        "response_counts",
        "least_threshold",
        "sparse_counts",
        "sparse_vector_top_k",
    }
    numbers = ("variance", "quantile", "alpha", "rate")
    drawing = {name for name in mechanisms.__all__ if not name.endswith(numbers)}
    # Quantiles call the inner step of `select_on_line`.
    assert {*drawing - alone, "select_on_pieces"} == MECHANISMS


def test_every_call_is_reached_by_a_branch_and_every_file_has_tests():
    calls = [mutant for mutant in MUTANTS if mutant.kind in KINDS]
    names = {branch.name for branch in BRANCHES}
    unreached = {mutant.function for mutant in calls if branches_of(mutant) == "="}
    # What is reached only by the tests of its module.
    assert unreached <= set(), unreached
    assert all({*branches_of(mutant)[1:].split(" or ")} <= names for mutant in calls)
    without = {mutant.file for mutant in MUTANTS if not nearest(mutant.file)}
    assert without <= {"skdp/base/estimator.py"}


def test_numbers_of_proofs_are_broken():
    named = {(m.file.removeprefix("skdp/"), m.function) for m in MUTANTS if m.kind in NUMBERS}
    assert {
        ("algorithms/additive.py", "Logit.__init__"),
        ("algorithms/privbayes.py", "Entropy.__init__"),
        ("algorithms/privpfc.py", "Quality.score_range"),
        ("algorithms/trees.py", "Quality.score_range"),
        ("model_selection/_cross_val.py", "private_cross_val_score"),
    } <= named


@over("kind", [*KINDS, *NUMBERS])
def test_mutants_are_programs_that_differ(kind):
    chosen = [mutant for mutant in MUTANTS if mutant.kind == kind]
    assert len(chosen) > (20 if kind in KINDS else 1)
    for mutant in chosen:
        source = Path(ROOT, mutant.file).read_text(encoding="utf-8")
        broken = mutated(source, mutant)
        ast.parse(broken)
        assert not broken.startswith(source)


@over("written", WRITTEN)
def test_mutants_written_by_hand_fit_the_code_and_name_what_kills_them(written):
    source = Path(ROOT, "skdp", written.file).read_text(encoding="utf-8")
    broken = rewritten(written, source)
    assert broken != source
    ast.parse(broken)
    file, _, test = killer_of(written).partition("::")
    assert f"\ndef {test.partition('[')[0]}(" in Path(ROOT, file).read_text(encoding="utf-8")
    assert "::" in written.killer or written.killer in {each.name for each in BRANCHES}
    # What touches privacy is noticed by a replay, by the checks of all estimators, or by the tests
    # of the ledger or of persons: not by a figure that has changed.
    if written.private:
        assert Path(file).stem in {f"test_{name}" for name in GUARDS}


# Files whose tests are replays, or checks of all estimators, of the ledger or of persons.
GUARDS = {
    *("replay", "any_tables", "common", "accounting", "skipped", "persons", "counts"),
    "readers_agree",
}


def test_mutants_written_by_hand_are_apart_and_mostly_break_the_guarantee():
    assert len({(each.file, each.old, each.new) for each in WRITTEN}) == len(WRITTEN)
    assert 2 * sum(each.private for each in WRITTEN) >= len(WRITTEN)
