"""What a declaration misses in the records of a table: exact, for the data owner at a terminal.

Nothing here is private, and nothing of it goes into a domain that is saved, a ledger or a release.
What is found is shown beside a corrected declaration in which the values are left blank: they are
filled in from public knowledge.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._validation import BoolArray, FloatArray
from .categorical import Categorical
from .clock import Clock, date_form, moment
from .dates import Date, Datetime
from .numeric import MOST_SINGLE, Numeric
from .rules.compiling import columns_named
from .rules.declared import AtMost, Derived
from .schemas.skeleton import Draft
from .values import is_missing, number_written

# When something is worth a line. None of it protects anything: all numbers are exact.
# Share of the values that must be numbers or dates for a column without a type, and alike.
NUMBERS, KIND = 0.5, 0.95
# Most distinct values of a column that is proposed as categories, also where they are numbers.
CATEGORIES, CODES = 60, 12
# Rows of one person on average, at most, in a column that identifies persons.
ROWS = 50
# How many times more rows the person of a row may have than a person, on average.
UNEVEN = 2.5
# Share of the records in one bin, and at one value that is this often as common as its neighbours.
CROWDED, POINT, PEAK = 0.5, 0.05, 3
# Share of the records that keep a rule that is proposed, and of the exceptions or gaps that there
# would be without it.
RULE, CHANCE = 0.98, 0.1
# Columns that are compared in pairs, and rules of a kind that are shown.
COLUMNS, RULES = 80, 12

_FORMS = (
    "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y",
    "%b %d %Y", "%b %d, %Y", "%b-%Y", "%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%y",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S")
_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d)?( ?[AaPp][Mm])?")
# Text that says that there is no value.
_GAPS = {"na", "n/a", "#n/a", "nan", "null", "none", "nil", ".", "-", "--", "?"}
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
        Perhaps with columns that the domain does not declare.
    """
    found = Findings()
    declared = {} if domain is None else dict(domain._declared)
    readable = np.ones(frame.n_rows, dtype=bool) if frame.unfit is None else ~frame.unfit
    if not readable.all():
        found.lines.append(
            f"{_share(int((~readable).sum()), frame.n_rows)} of the records cannot be read: more "
            "fields than the first line has names, or a quote that is left open. Is the first line "
            "a title, --sep another sign, or are there line breaks in quotes (--multiline)?"
        )
    read = {}
    if readable.any():
        read = {name: _Values(frame.column(name), readable) for name in frame.names}
        if _second_header([*read.values()]):
            found.lines.append("the first record looks like a second line of names: take it out")
            readable[np.flatnonzero(readable)[0]] = False
            read = {name: _Values(frame.column(name), readable) for name in read}
    held: dict[str, tuple[dict[str, Any], _Values]] = {}
    for name in dict.fromkeys([*declared, *frame.names]):
        attribute, column = declared.get(name), read.get(name)
        data = _data_of(attribute)
        if column is not None:
            note = _Notes(name, _proposed(column, name) if attribute is None else data)
            if attribute is not None or domain is None:
                _of_column(column, attribute, note)
                held[name] = (note.data, column)
            elif column.identifies:
                _repeats(column, note)
            found.lines += [f"{name}: {line}" for line in note.lines]
            data = note.data
        if domain is None or attribute is not None:
            found.drafts.append((name, data, data.pop("note", "")))
    found.lines += _rules(held, () if domain is None else domain.structure.rules)
    return found


def _second_header(columns: Sequence[_Values]) -> bool:
    """Whether the first record has text that occurs once where others have numbers or dates."""
    once = all(each.absent[0] or each.counts[each.codes[0]] == 1 for each in columns)
    odd = [each.odd_first for each in columns if each.n > 2 and not each.absent[0]] if once else []
    return True in odd and False not in odd


class _Notes:
    """Sentences on one column, and its declaration with what they change."""

    def __init__(self, name: str, data: dict[str, Any]) -> None:
        self.name, self.data, self.lines = name, data, list[str]()

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
        self.column, self.readable = column, readable
        codes, uniques = column.factorize()
        self.codes = codes[readable]
        blank = [is_missing(u) or (isinstance(u, str) and not u.strip()) for u in uniques]
        plain = np.number | np.bool_
        self.uniques = [u.item() if isinstance(u, plain) else u for u in uniques]
        self.absent = np.array([*blank, True])[self.codes]
        self.counts = np.bincount(self.codes[~self.absent], minlength=len(uniques))
        self.n = int((~self.absent).sum())
        self.distinct = int((self.counts > 0).sum())
        self.numbers: FloatArray = column.numbers()[readable]
        unread = [(t, n) for t, n in self.texts if np.isnan(number_written(t))]
        self.commas = sum(n for t, n in unread if not np.isnan(number_written(t, ",")))
        if self.commas >= NUMBERS * self.n > 0:
            texts = [number_written(u, ",") if isinstance(u, str) else np.nan for u in uniques]
            self.numbers = np.where(self.absent, np.nan, np.array([*texts, np.nan])[self.codes])
        # For rules, text such as "NA" is no value.
        gap = [isinstance(u, str) and u.strip().casefold() in _GAPS for u in uniques]
        self.said = np.array([*gap, False])[self.codes]

    @functools.cached_property
    def commonest(self) -> list[tuple[Any, int]]:
        """Distinct values and their numbers, the commonest first."""
        order = np.argsort(-self.counts, kind="stable")
        return [(self.uniques[i], int(self.counts[i])) for i in order if self.counts[i]]

    @functools.cached_property
    def texts(self) -> list[tuple[str, int]]:
        return [(value, count) for value, count in self.commonest if isinstance(value, str)]

    @property
    def figures(self) -> FloatArray:
        """Values that are there, as numbers."""
        return self.numbers[~self.absent]

    @functools.cached_property
    def form(self) -> tuple[str | None, int, str]:
        """The form of dates that reads most of the values, how many, and another that does."""
        dates = [
            (value, count)
            for value, count in self.commonest
            if (isinstance(value, str) and any(map(str.isdigit, value)))
            or isinstance(value, datetime.date | int | float)
        ]
        best: tuple[str | None, int, str] = (None, 0, "")
        for form in itertools.chain([None], (d + t for d in _FORMS for t in _TIMES)):
            pattern = date_form(form, _unit(form))
            n = sum(
                count
                for value, count in dates[:_LOOKED_AT]
                if (pattern is None or pattern.fullmatch(str(value).strip()))
                and moment(value, _unit(form), form) is not None
            )
            if n > best[1]:
                best = (form, n, "")
            elif n and n == best[1] and best[0] is not None:
                best = (best[0], n, best[2] or str(form))
        form = best[0]
        n = sum(count for value, count in dates if moment(value, _unit(form), form) is not None)
        return form, n, best[2]

    @property
    def timed(self) -> bool:
        """Whether dates have a time of day."""
        if self.column.kind in ("temporal", "zoned"):
            return bool((self.days(None, "second")[~self.absent] % 86_400).any())
        return any(":" in str(value) for value, _ in self.commonest[:_LOOKED_AT])

    def days(self, form: str | None, unit: str) -> FloatArray:
        """Dates as whole units."""
        zone = "UTC" if self.column.kind == "zoned" else None
        numbers: FloatArray = self.column.instants(Clock(unit, zone, form))[self.readable]
        return numbers

    @functools.cached_property
    def odd_first(self) -> bool | None:
        """Whether the first value is no number or date, and the others are; None: they are not."""
        value = self.uniques[self.codes[0]]
        if bool(self.said[0]):
            return False
        if (~np.isnan(self.figures[1:])).mean() >= KIND:
            return bool(np.isnan(self.numbers[0]))
        form, n, _ = self.form
        return moment(value, _unit(form), form) is None if n >= KIND * (self.n - 1) else None

    @functools.cached_property
    def identifies(self) -> bool:
        """Whether values look like numbers of persons: many, with about equally many rows."""
        counts = self.counts[self.counts > 0]
        if self.distinct <= max(CATEGORIES, self.n // ROWS):
            return False
        if (counts**2).sum() > UNEVEN * self.n * counts.mean():
            return False
        numbers = np.unique(self.figures)
        if np.isnan(numbers).any():
            texts = [text.strip() for text, _ in self.texts]
            plain = [t for t in texts if re.search(r"\d", t) and not re.search(r"\s|^\d+:", t)]
            return len(plain) >= KIND * self.distinct and self.form[1] < NUMBERS * self.n
        if not np.isfinite(numbers).all() or (numbers % 1 != 0).any() or numbers[0] < 0:
            return False
        # As many different ones as independent draws from the whole range would be.
        size = numbers[-1] - numbers[0] + 1
        expected = -size * np.expm1(-self.n / size)
        if len(numbers) > 1.05 * expected:
            return True  # numbered with hardly a gap
        alike = np.unique([len(f"{x:.0f}") for x in numbers[[0, -1]]])
        rounded = (numbers % 10 == 0).mean() > 0.15
        fewer = len(numbers) < 0.9 * expected or len(numbers) == self.n
        return len(alike) == 1 and alike[0] > 4 and fewer and not rounded


def _unit(form: str | None) -> str:
    return "day" if form is None or "d" in form else "month"


def _proposed(column: _Values, name: str) -> dict[str, Any]:
    """A declaration for a column of which nothing is declared."""
    gaps = {"nullable": bool(column.absent.any())}
    ends = {"lower": ..., "upper": ...}
    categories = {"type": "categorical", "categories": ..., **gaps}
    named = re.fullmatch(r"(.*[_ ])?(id|uuid|guid)", name.casefold())
    if not column.n:
        return {"type": ..., **gaps}
    if named and column.distinct > CODES:
        return {"type": "identifier"}
    if column.column.kind in ("temporal", "zoned"):
        zone = {"tz": "UTC"} if column.column.kind == "zoned" else {}
        return {"type": "datetime" if column.timed or zone else "date", **ends, **zone, **gaps}
    x = column.figures
    digits = bool(((x > 1800_00_00) & (x < 2200_00_00) & (np.rint(x) == x)).all())
    form, n, _ = column.form if digits or np.isnan(x).mean() > NUMBERS else (None, 0, "")
    if n > NUMBERS * column.n:
        unit = {} if _unit(form) == "day" else {"unit": "month"}
        more = {} if form is None else {"format": form}
        kind = "datetime" if column.timed else "date"
        return {"type": kind, **ends, **unit, **more, **gaps}
    if column.distinct <= CODES:
        return categories
    if sum(count for text, count in column.texts if _CLOCK.fullmatch(text)) >= KIND * column.n:
        note = "times of day have no type: make a number of them, such as the hour, or leave it out"
        return {"type": None, "note": note}
    if re.search(r"zip|post_?(al_?)?code|plz", name.casefold()):
        return categories
    if column.identifies:
        return {"type": "identifier"}
    # Codes such as "N" for "not asked" may stand among numbers.
    if (~np.isnan(x)).mean() >= NUMBERS and column.column.kind != "boolean":
        return {"type": "numeric", **ends, **gaps}
    if column.distinct <= max(CATEGORIES, column.n // 20):
        return categories
    if column.distinct == column.n:
        return {"type": "identifier"}
    note = "free text: leave it out, or declare a public list of categories, one of them as other="
    return {"type": None, "note": note}


def _of_column(column: _Values, attribute: Any, note: _Notes) -> None:
    """What there is to say of one column."""
    gaps = int(column.absent.sum())
    if gaps and not note.data.get("nullable", True):
        share = _share(gaps, len(column.codes))
        note(f"{share} of the records have no value and are skipped: nullable", nullable=True)
    kind = note.data["type"]
    if kind is None:
        note(note.data["note"])
    elif kind == "identifier" or column.identifies:
        _repeats(column, note)
    if kind in ("date", "datetime"):
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
    if column.commas:
        share = _share(column.commas, column.n)
        note(
            f"{share} of the values have a decimal comma: --decimal , (in Python "
            "pandas.read_csv(..., decimal=','))"
        )
    signs = sum(
        n
        for text, n in column.texts
        if not np.isnan(number_written(text)) and any(sign in text for sign in "$€£¥%,")
    )
    if signs:
        note(f"{_share(signs, column.n)} of the values are written with signs or groups")
    odd = int(np.isnan(column.figures).sum())
    if not odd or column.commas >= NUMBERS * column.n:
        return
    unread = [t for t, _ in column.texts if np.isnan(number_written(t))]
    such = f"{_share(odd, column.n)} of the values are no numbers"
    such += f", such as {unread[0]!r}" if unread else ""
    if unread and re.search(r"\d", unread[0]):
        note(f"{such}: a form that is not read; write them as numbers")
    elif unread:
        note(f"{such}: missing", nullable=True)
    else:
        note(such)


def _of_numbers(x: FloatArray, attribute: Any, note: _Notes) -> None:
    data = note.data
    if not data.get("integer") and data.get("step") is None and data.get("decimals") is None:
        places = next((d for d in range(4) if (np.round(x, d) == x).all()), None)
        if places == 0:
            note("all values are whole numbers: integer", integer=True)
            many = "auto" if np.ptp(x) >= MOST_SINGLE else None
            data.update({"bins": many} if many or isinstance(data.get("bins"), int) else {})
        elif places is not None:
            plural = "" if places == 1 else "s"
            text = f"no value has more than {places} decimal{plural}: decimals={places}"
            note(text, decimals=places)
    single = isinstance(attribute, Numeric) and attribute.one_each
    if data.get("integer") and (single or data.get("bins") is None):
        return  # each value has a cell of its own, whatever is special or skewed
    values, counts = np.unique(x, return_counts=True)
    known = np.isin(values, data.get("special") or [])
    around = np.maximum(np.r_[0, counts[:-1]], np.r_[counts[1:], 0])
    often = np.flatnonzero((counts >= POINT * len(x)) & (counts > PEAK * around) & ~known)
    if len(values) > 50 and len(often):
        shown = ", ".join(f"{values[i]:.15g} ({_share(int(counts[i]), len(x))})" for i in often[:5])
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
    form, n, other = column.form
    alike = f" ({other} reads them too: which is it?)" if other else ""
    own = (note.data.get("unit", "day"), note.data.get("format"))
    if not isinstance(attribute, Date | Datetime) and form is not None:
        note(f"dates are written as {form}{alike}")
    unread = [(t, k) for t, k in column.texts if moment(t, *own) is None]
    if not unread:
        return
    share = _share(sum(k for _, k in unread), column.n)
    if form not in (None, own[1]):
        reads = f"{form} reads {_share(n, column.n)}{alike}"
        note(f"{share} of the values are not read; {reads}: format", format=form)
    elif unread[0][0].strip().casefold() in _GAPS:
        note(f"{share} of the values are no dates, such as {unread[0][0]!r}", nullable=True)
    else:
        text = f"{share} of the values are no dates in this form, such as {unread[0][0]!r}"
        note(f"{text}: write all dates in one form")


def _of_categories(column: _Values, attribute: Any, note: _Notes) -> None:
    known = attribute.categories if isinstance(attribute, Categorical) else ()
    first = {str(each).strip().casefold(): each for each in known}
    near: list[tuple[str, Any, int]] = []
    broken = gaps = 0
    for text, n in column.texts:
        plain = text.strip().casefold()
        same = first.get(plain, text) if known else first.setdefault(plain, text)
        if same != text and text not in known:
            near.append((text, same, n))
        broken += n * ("\ufffd" in text or _mended(text) is not None)
        gaps += n * (plain in _GAPS and text not in known)
    n_near = sum(n for *_, n in near)
    if near:
        note(
            f"{_share(n_near, column.n)} of the values differ from others by case or blanks alone, "
            f"such as {near[0][0]!r:.30} and {near[0][1]!r:.30}: declare each spelling, or "
            "mend them (in Python .str.strip(); the command line leaves out blanks at the ends)"
        )
    if gaps:
        shown = next(t for t, _ in column.texts if t.strip().casefold() in _GAPS)
        note(
            f"{_share(gaps, column.n)} of the values are {shown!r}: --missing {shown} (in Python "
            f"na_values=[{shown!r}]) and nullable, or a category"
        )
    if known and attribute.other is None:
        far = [(v, n) for v, n in column.commonest if attribute.coding().code_of(v) < 0]
        n_far = sum(n for _, n in far) - n_near - gaps
        if n_far > 0:
            such = f"{_share(n_far, column.n)} of the values are not declared, such as"
            note(f"{such} {far[0][0]!r}: add them, or one for all others, which other= names too")
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
    said = "" if note.data["type"] == "identifier" else "looks like an identifier: "
    if most > 1:
        shares = {k: int(np.minimum(owners, k).sum()) for k in (1, 2, 5, 10) if k <= most}
        kept = ", ".join(f"{k}: {_share(n, column.n)}" for k, n in shares.items())
        note(
            f"{said}{column.n} rows of {len(owners)} different ones, at most {most} of one. If it "
            f"tells persons apart, protect them: --privacy-id {note.name!r} --max-rows-per-id K, "
            f"in Python privacy_id= and max_rows_per_id= (share of the rows that K keeps: {kept})"
        )


def _rules(held: dict[str, tuple[dict[str, Any], _Values]], declared: Any) -> list[str]:
    """Rules that nearly all records keep: to be declared if they are publicly known."""
    known = {
        (type(rule), *pair)
        for rule in declared
        if isinstance(rule, AtMost | Derived)
        for pair in itertools.permutations(columns_named(rule), 2)
    }
    kinds = {
        name: "date" if data["type"] == "datetime" else data["type"]
        for name, (data, _) in held.items()
    }
    names = [name for name, kind in kinds.items() if kind not in (None, ..., "identifier")]
    lines = {
        name: column.days(data.get("format"), data.get("unit", "day"))
        if kinds[name] == "date"
        else column.numbers
        for name, (data, column) in held.items()
        if kinds[name] in ("date", "numeric") and column.distinct > CODES
    }
    ordered = {name: np.sort(x[np.isfinite(x)]) for name, x in lines.items()}
    # The most surprising first.
    found: dict[Any, list[tuple[float, str]]] = {AtMost: [], Derived: []}
    for a, b in itertools.permutations(names[:COLUMNS], 2):
        first, second = held[a][1], held[b][1]
        if a in lines and b in lines and kinds[a] == kinds[b] and (AtMost, a, b) not in known:
            # Pairs of which the first would be greater if the columns had nothing in common.
            below = np.searchsorted(ordered[a], ordered[b], side="right").mean()
            chance = 1 - float(below) / max(len(ordered[a]), 1)
            found[AtMost] += _at_most(a, b, lines[a], lines[b], chance)
        if kinds[a] == kinds[b] == "categorical" and 1 < second.distinct <= first.distinct:
            if (Derived, a, b) not in known:
                found[Derived] += _derived(a, b, first, second)
    rules, more = [], 0
    for each in found.values():
        rules += [line for _, line in sorted(each, key=lambda pair: -pair[0])[:RULES]]
        more += max(len(each) - RULES, 0)
    rules = [f"rule? {line} of the records" for line in rules]
    rules += [f"rules: {more} more are not shown"] * bool(more)
    limit = f"rules: sought among the first {COLUMNS} columns"
    return rules + [limit] * (len(names) > COLUMNS)


Found = Iterator[tuple[float, str]]


def _at_most(a: str, b: str, x: FloatArray, y: FloatArray, chance: float) -> Found:
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < 20 or chance <= 1 - RULE or (x == y)[both].all():
        return
    kept = float((x <= y)[both].mean())
    if kept >= RULE and 1 - kept <= CHANCE * chance:
        yield chance, f"at_most({a!r}, {b!r}): {kept:.2%}"


def _derived(a: str, b: str, first: _Values, second: _Values) -> Found:
    there = ~(first.absent | first.said | second.absent | second.said)
    if there.sum() < 5 * first.distinct or not there.any():
        return
    table = np.zeros((len(first.uniques), len(second.uniques)), dtype=np.int64)
    np.add.at(table, (first.codes[there], second.codes[there]), 1)
    kept = table.max(axis=1).sum() / there.sum()
    chance = table.sum(axis=0).max() / there.sum()
    if kept >= RULE and chance < RULE and 1 - kept <= CHANCE * (1 - chance):
        yield 1 - chance, f"derived({b!r}, from_={a!r}, map=...): {kept:.2%}"


def _share(n: int, total: int) -> str:
    return f"{100 * n / max(total, 1):.3g}%"
