"""How much there is to own: code, files, words, numbers, and how far an errand goes.

``python -m benchmarks.house`` prints the figures beside the ceilings of `layers.toml`, which
`tests/test_ceilings.py` holds; ``--fits`` fits every estimator on a small table too, and counts the
files and functions of `skdp` that each fit enters; ``--lower`` writes today's figures into
`layers.toml` where they are below the ceilings.

Code lines are those without docstrings, comments and blank lines. What a package collects in its
``__init__`` is no import. Numbers are those in constants of modules and in defaults of a `Tuning`.
"""

from __future__ import annotations

import argparse
import ast
import collections
import io
import math
import re
import sys
import tokenize
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "skdp"
LAYERS = ROOT / "layers.toml"
# A figure that is this share below its ceiling lowers it.
SLACK = 0.02

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.ENCODING,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


class Module(NamedTuple):
    """A file of the package."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @classmethod
    def read(cls, path: Path) -> Module:
        """The file at a path."""
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        return cls(name, path, text, ast.parse(text))

    @property
    def collects(self) -> bool:
        """Whether it is the ``__init__`` of a package."""
        return self.path.name == "__init__.py"

    def imported(self) -> Iterator[str]:
        """Dotted names of everything that is imported, also inside functions."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                parts = self.name.split(".")
                base = parts[: len(parts) - node.level + self.collects] if node.level else []
                home = ".".join([*base, *([node.module] if node.module else [])])
                yield home
                yield from (f"{home}.{alias.name}" for alias in node.names)


def modules() -> list[Module]:
    """All files of the package."""
    return [Module.read(path) for path in sorted(PACKAGE.rglob("*.py"))]


def code_lines(module: Module) -> int:
    """Lines with code."""
    documented: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            documented.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def importers(found: list[Module]) -> dict[str, set[str]]:
    """Which modules import each one; an ``__init__`` neither imports nor is imported here."""
    plain = {each.name for each in found if not each.collects}
    graph: dict[str, set[str]] = {name: set() for name in plain}
    for each in found:
        if not each.collects:
            for name in set(each.imported()) & plain - {each.name}:
                graph[name].add(each.name)
    return graph


def numbers(module: Module) -> int:
    """Numbers in the constants of a module and in the defaults of its `Tuning`.

    A fraction, a power and any other formula of numbers is one number. Not counted are limits on
    memory, whose names end in CELLS, COUNTS, CHUNK or ONCE, and numbers that only keep others
    finite, whose names end in TINY or NEVER.
    """
    values: list[Any] = []
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and node.name.endswith("Tuning"):
            values += [each.value for each in node.body if isinstance(each, ast.AnnAssign)]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            leaves = [leaf for target in targets for leaf in ast.walk(target)]
            names = [leaf.id for leaf in leaves if isinstance(leaf, ast.Name)]
            if names and all(name.isupper() for name in names) and not all(map(_limits, names)):
                values.append(node.value)
    return sum(_numbers_in(value) for value in values if value is not None)


def _limits(name: str) -> bool:
    return name.split("_")[-1] in ("CELLS", "COUNTS", "CHUNK", "ONCE", "TINY", "NEVER")


def _numbers_in(node: ast.AST) -> int:
    """Numbers in an expression; a formula is one, and a function has none."""
    if isinstance(node, ast.Lambda | ast.Constant):
        return int(type(getattr(node, "value", None)) in (int, float))
    if isinstance(node, ast.BinOp | ast.UnaryOp) or _is_fraction(node):
        return min(sum(map(_numbers_in, ast.iter_child_nodes(node))), 1)
    return sum(map(_numbers_in, ast.iter_child_nodes(node)))


def _is_fraction(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Fraction"
    )


def entered(run: Any) -> tuple[int, int]:
    """Files and functions of the package that a call enters.

    Comprehensions and lambdas are parts of the functions around them, as in Python 3.12.
    """
    seen: set[tuple[str, str, int]] = set()
    home = str(PACKAGE)

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        own = code.co_filename.startswith(home) and not code.co_name.startswith("<")
        if event == "call" and own:
            seen.add((code.co_filename, code.co_name, code.co_firstlineno))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return len({file for file, _, _ in seen}), len(seen)


def fits() -> dict[str, tuple[int, int]]:
    """Files and functions that the second fit of each estimator enters."""
    cases, frame = _cases()
    table = {}
    for case in cases:
        case.fit(case.make(), frame)
        table[case.name] = entered(lambda case=case: case.fit(case.make(), frame))
    return table


def _cases() -> tuple[list[Any], Any]:
    """The estimators of the tests, and a table for them."""
    folder = str(ROOT / "tests")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from estimators import CASES, people

    return CASES, people(200)


def errands() -> dict[str, int]:
    """Files that a fit of the default release enters, and a count with its interval."""
    cases, frame = _cases()
    (case,) = (each for each in cases if each.name == "MarginalSynthesizer")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.fit(case.make(), frame)
        made: list[Any] = []
        fitted = entered(lambda: made.append(case.fit(case.make(), frame)))
        release = made[0].synopsis_
        question = "age < 40 and sex == 'Female'"
        release.count(question, return_interval=True)
        counted = entered(lambda: release.count(question, return_interval=True))
    return {"files entered by a fit": fitted[0], "files entered by a count": counted[0]}


def modules_below(folder: str) -> list[Module]:
    """All Python files of a folder of the checkout."""
    return [Module.read(path) for path in sorted((ROOT / folder).rglob("*.py"))]


def words() -> int:
    """Words of the documentation, without API reference and gallery."""
    pages = {*ROOT.glob("docs/*.rst"), *ROOT.glob("docs/[tu]*/*.rst")}
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def sizes() -> dict[str, int]:
    """What has a ceiling in `layers.toml`."""
    found = modules()
    lines = [code_lines(each) for each in found]
    tests, benchmarks = modules_below("tests"), modules_below("benchmarks")
    return {
        "code lines of skdp": sum(lines),
        "files of skdp": len(found),
        "code lines of tests": sum(map(code_lines, tests)),
        "code lines of benchmarks": sum(map(code_lines, benchmarks)),
        "files of benchmarks": len(benchmarks),
        "lines of JavaScript": sum(
            len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.mjs")
        ),
        "words of documentation": words(),
        "code lines of the longest file": max(lines),
        "numbers in constants": sum(map(numbers, found)),
        **errands(),
    }


def ceilings() -> dict[str, int]:
    """The most of each that there may be."""
    return tomllib.loads(LAYERS.read_text(encoding="utf-8"))["ceilings"]


def faults(found: dict[str, int], most: dict[str, int]) -> list[str]:
    """What is above its ceiling, and ceilings that have to fall."""
    said = []
    for name in sorted({*found, *most}):
        if name not in most:
            said.append(f"{name} has no ceiling in layers.toml")
        elif name not in found:
            said.append(f"{name} has a ceiling in layers.toml, and nothing measures it")
        elif found[name] > most[name]:
            said.append(
                f"{name}: {found[name]:,} is above the ceiling of {most[name]:,}. Ceilings only "
                "fall: take something away"
            )
        elif found[name] < math.floor(most[name] * (1 - SLACK)):
            said.append(
                f"{name}: {found[name]:,} is over 2% below the ceiling of {most[name]:,}: lower "
                "it, `python -m benchmarks.house --lower`"
            )
    return said


def lower() -> None:
    """Write the figures into `layers.toml` where they are below the ceilings."""
    text = LAYERS.read_text(encoding="utf-8")
    for name, value in sizes().items():
        line = re.compile(rf'^("{re.escape(name)}" = )(\d+)$', re.MULTILINE)
        text = line.sub(lambda hit, new=value: f"{hit[1]}{min(int(hit[2]), new)}", text)
    LAYERS.write_text(text, encoding="utf-8")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", action="store_true", help="also the way of each fit")
    parser.add_argument("--lower", action="store_true", help="let the ceilings fall to the figures")
    options = parser.parse_args()
    if options.lower:
        lower()
    found, most = modules(), ceilings()
    for name, value in sizes().items():
        print(f"{value:9,}  {name}, at most {most[name]:,}")
    alone = sum(len(who) == 1 for who in importers(found).values())
    print(f"{alone:9,}  files with one importer")
    by_package: collections.Counter[str] = collections.Counter()
    for each in found:
        by_package[".".join(each.name.split(".")[:3])] += code_lines(each)
    print("code lines:", ", ".join(f"{name} {n}" for name, n in by_package.most_common() if n))
    if options.fits:
        warnings.simplefilter("ignore")
        print("\nfiles and functions that a fit enters")
        for name, (files, functions) in sorted(fits().items(), key=lambda each: each[1]):
            print(f"{files:6d} {functions:6d}  {name}")


if __name__ == "__main__":
    main()
