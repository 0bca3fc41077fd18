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

Ranges and prices that a proof computes elsewhere are among those written by hand.

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
# Those with a state of their own, that no estimator calls, or that draw nothing are covered by
# their exact tests. Quantiles call the inner step of `select_on_line`.
ALONE = {
    *("SparseVector", "geometric", "randomised_response", "response_counts", "least_threshold"),
    *("sparse_counts", "sparse_vector_top_k"),
}
MECHANISMS = {"select_on_pieces"} | {
    name
    for name in {*mechanisms.__all__} - ALONE
    if not name.endswith(("variance", "quantile", "alpha", "rate"))
}
# Names of sensitivities and of ranges of scores among the arguments.
WIDTHS = {"sensitivity", "score_range"}
KINDS = ("exact zeros", "double epsilon", "half sensitivity", "part exact")
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
WRITTEN = [Written(**each | {"file": f"skdp/{each['file']}"}) for each in _BY_HAND["mutant"]]


class _Calls(ast.NodeVisitor):
    """Calls of mechanisms, with the function around each."""

    def __init__(self) -> None:
        self.found: list[tuple[str, ast.Call]] = []
        self._where: list[str] = []

    def _enter(self, node):
        self._where.append(node.name)
        self.generic_visit(node)
        self._where.pop()

    visit_FunctionDef = visit_ClassDef = _enter

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in MECHANISMS:
            self.found.append((".".join(self._where) or "<module>", node))
        self.generic_visit(node)


def calls_of(source: str) -> list[tuple[str, ast.Call]]:
    visitor = _Calls()
    visitor.visit(ast.parse(source))
    return visitor.found


def all_mutants() -> list[Mutant]:
    """Every call site outside the mechanisms and the audit, and how to break it."""
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
                if kind == "exact zeros" and call.func.id == "bounded_sum":
                    continue
                if kind == "part exact" and call.func.id != "discrete_laplace":
                    continue
                mutants.append(Mutant(file, function, call.lineno, call.func.id, kind))
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
    """The source of a file with one call broken."""
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


def killer_of(written: Written) -> str:
    """The test that must notice a mutant that was written by hand, as pytest names it."""
    file, _, test = written.killer.partition("::")
    return f"{file_of(file)}::{test}" if test else CERTIFIED


def rewritten(source: str, written: Written) -> str:
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


def rings_of(mutant: Mutant | Written) -> list[tuple[str, list[str], str]]:
    """What may notice a mutant, in turn: a name, tests, and branches of replays."""
    if isinstance(mutant, Written):
        branches = "" if "::" in mutant.killer else f"={mutant.killer}"
        return [(mutant.killer, [killer_of(mutant)], branches)]
    tests = nearest(mutant.file)
    return [
        ("replay", [CERTIFIED], branches_of(mutant)),
        ("hostile pairs", [file_of("test_proofs")], ""),
        ("nearest tests", tests or [file_of("test_proofs")], ""),
        ("common checks", [file_of("test_common")], ""),
        ("the rest", ["-n", "2", "tests", *(f"--ignore={name}" for name in tests)], ""),
    ]


def killed_by(mutant: Mutant | Written, folder: Path) -> str | None:
    """The first ring that notices a mutant in a copy of the checkout, or None."""
    path, change = folder / mutant.file, mutated if isinstance(mutant, Mutant) else rewritten
    original = path.read_text(encoding="utf-8")
    path.write_text(change(original, mutant), encoding="utf-8")
    try:
        for ring, tests, branches in rings_of(mutant):
            if not run_tests(folder, *tests, branches=branches):
                return ring
        return None
    finally:
        path.write_text(original, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", help="files of skdp; default: all")
    parser.add_argument("--list", action="store_true", help="name the mutants and stop")
    parser.add_argument("--hand", action="store_true", help="those of tests/hand_mutants.toml")
    options = parser.parse_args()
    mutants = [
        mutant
        for mutant in (WRITTEN if options.hand else all_mutants())
        if not options.files or mutant.file in options.files
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
        every = " or ".join({rings_of(mutant)[0][2].removeprefix("=") for mutant in mutants} - {""})
        if not options.hand and not run_tests(folder, CERTIFIED, "-n", "2", branches=f"={every}"):
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
