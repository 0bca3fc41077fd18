"""Questions that people ask of a release: errors of each one by itself, and whether its bar holds.

Each question is put to many releases of the same table. Kinds:

``tails``
    How many records are high in both of two numbers, low in both, or high in one and low in the
    other; thresholds on edges of bins; all pairs with a rank correlation of 0.3 or more (if a table
    has none, the strongest pair).
``thresholds``
    How many records lie below a round number inside a bin.
``means``
    The mean of a number in a category.
``quantiles``
    Quantiles of a number.
``triples``
    How many records of a category are high in both of two numbers; pairs as for ``tails``.
``round-tails``
    As ``tails``, with round numbers inside bins.

Thresholds are near quantiles of the true table and do not depend on the release. Numbers are the
numeric columns of more than ten codes, categories are columns of at most ten. A line of the result
has the medians over questions of the absolute bias, the standard deviation, the root mean square
error and the half width of the bar, the share of bars at 95% that hold, and the share of questions
whose own bars hold less than 80% of the time. Means and quantiles are in standard deviations of
their column. ``--beside`` compares with the results of another run.

Run as ``python -m benchmarks.questions --out questions.json``; ``--quick`` makes two fits of four
tables.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import skdp
from benchmarks import _data, _unseen_tables
from benchmarks._fidelity_releases import parsed
from benchmarks._fidelity_tables import Table
from benchmarks._question_tables import TABLES, edges_of
from skdp.exceptions import InsecureSeedWarning

__all__ = ["KINDS", "Question", "asked", "measured", "questions", "summary"]

EPSILONS = (0.1, 1.0, 8.0)
QUICK = ("skewed", "delays", "nist", "phoneme")
MOST_CODES = 10  # of a category
LEAST_CORRELATION = 0.3
LEAST_SHARE = 0.01  # of the records, for a category
TAIL_SHARES = (0.002, 0.6)  # the smallest and largest share of the records in a tail
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
# Quantiles near which the thresholds of two columns lie; below 0.5 the low tail is asked for.
TAILS = (
    (0.7, 0.7), (0.9, 0.9), (0.97, 0.97), (0.3, 0.3), (0.1, 0.1), (0.03, 0.03),
    (0.7, 0.3), (0.9, 0.1), (0.3, 0.7), (0.1, 0.9),
)  # fmt: skip
HIGH = ((0.7, 0.7), (0.9, 0.9))
# Round numbers are looked for between the quantiles this far on either side.
ROUND_ROOM = 0.04
N_THRESHOLDS = 10

Condition = tuple[str, str, Any]  # column, operator, value
Floats = NDArray[np.float64]
HEADER = (
    f"{'table':18}{'epsilon':>8} {'kind':12}{'n':>4}{'|bias|':>10}{'sd':>10}{'rms':>10}"
    f"{'holds':>7}{'<.80':>6}{'half':>10}{'fit s':>7}{'ask ms':>8}"
)


class Question(NamedTuple):
    """A count, or a statistic of a column, of the records that meet all conditions."""

    conditions: tuple[Condition, ...]
    statistic: str = "count"
    column: str = ""
    share: float = 0.0  # of a quantile

    @property
    def query(self) -> str:
        """The conditions as a text."""
        return " and ".join(f"`{name}` {sign} {value!r}" for name, sign, value in self.conditions)

    def __str__(self) -> str:
        what = f"{self.statistic} {self.share or ''} {self.column}".replace("  ", " ").strip()
        return f"{what} where {self.query}" if self.conditions else what

    def ask(self, release: Any) -> Any:
        """The answer of a release with its bar at 95%."""
        if self.statistic == "mean":
            return release.mean(self.column, self.query, return_interval=True)
        if self.statistic == "quantile":
            return release.quantile(self.column, self.share, return_interval=True)
        return release.count(self.query, return_interval=True)

    def truth(self, rows: pd.DataFrame) -> float:
        """The true answer."""
        met = np.ones(len(rows), dtype=bool)
        for name, sign, value in self.conditions:
            column = rows[name]
            one = {"<": column.lt, ">=": column.ge, "==": column.eq}[sign](value)
            met &= one.fillna(False).to_numpy(dtype=bool)
        if self.statistic == "count":
            return float(met.sum())
        values = _values(rows, self.column)[met]
        values = values[~np.isnan(values)]
        if not len(values):
            return float("nan")
        if self.statistic == "mean":
            return float(values.mean())
        return float(np.quantile(values, self.share, method="inverted_cdf"))

    def unit(self, rows: pd.DataFrame) -> float:
        """What errors are divided by."""
        if self.statistic == "count":
            return 1.0
        return float(np.nanstd(_values(rows, self.column)))


def _values(rows: pd.DataFrame, column: str) -> Floats:
    return rows[column].to_numpy(dtype=np.float64, na_value=np.nan)


# --------------------------------------------------------------------------------------------------
# Questions of a table


class Columns:
    """What the questions of a table need to know of its columns."""

    def __init__(self, table: Table) -> None:
        names, domain, rows = table.domain.names, table.domain, table.rows
        self.rows = rows
        few = {name for name in names if domain[name].size <= MOST_CODES}
        self.numbers = [
            name for name in names if isinstance(domain[name], skdp.Numeric) and name not in few
        ]
        self.categories = {name: self._common(name) for name in names if name in few}
        self.edges = {name: edges_of(table, name) for name in self.numbers}
        self.whole = {name for name in self.numbers if getattr(domain[name], "integer", False)}
        values = {name: _values(rows, name) for name in self.numbers}
        self.sorted = {name: np.sort(each[~np.isnan(each)]) for name, each in values.items()}
        ranks = np.abs(pd.DataFrame(values).corr("spearman").to_numpy())
        among = itertools.combinations(range(len(self.numbers)), 2)
        strength = {(self.numbers[a], self.numbers[b]): float(ranks[a, b]) for a, b in among}
        strong = [pair for pair, found in strength.items() if found >= LEAST_CORRELATION]
        self.pairs = strong or sorted(strength, key=strength.__getitem__)[-1:]

    def _common(self, name: str) -> list[Any]:
        shares = self.rows[name].value_counts(normalize=True, dropna=False)
        kept = [value for value in shares.index[shares >= LEAST_SHARE] if not pd.isna(value)]
        return sorted(value.item() if hasattr(value, "item") else value for value in kept)

    def below(self, name: str, value: float) -> float:
        """Share of the values of a column below one."""
        values = self.sorted[name]
        return float(np.searchsorted(values, value)) / len(values)

    def on_edge(self, name: str, quantile: float) -> float | None:
        """The edge of a bin nearest to a quantile."""
        edges = self.edges[name][1:-1]
        near = np.abs(np.searchsorted(self.sorted[name], edges) / len(self.sorted[name]) - quantile)
        return float(edges[near.argmin()])

    def round_number(self, name: str, quantile: float) -> float | None:
        """The roundest number near a quantile that is not the edge of a bin, if there is one."""
        room = min(ROUND_ROOM, 0.8 * quantile, 0.8 * (1 - quantile))
        low, high = np.quantile(self.sorted[name], [quantile - room, quantile + room])
        if not low < high:
            return None
        top = int(np.floor(np.log10(high - low))) + 2
        for power, lead in itertools.product(range(top, top - 5, -1), (5, 2, 1)):
            if name in self.whole and power < 0:
                return None
            step = lead * 10.0**power
            found = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
            inside = [
                number
                for number in found
                if self.edges[name][0] < number < self.edges[name][-1]
                and not np.isclose(number, self.edges[name], rtol=1e-9, atol=1e-12).any()
            ]
            if inside:
                # Digits of binary fractions, such as those of 3 * 0.1, go.
                return float(f"{inside[len(inside) // 2]:.10g}")
        return None

    def tail(
        self, name: str, quantile: float, cut: Callable[[str, float], float | None]
    ) -> Condition | None:
        """The condition for the tail of a column, if it holds neither next to nothing nor most."""
        value = cut(name, quantile)
        if value is None:
            return None
        share = self.below(name, value)
        low, high = TAIL_SHARES
        if not low <= (share if quantile < 0.5 else 1 - share) <= high:
            return None
        return name, "<" if quantile < 0.5 else ">=", int(value) if value.is_integer() else value

    def joint(
        self,
        cut: Callable[[str, float], float | None],
        at: Sequence[tuple[float, float]],
        within: tuple[Condition, ...] = (),
    ) -> Iterator[list[Question]]:
        """Joint tails of each pair."""
        for one, two in self.pairs:
            found = []
            for a, b in at:
                first, second = self.tail(one, a, cut), self.tail(two, b, cut)
                if first is not None and second is not None:
                    found.append(Question((first, second, *within)))
            yield found


def tails(columns: Columns) -> list[list[Question]]:
    """Joint tails, thresholds on edges of bins."""
    return list(columns.joint(columns.on_edge, TAILS))


def round_tails(columns: Columns) -> list[list[Question]]:
    """Joint tails, round thresholds inside bins."""
    return list(columns.joint(columns.round_number, TAILS))


def triples(columns: Columns) -> list[list[Question]]:
    """Both high within a category."""
    groups = []
    for name, values in columns.categories.items():
        for value in values:
            found = columns.joint(columns.on_edge, HIGH, ((name, "==", value),))
            groups.append(list(itertools.chain.from_iterable(found)))
    return groups


def thresholds(columns: Columns) -> list[list[Question]]:
    """Records below round numbers inside bins."""
    quantiles = (np.arange(N_THRESHOLDS) + 0.5) / N_THRESHOLDS
    found = []
    for name in columns.numbers:
        cuts = [columns.round_number(name, quantile) for quantile in quantiles]
        found.append([Question(((name, "<", cut),)) for cut in cuts if cut is not None])
    return found


def means(columns: Columns) -> list[list[Question]]:
    """Means of numbers by category."""
    return [
        [Question(((name, "==", value),), "mean", number) for value in values]
        for number in columns.numbers
        for name, values in columns.categories.items()
    ]


def quantiles(columns: Columns) -> list[list[Question]]:
    """Quantiles of numbers."""
    return [
        [Question((), "quantile", name, share) for share in QUANTILES] for name in columns.numbers
    ]


KINDS: dict[str, Callable[[Columns], list[list[Question]]]] = {
    "tails": tails,
    "thresholds": thresholds,
    "means": means,
    "quantiles": quantiles,
    "triples": triples,
    "round-tails": round_tails,
}


def questions(table: Table, kind: str, most: int) -> list[Question]:
    """Questions of a kind, at most so many, about equally many from each group of them."""
    rng = np.random.default_rng(0)
    # A group is a pair, a column, or a category; which of its questions come first is drawn.
    mixed = []
    for group in KINDS[kind](Columns(table)):
        # There is no mean where no record has a value.
        distinct = [each for each in dict.fromkeys(group) if not np.isnan(each.truth(table.rows))]
        mixed.append([distinct[place] for place in rng.permutation(len(distinct))])
    groups = [mixed[place] for place in rng.permutation(len(mixed))]
    taken = [each for turn in itertools.zip_longest(*groups) for each in turn if each is not None]
    return taken[:most]


# --------------------------------------------------------------------------------------------------
# Answers


def asked(release: Any, some: Sequence[Question]) -> Floats:
    """Value, lower and upper end of the bar for each question, (n, 3)."""
    found = np.empty((len(some), 3))
    for place, question in enumerate(some):
        answer = question.ask(release)
        found[place] = answer.value, answer.lower, answer.upper
    # Where there is no value, the middle of its bar.
    middle = found[:, 1:].mean(axis=1)
    found[:, 0] = np.where(np.isnan(found[:, 0]), middle, found[:, 0])
    return found


def measured(
    table: Table,
    epsilon: float,
    kinds: Sequence[str],
    seeds: Sequence[int],
    most: int,
    method: str = "MarginalSynthesizer",
) -> list[dict[str, Any]]:
    """Results of each kind: one dict, with those of each question under "each"."""
    chosen = {kind: questions(table, kind, most) for kind in kinds}
    answers: dict[str, list[Floats]] = {kind: [] for kind in kinds}
    fit_seconds, ask_seconds = [], dict.fromkeys(kinds, 0.0)
    for seed in seeds:
        begin = time.process_time()
        title, parameters = parsed(method)
        estimator = getattr(skdp, title)(
            epsilon, domain=table.domain, random_state=seed, **parameters
        )
        release = estimator.fit(table.rows).synopsis_
        fit_seconds.append(time.process_time() - begin)
        for kind, some in chosen.items():
            begin = time.process_time()
            answers[kind].append(asked(release, some))
            ask_seconds[kind] += time.process_time() - begin
    rows = []
    for kind, some in chosen.items():
        if some:
            each = judged(table.rows, some, np.array(answers[kind]))
            own = {"table": table.name, "epsilon": epsilon, "kind": kind, "fits": len(seeds)}
            own |= {"n": len(some), **over_questions(each)}
            own["fit_s"] = float(np.mean(fit_seconds))
            own["ask_ms"] = 1000 * ask_seconds[kind] / len(seeds) / len(some)
            rows.append({**own, "each": each})
    return rows


def judged(rows: pd.DataFrame, some: Sequence[Question], answers: Floats) -> list[dict[str, Any]]:
    """Errors of each question over releases; ``answers`` is (releases, questions, 3)."""
    found = []
    for place, question in enumerate(some):
        truth, unit = question.truth(rows), question.unit(rows)
        value, lower, upper = answers[:, place].T
        errors = (value - truth) / unit
        # Ends are compared up to rounding.
        slack = 1e-9 * max(abs(truth), 1.0)
        held = (lower - slack <= truth) & (truth <= upper + slack)
        found.append(
            {
                "question": str(question),
                "truth": truth,
                "bias": float(errors.mean()),
                "sd": float(errors.std(ddof=1)) if len(errors) > 1 else 0.0,
                "rms": float(np.sqrt(np.mean(errors**2))),
                "holds": float(held.mean()),
                "half": float(np.mean(upper - lower)) / 2 / unit,
            }
        )
    return found


def over_questions(each: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Medians and shares over questions."""
    table = pd.DataFrame(each)
    return {
        "bias": float(table["bias"].abs().median()),
        "sd": float(table["sd"].median()),
        "rms": float(table["rms"].median()),
        "holds": float(table["holds"].mean()),
        "below": float((table["holds"] < 0.8).mean()),
        "half": float(table["half"].median()),
    }


def shown(row: dict[str, Any], before: dict[str, Any] | None = None) -> str:
    """A line of the printed table; with an earlier result also the ratio of the errors."""
    line = f"{row['table']:18}{row['epsilon']:8g} {row['kind']:12}{row['n']:4}"
    line += "".join(f"{row[name]:10.3g}" for name in ("bias", "sd", "rms"))
    line += f"{row['holds']:7.2f}{row['below']:6.2f}{row['half']:10.3g}"
    line += f"{row['fit_s']:7.2f}{row['ask_ms']:8.1f}"
    if before is not None and before["rms"] > 0:
        line += f"  {row['rms'] / before['rms']:.2f} of {before['rms']:.3g}"
    return line


def summary(rows: Sequence[dict[str, Any]], before: dict[Any, dict[str, Any]]) -> pd.DataFrame:
    """Each epsilon and kind over tables.

    ``worst`` is the lowest share of bars that hold of a table, ``below`` the share of all questions
    whose bars hold less than 80% of the time, ``half/rms`` the median over tables; ``ratio`` is the
    geometric mean over tables of the error as a ratio to the earlier one.
    """
    lines = []
    for epsilon, kind in dict.fromkeys((row["epsilon"], row["kind"]) for row in rows):
        own = [row for row in rows if (row["epsilon"], row["kind"]) == (epsilon, kind)]
        counts = [row["n"] for row in own]
        line = {"epsilon": epsilon, "kind": kind, "tables": len(own), "n": sum(counts)}
        line["holds"] = np.average([row["holds"] for row in own], weights=counts)
        line["worst"] = min(row["holds"] for row in own)
        line["below"] = np.average([row["below"] for row in own], weights=counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            line["half/rms"] = np.nanmedian([np.divide(row["half"], row["rms"]) for row in own])
        pairs = [(row["rms"], before[key_of(row)]["rms"]) for row in own if key_of(row) in before]
        ratios = [new / old for new, old in pairs if new > 0 and old > 0]
        if ratios:
            line["ratio"] = float(np.exp(np.mean(np.log(ratios))))
        lines.append(line)
    return pd.DataFrame(lines)


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Which result a row is."""
    return row["table"], row["epsilon"], row["kind"]


def main(arguments: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tables", nargs="+", choices=list(TABLES), help="default: all but unseen ones"
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--fits", type=int, help="releases of each; default: 30")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--most-questions", type=int, default=40, help="of a kind and table")
    parser.add_argument(
        "--method", default="MarginalSynthesizer", help='a synthesizer, or "Class(name=value)"'
    )
    parser.add_argument("--quick", action="store_true", help="two fits of four tables")
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    parser.add_argument("--beside", type=Path, help="JSON file of an earlier run")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", InsecureSeedWarning)
    chosen_on = [each for each in TABLES if each not in _unseen_tables.TABLES]
    names = given.tables or (QUICK if given.quick else chosen_on)
    fits = given.fits or (2 if given.quick else 30)
    seeds = range(given.first_seed, given.first_seed + fits)
    before = {}
    if given.beside is not None:
        earlier = json.loads(given.beside.read_text(encoding="utf-8"))["results"]
        before = {key_of(row): row for row in earlier}
    print(HEADER, flush=True)
    rows: list[dict[str, Any]] = []
    for name in names:
        table = TABLES[name]()
        for epsilon in given.epsilons:
            found = measured(table, epsilon, given.kinds, seeds, given.most_questions, given.method)
            for row in found:
                print(shown(row, before.get(key_of(row))), flush=True)
            rows += found
            _data.write_json(given.out, "questions", rows)
    with pd.option_context("display.width", 200, "display.max_rows", None):
        print(summary(rows, before).round(3).to_string(index=False))
    return rows


if __name__ == "__main__":
    main()
