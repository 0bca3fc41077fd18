"""Domains, and pairs of neighbours in them that are hard on an estimator."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import skdp

INF, NAN = np.inf, np.nan
Pairs = dict[str, tuple[Any, Any]]


def bins(n: int, **changes: Any) -> skdp.Numeric:
    """A number from 0 to n, in n bins."""
    return skdp.Numeric(0, n, bins=n, **changes)


LABEL, SMALL = skdp.Categorical(["a", "b"]), skdp.Numeric(0, 2, integer=True)
LINE, PLANE = skdp.Domain({"x": bins(8)}), skdp.Domain({"x": bins(4), "s": LABEL})
SPACE = skdp.Domain(
    {"x": bins(4), "y": skdp.Numeric(-1, 1, bins=3, nullable=True), "z": SMALL, "s": LABEL}
)
# Structural zeros: a code, a pair of columns, and three columns that no tree of pairs can hold.
RULED = skdp.Domain(
    SPACE.items(),
    structure=[
        skdp.forbid("z == 1"),
        skdp.forbid("x < 2 and s == 'b'"),
        skdp.forbid("x >= 2 and x <= 4 and z == 0 and s == 'a'"),
    ],
)
RULED_PLANE = skdp.Domain(
    PLANE.items(), structure=[skdp.forbid("x < 2 and s == 'b'"), skdp.forbid("x >= 3 and s == 'a'")]
)
# More classes than get a model of their own; more codes than are kept apart in a pair.
MANY_LABELS = skdp.Categorical([f"c{i}" for i in range(24)])
CLASSES = skdp.Domain({"x": bins(4), "y": bins(2), "s": MANY_LABELS})
CODES = skdp.Domain({"x": bins(600), "y": bins(2), "s": LABEL})
MANY_CODES, MAP = (skdp.Domain({"x": bins(n), "y": bins(m)}) for n, m in ((2500, 2), (40, 40)))
BINARY = skdp.Domain({"x": bins(2), "y": bins(2), "s": LABEL, "t": skdp.Categorical(["c", "d"])})
THREE = skdp.Domain(dict.fromkeys("abc", SMALL))
# Levels that are divided or not, missing values, and more bins than buckets begin at.
WIDE, MANY_BINS = skdp.Domain({"x": bins(600, nullable=True)}), skdp.Domain({"x": bins(9000)})
# Whole numbers alone, so that linear models take second moments too.
WHOLE = skdp.Domain({"x": skdp.Numeric(0, 3, integer=True), "z": SMALL})
NUMBERS = SPACE.select(["z", "x"])
BOX = (-1.0, 1.0)


def spread(domain: skdp.Domain, n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows in which the columns depend on each other."""
    rng = np.random.default_rng(seed)
    level = rng.beta(0.6, 0.9, n_rows)
    columns = {}
    for name, attribute in domain.items():
        noisy = np.clip(level + rng.normal(0, 0.08, n_rows), 0, 0.999)
        if isinstance(attribute, skdp.Categorical):
            kinds = list(attribute.categories)
            columns[name] = [kinds[int(v * len(kinds))] for v in noisy]
        else:
            values = attribute.lower + noisy * (attribute.upper - attribute.lower)
            columns[name] = np.floor(values) if attribute.integer else values
    return pd.DataFrame(columns)


def edge(domain: skdp.Domain, side: int, value: float | None = None) -> pd.DataFrame:
    """One row in a corner of the domain, or one whose numbers are all ``value``."""
    return pd.DataFrame(
        {
            name: [
                attribute.categories[side and -1]
                if isinstance(attribute, skdp.Categorical)
                else (attribute.upper if side else attribute.lower)
                if value is None
                else value
            ]
            for name, attribute in domain.items()
        }
    )


def join(*parts: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True)


def less(rows: pd.DataFrame, place: int = -1) -> pd.DataFrame:
    return rows.drop(index=rows.index[place]).reset_index(drop=True)


def pairs_of(domain: skdp.Domain) -> Pairs:
    """Data sets and neighbours with one record less."""
    low, high, table = edge(domain, 0), edge(domain, 1), spread(domain, 40)
    tied = join(*[high] * 25)
    found = {
        "nobody": low,
        "two": join(low, high),
        "tied": tied,
        "alone in a corner": join(tied, low),
        "duplicates": join(table[:8], table[:8], table[:8]),
        "corners": join(*[low] * 10, *[high] * 11),
        "from the middle": table,
        "crowded": join(*[table] * 12, low),
    }
    for value in (NAN, INF, -INF, 1e300):
        found[f"a row of {value:g}"] = join(table[:15], edge(domain, 1, value))
    unknown = join(table[:15], low)
    for name, attribute in domain.items():
        if isinstance(attribute, skdp.Categorical):
            unknown[name] = [*unknown[name][:-1], "martian"]
    found["unknown categories"] = unknown
    pairs = {name: (rows, less(rows)) for name, rows in found.items()}
    return pairs | {"from the middle": (table, less(table, 17))}


def with_gaps(domain: skdp.Domain) -> Pairs:
    """What becomes of records with gaps may not depend on the others."""
    rows = join(*[edge(domain, 1, NAN)] * 3, *[edge(domain, 0)] * 3, *[edge(domain, 1)] * 6)
    return pairs_of(domain) | {"others have gaps": (rows, rows[:-1])}


def with_losses(domain: skdp.Domain) -> Pairs:
    """Records of which all or some are lost."""
    lost = spread(domain, 40).assign(s="martian")
    some = join(spread(domain, 40), lost[:20])
    return pairs_of(domain) | {
        "all are lost": (lost, less(lost, 0)),
        "some are lost": (some, less(some, 0)),
    }


def with_a_contrary(domain: skdp.Domain) -> Pairs:
    """A record alone with its label among many in one column, and with its value in the others."""
    crowd = pd.DataFrame({"x": 0.5, "y": -0.9, "z": 0, "s": ["b"] * 60})
    odd = pd.DataFrame({"x": [0.5], "y": [0.9], "z": [2], "s": ["a"]})
    return pairs_of(domain) | {"contrary": (join(crowd, odd), crowd)}


def with_broken_rules(domain: skdp.Domain) -> Pairs:
    """Just more than half of the records break a rule, or just half."""
    fine, broken = edge(domain, 0), edge(domain, 0).assign(z=1)
    rows = join(*[fine] * 5, *[broken] * 6)
    return pairs_of(domain) | {"most break a rule": (rows, rows[:-1])}


def rare_codes(_: skdp.Domain) -> Pairs:
    """Score R of one pair of columns rises by its most with a record, and that of another falls.

    With 10,000 records, 200 of a rare code of a, and 200 others of one of c. Ten of the former have
    a code of b, the record has one of its own.
    """
    codes = np.zeros((10_000, 3), dtype=int)
    codes[:200, 0], codes[200:400, 2], codes[:10, 1] = 1, 1, 1
    found = {}
    # Which column has no parents is drawn.
    for order in map(list, itertools.permutations(range(3))):
        rows = pd.DataFrame(codes[:, order], columns=list("abc"))
        more = pd.DataFrame(np.array([[1, 2, 1]])[:, order], columns=list("abc"))
        found["as " + "".join("abc"[place] for place in order)] = (join(rows, more), rows)
    return found


def persons_of(domain: skdp.Domain) -> Pairs:
    """Neighbours without all rows of one person, who may have more than count."""
    table = spread(domain, 30)
    table["who"] = ["ann", "bea", "cyd"] * 4 + ["dot"] * 12 + ["eve", "fay"] * 3
    odd = edge(domain, 1, NAN).assign(who="gus")
    alike = join(*[edge(domain, 0).assign(who=who) for who in "aaabbb"])
    ghosts = table.assign(who=[None, NAN, *table["who"][2:]])

    def without(rows: pd.DataFrame, who: str) -> pd.DataFrame:
        return rows[rows["who"] != who].reset_index(drop=True)

    return {
        "many rows": (table, without(table, "dot")),
        "few rows": (table, without(table, "fay")),
        "the first": (table, without(table, "ann")),
        "missing values": (join(table, odd), table),
        "like another": (alike, without(alike, "a")),
        "unknown persons": (ghosts, without(ghosts, "eve")),
        "nobody": (without(alike, "a"), without(without(alike, "a"), "b")),
    }


def apart(pairs: Pairs, label: str) -> Pairs:
    """The same pairs as (X, y)."""
    return {
        name: tuple((rows.drop(columns=label), rows[label]) for rows in pair)
        for name, pair in pairs.items()
    }


def arrays_of(n_columns: int) -> Callable[[Any], Pairs]:
    """The pairs as arrays of numbers from -1 to 1."""

    def made(_: Any) -> Pairs:
        domain = skdp.Domain({f"x{i}": skdp.Numeric(*BOX) for i in range(n_columns)})
        return {
            name: tuple(rows.to_numpy(dtype=float) for rows in pair)
            for name, pair in pairs_of(domain).items()
        }

    return made


def narrow(n_columns: int) -> Callable[[Any], Pairs]:
    """Records in a small part of a wide range, and one that is far from all others."""
    # The first record is farther from its centroid than a round clips: a record at the end of an
    # even cluster is about as far as that, and with noise in the radius may cost a little less.
    ends = np.append(-0.25, np.linspace(0, 5, 8_999))[:, None]
    alike = np.full((9_000, 1), 0.3)
    found = {
        "alike": (alike, alike[1:]),
        "end": (ends, ends[1:]),
        "far": (np.append(alike, [[900.0]], 0), alike),
    }
    both = np.repeat(ends, 2, axis=1)
    return lambda _: found if n_columns == 1 else {"end": (both, both[1:])}


def ends_of_blocks(_: Any) -> Pairs:
    """Two blocks of five would have the ones if records were dealt out by position."""
    ends = np.tile([[1.0], [-1], [1], [-1], [-1]], (8, 2))
    return {"nobody": (ends[:1], ends[:0]), "others move up": (ends, np.delete(ends, 3, 0))}


# --- of functions


def tails(x: Any, y: Any, **ends: int) -> Pairs:
    """The first records of two columns, with and without the last of them."""
    return {
        name: ((x[:end], y[:end]), (x[: end - 1], y[: end - 1]))
        for name, end in {**ends, "nobody": 1}.items()
    }


TRUTH = np.array([0, 1, 0, 1, 0, 1, 9])
REAL = np.array([0.1, 0.5, 1.0, 0.0, NAN, INF, 0.2])
SCORE = np.array([0.1, 0.9, 0.5, 0.0, 1.0, NAN, 0.3])


def labels_and_scores(scores: Any = None, truth: Any = TRUTH) -> Callable[[], Pairs]:
    """True labels or numbers and scores, right or wrong, missing or unknown."""
    ends = {"right": 2, "wrong": 5, "missing": 6, "unknown": 7}
    return lambda: tails(truth, SCORE if scores is None else scores(SCORE), **ends)


def guesses() -> Pairs:
    return tails(TRUTH[:6], np.array([0, 1, 0, 1, 1, 7]), wrong=5, unknown=6)


def far_off() -> Pairs:
    guess = np.array([0.1, 0.7, 0.0, 1e300])
    odd = np.array([0.1, NAN, INF])
    return tails(REAL[:4], guess, worst=3, huge=4) | {
        "missing": ((odd[:2], guess[:2]), (odd[:1], guess[:1])),
        "infinite": ((odd[[0, 2]], guess[:2]), (odd[:1], guess[:1])),
    }


def cells() -> Pairs:
    """Rows of codes."""
    crowd = np.repeat([[0, 0, 0], [1, 2, 3], [1, 2, 4]], [9, 4, 1], axis=0)
    lonely = np.array([[0, 2, 2]])
    return {
        "nobody": (lonely, lonely[:0]),
        "alone in a cell": (np.concatenate([crowd, lonely]), crowd),
        "one of nine": (crowd, crowd[1:]),
        "outside the domain": (np.concatenate([crowd, lonely - 3]), crowd),
    }


def many_baskets() -> Pairs:
    lists = [[f"i{j}" for j in range(i)] for i in range(12)]
    # Where only the tenth count moves, both falls of the choice do.
    return {"all items": (lists, lists[:-1]), "tenth": ([*lists, ["i9"]], lists)}


def values_on_a_line() -> Pairs:
    """Values of one column: lonely ones, equal ones, and those beyond the bounds."""
    line = np.array([3.0, 8, 8, 8, 8, 21, 40, 41, 77, 90])
    odd = np.array([NAN, -5, INF, 50, NAN, 50])
    return {
        "the lowest": (line, line[1:]),
        "one of several": (line, np.delete(line, 2)),
        "in the middle": (line, np.delete(line, 5)),
        "the highest": (line, line[:-1]),
        "the only one": (line[5:6], line[:0]),
        "a second one": (line[[0, 9]], line[:1]),
        "all alike": (np.full(6, 8.0), np.full(5, 8.0)),
        "missing": (odd, odd[1:]),
        "infinite": (odd, np.delete(odd, 2)),
    }


def values_of_persons() -> Pairs:
    rows = pd.DataFrame({"value": [3, 8, 8, 21, 40, 41, 77, 90.0], "who": [*"aabbbbcd"]})
    return {
        f"without {who}": (rows, rows[rows["who"] != who].reset_index(drop=True)) for who in "abcd"
    }
