"""Writes `tests/long.txt`: tests that take more than 0.3 CPU seconds, which `make test` leaves out.

    python -m pytest --times build/times        # any number of workers, each appends to the file
    python tests/long.py build/times

Names leave out folders below `tests`. Where half of the tests of a function are long, the function
is listed instead of them. Guards of privacy that go over every estimator in one test may take
longer, and are listed one by one: `make test` is to run what it can of them.
"""

import sys
from collections import defaultdict
from pathlib import Path

LIMIT, LIMIT_OF_GUARDS = 0.3, 3.0
# Proofs of mechanisms and kernels: many cases in a test.
PROOFS = {
    f"tests/test_{name}.py"
    for name in (
        "blue diffgen genetic hdpview laplace linear lloyd measure pairs "
        "privbayes privpfc privtree projection quantiles selection sketch sparse_counts "
        "sparse_vector trees"
    ).split()
}
GUARDS = {
    f"tests/{file}.py::test_{name}"
    for file, names in {
        "test_common": [
            "bad_epsilon_is_refused",
            "clones_share_the_ledger_and_each_fit_is_charged",
            "copies_in_memory_keep_the_ledger",
            "each_cell_of_an_empty_table_is_noised",
            "equal_seeds_give_equal_releases_and_others_differ",
            "fitted_attributes_are_those_documented",
            "fitted_estimator_pickles_with_the_name_of_its_ledger_only",
            "over_budget_raises_before_a_value_is_read",
            "parts_sum_to_epsilon_and_the_ledger_is_charged",
            "pickle_and_repr_hold_no_raw_value_and_no_seed",
            "the_cost_does_not_depend_on_the_data",
            "the_types_of_the_records_leave_no_trace",
            "values_never_raise",
        ],
        "test_hostile_values": ["labels_are_read_entry_by_entry", "no_object_raises_in_a_fit"],
        "test_replay": ["every_branch_is_certified"],
        "test_meta_checks": ["what_comes_out_of_a_pickle_does_not_fit_for_free"],
    }.items()
    for name in names
}


def long_tests(times: dict[str, float]) -> list[str]:
    """Names of long tests, or of functions of which half the tests are long."""
    functions = defaultdict(list)
    for name in times:
        functions[name.partition("[")[0]].append(name)
    found = []
    for function, names in functions.items():
        proof = function in GUARDS or function.partition("::")[0] in PROOFS
        limit = LIMIT_OF_GUARDS if proof else LIMIT
        long = [name for name in names if times[name] > limit]
        most = 2 * len(long) >= len(names) and (function not in GUARDS or len(names) == 1)
        found += [function] if most else long
    return sorted(found)


def main(file: str) -> None:
    times: dict[str, float] = {}
    for line in Path(file).read_text().splitlines():
        seconds, name = line.split(" ", 1)
        times[name] = max(times.get(name, 0.0), float(seconds))
    found = long_tests(times)
    Path(__file__).with_name("long.txt").write_text("".join(f"{name}\n" for name in found))
    inside = {*found}
    left = sum(
        seconds
        for name, seconds in times.items()
        if inside.isdisjoint((name, name.partition("[")[0]))
    )
    print(f"{len(found)} lines; {left:.0f} of {sum(times.values()):.0f} CPU seconds are left.")


if __name__ == "__main__":
    main(*sys.argv[1:])
