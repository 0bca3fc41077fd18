"""What a declaration misses in the records of a table: exact, for the data owner at a terminal.

Nothing here is private, and nothing of it goes into a domain that is saved, a ledger or a release.
What is found is shown beside a corrected declaration in which the values are left blank: they are
filled in from public knowledge.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._types import BoolArray, FloatArray
from .categorical import Categorical
from .clock import date_form, moment
from .dates import Date, Datetime
from .numeric import Numeric
from .schemas.skeleton import Draft
from .values import is_missing, number_written

__all__ = ["Findings", "examined"]


@dataclass(frozen=True)
class _Tuning:
    """When something is worth a line. None of it protects anything: all numbers are exact.

    Attributes
    ----------
    kind : float
        Share of the values that must be numbers, or dates in one form, for a column without a type.
    categories : int
        Most distinct values of a column that is proposed as categories.
    crowded, point : float
        Share of the records in one bin, and at one value among many.
    rule : float
        Share of the records that keep a rule that is proposed.
    columns, rules : int
        Columns that are compared in pairs, and rules of a kind that are shown.
    """

    kind: float = 0.95
    categories: int = 60
    crowded: float = 0.5
    point: float = 0.05
    rule: float = 0.98
    columns: int = 40
    rules: int = 12


TUNING = _Tuning()
_FORMS = (
    "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y",
    "%b %d, %Y", "%b-%Y", "%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%y",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S")
# Values that are read to recognise a form; their distinct ones, the commonest first.
_LOOKED_AT = 2000


@dataclass
class Findings:
    """Sentences on the records, and a corrected declaration with blanks.

    Attributes
    ----------
    lines : list of str
        Each begins with the column that it is about.
    drafts : list of Draft
    changed : bool
        Whether the drafts differ from what was declared.
    """

    lines: list[str] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    changed: bool = False


def examined(domain: Any, frame: Any) -> Findings:
    """What the owner should know of the records before spending. Exact counts.

    Parameters
    ----------
    domain : Domain or None
        None: every column is proposed by what it holds.
    frame : Rows
    """
    found = Findings()
    declared = dict.fromkeys(frame.names) if domain is None else dict(domain._declared)
    readable = np.ones(frame.n_rows, dtype=bool) if frame.unfit is None else ~frame.unfit
    held: dict[str, tuple[Any, Any, BoolArray]] = {}
    for name, attribute in declared.items():
        if name not in frame.names or not readable.any():
            found.drafts.append((name, _data_of(attribute), ""))
            continue
        column = _Values(frame.column(name), readable)
        data = _proposed(column, name) if attribute is None else _data_of(attribute)
        lines, changes = _of_column(column, attribute, data)
        found.lines += [f"{name}: {line}" for line in lines]
        found.changed |= bool(changes) or attribute is None
        data = {**data, **changes}
        if changes and "bins" in data and data.get("type") != "numeric":
            del data["bins"]
        found.drafts.append((name, data, ""))
        held[name] = (data["type"], column, column.absent)
    found.lines += _rules(held)
    return found


def _data_of(attribute: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"type": ...} if attribute is None else dict(attribute._to_data())
    for end in ("lower", "upper"):
        if isinstance(data.get(end), float) and data[end].is_integer():
            data[end] = int(data[end])
    return data


class _Values:
    """The values of one column, by what they are."""

    def __init__(self, column: Any, readable: BoolArray) -> None:
        self.column = column
        codes, uniques = column.factorize()
        self.codes = codes[readable]
        blank = [is_missing(u) or (isinstance(u, str) and not u.strip()) for u in uniques]
        self.uniques = uniques
        self.absent = np.array([*blank, True])[self.codes]
        self.numbers: FloatArray = column.numbers()[readable]
        self.counts = np.bincount(self.codes[~self.absent], minlength=len(uniques))
        self.n = int((~self.absent).sum())
        self.distinct = int((self.counts > 0).sum())

    def commonest(self) -> list[tuple[Any, int]]:
        """Distinct values and their numbers, the commonest first."""
        order = np.argsort(-self.counts, kind="stable")
        return [(self.uniques[i], int(self.counts[i])) for i in order if self.counts[i]]

    @functools.cached_property
    def texts(self) -> list[tuple[str, int]]:
        return [(value, count) for value, count in self.commonest() if isinstance(value, str)]

    def form(self) -> tuple[str | None, int, str]:
        """The form of dates that reads most of the texts, how many, and another that does."""
        texts = self.texts[:_LOOKED_AT]
        best: tuple[str | None, int, str] = (None, 0, "")
        for form in itertools.chain([None], (d + t for d in _FORMS for t in _TIMES)):
            unit = "day" if form is None or "d" in form else "month"
            pattern = date_form(form, unit)
            n = sum(
                count
                for text, count in texts
                if (pattern is None or pattern.fullmatch(text.strip()))
                and moment(text, unit, form) is not None
            )
            if n > best[1]:
                best = (form, n, "")
            elif n and n == best[1] and best[0] is not None:
                best = (best[0], n, best[2] or str(form))
        if best[1]:
            unit = "day" if best[0] is None or "d" in best[0] else "month"
            n = sum(count for text, count in self.texts if moment(text, unit, best[0]) is not None)
            return best[0], n, best[2]
        return best


def _proposed(column: _Values, name: str) -> dict[str, Any]:
    """A declaration for a column of which nothing is declared."""
    gaps = {"nullable": bool(column.absent.any())}
    if re.fullmatch(r"(.*_)?(id|uuid|guid)", name.casefold()):
        return {"type": "identifier"}
    if column.column.kind in ("temporal", "zoned"):
        return {"type": "date", "lower": ..., "upper": ..., **gaps}
    if not column.n:
        return {"type": ..., **gaps}
    present = column.numbers[~column.absent]
    if (~np.isnan(present)).mean() >= TUNING.kind and column.column.kind != "boolean":
        whole = bool((present[~np.isnan(present)] % 1 == 0).all())
        if whole and column.distinct == column.n and column.n > TUNING.categories:
            return {"type": "identifier"}
        return {"type": "numeric", "lower": ..., "upper": ..., **gaps}
    form, n, _ = column.form()
    if column.n and n >= TUNING.kind * sum(count for _, count in column.texts) > 0:
        unit = {} if form is None or "d" in form else {"unit": "month"}
        more = {} if form is None else {"format": form}
        return {"type": "date", "lower": ..., "upper": ..., **unit, **more, **gaps}
    if column.distinct <= TUNING.categories:
        return {"type": "categorical", "categories": ..., **gaps}
    return {"type": "identifier"}


def _of_column(column: _Values, attribute: Any, data: dict[str, Any]) -> tuple[list[str], Any]:
    """Sentences on one column, and what its declaration should say instead."""
    kind = data["type"]
    total = len(column.codes)
    lines: list[str] = []
    changes: dict[str, Any] = {}
    gaps = int(column.absent.sum())
    if gaps and not data.get("nullable", True):
        lines.append(
            f"{_share(gaps, total)} of the records have no value and are skipped: nullable"
        )
        changes["nullable"] = True
    if kind == "identifier":
        lines += _repeats(column)
    elif kind in ("date", "datetime"):
        more, change = _of_dates(column, attribute, data)
        lines, changes = lines + more, {**changes, **change}
    elif kind == "numeric":
        more, change = _of_numbers(column, attribute, data)
        lines, changes = lines + more, {**changes, **change}
    elif kind == "categorical":
        lines += _of_categories(column, attribute)
    return lines, changes


def _of_numbers(
    column: _Values, attribute: Any, data: dict[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    lines: list[str] = []
    changes: dict[str, Any] = {}
    x = column.numbers[~column.absent & np.isfinite(column.numbers)]
    unread = column.n - int((~np.isnan(column.numbers[~column.absent])).sum())
    commas = sum(n for t, n in column.texts if np.isnan(number_written(t)) and not np.isnan(
        number_written(t, ","))
    )  # fmt: skip
    if commas:
        lines.append(f"{_share(commas, column.n)} of the values have a decimal comma: --decimal ,")
    elif unread:
        lines.append(f"{_share(unread, column.n)} of the values are no numbers")
    money = sum(n for t, n in column.texts if any(sign in t for sign in "$€£¥%,"))
    if money and not commas:
        lines.append(f"{_share(money, column.n)} of the values are written with signs or groups")
    if not len(x):
        return lines, changes
    plain = not data.get("integer") and data.get("step") is None and data.get("decimals") is None
    if plain and (x % 1 == 0).all():
        lines.append("all values are whole numbers: integer")
        changes["integer"] = True
        if "bins" in data and isinstance(data["bins"], int):
            changes["bins"] = None
    elif plain:
        places = next((d for d in (1, 2, 3) if (np.round(x, d) == x).all()), None)
        if places is not None:
            lines.append(f"no value has more than {places} decimals: decimals={places}")
            changes["decimals"] = places
    special = set(data.get("special") or ())
    values, counts = np.unique(x, return_counts=True)
    often = [i for i in np.flatnonzero(counts >= TUNING.point * len(x)) if values[i] not in special]
    if len(values) > 50 and often:
        shown = ", ".join(f"{values[i]:g} ({_share(int(counts[i]), len(x))})" for i in often[:5])
        lines.append(f"many records share one value, {shown}: special, if it is public")
        changes["special"] = ...
    if isinstance(attribute, Numeric):
        codes = attribute._encode(x.copy())
        most = int(np.bincount(codes[codes < attribute.bins], minlength=1).max())
        even = not attribute.auto and not attribute.uneven
        if attribute.bins >= 8 and most > TUNING.crowded * len(x) and not often:
            lines.append(
                f"one bin holds {_share(most, len(x))}: narrower bins, such as 'auto', or edges"
            )
            changes["bins"] = "auto"
        low = attribute.lower + (attribute.upper - attribute.lower) / 10
        if even and not attribute.one_each and np.median(x) < low and attribute.lower >= 0:
            lines.append("half of the values are in the lowest tenth of the range: scale='log'")
            changes |= {"scale": "log", "bins": "auto"}
    elif np.median(x) > 0 and x.min() >= 0 and x.mean() > 2 * np.median(x):
        lines.append("the values are skewed: scale='log', if the range begins at 0")
        changes["scale"] = "log"
    return lines, changes


def _of_dates(
    column: _Values, attribute: Any, data: dict[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    if not isinstance(attribute, Date | Datetime | None) or not column.texts:
        return [], {}
    form, n, other = column.form()
    alike = f" ({other} reads them too: which is it?)" if other else ""
    if attribute is None:
        return ([f"dates are written as {form}{alike}"] if form else []), {}
    unread = sum(c for t, c in column.texts if moment(t, attribute.unit, attribute.format) is None)
    if unread and form is not None and form != attribute.format:
        text = f"{_share(unread, column.n)} of the values are not read; {form} reads "
        return [f"{text}{_share(n, column.n)}{alike}: format"], {"format": form}
    return ([f"{_share(unread, column.n)} of the values are no dates"] if unread else []), {}


def _of_categories(column: _Values, attribute: Any) -> list[str]:
    texts = column.texts
    lines: list[str] = []
    known = set(attribute.categories) if isinstance(attribute, Categorical) else set()
    folded = {str(c).strip().casefold(): c for c in known}
    if attribute is None:
        seen: dict[str, str] = {}
        for text, _ in texts:
            first = seen.setdefault(text.strip().casefold(), text)
            if first != text:
                lines.append(f"{first!r} and {text!r} differ by case or blanks alone")
    else:
        near = [(t, n) for t, n in texts if t not in known and t.strip().casefold() in folded]
        for text, n in near[:5]:
            lines.append(
                f"{text!r} ({_share(n, column.n)}) differs from {folded[text.strip().casefold()]!r}"
                " by case or blanks alone"
            )
        out = [(v, n) for v, n in column.commonest() if attribute._find(v) is None]
        far = sum(n for _, n in out) - sum(n for _, n in near)
        if far > 0:
            lines.append(f"{_share(far, column.n)} of the values are not declared")
    broken = [(t, n) for t, n in texts if "\ufffd" in t or _mended(t) is not None]
    if broken:
        n = sum(count for _, count in broken)
        lines.append(f"{_share(n, column.n)} of the values were read in a wrong encoding")
    return lines


def _mended(text: str) -> str | None:
    """A text in UTF-8 that was read as Windows-1252, as it was written."""
    try:
        return None if text.isascii() else text.encode("cp1252").decode()
    except UnicodeError:
        return None


def _repeats(column: _Values) -> list[str]:
    """Whether rows share an identifier, and how many a bound would keep."""
    owners = column.counts[column.counts > 0]
    if not len(owners) or owners.max() == 1:
        return []
    kept = ", ".join(
        f"{most}: {_share(int(np.minimum(owners, most).sum()), column.n)}"
        for most in (1, 2, 5, 10)
        if most <= owners.max()
    )
    return [
        f"{column.n} rows of {len(owners)} different ones, at most {owners.max()} of one. If it is "
        f"a person, protect persons: unit, with max_contributions (share of the rows kept: {kept})"
    ]


def _rules(held: dict[str, tuple[Any, _Values, BoolArray]]) -> list[str]:
    """Rules that nearly all records keep: to be declared if they are publicly known."""
    kinds = {name: kind for name, (kind, _, _) in held.items() if kind != "identifier"}
    names = list(kinds)[: TUNING.columns]
    found: dict[str, list[str]] = {"at_most": [], "derived": [], "only_if": [], "missing": []}
    for a, b in itertools.permutations(names, 2):
        first, second = held[a][1], held[b][1]
        if kinds[a] == kinds[b] == "numeric":
            found["at_most"] += _at_most(a, b, first, second)
        if kinds[a] == kinds[b] == "categorical" and 1 < second.distinct <= first.distinct:
            found["derived"] += _derived(a, b, first, second)
        if kinds[b] == "categorical" and first.absent.mean() > 0.01:
            found["only_if"] += _only_if(a, b, first, second)
        if a < b and min(first.absent.mean(), second.absent.mean()) > 0.01:
            same = float((first.absent == second.absent).mean())
            if same >= TUNING.rule:
                found["missing"].append(f"missing_together([{a!r}, {b!r}]): {same:.2%}")
    return [
        f"rule? {line} of the records" for each in found.values() for line in each[: TUNING.rules]
    ]


def _at_most(a: str, b: str, first: _Values, second: _Values) -> Iterator[str]:
    x, y = first.numbers, second.numbers
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < 20 or np.nanmax(x[both]) <= np.nanmin(y[both]):
        return  # the ranges say it
    kept = float((x <= y)[both].mean())
    # Columns on the same scale only: a tenth of the records must be near the bound.
    near = float((x >= y / 3)[both].mean())
    if kept >= TUNING.rule and near > 0.1 and (x != y)[both].any():
        yield f"at_most({a!r}, {b!r}): {kept:.2%}"


def _derived(a: str, b: str, first: _Values, second: _Values) -> Iterator[str]:
    there = ~first.absent & ~second.absent
    if there.sum() < 5 * first.distinct or not there.any():
        return
    table = np.zeros((len(first.uniques), len(second.uniques)), dtype=np.int64)
    np.add.at(table, (first.codes[there], second.codes[there]), 1)
    kept = table.max(axis=1).sum() / there.sum()
    chance = table.sum(axis=0).max() / there.sum()
    if kept >= TUNING.rule and kept - chance > 0.05:
        yield f"derived({b!r}, from_={a!r}, map=...): {kept:.2%}"


def _only_if(a: str, b: str, first: _Values, second: _Values) -> Iterator[str]:
    there = ~second.absent
    size = np.bincount(second.codes[there], minlength=len(second.uniques))
    filled = np.bincount(second.codes[there & ~first.absent], minlength=len(second.uniques))
    some = (filled > 0.02 * size) & (size > 0)
    if 0 < some.sum() < (size > 0).sum() and filled.sum():
        kept = filled[some].sum() / filled.sum()
        if kept >= TUNING.rule:
            values = [second.uniques[i] for i in np.flatnonzero(some)][:5]
            yield f"only_if({a!r}, {{{b!r}: {values!r}}}): {kept:.2%}"


def _share(n: int, total: int) -> str:
    return f"{100 * n / max(total, 1):.3g}%"
