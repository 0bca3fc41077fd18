"""How much there is to own: code, files, circles, numbers, names, and how far an errand goes.

``python -m benchmarks.house`` prints the figures with the bars that the project has set itself;
``--fits`` fits every estimator on a small table too, and counts the files and functions of `skdp`
that each fit enters. Nothing fails because of a figure: `.ci/run` shows them.

Code lines are those without docstrings, comments and blank lines. A circle is a set of modules that
import each other, at whatever moment; what a package collects in its ``__init__`` is not counted.
Numbers are those in constants of modules and in defaults of a `Tuning`.
"""

from __future__ import annotations

import argparse
import ast
import collections
import io
import sys
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "skdp"
# The most there should be.
BARS = {"code lines": 48_000, "files": 300, "circles": 0, "numbers in kernels": 300, "names": 60}
MOST_FILES, MOST_FUNCTIONS = 30, 200

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


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Sets of modules that reach each other."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for name in graph[todo.pop()] - seen:
                seen.add(name)
                todo.append(name)
        return seen

    reach = {name: reached(name) for name in graph}
    sets = {
        tuple(sorted(other for other in reach[name] if name in reach[other]))
        for name in graph
        if name in reach[name]
    }
    return [list(each) for each in sorted(sets)]


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
    """Numbers in an expression; a formula is one."""
    if isinstance(node, ast.Constant):
        return int(type(node.value) in (int, float))
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
    sys.path.insert(0, str(ROOT / "tests"))
    from estimators import CASES, people

    frame = people(200)
    table = {}
    for case in CASES:
        case.fit(case.make(), frame)
        table[case.name] = entered(lambda case=case: case.fit(case.make(), frame))
    return table


def figures(found: list[Module]) -> dict[str, int]:
    """What is held against a bar, and what is not."""
    import skdp

    graph = importers(found)
    return {
        "code lines": sum(map(code_lines, found)),
        "files": len(found),
        "circles": len(circles(graph)),
        "numbers in kernels": sum(numbers(each) for each in found if ".kernels." in each.name),
        "names": len(skdp.__all__),
        "numbers elsewhere": sum(numbers(each) for each in found if ".kernels." not in each.name),
        "files with one importer": sum(len(who) == 1 for who in graph.values()),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", action="store_true", help="also the way of each fit")
    options = parser.parse_args()
    found = modules()
    for name, value in figures(found).items():
        bar = f"  of at most {BARS[name]:,}" if name in BARS else ""
        print(f"{value:9,}  {name}{bar}")
    for each in circles(importers(found)):
        print("circle:", ", ".join(each))
    by_kernel: collections.Counter[str] = collections.Counter()
    for each in found:
        if each.name.startswith("skdp.kernels."):
            by_kernel[each.name.split(".")[2]] += numbers(each)
    print("numbers:", ", ".join(f"{name} {n}" for name, n in by_kernel.most_common() if n))
    if options.fits:
        warnings.simplefilter("ignore")
        print(f"\nfiles (at most {MOST_FILES}) and functions (at most {MOST_FUNCTIONS}) of a fit")
        for name, (files, functions) in sorted(fits().items(), key=lambda each: each[1]):
            print(f"{files:6d} {functions:6d}  {name}")


if __name__ == "__main__":
    main()
