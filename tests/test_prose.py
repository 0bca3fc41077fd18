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


def test_code_is_not_prose_and_docstrings_are(tmp_path):
    page, module = tmp_path / "page.rst", tmp_path / "module.py"
    code = ".. code-block:: python\n\n    the the\n\n>>> the the\n.. note:: read this\n"
    page.write_text("Words ``the the``::\n\n    the the code\n\nMore words.\n\n" + code)
    assert [line for line in prose.of_text(page) if line.strip()] == ["Words #", "More words."]
    module.write_text(
        'def f():\n    """Words.\n\n    >>> f()\n    the the\n\n    End.\n    """\n    x = 1\n'
    )
    assert [line.strip() for line in prose.of_code(module) if line.strip()] == ["Words.", "End."]
