"""Which texts `make prose` reads, and what its own rules find."""

import importlib.util
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / ".ci" / "prose.py"
spec = importlib.util.spec_from_file_location("prose", SOURCE)
prose = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prose)


def found(lines):
    problems = prose.found_by_rules({prose.ROOT / "page.rst": lines})
    return [problem.split(": ")[1] for problem in problems]


def test_rules_find_mistakes_and_leave_good_text_alone():
    assert found(["It is at .05 of the the error , a error of an table."]) == [
        "write the zero", "a word twice", "an, not a", "a, not an",
        "a space before a comma, or a missing stop",
    ]  # fmt: skip
    assert not found(["It is at 0.05, an error of a one-way table: version 1.05, `.5`."[:50]])
