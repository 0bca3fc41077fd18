"""Questions that people ask of a release: errors of each one by itself, and whether its bar holds.

Each question is put to many releases of the same table. Kinds:

``tails``, ``round-tails``
    How many records are high in both of two numbers, low in both, or high in one and low in the
    other; thresholds on edges of bins, or round numbers inside them; all pairs with a rank
    correlation of 0.3 or more (if a table has none, the strongest pair).
``triples``
    How many records of a category are high in both of two numbers; pairs as for ``tails``.
``thresholds``, ``declared``
    How many records lie below a round number inside a bin, in columns without and with ``bins=``.
``equals``
    How many records hold one value of a number: its most frequent ones, and some others.
``cells``, ``mixed``, ``threes``
    How many records meet a condition on each of two categories, of a category and a number, and of
    any three columns.
``rare``
    Cases that 0.05% to 1% of the records are: categories and cells of two; and far tails.
``means``, ``quantiles``, ``correlations``
    The mean of a number in a category, quantiles of a number, correlations of two numbers.

Thresholds are near quantiles of the true table and do not depend on the release. Numbers are the
numeric columns of more than ten codes, categories the others. A line of the result has

``rms``
    the median over questions of the root mean square error over releases; of means and quantiles in
    standard deviations of their column,
``holds``
    the share of bars at 95% that hold,
``over``
    the median half width of a bar over 1.96 times ``rms``,
``useless``
    of counts above 1% of the table, the share whose half width is above a quarter of the count,
``refused``
    the share of questions that the release refuses; they are useless, and their bars do not hold.

Each figure has a standard error: over releases, by leaving out one at a time. Run as ``python -m
benchmarks.questions --out questions.json``.
`benchmarks.baseline` compares with the figures of an earlier commit.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import skdp
from benchmarks import _data, _unseen_tables
from benchmarks._fidelity_tables import Table
from benchmarks._question_tables import TABLES, edges_of
from benchmarks.fidelity import parsed
from skdp.exceptions import InsecureSeedWarning

EPSILONS = (0.1, 1.0, 8.0)
MOST = 40  # questions of a kind and table
FIGURES = ("rms", "holds", "over", "useless", "refused")
MOST_CODES = 10  # of a number that is asked for like a category
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
RARE_SHARES = (0.0005, 0.01)
RARE_TAILS = (0.002, 0.005, 0.995, 0.998)
COUNTED_SHARE, USELESS = 0.01, 0.25

Condition = tuple[str, str, Any]  # column, operator, value
Floats = NDArray[np.float64]


class Question(NamedTuple):
    """A count, or a statistic of a column, of the records that meet all conditions."""

    conditions: tuple[Condition, ...]
    statistic: str = "count"
    column: str = ""
    share: float = 0.0  # of a quantile
    other: str = ""  # the second column of a correlation

    @property
    def query(self) -> str:
        """The conditions as a text."""
        return " and ".join(f"`{name}` {sign} {value!r}" for name, sign, value in self.conditions)

    def __str__(self) -> str:
        parts = (self.statistic, self.share, self.column, self.other)
        what = " ".join(str(part) for part in parts if part)
        return f"{what} where {self.query}" if self.conditions else what

    def ask(self, release: Any) -> Any:
        """The answer of a release with its bar at 95%."""
        if self.statistic == "mean":
            return release.mean(self.column, self.query, return_interval=True)
        if self.statistic == "quantile":
            return release.quantile(self.column, self.share, return_interval=True)
        if self.statistic == "correlation":
            return release.correlation(self.column, self.other, return_interval=True)
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
        if self.statistic == "correlation":
            return float(rows[[self.column, self.other]].astype("float64").corr().iloc[0, 1])
        values = _values(rows, self.column)[met]
        values = values[~np.isnan(values)]
        if not len(values):
            return float("nan")
        if self.statistic == "mean":
            return float(values.mean())
        return float(np.quantile(values, self.share, method="inverted_cdf"))

    def unit(self, rows: pd.DataFrame) -> float:
        """What errors are divided by."""
        if self.statistic in ("count", "correlation"):
            return 1.0
        return float(np.nanstd(_values(rows, self.column)))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _values(rows: pd.DataFrame, column: str) -> Floats:
    return rows[column].to_numpy(dtype=np.float64, na_value=np.nan)


def _has_bins(attribute: Any) -> bool:
    """Whether a number was declared with other bins than those that its range has anyway."""
    integers = attribute.upper - attribute.lower + 1 if attribute.integer else None
    return not attribute.auto and attribute.bins != integers


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
        self.categories = {name: self._within(name, LEAST_SHARE) for name in names if name in few}
        texts = [name for name in names if name not in self.numbers]
        self.texts = {name: self._within(name, LEAST_SHARE) for name in texts}
        self.rare = {name: self._within(name, *RARE_SHARES) for name in texts}
        self.declared = {name for name in self.numbers if _has_bins(domain[name])}
        self.edges = {name: edges_of(table, name) for name in self.numbers}
        self.whole = {name for name in self.numbers if getattr(domain[name], "integer", False)}
        values = {name: _values(rows, name) for name in self.numbers}
        self.sorted = {name: np.sort(each[~np.isnan(each)]) for name, each in values.items()}
        ranks = np.abs(pd.DataFrame(values).corr("spearman").to_numpy())
        among = itertools.combinations(range(len(self.numbers)), 2)
        strength = {(self.numbers[a], self.numbers[b]): float(ranks[a, b]) for a, b in among}
        strong = [pair for pair, found in strength.items() if found >= LEAST_CORRELATION]
        self.pairs = strong or sorted(strength, key=strength.__getitem__)[-1:]

    def _within(self, name: str, low: float, high: float = 1.0) -> list[Any]:
        """Values that such a share of the records has."""
        shares = self.rows[name].value_counts(normalize=True, dropna=False)
        kept = [value for value in shares.index[shares.between(low, high)] if not pd.isna(value)]
        return sorted(map(_plain, kept))

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

    def conditions(self, name: str) -> list[Condition]:
        """Conditions on one column: a value of a category, or the tail of a number."""
        if name in self.texts:
            return [(name, "==", value) for value in self.texts[name]]
        return [
            found
            for quantile in QUANTILES
            if (found := self.tail(name, quantile, self.round_number)
                or self.tail(name, quantile, self.on_edge))
        ]  # fmt: skip

    def on_all(self, *names: str) -> list[Question]:
        """Questions with a condition on each of some columns."""
        each = map(self.conditions, names)
        return [Question(conditions) for conditions in itertools.product(*each)]

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


def _thresholds(columns: Columns, names: Sequence[str]) -> list[list[Question]]:
    quantiles = (np.arange(N_THRESHOLDS) + 0.5) / N_THRESHOLDS
    found = []
    for name in names:
        cuts = [columns.round_number(name, quantile) for quantile in quantiles]
        found.append([Question(((name, "<", cut),)) for cut in cuts if cut is not None])
    return found


def thresholds(columns: Columns) -> list[list[Question]]:
    """Records below round numbers inside bins that were not declared."""
    return _thresholds(columns, [each for each in columns.numbers if each not in columns.declared])


def declared(columns: Columns) -> list[list[Question]]:
    """Records below round numbers inside declared bins."""
    return _thresholds(columns, [each for each in columns.numbers if each in columns.declared])


def equals(columns: Columns) -> list[list[Question]]:
    """Records with one value of a number."""
    found = []
    for name in columns.numbers:
        values, counts = np.unique(columns.sorted[name], return_counts=True)
        often = values[np.argsort(-counts, kind="stable")[: len(QUANTILES)]]
        others = np.quantile(columns.sorted[name], QUANTILES, method="inverted_cdf")
        some = [float(value) for value in (*often, *others)]
        whole = name in columns.whole
        found.append([Question(((name, "==", int(v) if whole else v),)) for v in some])
    return found


def cells(columns: Columns) -> list[list[Question]]:
    """Records with a value of each of two categories."""
    return [columns.on_all(*pair) for pair in itertools.combinations(columns.texts, 2)]


def mixed(columns: Columns) -> list[list[Question]]:
    """Records of a category in the tail of a number."""
    return [columns.on_all(*pair) for pair in itertools.product(columns.texts, columns.numbers)]


def threes(columns: Columns) -> list[list[Question]]:
    """Records that meet a condition on each of three columns."""
    rng = np.random.default_rng(1)
    found = []
    for names in itertools.combinations([*columns.texts, *columns.numbers], 3):
        each = [columns.conditions(name) for name in names]
        if all(each):
            drawn = [tuple(some[rng.integers(len(some))] for some in each) for _ in range(4)]
            found.append([Question(conditions) for conditions in drawn])
    return found


def rare(columns: Columns) -> list[list[Question]]:
    """Cases that few records are."""
    low, high = (share * len(columns.rows) for share in RARE_SHARES)
    few = []
    for one, two in itertools.combinations(columns.texts, 2):
        counts = columns.rows.value_counts([one, two]).sort_index()
        pairs = counts.index[counts.between(low, high)]
        few.append([Question(((one, "==", _plain(a)), (two, "==", _plain(b)))) for a, b in pairs])
    tails = [
        [
            Question(((name, "<" if quantile < 0.5 else ">=", cut),))
            for quantile in RARE_TAILS
            if (cut := columns.round_number(name, quantile)) is not None
        ]
        for name in columns.numbers
    ]
    values = [
        [Question(((name, "==", value),)) for value in some] for name, some in columns.rare.items()
    ]
    return values + few + tails


def correlations(columns: Columns) -> list[list[Question]]:
    """Correlations of two numbers."""
    pairs = itertools.combinations(columns.numbers, 2)
    return [[Question((), "correlation", one, other=two)] for one, two in pairs]


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
    kind.__name__.replace("_", "-"): kind
    for kind in (
        tails, thresholds, means, quantiles, triples, round_tails, declared, equals, cells, mixed,
        threes, rare, correlations,
    )
}  # fmt: skip


def questions(table: Table, kind: str, most: int, columns: Columns | None = None) -> list[Question]:
    """Questions of a kind, at most so many, about equally many from each group of them."""
    rng = np.random.default_rng(0)
    # A group is a pair, a column, or a category; which of its questions come first is drawn.
    drawn = []
    for group in KINDS[kind](columns or Columns(table)):
        distinct = list(dict.fromkeys(group))
        drawn.append([distinct[place] for place in rng.permutation(len(distinct))])
    groups = [drawn[place] for place in rng.permutation(len(drawn))]
    turns = (each for turn in itertools.zip_longest(*groups) for each in turn if each is not None)
    # There is no mean where no record has a value.
    asked_for = (each for each in turns if not np.isnan(each.truth(table.rows)))
    return list(itertools.islice(asked_for, most))


def of_each_kind(table: Table, kinds: Sequence[str], most: int) -> dict[str, list[Question]]:
    """Questions of some kinds."""
    columns = Columns(table)
    return {kind: questions(table, kind, most, columns) for kind in kinds}


# --------------------------------------------------------------------------------------------------
# Answers


def asked(release: Any, some: Sequence[Question]) -> Floats:
    """Value, lower and upper end of the bar for each question, (n, 3); NaN where it is refused."""
    found = np.full((len(some), 3), np.nan)
    for place, question in enumerate(some):
        try:
            answer = question.ask(release)
        except ValueError:
            continue
        found[place] = answer.value, answer.lower, answer.upper
    # Where there is no value, the middle of its bar.
    middle = found[:, 1:].mean(axis=1)
    found[:, 0] = np.where(np.isnan(found[:, 0]), middle, found[:, 0])
    return found


def measured(
    table: Table,
    epsilon: float,
    chosen: Mapping[str, Sequence[Question]],
    seeds: Sequence[int],
    method: str = "MarginalSynthesizer",
) -> list[dict[str, Any]]:
    """Results of each kind: one dict, with those of each question under "each"."""
    answers: dict[str, list[Floats]] = {kind: [] for kind in chosen}
    fit_seconds, ask_seconds = [], dict.fromkeys(chosen, 0.0)
    for seed in seeds:
        begin = time.process_time()
        title, parameters = parsed(method)
        estimator = getattr(skdp, title)(
            epsilon=epsilon, domain=table.domain, random_state=seed, **parameters
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
            truth = np.array([each.truth(table.rows) for each in some])
            unit = np.array([each.unit(table.rows) for each in some])
            counts = np.array([each.statistic == "count" for each in some])
            large = counts & (truth > COUNTED_SHARE * len(table.rows))
            own = {"table": table.name, "epsilon": epsilon, "kind": kind, "fits": len(seeds)}
            own |= {"n": len(some), **with_errors(np.array(answers[kind]), truth, unit, large)}
            own["fit_s"] = float(np.mean(fit_seconds))
            own["ask_ms"] = 1000 * ask_seconds[kind] / len(seeds) / len(some)
            each = judged(np.array(answers[kind]), truth, unit, large)
            each.insert(0, "question", [str(question) for question in some])
            rows.append({**own, "each": each.to_dict("records")})
    return rows


def judged(answers: Floats, truth: Floats, unit: Floats, large: Any) -> pd.DataFrame:
    """Figures of each question over releases; ``answers`` is (releases, questions, 3)."""
    value, lower, upper = np.moveaxis(answers, 2, 0)
    # Ends are compared up to rounding.
    slack = 1e-9 * np.maximum(np.abs(truth), 1.0)
    held = (lower - slack <= truth) & (truth <= upper + slack)
    half = (upper - lower) / 2
    # A refused question has no bar, which is no bar within a quarter.
    useless = np.where(large, ~(half <= USELESS * truth), np.nan)
    return pd.DataFrame(
        {
            "truth": truth,
            "rms": np.sqrt(np.mean(((value - truth) / unit) ** 2, axis=0)),
            "half": half.mean(axis=0) / unit,
            "holds": held.mean(axis=0),
            "useless": useless.mean(axis=0),
            "refused": np.isnan(lower).mean(axis=0),
        }
    )


def over_questions(each: pd.DataFrame) -> dict[str, float]:
    """The figures of a kind; NaN where no question has one."""
    rms, half = float(each["rms"].median()), float(each["half"].median())
    shares = {name: float(each[name].mean()) for name in ("holds", "useless", "refused")}
    return {"rms": rms, "over": half / (1.96 * rms) if rms > 0 else np.nan, **shares}


def with_errors(answers: Floats, truth: Floats, unit: Floats, large: Any) -> dict[str, float]:
    """The figures of a kind and their standard errors, named after them with "_se".

    An error is that of leaving out one release at a time, and of a share at least that of so many
    independent answers.
    """
    found = over_questions(judged(answers, truth, unit, large))
    fits = len(answers)
    parts = [
        over_questions(judged(np.delete(answers, fit, axis=0), truth, unit, large))
        for fit in range(fits if fits > 1 else 0)
    ]
    for name in FIGURES:
        of = [part[name] for part in parts]
        error = float(np.std(of) * np.sqrt(fits - 1)) if of else np.nan
        if name in ("holds", "useless"):
            n = fits * int(large.sum() if name == "useless" else len(truth))
            share = (n * found[name] + 1) / (n + 2)
            error = float(np.fmax(error, np.sqrt(share * (1 - share) / max(n, 1))))
        found[f"{name}_se"] = error
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    chosen_on = [each for each in TABLES if each not in _unseen_tables.TABLES]
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=chosen_on)
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--fits", type=int, default=30, help="releases of each")
    parser.add_argument(
        "--method", default="MarginalSynthesizer", help='a synthesizer, or "Class(name=value)"'
    )
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", InsecureSeedWarning)
    rows: list[dict[str, Any]] = []
    for name in given.tables:
        table = TABLES[name]()
        chosen = of_each_kind(table, given.kinds, MOST)
        for epsilon in given.epsilons:
            found = measured(table, epsilon, chosen, range(given.fits), given.method)
            shown = pd.DataFrame(found).drop(columns="each")
            print(shown.to_string(index=False, float_format="{:.3g}".format), flush=True)
            rows += found
            _data.write_json(given.out, "questions", rows)


if __name__ == "__main__":
    main()
