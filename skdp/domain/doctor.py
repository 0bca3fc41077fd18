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


# When something is worth a line. None of it protects anything: all numbers are exact.
# Share of the values that must be numbers, or dates in one form, for a column without a type.
NUMBERS, KIND = 0.5, 0.95
# Most distinct values of a column that is proposed as categories, also where they are numbers.
CATEGORIES, CODES = 60, 12
# Share of the records in one bin, and at one value among many.
CROWDED, POINT = 0.5, 0.05
# Share of the records that keep a rule that is proposed.
RULE = 0.98
# Columns that are compared in pairs, and rules of a kind that are shown.
COLUMNS, RULES = 40, 12

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
    """

    lines: list[str] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)


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
    held: dict[str, tuple[str, _Values]] = {}
    for name, attribute in declared.items():
        data = _data_of(attribute)
        if name in frame.names and readable.any():
            column = _Values(frame.column(name), readable)
            note = _Notes(_proposed(column, name) if attribute is None else data)
            _of_column(column, attribute, note)
            found.lines += [f"{name}: {line}" for line in note.lines]
            data = note.data
            held[name] = (data["type"], column)
        found.drafts.append((name, data, ""))
    found.lines += _rules(held)
    return found


class _Notes:
    """Sentences on one column, and its declaration with what they change."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data, self.lines = data, list[str]()

    def __call__(self, line: str, **changes: Any) -> None:
        self.lines.append(line)
        self.data |= changes


def _data_of(attribute: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"type": ...} if attribute is None else dict(attribute._to_data())
    for end in ("lower", "upper"):
        if isinstance(data.get(end), float) and data[end].is_integer():
            data[end] = int(data[end])
    if isinstance(attribute, Date | Datetime) and "bins=" not in repr(attribute):
        del data["bins"]
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
    if column.distinct <= CODES:
        return {"type": "categorical", "categories": ..., **gaps}
    # Codes such as "N" for "not asked" may stand among numbers.
    if (~np.isnan(present)).mean() >= NUMBERS and column.column.kind != "boolean":
        whole = bool((present[~np.isnan(present)] % 1 == 0).all())
        if whole and column.distinct == column.n and column.n > CATEGORIES:
            return {"type": "identifier"}
        return {"type": "numeric", "lower": ..., "upper": ..., **gaps}
    form, n, _ = column.form()
    if column.n and n >= KIND * sum(count for _, count in column.texts) > 0:
        unit = {} if form is None or "d" in form else {"unit": "month"}
        more = {} if form is None else {"format": form}
        return {"type": "date", "lower": ..., "upper": ..., **unit, **more, **gaps}
    if column.distinct <= max(CATEGORIES, column.n // 20):
        return {"type": "categorical", "categories": ..., **gaps}
    return {"type": "identifier"}


def _of_column(column: _Values, attribute: Any, note: _Notes) -> None:
    """What there is to say of one column."""
    gaps = int(column.absent.sum())
    if gaps and not note.data.get("nullable", True):
        share = _share(gaps, len(column.codes))
        note(f"{share} of the records have no value and are skipped: nullable", nullable=True)
    kind = note.data["type"]
    if kind == "identifier":
        _repeats(column, note)
    elif kind in ("date", "datetime") and column.texts:
        _of_dates(column, attribute, note)
    elif kind == "numeric":
        _of_text(column, note)
        x = column.numbers[~column.absent & np.isfinite(column.numbers)]
        if len(x):
            _of_numbers(x, attribute, note)
    elif kind == "categorical":
        _of_categories(column, attribute, note)


def _of_text(column: _Values, note: _Notes) -> None:
    """Numbers that are written as text."""
    commas = money = 0
    for text, n in column.texts:
        unread = np.isnan(number_written(text))
        commas += n * bool(unread and not np.isnan(number_written(text, ",")))
        money += n * bool(not unread and any(sign in text for sign in "$€£¥%,"))
    if commas:
        note(f"{_share(commas, column.n)} of the values have a decimal comma: --decimal ,")
    elif odd := int(np.isnan(column.numbers[~column.absent]).sum()):
        first = next((t for t, _ in column.texts if np.isnan(number_written(t))), None)
        text = "" if first is None else f", such as {first!r}"
        note(f"{_share(odd, column.n)} of the values are no numbers{text}: missing", nullable=True)
    if money:
        note(f"{_share(money, column.n)} of the values are written with signs or groups")


def _of_numbers(x: FloatArray, attribute: Any, note: _Notes) -> None:
    data = note.data
    if not data.get("integer") and data.get("step") is None and data.get("decimals") is None:
        places = next((d for d in range(4) if (np.round(x, d) == x).all()), None)
        if places == 0:
            note("all values are whole numbers: integer", integer=True)
            data.update({"bins": None} if isinstance(data.get("bins"), int) else {})
        elif places is not None:
            note(f"no value has more than {places} decimals: decimals={places}", decimals=places)
    values, counts = np.unique(x, return_counts=True)
    known = np.isin(values, data.get("special") or [])
    often = np.flatnonzero((counts >= POINT * len(x)) & ~known)
    if len(values) > 50 and len(often):
        shown = ", ".join(f"{values[i]:g} ({_share(int(counts[i]), len(x))})" for i in often[:5])
        note(f"many records share one value, {shown}: special, if it is public", special=...)
    if not isinstance(attribute, Numeric):
        if np.median(x) > 0 and x.min() >= 0 and x.mean() > 2 * np.median(x):
            note("the values are skewed: scale='log', if the range begins at 0", scale="log")
        return
    codes = attribute._encode(x.copy())
    most = int(np.bincount(codes[codes < attribute.bins], minlength=1).max())
    if attribute.bins >= 8 and most > CROWDED * len(x) and not len(often):
        share = _share(most, len(x))
        note(f"one bin holds {share}: narrower bins, such as 'auto', or edges", bins="auto")
    low = attribute.lower + (attribute.upper - attribute.lower) / 10
    if not (attribute.auto or attribute.uneven or attribute.one_each) and 0 <= attribute.lower:
        if np.median(x) < low:
            text = "half of the values are in the lowest tenth of the range: scale='log'"
            note(text, scale="log", bins="auto")


def _of_dates(column: _Values, attribute: Any, note: _Notes) -> None:
    form, n, other = column.form()
    alike = f" ({other} reads them too: which is it?)" if other else ""
    if not isinstance(attribute, Date | Datetime):
        if form is not None:
            note(f"dates are written as {form}{alike}")
        return
    own = (attribute.unit, attribute.format)
    unread = _share(sum(n for text, n in column.texts if moment(text, *own) is None), column.n)
    if unread != "0%" and form not in (None, attribute.format):
        reads = f"{form} reads {_share(n, column.n)}{alike}"
        note(f"{unread} of the values are not read; {reads}: format", format=form)
    elif unread != "0%":
        note(f"{unread} of the values are no dates")


def _of_categories(column: _Values, attribute: Any, note: _Notes) -> None:
    known = attribute.categories if isinstance(attribute, Categorical) else ()
    first = {str(each).strip().casefold(): each for each in known}
    near = broken = 0
    for text, n in column.texts:
        same = first.setdefault(text.strip().casefold(), text) if not known else first.get(
            text.strip().casefold(), text
        )  # fmt: skip
        if same != text and text not in known:
            near += n
            share = _share(n, column.n)
            note(f"{text!r} ({share}) differs from {same!r} by case or blanks alone")
        broken += n * ("\ufffd" in text or _mended(text) is not None)
    if known:
        far = sum(n for v, n in column.commonest() if attribute._find(v) is None) - near
        if far > 0:
            note(f"{_share(far, column.n)} of the values are not declared")
    if broken:
        note(f"{_share(broken, column.n)} of the values were read in a wrong encoding")


def _mended(text: str) -> str | None:
    """A text in UTF-8 that was read as Windows-1252, as it was written."""
    try:
        return None if text.isascii() else text.encode("cp1252").decode()
    except UnicodeError:
        return None


def _repeats(column: _Values, note: _Notes) -> None:
    """Whether rows share an identifier, and how many a bound would keep."""
    owners = column.counts[column.counts > 0]
    most = int(owners.max(initial=0))
    if most > 1:
        shares = {k: int(np.minimum(owners, k).sum()) for k in (1, 2, 5, 10) if k <= most}
        kept = ", ".join(f"{k}: {_share(n, column.n)}" for k, n in shares.items())
        note(
            f"{column.n} rows of {len(owners)} different ones, at most {most} of one. If it is a "
            f"person, protect persons: unit, max_contributions (share of the rows kept: {kept})"
        )


def _rules(held: dict[str, tuple[str, _Values]]) -> list[str]:
    """Rules that nearly all records keep: to be declared if they are publicly known."""
    names = [name for name, (kind, _) in held.items() if kind != "identifier"][:COLUMNS]
    found: dict[str, list[str]] = {"at_most": [], "derived": [], "only_if": [], "missing": []}
    for a, b in itertools.permutations(names, 2):
        (kind, first), (other, second) = held[a], held[b]
        if kind == other == "numeric":
            found["at_most"] += _at_most(a, b, first, second)
        if kind == other == "categorical" and 1 < second.distinct <= first.distinct:
            found["derived"] += _derived(a, b, first, second)
        if other == "categorical" and first.absent.mean() > 0.01:
            found["only_if"] += _only_if(a, b, first, second)
        same = float((first.absent == second.absent).mean())
        if a < b and min(first.absent.mean(), second.absent.mean()) > 0.01 and same >= RULE:
            found["missing"].append(f"missing_together([{a!r}, {b!r}]): {same:.2%}")
    return [f"rule? {line} of the records" for each in found.values() for line in each[:RULES]]


def _at_most(a: str, b: str, first: _Values, second: _Values) -> Iterator[str]:
    x, y = first.numbers, second.numbers
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < 20 or min(first.distinct, second.distinct) <= CODES:
        return
    if np.nanmax(x[both]) <= np.nanmin(y[both]):
        return  # the ranges say it
    kept = float((x <= y)[both].mean())
    # Columns on the same scale only: a quarter of the records must be near the bound.
    near = float((x >= y / 2)[both].mean())
    if kept >= RULE and near > 0.25 and (x != y)[both].any():
        yield f"at_most({a!r}, {b!r}): {kept:.2%}"


def _derived(a: str, b: str, first: _Values, second: _Values) -> Iterator[str]:
    there = ~first.absent & ~second.absent
    if there.sum() < 5 * first.distinct or not there.any():
        return
    table = np.zeros((len(first.uniques), len(second.uniques)), dtype=np.int64)
    np.add.at(table, (first.codes[there], second.codes[there]), 1)
    kept = table.max(axis=1).sum() / there.sum()
    chance = table.sum(axis=0).max() / there.sum()
    if kept >= RULE and kept - chance > 0.05:
        yield f"derived({b!r}, from_={a!r}, map=...): {kept:.2%}"


def _only_if(a: str, b: str, first: _Values, second: _Values) -> Iterator[str]:
    there = ~second.absent
    size = np.bincount(second.codes[there], minlength=len(second.uniques))
    filled = np.bincount(second.codes[there & ~first.absent], minlength=len(second.uniques))
    some = (filled > 0.02 * size) & (size > 0)
    if 0 < some.sum() < (size > 0).sum() and filled.sum():
        kept = filled[some].sum() / filled.sum()
        if kept >= RULE:
            values = [second.uniques[i] for i in np.flatnonzero(some)][:5]
            yield f"only_if({a!r}, {{{b!r}: {values!r}}}): {kept:.2%}"


def _share(n: int, total: int) -> str:
    return f"{100 * n / max(total, 1):.3g}%"
