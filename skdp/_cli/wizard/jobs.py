"""Work that takes longer than an answer to the browser."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...exceptions import LedgerError
from ..outputs import Withheld


class Job:
    """Work in a thread of its own, which ends with the process: a release that is paid for is kept.

    Parameters
    ----------
    title : str
        What is done, for the page that waits.
    work : callable (say) -> object
        Its argument is a function that shows a line; no line may depend on the records.
    then : callable (result) -> str
        What becomes of the result; gives the step to show. It is called by who waits.
    """

    def __init__(self, title: str, work: Callable[[Any], Any], then: Callable[[Any], str]) -> None:
        self.title, self.then = title, then
        self.lines: list[str] = []
        self.result: Any = None
        # A message of the library; of other errors the type alone, as they may quote values.
        self.error: str | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._work(self.lines.append)
        except (ValueError, TypeError, LedgerError, ImportError, OSError, Withheld) as error:
            self.error = str(error)
        except Exception as error:
            self.error = str(Withheld(error, "Nothing was charged."))

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether the work has ended, within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


def run_command(arguments: Sequence[str], log: Path, say: Callable[[str], None]) -> int:
    """Run a command of skdp in a process of its own, show what it says, and return its exit code.

    The process is the one that the command line would be, so that a release is charged, measured,
    interrupted, kept and written exactly as there. It writes to a file, which a killed wizard
    leaves, and goes on without it.
    """
    with open(log, "ab") as written, open(log, encoding="utf-8", errors="replace") as shown:
        shown.seek(0, os.SEEK_END)
        child = subprocess.Popen(
            # Not the folder of the records: a file there could be named as a library.
            [sys.executable, "-P", "-m", "skdp", *arguments],
            env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
        )
        begun = ""
        while True:
            ended = child.poll() is not None
            *lines, begun = (begun + shown.read()).split("\n")
            for line in lines:
                say(line)
            if ended:
                return child.returncode
            time.sleep(0.1)
