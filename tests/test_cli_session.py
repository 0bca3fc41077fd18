"""The shell session of the guide runs as it is printed."""

import contextlib
import inspect
import io
import re
import shlex
from pathlib import Path
from typing import NamedTuple

from skdp.__main__ import main

PAGE = Path(__file__).resolve().parent.parent / "docs" / "user_guide" / "command_line.rst"
BLOCK = re.compile(r"^\.\. code-block:: console\n\n((?:(?:   .*)?\n)+)", re.MULTILINE)
# Noise and synthetic rows differ each time: everything but numbers must be as printed.
NUMBER = re.compile(r"-?(\d{1,3}(,\d{3})+(?!\d)|\d+)(\.\d*)?(e[+-]?\d+)?")


class Step(NamedTuple):
    command: str
    output: str


def session(text):
    """Commands of a page, each with the output that is printed below it."""
    steps = []
    for block in BLOCK.findall(text):
        lines = [line[3:] for line in block.splitlines()]
        for line in lines:
            if line.startswith("$ "):
                steps.append(Step(line[2:], ""))
            elif steps[-1].command.endswith("\\") and not steps[-1].output:
                steps[-1] = Step(steps[-1].command[:-1] + line.strip(), "")
            else:
                steps[-1] = Step(steps[-1].command, steps[-1].output + line + "\n")
    return steps


class Shell:
    """Runs the commands of a session in one process."""

    def __init__(self):
        self.code = 0

    def run(self, step):
        """Output of a command, and of the errors with it."""
        words = shlex.split(step.command)
        if words[0] == "cat":
            # The page is where the file is kept.
            Path(words[1]).write_text(step.output.strip("\n") + "\n")
            return step.output
        if words[0] == "head":
            return "".join(Path(words[-1]).open().readlines()[: int(words[2])])
        if words == ["echo", "$?"]:
            return f"{self.code}\n"
        assert words[0] == "skdp", step.command
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            self.code = main(words[1:])
        return shown.getvalue()


def alike(want, got):
    """Whether outputs agree but for numbers and spaces; ``...`` stands for anything."""
    want, got = ("".join(NUMBER.sub("#", text).split()) for text in (want, got))
    pattern = ".*".join(map(re.escape, want.split("...")))
    return re.fullmatch(pattern, got, re.DOTALL) is not None


def test_the_session_of_the_guide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page, shell = PAGE.read_text(), Shell()
    # The program of the page that makes the file.
    block = re.search(r"^\.\. code-block:: python\n\n(.*?)^\S", page, re.MULTILINE | re.DOTALL)
    exec(compile(inspect.cleandoc(block[1]), PAGE.name, "exec"), {})
    for step in session(page):
        got = shell.run(step)
        assert alike(step.output, got), f"$ {step.command}\n{got}"


def test_outputs_are_compared_but_for_numbers():
    assert alike("a 1.5 ... b\n", "a  -2e-7 c b") and not alike("a 1", "b 1")
    page = ".. code-block:: console\n\n   $ a \\\n       b\n   x\n\n   y\n   $ c\n\nText.\n"
    assert session(page) == [Step("a b", "x\n\ny\n"), Step("c", "\n")]
