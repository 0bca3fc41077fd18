"""Mutation ring: what proofs rely on is broken in turn, and the default suite must notice.

    python tests/mutants.py                     # all mutants, some of an hour
    python tests/mutants.py skdp/cluster.py     # those of some files
    python tests/mutants.py --list              # what there is, without running it
    python tests/mutants.py --hand              # those of tests/hand_mutants.toml instead

Four mutants for each call site outside `skdp.mechanisms`:

- "exact zeros": where an exact value is 0, or a test or selection is made on zeros, it comes out
  without noise;
- "double epsilon": the noise is drawn at twice the budget;
- "half sensitivity": the noise is drawn for half the sensitivity or score range;
- "part exact": the first of several values comes out without noise.

And one for each number that a proof computes elsewhere:

- "half range": a range of scores or a sensitivity, where it is defined (`RANGES`);
- "lower price": half of what a function with "price" in its name returns, or of a part that a
  score or a search charges.

The mechanisms themselves are covered by their exact tests. A mutant runs in a copy of the checkout:
first the replays of the estimators that reach the call site, then, while it survives, the rest of
the default suite, up to the first failure. One that was written by hand names the test that must
fail. The exit code is 1 if one survives.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from inspect import signature
from pathlib import Path

from skdp import mechanisms
from skdp.mechanisms import selection

ROOT = Path(__file__).resolve().parent.parent
MECHANISMS = {
    "above_threshold",
    "bounded_sum",
    "choose_buckets",
    "discrete_laplace",
    "exponential",
    "noisy_max",
    "permute_and_flip",
    "select_on_line",
    "select_on_pieces",
    "top_k",
}
# Names of sensitivities and of ranges of scores among the arguments.
WIDTHS = {"sensitivity", "score_range"}
KINDS = ("exact zeros", "double epsilon", "half sensitivity", "part exact")
# Names of ranges and sensitivities where they are defined, and mutants of numbers.
RANGES = {"score_range", "reach"}
NUMBERS = ("half range", "lower price")

# Calls of mechanisms by function, each with the branch of `replays.toml` that reaches it.
STEPS = tomllib.loads((ROOT / "tests" / "worst.toml").read_text(encoding="utf-8"))["step"]

HELPERS = """

def _mutant_zeros(mechanism, values, *args, **kwargs):
    import numpy as np
    if mechanism.__name__ == "choose_buckets":
        # One bucket of bins that all hold the same, for sure.
        edges = mechanism(values, *args, **kwargs)
        return edges if any(map(np.any, values)) else edges[[0, -1]]
    exact, noisy = np.asarray(values), np.asarray(mechanism(values, *args, **kwargs))
    if mechanism.__name__ == "discrete_laplace":
        return np.where(exact == 0, 0, noisy)[()]
    if mechanism.__name__ == "above_threshold":
        threshold = args[1] if len(args) > 1 else kwargs["threshold"]
        return np.where(exact == 0, exact > threshold, noisy)
    # A selection among equal zeros: the first one, for sure.
    return noisy[()] if exact.any() else (noisy * 0)[()]

def _mutant_part(mechanism, values, *args, **kwargs):
    import numpy as np
    noisy = np.array(mechanism(values, *args, **kwargs))
    noisy.flat[:1] = np.asarray(values).flat[:1]
    return noisy[()]


def _mutant_half(value):
    from fractions import Fraction
    return Fraction(int(value), 2) if isinstance(value, Fraction) else max(int(value) // 2, 1)
"""


@dataclass(frozen=True)
class Mutant:
    """One broken call."""

    file: str
    function: str
    line: int
    mechanism: str
    kind: str
    # Of a number, of which a line may hold several.
    column: int = 0

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.function} {self.mechanism}, {self.kind}"


@dataclass(frozen=True)
class Written:
    """A mutant written by hand, as `hand_mutants.toml` explains."""

    breaks: str
    file: str
    old: str
    new: str
    killer: str
    private: bool = True

    @property
    def name(self) -> str:
        return f"{self.file}: {self.breaks}"


_BY_HAND = tomllib.loads((ROOT / "tests" / "hand_mutants.toml").read_text(encoding="utf-8"))
WRITTEN = [Written(**each) for each in _BY_HAND["mutant"]]


class _Visitor(ast.NodeVisitor):
    """Knows the function around a node."""

    def __init__(self) -> None:
        self.found: list[tuple] = []
        self._where: list[str] = []

    def _enter(self, node):
        self._where.append(node.name)
        self.generic_visit(node)
        self._where.pop()

    visit_FunctionDef = visit_ClassDef = _enter

    def _add(self, *found) -> None:
        self.found.append((".".join(self._where) or "<module>", *found))


class _Calls(_Visitor):
    """Calls of mechanisms, with the function around each."""

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in MECHANISMS:
            self._add(node)
        self.generic_visit(node)


def calls_of(source: str) -> list[tuple[str, ast.Call]]:
    visitor = _Calls()
    visitor.visit(ast.parse(source))
    return visitor.found


class _Numbers(_Visitor):
    """Expressions of ranges and prices, with the function around each, the name and the kind."""

    def __init__(self, charges: bool) -> None:
        super().__init__()
        self._charges = charges

    def _add(self, name: str, kind: str, value: ast.expr) -> None:
        if isinstance(value, ast.IfExp):
            self._add(name, kind, value.body)
            self._add(name, kind, value.orelse)
        # What is passed on was computed elsewhere; a range of 1 has no half among integers.
        elif not isinstance(value, ast.Name | ast.Attribute | ast.Tuple) and not (
            isinstance(value, ast.Constant) and value.value in (0, 1, None)
        ):
            super()._add(name, kind, value)

    def visit_Assign(self, node):
        # Attributes of classes and of objects; local variables of these names are other things.
        inside = not (self._where and self._where[-1].lstrip("_")[:1].isupper())
        names = [
            getattr(each, "attr", "" if inside else getattr(each, "id", ""))
            for each in node.targets
        ]
        if RANGES & {*names}:
            self._add(names[0], "half range", node.value)
        texts = [getattr(each, "id", "") for each in node.targets]
        if self._charges and texts == ["parts"] and isinstance(node.value, ast.Dict):
            for value in node.value.values:
                self._add("parts", "lower price", value)
        self.generic_visit(node)

    def visit_Return(self, node):
        name = self._where[-1]
        if name == "score_range":
            self._add(name, "half range", node.value)
        elif self._charges and "price" in name and "repriced" not in name:
            self._add(name, "lower price", node.value)
        self.generic_visit(node)


def numbers_of(source: str, file: str) -> list[tuple[str, str, str, ast.expr]]:
    """Ranges everywhere; prices where scores and searches charge for what they hold."""
    visitor = _Numbers(file.startswith("skdp/model_selection/"))
    visitor.visit(ast.parse(source))
    return visitor.found


def all_mutants() -> list[Mutant]:
    """Every call site and number outside the mechanisms and the audit, and how to break it."""
    mutants = []
    for path in sorted((ROOT / "skdp").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if file.startswith(("skdp/mechanisms/", "skdp/audit/")):
            continue
        source = path.read_text(encoding="utf-8")
        for function, call in calls_of(source):
            for kind in KINDS:
                if kind == "half sensitivity" and not _has_sensitivity(call):
                    continue
                if kind == "exact zeros" and call.func.id in ("bounded_sum",):
                    continue
                if kind == "part exact" and call.func.id != "discrete_laplace":
                    continue
                mutants.append(Mutant(file, function, call.lineno, call.func.id, kind))
        for function, name, kind, value in numbers_of(source, file):
            mutants.append(Mutant(file, function, value.lineno, name, kind, value.col_offset))
    return mutants


def _argument(call: ast.Call, names: set[str]) -> ast.expr | None:
    """What a call gives for the parameter that has one of these names."""
    mechanism = getattr(mechanisms, call.func.id, None) or selection.select_on_pieces
    parameters = enumerate(signature(mechanism).parameters)
    place = next((place for place, name in parameters if name in names), len(call.args))
    if place < len(call.args):
        before = call.args[: place + 1]
        return None if any(isinstance(each, ast.Starred) for each in before) else before[-1]
    return next((keyword.value for keyword in call.keywords if keyword.arg in names), None)


def _has_sensitivity(call: ast.Call) -> bool:
    """Whether a sensitivity is given other than a literal 1, which has no half among integers."""
    given = _argument(call, WIDTHS)
    return given is not None and not (isinstance(given, ast.Constant) and given.value == 1)


def mutated(source: str, mutant: Mutant) -> str:
    """The source of a file with one call or number broken."""
    if mutant.kind in NUMBERS:
        target = next(
            value
            for _, name, _, value in numbers_of(source, mutant.file)
            if (value.lineno, value.col_offset, name)
            == (mutant.line, mutant.column, mutant.mechanism)
        )
        inner = ast.get_source_segment(source, target)
        half = f"_mutant_half({inner})" if mutant.kind == "half range" else f"(({inner}) / 2)"
        return _replaced(source, target, half)
    call = next(
        call
        for _, call in calls_of(source)
        if (call.lineno, call.func.id) == (mutant.line, mutant.mechanism)
    )
    target = call
    if mutant.kind in ("exact zeros", "part exact"):
        inner = ast.get_source_segment(source, call)
        opening = inner.index("(")
        helper = "_mutant_zeros" if mutant.kind == "exact zeros" else "_mutant_part"
        new = f"{helper}({inner[:opening]}, {inner[opening + 1 :]}"
    elif mutant.kind == "double epsilon":
        target = _argument(call, {"epsilon"})
        new = f"(2 * ({ast.get_source_segment(source, target)}))"
    else:
        target = _argument(call, WIDTHS)
        new = f"_mutant_half({ast.get_source_segment(source, target)})"
    return _replaced(source, target, new)


def _replaced(source: str, target: ast.expr, new: str) -> str:
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()
    begin = starts[target.lineno - 1] + target.col_offset
    end = starts[target.end_lineno - 1] + target.end_col_offset
    return (raw[:begin] + new.encode() + raw[end:]).decode() + HELPERS


def run_tests(folder: Path, *arguments: str, branches: str = "") -> bool:
    """Whether pytest passes in a copy of the checkout; of replays only some branches may run."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
        + list(arguments),
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(folder),
            "MPLBACKEND": "agg",
            "OMP_NUM_THREADS": "1",
            "SKDP_BRANCHES": branches,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # 5: no test was chosen, which kills nothing.
    if done.returncode not in (0, 1, 2, 5):
        sys.exit(f"pytest could not run:\n{done.stdout[-3000:]}")
    return done.returncode in (0, 5)


def file_of(name: str) -> str:
    """Where a module of tests lies: by its name, after its folder where several have the name."""
    found = [path for path in ROOT.glob("tests/**/test_*.py") if path.match(f"{name}.py")]
    if len(found) != 1:
        raise LookupError(f"{name} is the name of {len(found)} modules of tests.")
    return found[0].relative_to(ROOT).as_posix()


def nearest(file: str) -> list[str]:
    """Tests of a file, or those of its folder: they mirror the tree."""
    path = Path(file).relative_to("skdp")
    own = ROOT / "tests" / path.parent / f"test_{path.stem.strip('_')}.py"
    # A module without a file of its own.
    found = [own] if own.is_file() else sorted((ROOT / "tests" / path.parent).glob("test_*.py"))
    return [each.relative_to(ROOT).as_posix() for each in found if path.parent.name or own == each]


def branches_of(mutant: Mutant) -> str:
    """Branches that reach the call, as an environment variable names them to the replays."""
    names = mutant.function.split(".")
    functions = {".".join(names[:end]) for end in range(1, len(names) + 1)}
    found = {
        known["worst"][0]
        for step, known in STEPS.items()
        if "worst" in known and step.partition(", ")[0] in functions
    }
    return "=" + " or ".join(sorted(found))


# The replays, of the branches that an environment variable names.
CERTIFIED = f"{file_of('test_replay')}::test_every_branch_is_certified"


def killed_by(mutant: Mutant, folder: Path) -> str | None:
    """The first ring that notices a mutant, or None."""
    path = folder / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(mutated(original, mutant), encoding="utf-8")
    tests = nearest(mutant.file)
    rings = {
        "replay": [CERTIFIED],
        "hostile pairs": [file_of("test_proofs")],
        "nearest tests": tests or [file_of("test_proofs")],
        "common checks": [file_of("test_common")],
        "the rest": ["-n", "2", "tests", *(f"--ignore={name}" for name in tests)],
    }
    try:
        return next(
            (
                ring
                for ring, choice in rings.items()
                if not run_tests(
                    folder, *choice, branches=branches_of(mutant) if ring == "replay" else ""
                )
            ),
            None,
        )
    finally:
        path.write_text(original, encoding="utf-8")


def killer_of(written: Written) -> str:
    """The test that must notice a mutant that was written by hand, as pytest names it."""
    file, _, test = written.killer.partition("::")
    if test:
        return f"{file_of(file)}::{test}"
    return CERTIFIED


def rewritten(written: Written, source: str) -> str:
    """The source of a file with a mutant that was written by hand.

    Raises
    ------
    ValueError
        If its text does not occur exactly once.
    """
    if source.count(written.old) != 1:
        raise ValueError(
            f"{written.name}: its text occurs {source.count(written.old)} times. Write it again "
            "for the code as it is."
        )
    return source.replace(written.old, written.new)


def hand(folder: Path, chosen: list[Written]) -> int:
    """Run mutants that were written by hand in a copy of the checkout; how many survive."""
    survived = 0
    for number, written in enumerate(chosen, 1):
        path, begin = folder / "skdp" / written.file, time.perf_counter()
        original = path.read_text(encoding="utf-8")
        path.write_text(rewritten(written, original), encoding="utf-8")
        try:
            branches = "" if "::" in written.killer else f"={written.killer}"
            alive = run_tests(folder, killer_of(written), branches=branches)
        finally:
            path.write_text(original, encoding="utf-8")
        survived += alive
        verdict = "SURVIVED" if alive else f"killed by {written.killer}"
        seconds = time.perf_counter() - begin
        print(f"{number:3}/{len(chosen)} {seconds:5.0f} s  {written.name}: {verdict}", flush=True)
    print(f"{len(chosen)} mutants, {survived} survived")
    return survived


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", help="files of skdp; default: all")
    parser.add_argument("--list", action="store_true", help="name the mutants and stop")
    parser.add_argument("--hand", action="store_true", help="those of tests/hand_mutants.toml")
    options = parser.parse_args()
    mutants = [m for m in all_mutants() if not options.files or m.file in options.files]
    if options.hand:
        mutants = [
            written
            for written in WRITTEN
            if not options.files or f"skdp/{written.file}" in options.files
        ]
    if options.list:
        print(*(mutant.name for mutant in mutants), sep="\n")
        return 0
    survivors = []
    with tempfile.TemporaryDirectory() as copy:
        folder = Path(copy) / "skdp"
        ignore = shutil.ignore_patterns(
            ".venv*", ".git", "_build", "__pycache__", "dist", ".*cache"
        )
        shutil.copytree(ROOT, folder, ignore=ignore)
        if options.hand:
            return min(hand(folder, mutants), 1)
        every = " or ".join(sorted({branches_of(mutant)[1:] for mutant in mutants} - {""}))
        if not run_tests(folder, CERTIFIED, "-n", "2", branches=f"={every}"):
            sys.exit("The replays fail without any mutant.")
        for number, mutant in enumerate(mutants, 1):
            begin = time.perf_counter()
            ring = killed_by(mutant, folder)
            survivors += [mutant] if ring is None else []
            verdict = "SURVIVED" if ring is None else f"killed by {ring}"
            said = f"{number:3}/{len(mutants)} {time.perf_counter() - begin:5.0f} s  {mutant.name}"
            print(f"{said}: {verdict}", flush=True)
    print(f"{len(mutants)} mutants, {len(survivors)} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
