"""Command line: ``python -m skdp``, or ``skdp``; its commands are in ``skdp.app``.

Errors become messages on standard error, and exit codes.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from .exceptions import BudgetExceededError, LedgerError, RecordsLostError

# What messages say to those who write Python, and to those who write in a shell.
_IN_A_SHELL = {
    "Domain.check(rows)": "`skdp domain check`",
    " With on_loss='stop' a release that loses more than a tenth of the records stops after the "
    "first part of epsilon.": "",
    " If each person has at most m records, a release that costs a record epsilon costs a person "
    "m * epsilon: charge(name, PrivacyLoss(m * epsilon, max_rows_per_id=m)).": "",
    "on_loss='warn'": "--accept-loss",
    "fit again with epsilon=": "release again with --epsilon ",
    "nullable=True": "nullable: true",
    "or other=": "or other:",
    "leave epsilon out": "leave --budget out",
    "PrivacyLedger(epsilon, path=...)": "release with --budget EPSILON",
    "max_rows_per_id=": "--max-rows-per-id=",
    "privacy_id=": "--privacy-id=",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        None takes those of the process.
    """
    from .app.cli import parser

    options = parser().parse_args(arguments)
    # Help and mistakes in typing are answered without pandas, which this imports.
    from .app.release import Withheld

    usual = warnings.formatwarning
    # Warnings are one line each, without the place in the code.
    warnings.formatwarning = lambda message, *place, **more: f"Warning: {_in_a_shell(message)}\n"
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BudgetExceededError as error:
        return _failed(3, f"Over budget: {error}")
    except RecordsLostError as error:
        # From released counts and the declaration alone.
        return _failed(5, f"Stopped: {error}")
    except BrokenPipeError:
        # Whoever reads the output has seen enough, as in `... | head`. Python flushes once more
        # when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        known = error.strerror is not None and error.filename is not None
        return _failed(2, f"Refused: {f'{error.filename}: {error.strerror}.' if known else error}")
    except (ValueError, TypeError, LedgerError, ImportError) as error:
        return _failed(2, f"Refused: {error}")
    except MemoryError:
        return _failed(2, "Refused: this does not fit into memory. Ask for fewer rows or groups.")
    except Withheld as error:
        return _failed(4, str(error))
    except KeyboardInterrupt as error:
        return _failed(130, str(error) or "Interrupted.")
    finally:
        warnings.formatwarning = usual


def _in_a_shell(message: object) -> str:
    text = str(message)
    for python, shell in _IN_A_SHELL.items():
        text = text.replace(python, shell)
    return text


def _failed(code: int, message: str) -> int:
    print(_in_a_shell(message), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
