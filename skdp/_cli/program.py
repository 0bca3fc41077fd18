"""Run one command; errors become messages on standard error, and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..exceptions import BudgetExceededError, LedgerError

__all__ = ["Withheld", "main"]


class Withheld(Exception):
    """An error after the data were read; only its type is shown."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        None takes those of the process.
    """
    from .parser import parser

    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BudgetExceededError as error:
        return _failed(3, f"Over budget: {error}")
    except BrokenPipeError:
        # Whoever reads the output has seen enough, as in `... | head`. Python flushes once more
        # when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        known = error.strerror is not None and error.filename is not None
        return _failed(
            2, f"Refused: {error.filename}: {error.strerror}." if known else f"Refused: {error}"
        )
    except (ValueError, TypeError, LedgerError) as error:
        return _failed(2, f"Refused: {error}")
    except Withheld as error:
        return _failed(
            4,
            f"Failed ({error}). The message is withheld, because it may quote values of the data. "
            "The charge to the ledger stands.",
        )
    except KeyboardInterrupt:
        return _failed(130, "Interrupted. Charges already made to a ledger stand.")


def _failed(code: int, message: str) -> int:
    print(message, file=sys.stderr)
    return code
