"""Command line: ``python -m skdp``, or ``skdp``; its commands are in ``skdp._cli``."""

from __future__ import annotations

import sys

from ._cli.program import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
