"""Writes `tests/long.txt`: tests that take more than 0.3 CPU seconds, which `make test` leaves out.

    python -m pytest --times build/times        # any number of workers, each appends to the file
    python tests/long.py build/times

Where half of the tests of a function are long, the function is listed instead of them.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

LIMIT = 0.3


def long_tests(times: dict[str, float]) -> list[str]:
    """Names of long tests, or of functions of which half the tests are long."""
    functions = defaultdict(list)
    for name in times:
        functions[name.partition("[")[0]].append(name)
    found = []
    for function, names in functions.items():
        long = [name for name in names if times[name] > LIMIT]
        found += [function] if 2 * len(long) >= len(names) else long
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
