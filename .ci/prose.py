"""Spelling and grammar of everything that people read: ``python .ci/prose.py``.

Docs, README, the other Markdown files and the whole code are checked by codespell for misspelt
words. Texts without their code, and docstrings, are also checked by proselint and by a few rules of
this project. Prints a line for each finding, and exits with 1 if there is one. Then comes how many
words the documentation has and how long its sentences are, beside the bars of the project.
"""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Spelt right: names of data, authors and parameters, and what stands in code.
VOCABULARY = "abd aer atmost bu checkin childs fo fpr nd notin priview ser trun zar".split()
# Checks of proselint that misread mathematics, code or tables, or that are matters of taste.
OFF = (
    "archaism",
    "cliches.misc",
    "dates_times",
    "lexical_illusions",
    "misc.but",
    "misc.illogic",
    "redundancy.misc.after_the_deadline",
    "typography.symbols",
    "uncomparables",
    "weasel_words.very",
)
# The most words of the documentation, and of a sentence in the median and at the 90th percentile.
MOST_WORDS, MEDIAN, LONG = 30_000, 12, 24
# What this project writes in another way.
RULES = {
    r"(?<![\w.\d/\]*-])\.\d": "write the zero: 0.05, not .05",
    r"\b(a|an|and|are|as|at|by|for|from|in|is|it|of|on|or|than|the|to|with) \1\b": "a word twice",
    r"\ba (?=[aeio]\w{3,})(?!once|eu|uni|use|one|alpha|above|also|at |away|index|is )": "an, not a",
    r"\ban (?=[bcdfgjklmnpqrstvwyz][a-z]+\b)": "a, not an",
    r"\b(can not|alot|data set's it's|it's own|could of|should of)\b": "grammar",
    r"\b(privatly|neighbor|behavior|analyze[ds]?)\b": "British here",
    r"\w [,;](?= |$)|\bi\.e\b(?!\.)|\be\.g\b(?!\.)": "a space before a comma, or a missing stop",
}


def of_text(path: Path) -> list[str]:
    """Lines of prose of reST or Markdown; lines of code, tables and directives are empty."""
    lines, kept, inside, indent = path.read_text(encoding="utf-8").split("\n"), [], None, 0
    for line in lines:
        here = len(line) - len(line.lstrip())
        if inside == "fence":
            inside = None if line.startswith("```") else inside
            kept.append("")
            continue
        if inside == "block" and line.strip() and here <= indent:
            inside = None
        if line.startswith("```"):
            inside = "fence"
        elif inside is None and re.match(r"\s*\.\. (?!\w+:: )|\s*\.\. [\w-]+::|.*(?<!:)::$", line):
            prose = re.match(
                r"\s*\.\. (note|warning|tip|container|rubric|list-table|seealso|admonition)", line
            )
            inside, indent = (None, 0) if prose else ("block", here)
            kept.append(
                plain(line.removesuffix("::")) if line.endswith("::") and ".. " not in line else ""
            )
            continue
        kept.append(
            ""
            if inside or re.match(r"\s*(>>>|\.\.\.|\$ |[=+~^|-]{3,}|:\w+:)", line)
            else plain(line)
        )
    return kept


def of_code(path: Path) -> list[str]:
    """Lines of the docstrings of a module."""
    text = path.read_text(encoding="utf-8")
    kept = [""] * (text.count("\n") + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            start, end = node.body[0].lineno - 1, node.body[0].end_lineno
            example = False
            for number, line in enumerate(text.split("\n")[start:end], start):
                example = (example and bool(line.strip())) or line.lstrip().startswith(
                    (">>>", "...")
                )
                if not example and not re.match(r"\s*[=-]{3,}", line):
                    kept[number] = plain(line.replace('"""', ""))
    return kept


def plain(line: str) -> str:
    """A line without what is code in it."""
    line = re.sub(r":[\w:]+:`[^`]*`|``.*?``|`[^`]*`_?|https?://\S+", "#", line)
    return re.sub(r"``.*|`\S*", "#", line)


def found_by_rules(texts: dict[Path, list[str]]) -> list[str]:
    """Lines of what the rules of this project find."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {reason}: {match.group(0)!r} in {line.strip()[:80]!r}"
        for path, lines in texts.items()
        for number, line in enumerate(lines, 1)
        for rule, reason in RULES.items()
        for match in re.finditer(rule, line)
    ]


def found_by_proselint(texts: dict[Path, list[str]]) -> list[str]:
    """Lines of what proselint finds, without the checks that are off."""
    with tempfile.TemporaryDirectory() as folder:
        for number, lines in enumerate(texts.values()):
            (Path(folder) / f"{number}.txt").write_text("\n".join(lines), encoding="utf-8")
        command = [Path(sys.executable).parent / "proselint", "-o", "compact", "check", folder]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return [done.stderr]
    paths = [path.relative_to(ROOT) for path in texts]
    found = re.findall(r"(\d+)\.txt:(\d+):\d+: ([\w.]+): (.*)", done.stdout)
    return [
        f"{paths[int(copy)]}:{line}: {check}: {words}"
        for copy, line, check, words in found
        if not check.startswith(OFF)
    ]


def lengths(lines: list[str]) -> list[int]:
    """Words of each sentence of a page; fewer than four make none."""
    blocks = re.split(r"\n\s*\n|\n\s*[*\-]\s+-?\s*|\n\s*\d\.\s", "\n".join(lines))
    ends = r"(?<=[.?:!;])\s+(?=[A-Z\"`*:0-9])|(?<=[:])\s"
    sentences = [each for block in blocks for each in re.split(ends, " ".join(block.split()))]
    return [n for each in sentences if (n := len(re.findall(r"\w[\w'./-]*", each))) > 3]


def how_much() -> str:
    """How long the documentation and its sentences are, without API reference and gallery."""
    pages = sorted({*ROOT.glob("docs/*.rst"), *ROOT.glob("docs/[tu]*/*.rst")})
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    found = sorted(length for page in pages for length in lengths(of_text(page)))
    return (
        f"{words:,} words of documentation, at most {MOST_WORDS:,}; words of a sentence: median "
        f"{statistics.median(found):g} (at most {MEDIAN}), "
        f"90th percentile {found[9 * len(found) // 10]} (at most {LONG})"
    )


def main() -> int:
    """Print every finding; return the exit code."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.rst"), *ROOT.glob("docs/user_guide/**/*.rst")]
    code = [
        *ROOT.glob("skdp/**/*.py"),
        *ROOT.glob("examples/*.py"),
        *ROOT.glob("benchmarks/**/*.py"),
    ]
    prose = {path: of_text(path) for path in sorted(texts)}
    prose |= {path: of_code(path) for path in sorted(code)}
    spelling = subprocess.run(
        [Path(sys.executable).parent / "codespell", "-L", ",".join(VOCABULARY), *texts, *code],
        capture_output=True, text=True,
    )  # fmt: skip
    problems = [*spelling.stdout.splitlines(), *found_by_rules(prose), *found_by_proselint(prose)]
    print("\n".join([*problems, how_much()]))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
