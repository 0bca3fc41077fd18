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
        "blue diffgen hdpview laplace linear lloyd privbayes privpfc privtree quantiles selection "
        "sketch sparse_vector trees"
    ).split()
}
GUARDS = {f"tests/test_{name}.py" for name in ("common", "hostile_values", "replay", "meta_checks")}


def long_tests(times: dict[str, float]) -> list[str]:
    """Names of long tests, or of functions of which half the tests are long."""
    functions = defaultdict(list)
    for name in times:
        functions[name.partition("[")[0]].append(name)
    found = []
    for function, names in functions.items():
        file = function.partition("::")[0]
        limit = LIMIT_OF_GUARDS if file in GUARDS | PROOFS else LIMIT
        long = [name for name in names if times[name] > limit]
        most = 2 * len(long) >= len(names) and (file not in GUARDS or len(names) == 1)
        found += [function] if most else long
    return sorted(found)


def main(file: str) -> None:
    times: dict[str, float] = {}
    for line in Path(file).read_text().splitlines():
        seconds, name = line.split(" ", 1)
        times[name] = max(times.get(name, 0.0), float(seconds))
    found = long_tests(times)
    Path(__file__).with_name("long.txt").write_text("".join(f"{name}\n" for name in found))
    print(f"{len(found)} lines")


if __name__ == "__main__":
    main(*sys.argv[1:])
