"""The mutation ring knows every call of a mechanism. Running it takes an hour: tests/mutants.py."""

import ast
from pathlib import Path

from loops import over
from mutants import (
    KINDS,
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

MUTANTS = all_mutants()


def test_every_call_is_reached_by_a_branch_and_every_file_has_tests():
    names = {branch.name for branch in BRANCHES}
    unreached = {mutant.function for mutant in MUTANTS if branches_of(mutant) == "="}
    # What is reached only by the tests of its module.
    assert unreached <= set(), unreached
    assert all({*branches_of(mutant)[1:].split(" or ")} <= names for mutant in MUTANTS)
    without = {mutant.file for mutant in MUTANTS if not nearest(mutant.file)}
    assert without <= {"skdp/base/estimator.py"}


@over("kind", KINDS)
def test_mutants_are_programs_that_differ(kind):
    chosen = [mutant for mutant in MUTANTS if mutant.kind == kind]
    assert len(chosen) > 20
    for mutant in chosen:
        source = Path(ROOT, mutant.file).read_text(encoding="utf-8")
        broken = mutated(source, mutant)
        ast.parse(broken)
        assert not broken.startswith(source)


@over("written", WRITTEN)
def test_mutants_written_by_hand_fit_the_code_and_name_what_kills_them(written):
    source = Path(ROOT, written.file).read_text(encoding="utf-8")
    broken = rewritten(source, written)
    assert broken != source
    ast.parse(broken)
    file, _, test = killer_of(written).partition("::")
    assert f"\ndef {test.partition('[')[0]}(" in Path(ROOT, file).read_text(encoding="utf-8")
    assert "::" in written.killer or written.killer in {each.name for each in BRANCHES}
    # What touches privacy is noticed by a replay, by the checks of all estimators, by the hostile
    # pairs of proofs, or by tests of the ledger or of persons: not by a figure that has changed.
    if written.private:
        assert Path(file).stem in {f"test_{name}" for name in GUARDS}


# Files whose tests are replays, checks of all estimators, hostile pairs of proofs, or of the ledger
# or persons.
GUARDS = {
    *("replay", "any_tables", "common", "accounting", "skipped", "persons", "counts"),
    *("readers_agree", "proofs"),
}


def test_mutants_written_by_hand_are_apart_and_mostly_break_the_guarantee():
    assert len({(each.file, each.old, each.new) for each in WRITTEN}) == len(WRITTEN)
    assert 2 * sum(each.private for each in WRITTEN) >= len(WRITTEN)
