"""What a declaration does to the records of a table, and what it misses: exact, NOT private.

Everything here is for the data owner at a terminal: nothing of it goes into a domain that is saved,
a ledger or a release. What is seen is shown beside a corrected declaration in which the values are
left blank: they are filled in from public knowledge. Rules between columns are never proposed.
"""

from __future__ import annotations

import datetime
import functools
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .._validation import BoolArray, FloatArray, check_choice
from .attributes import Categorical
from .dates import DAY, Date, Datetime, date_form, moment
from .numeric import MOST_SINGLE, Numeric
from .schemas import Draft, draft_text, drafts_of
from .values import digits, is_missing, number_written

# When something is worth a line. None of it protects anything: all numbers are exact.
# Share of the values that must be numbers or dates for a column without a type, and alike.
NUMBERS, KIND = 0.5, 0.95
# Most distinct values of a column that is proposed as categories, also where they are numbers.
CATEGORIES, CODES = 60, 12
# Rows of one person on average, at most, in a column that identifies persons; and how many times
# more rows the person of a row may have than a person, on average.
ROWS, UNEVEN = 50, 2.5
# Share of the records in one bin, and at one value that is this often as common as its neighbours.
CROWDED, POINT, PEAK = 0.5, 0.05, 3
# Share of the range that holds half of the records where a scale is suggested.
NARROW = 0.1
# Values that are read to recognise a form; their distinct ones, the commonest first.
_LOOKED_AT = 2000

_DAYS = (
    "%Y-%m-%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d",
    "%Y-%d-%m", "%d%m%Y", "%m%d%Y", "%d %b %Y", "%d-%b-%Y", "%d%b%Y", "%b %d %Y", "%b %d, %Y",
    "%m/%d/%y",    "%d/%m/%y", "%d.%m.%y", "%d-%m-%y", "%d-%b-%y", "%d %b %y", "%a, %d %b %Y",
)  # fmt: skip
_MONTHS = ("%b-%Y", "%b %Y", "%m/%Y", "%Y/%m", "%Y%m", "%b-%y", "%b %y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S")
# Forms of dates and their units; ISO needs no form.
_FORMS: tuple[tuple[str | None, str], ...] = (
    *((None, unit) for unit in ("day", "month", "quarter")),
    *((day + time, "day") for day in _DAYS for time in _TIMES),
    *((form, "month") for form in _MONTHS),
)
_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d)?( ?[AaPp][Mm])?")
# Text that says that there is no value, also in a column of categories, and in one of numbers.
_GAPS = {"na", "n/a", "#n/a", "nan", "null", "nil", ".", "-", "--", "?", "**", "*"}
_NO_NUMBER = {*_GAPS, "none", "unknown", "missing", "n", "x", "no data", "not available"}
# Words of names. Those of identifiers count where values may be some, the weaker ones only where
# rows of one are few; quantities and dates are no identifiers without a word that says so.
_IDS = set("id ids uuid guid mrn ssn dni nif cpf curp pid key identifier identifiant ident".split())
_PERSONS = set("patient paciente person persona subject participant respondent client".split())
_NUMBERED = set("nr no num number numero nummer".split())
_JOINED = re.compile(
    r"(?!.*(?:paid|bid|acid|lipid|humid|covid|oid)$).{2,}(id|nr|no|num|number|nummer)"
)
_QUANTITY = set("age day days week weeks month months year years hour hours minutes time".split())
_DATES = set(
    "date datum fecha dob day birth birthday birthdate admission discharge onset start end "
    "geburtsdatum visit timestamp created".split()
)
_ZIP = re.compile(r"zip|post_?(al_?)?code|plz|postleitzahl|fips")


# --- the values of a column


class _Values:
    """The values of one column, by what they are."""

    def __init__(self, column: Any, readable: BoolArray) -> None:
        self.column, self.readable = column, readable
        codes, uniques = column.factorize()
        self.codes = codes[readable]
        blank = [is_missing(u) or (isinstance(u, str) and not u.strip()) for u in uniques]
        self.absent = np.array([*blank, True])[self.codes]
        plain = np.number | np.bool_
        self.uniques = [u.item() if isinstance(u, plain) else u for u in uniques]
        self.counts = np.bincount(self.codes[~self.absent], minlength=len(uniques))
        self.owners = self.counts[self.counts > 0]
        self.n, self.distinct = int(self.owners.sum()), len(self.owners)
        self.numbers: FloatArray = column.numbers()[readable]
        unread = [(t, n) for t, n in self.texts if np.isnan(number_written(t))]
        self.commas = sum(n for t, n in unread if not np.isnan(number_written(t, ",")))
        if self.commas >= NUMBERS * self.n > 0:
            texts = [number_written(u, ",") if isinstance(u, str) else np.nan for u in uniques]
            self.numbers = np.where(self.absent, np.nan, np.array([*texts, np.nan])[self.codes])

    @functools.cached_property
    def commonest(self) -> list[tuple[Any, int]]:
        """Distinct values and their numbers, the commonest first."""
        order = np.argsort(-self.counts, kind="stable")
        return [(self.uniques[i], int(self.counts[i])) for i in order if self.counts[i]]

    @functools.cached_property
    def texts(self) -> list[tuple[str, int]]:
        return [(value, count) for value, count in self.commonest if isinstance(value, str)]

    @functools.cached_property
    def figures(self) -> FloatArray:
        """Values that are numbers, sorted."""
        return np.sort(self.numbers[np.isfinite(self.numbers) & ~self.absent])

    @functools.cached_property
    def whole(self) -> bool:
        return bool((np.rint(self.figures) == self.figures).all())

    @functools.cached_property
    def words(self) -> list[tuple[str, int]]:
        """Texts that are no numbers, nor say that there is no value, nor bound one (<0.5)."""
        decimal = "," if self.commas >= NUMBERS * self.n > 0 else "."
        return [
            (text, n)
            for text, n in self.texts
            if text.strip().casefold() not in _NO_NUMBER
            and np.isnan(number_written(text.strip().lstrip("<>≤≥=~ "), decimal))
        ]

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, perhaps with a few words among them."""
        n_words = sum(n for _, n in self.words)
        few = len(self.words) <= CODES or n_words <= (1 - KIND) * self.n
        return len(self.figures) > 0 and len(self.figures) >= n_words and few

    @functools.cached_property
    def form(self) -> tuple[str | None, str, int, str]:
        """The form of dates that reads most values, its unit, how many, and another that does."""
        best: tuple[str | None, str, int, str] = (None, "day", 0, "")
        dates = [
            (value, count)
            for value, count in self.commonest
            if (isinstance(value, str) and any(map(str.isdigit, value)))
            or isinstance(value, datetime.date | int | float)
        ]
        for form, unit in _FORMS:
            n = sum(count for v, count in dates[:_LOOKED_AT] if _reads(v, form, unit))
            if n > best[2]:
                best = (form, unit, n, "")
            elif n and n == best[2] and best[0] is not None:
                best = (*best[:3], best[3] or str(form))
        form, unit, _, other = best
        return form, unit, sum(n for v, n in dates if moment(v, unit, form) is not None), other

    @functools.cached_property
    def timed(self) -> bool:
        """Whether dates have a time of day that is not midnight."""
        form, unit, *_ = self.form
        found = [moment(value, unit, form) for value, _ in self.commonest]
        return any(micros is not None and micros[0] % DAY for micros in found)

    @functools.cached_property
    def dated(self) -> bool:
        """Whether the values are dates, perhaps as numbers of eight or six digits."""
        x = self.figures
        if len(x) >= NUMBERS * self.n:
            days = (x > 1800_00_00) & (x < 2200_00_00)
            days |= (x % 10_000 >= 1900) & (x % 10_000 <= 2100) & (x >= 1_01_1900)
            months = (x >= 1900_01) & (x <= 2100_12) & (x % 100 <= 12) & (x % 100 >= 1)
            if not (self.whole and (days.all() or (months.all() and self.distinct > CODES))):
                return False
        said = sum(n for text, n in self.texts if text.strip().casefold() in _NO_NUMBER)
        return self.form[2] > NUMBERS * (self.n - said) > 0

    @property
    def coded(self) -> bool:
        """Whether numbers begin with zeros, so that they are codes."""
        plain = [(text, n) for text, n in self.texts if text.strip().isdecimal()]
        zeros = sum(n for text, n in plain if len(text.strip()) > 1 and text.strip()[0] == "0")
        return zeros > 0.01 * self.n and sum(n for _, n in plain) >= KIND * self.n

    @property
    def plain(self) -> bool:
        """Whether texts are codes: with a digit, and without blanks."""
        shaped = [
            t for t, _ in self.texts if re.fullmatch(r"(?=.*\d)(?!\d+[:/])[^\s+%<>]+", t.strip())
        ]
        return len(shaped) >= KIND * self.distinct

    def few_each(self, most: float) -> bool:
        """Whether there are many different values, each with a few rows, about equally many."""
        even = (self.owners**2).sum() <= UNEVEN * self.n * self.owners.mean()
        return self.distinct > CODES and bool(even) and self.n <= most * self.distinct

    def identifies(self, name: str) -> bool:
        """Whether the name, or the values by themselves, say that they are of one person each."""
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+", name)
        said = [word.casefold() for word in words]
        exact = self.numeric
        if (exact and (not self.whole or self.figures[0] < 0)) or self.distinct <= CODES:
            return False
        if not exact and not self.plain:
            # Texts such as names: those that occur once each identify, sentences do not.
            return self.distinct == self.n and self._short
        strong = {*said} & _IDS or ({*said} & _PERSONS and {*said} <= _PERSONS | _NUMBERED)
        if strong and self.distinct > self.n / ROWS:
            return True
        weak = bool(said) and (said[-1] in _NUMBERED or _JOINED.fullmatch(said[-1]))
        if weak and self.n <= 10 * self.distinct:
            return True
        if not exact:
            return self.few_each(1.5) or (self.distinct > CATEGORIES and self.few_each(ROWS))
        return not {*said} & _QUANTITY and self._serial()

    @property
    def _short(self) -> bool:
        return float(np.mean([len(text) for text, _ in self.texts] or [0])) < 40

    def _serial(self) -> bool:
        """Whether whole numbers are numbered through, or repeat more than by chance."""
        x = np.unique(self.figures)
        size, once = x[-1] - x[0] + 1, self.distinct == self.n
        if 1500 <= x[0] <= x[-1] <= 2200 or size > 2**53:  # years, and sizes
            return False
        steps = np.diff(self.numbers[~self.absent])
        rising = (steps > 0).all() and np.median(steps) <= 2
        if once and self.n >= 20 and (rising or size <= 1.1 * len(x)):
            return True
        if self.distinct <= CATEGORIES or not self.few_each(ROWS):
            return False
        expected = -size * np.expm1(-self.n / size)
        if len(x) > 1.05 * expected and size <= 1.02 * len(x):
            return True
        long = {len(digits(float(each))) for each in x[[0, -1]]}
        rounded = (x % 10 == 0).mean() > 0.15
        enough = min(long) > 6 if once else min(long) > 4 and len(x) < 0.9 * expected
        return len(long) == 1 and enough and not rounded


def _reads(value: Any, form: str | None, unit: str) -> bool:
    """Whether a form reads a value, and not just as ISO writes dates."""
    pattern = date_form(form, unit)
    text = digits(value) if isinstance(value, int | float) else str(value).strip()
    if form in ("%d%m%Y", "%m%d%Y"):
        text = text.zfill(8)
    if pattern is not None and not pattern.fullmatch(text):
        return False
    found = moment(value, unit, form)
    return found is not None and (form is None or abs(found[0]) < 200 * 366 * DAY)


# --- what is proposed for a column of which nothing is declared


def _proposed(column: _Values, name: str) -> dict[str, Any]:
    """A declaration for a column of which nothing is declared."""
    gaps = {"nullable": bool(column.absent.any())}
    ends: dict[str, Any] = {}
    categories = {"type": "categorical", **gaps}
    if not column.n:
        return {"type": ..., **gaps}
    if column.column.kind in ("temporal", "zoned"):
        zone = {"tz": "UTC"} if column.column.kind == "zoned" else {}
        return {"type": "datetime" if column.timed or zone else "date", **ends, **zone, **gaps}
    if column.dated:
        form, unit, *_ = column.form
        more = {"unit": unit} if unit != "day" else {}
        more |= {} if form is None else {"format": form}
        return {"type": "datetime" if column.timed else "date", **ends, **more, **gaps}
    if sum(n for text, n in column.texts if _CLOCK.fullmatch(text.strip())) >= KIND * column.n:
        note = "times of day have no type: make a number of them, such as the hour, or leave it out"
        return {"type": None, "note": note}
    if column.identifies(name):
        return {"type": "identifier"}
    if column.coded:
        once = column.few_each(1.5) and not _ZIP.search(name.casefold())
        return {"type": "identifier"} if once else categories
    if _few_codes(column) or (column.whole and _ZIP.search(name.casefold())):
        return categories
    if column.numeric and column.column.kind != "boolean":
        kind, note = _counted(column, name)
        return {"type": kind, **ends, **gaps, **({"note": note} if note else {})}
    if column.distinct <= max(CATEGORIES, column.n // 20) and column.distinct <= 0.8 * column.n:
        return categories
    note = "free text: leave it out, or declare a public list of categories, one of them as other="
    return {"type": None, "note": note}


def _few_codes(column: _Values) -> bool:
    """Whether few values are categories, also where they are numbers."""
    if not column.numeric:
        return column.distinct <= CODES and column.distinct < max(column.n, 3)
    x = np.unique(column.figures)
    if column.words and len(x) <= CODES < len(x) + len(column.words):
        return False
    if not column.whole:
        return len(x) <= 4
    # Amounts may be 0 or of different lengths, and ages of a small file hardly repeat.
    amounts = (x >= 1000).sum() >= 4 and len({len(digits(float(each))) for each in x}) > 1
    narrow = np.ptp(x) <= CODES or column.n >= 5 * len(x)
    return len(x) <= CODES and bool(narrow) and not amounts


def _counted(column: _Values, name: str) -> tuple[str, str]:
    """Whether numbers count days or seconds, by name and size, and how they become dates."""
    words = {word.casefold() for word in re.findall(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+", name)}
    first, last = column.figures[[0, -1]]
    if words & _DATES and 5_000 < first and last < 60_000 and last - first < 45_000:
        how = "pandas.to_datetime(x, unit='D', origin='1899-12-30')"
        return "date", f"days as a spreadsheet counts them: {how}"
    if words & (_DATES | _QUANTITY) and 3e8 < first and last < 3e9:
        return "datetime", "seconds since 1970: pandas.to_datetime(x, unit='s')"
    return "numeric", ""


# --- what there is to say of a column


class _Notes:
    """Sentences on one column, and its declaration with what they change."""

    def __init__(self, name: str, n: int, data: dict[str, Any]) -> None:
        self.name, self.n, self.data, self.lines = name, n, data, list[str]()

    def __call__(self, line: str, **changes: Any) -> None:
        self.lines.append(line)
        self.data |= changes

    def of(self, n: int, line: str, **changes: Any) -> None:
        """A sentence on some of the values, if there are any."""
        if n:
            self(f"{_share(n, self.n)} of the values {line}", **changes)


def _of_column(column: _Values, attribute: Any, note: _Notes) -> None:
    gaps = int(column.absent.sum())
    if gaps and not note.data.get("nullable", True):
        share = _share(gaps, len(column.codes))
        note(f"{share} of the records have no value and are skipped: nullable", nullable=True)
    if said := note.data.get("note"):
        note(said)
    kind = note.data["type"]
    _repeats(column, note, attribute is None)
    if kind in ("date", "datetime") and not said:
        _of_dates(column, attribute, note)
    elif kind == "numeric":
        _of_text(column, note)
        if len(column.figures):
            _of_numbers(column.figures, attribute, note)
    elif kind == "categorical":
        _of_categories(column, attribute, note)


def _repeats(column: _Values, note: _Notes, proposed: bool) -> None:
    """Rows of one value, where whole numbers or texts repeat: it may tell persons apart."""
    kind, most = note.data["type"], int(column.owners.max(initial=0))
    other = kind in ("date", "datetime") or (column.numeric and not column.whole)
    many = not other and column.distinct > max(CODES, column.n // ROWS)
    said = many and (proposed or column.identifies(note.name))
    if most > 1 and (kind == "identifier" or said):
        shares = {k: int(np.minimum(column.owners, k).sum()) for k in (1, 2, 5, 10) if k <= most}
        kept = ", ".join(f"{k}: {_share(n, column.n)}" for k, n in shares.items())
        note(
            f"{column.n} rows of {column.distinct} persons, if it identifies persons, at most "
            f"{most} of one. Then protect them: --privacy-id {note.name!r} --max-rows-per-id K, in "
            f"Python privacy_id= and max_rows_per_id= (share of the rows that K keeps: {kept})"
        )


def _of_text(column: _Values, note: _Notes) -> None:
    """Numbers that are written as text."""
    how = "--decimal , (in Python pandas.read_csv(..., decimal=','))"
    note.of(column.commas, f"have a decimal comma: {how}")
    if column.commas >= NUMBERS * column.n:
        return
    read = [(text, n, number_written(text)) for text, n in column.texts]
    signs = sum(n for text, n, x in read if x == x and {*text} & {*"$€£¥%,"})
    note.of(signs, "are written with signs or groups")
    for shaped in (False, True):
        odd = [(t, n) for t, n, x in read if x != x and bool(re.search(r"\d", t)) == shaped]
        such = f"are no numbers, such as {odd[0][0]!r}" if odd else ""
        remedy = "a form that is not read; write them as numbers" if shaped else "missing"
        changes = {} if shaped else {"nullable": True}
        note.of(sum(n for _, n in odd), f"{such}: {remedy}", **changes)


def _of_numbers(x: FloatArray, attribute: Any, note: _Notes) -> None:
    data = note.data
    if not data.get("integer") and data.get("decimals") is None:
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
    rest = x[~np.isin(x, values[often])] if len(often) else x
    if not isinstance(attribute, Numeric):
        if np.median(x) > 0 and x[0] >= 0 and x.mean() > 2 * np.median(x):
            note("the values are skewed: scale='log', if the range begins at 0", scale="log")
        return
    codes = attribute._encode(x.copy())
    most = int(np.bincount(codes[codes < attribute.bins], minlength=1).max())
    if attribute.bins >= 8 and most > CROWDED * len(x) and not len(often):
        share = _share(most, len(x))
        note(f"one bin holds {share}: narrower bins, such as 'auto', or edges", bins="auto")
    low, middle = np.quantile(rest, [0.25, 0.75]) if len(rest) else (0.0, np.inf)
    if middle - low < NARROW * (attribute.upper - attribute.lower) and attribute.scale == "linear":
        text = "half of the values are in a small part of the range:"
        if attribute.lower >= 0 and middle - attribute.lower < 2 * NARROW * (
            attribute.upper - attribute.lower
        ):
            note(f"{text} scale='log'", scale="log", bins="auto")
        elif not attribute.uneven:
            note(f"{text} a narrower range, or edges, if that is public")


def _of_dates(column: _Values, attribute: Any, note: _Notes) -> None:
    form, _, n, other = column.form
    if column.column.kind == "zoned" and note.data.get("tz") is None:
        note("times with a zone are read in UTC: convert local times first, or declare tz='UTC'")
    alike = f" ({other} reads them too: which is it?)" if other else ""
    own = (note.data.get("unit", "day"), note.data.get("format"))
    if not isinstance(attribute, Date | Datetime) and form is not None:
        note(f"dates are written as {form}{alike}")
    unread = [(t, k) for t, k in column.texts if moment(t, *own) is None]
    if not unread:
        return
    n_unread = sum(k for _, k in unread)
    if form not in (None, own[1]):
        reads = f"{form} reads {_share(n, column.n)}{alike}"
        note.of(n_unread, f"are not read; {reads}: format", format=form)
    elif re.search(r"\d", unread[0][0]):
        such = f"are no dates in this form, such as {unread[0][0]!r}"
        note.of(n_unread, f"{such}: write all dates in one form")
    else:
        note.of(n_unread, f"are no dates, such as {unread[0][0]!r}", nullable=True)


def _of_categories(column: _Values, attribute: Any, note: _Notes) -> None:
    known = attribute.categories if isinstance(attribute, Categorical) else ()
    first = {str(each).strip().casefold(): each for each in known}
    near: list[tuple[str, Any, int]] = []
    gaps: list[tuple[str, int]] = []
    for text, n in column.texts:
        plain = text.strip().casefold()
        same = first.get(plain, text) if known else first.setdefault(plain, text)
        if same != text and text not in known:
            near.append((text, same, n))
        if plain in _GAPS and text not in known:
            gaps.append((text, n))
    n_near, n_gaps = sum(n for *_, n in near), sum(n for _, n in gaps)
    for text, same, _ in near[:1]:
        note.of(
            n_near,
            f"differ from others by case or blanks alone, such as {text!r:.30} and {same!r:.30}: "
            "declare each spelling, or mend them (in Python .str.strip(); the command line leaves "
            "out blanks at the ends)",
        )
    for text, _ in gaps[:1]:
        how = f"--missing {text} (in Python na_values=[{text!r}]) and nullable, or a category"
        note.of(n_gaps, f"are {text!r}: {how}")
    if known and attribute.other is None:
        far = [(v, n) for v, n in column.commonest if attribute.coding().code_of(v) < 0]
        n_far = sum(n for _, n in far) - n_near - n_gaps
        such = f"are not declared, such as {far[0][0]!r}" if far else ""
        note.of(max(n_far, 0), f"{such}: add them, or one for all others, which other= names too")
    wrong = sum(n for text, n in column.texts if "\ufffd" in text or _mended(text) is not None)
    note.of(wrong, "were read in a wrong encoding")


def _mended(text: str) -> str | None:
    """A text in UTF-8 that was read as Windows-1252, as it was written."""
    try:
        return None if text.isascii() else text.encode("cp1252").decode()
    except UnicodeError:
        return None


def _share(n: int, total: int) -> str:
    return f"{100 * n / max(total, 1):.3g}%"


# --- the report on a table


@dataclass(frozen=True)
class DomainReport:
    """What a domain would do to the records of a frame. Exact counts: NOT private.

    Attributes
    ----------
    columns : pandas.DataFrame
        One row per attribute: numbers of values clipped from ``below`` and ``above``, mapped
        ``to_other`` and ``to_missing``, and ``skipped`` with their record; and of the last two
        kinds those that are ``not_understood``: there is a value, but no number or date.
    n_rows : int
        Number of records.
    n_skipped : int
        Number of records that have no code in at least one attribute, or break the structure.
    rules : pandas.DataFrame or None
        One row per rule: number of records that are skipped because they ``break`` it, or, for
        derived columns that the data hold, whose value ``differs`` from what the rule says, which
        is ignored. None without a structure.
    n_unfit : int, default=0
        Number of records of a file that could not be read, which are not counted by column: lines
        with an odd number of quotes, or with more fields than the first.
    findings : tuple of str
        What the declaration misses: gaps, forms of dates, whole numbers, crowded bins, values that
        many records share, categories that differ by case, values that repeat.
    drafts, structure : list
        What :meth:`declaration` writes.
    """

    columns: pd.DataFrame
    n_rows: int
    n_skipped: int
    rules: pd.DataFrame | None = None
    n_unfit: int = 0
    findings: tuple[str, ...] = ()
    drafts: Sequence[Draft] = field(default=(), repr=False)
    structure: Sequence[Any] = field(default=(), repr=False)

    def declaration(self, style: str = "python") -> str:
        """The corrected declaration, with blanks where only the records know the value.

        Fill them in from what is publicly known: what the records hold must not go into it.

        Parameters
        ----------
        style : {"python", "json"}, default="python"
        """
        check_choice(style, "style", ("python", "json"))
        return draft_text(self.drafts, style, self.structure)

    @property
    def clean(self) -> bool:
        """Whether every value is represented as it is, and no rule is broken."""
        return not self.n_unfit and all(table.empty for table in self._tables())

    def _tables(self) -> list[pd.DataFrame]:
        """Columns with values that are not represented as they are, and rules that are broken."""
        changed = self.columns[self.columns.drop(columns="to_missing").any(axis=1)]
        rules = pd.DataFrame() if self.rules is None else self.rules
        return [changed.rename(columns=_HEADERS), rules[rules.any(axis=1)] if len(rules) else rules]

    def _summary(self) -> list[str]:
        """Sentences on all columns and rules."""
        if self.columns.empty:
            return ["no columns are declared; declaration() proposes how"]
        changed, broken = map(len, self._tables())
        share, n_columns = _share(self.n_skipped, self.n_rows), len(self.columns)
        lines = [
            f"records skipped: {self.n_skipped} of {self.n_rows} ({share})",
            f"columns whose values are all represented as they are: {n_columns - changed} of "
            f"{n_columns}",
        ]
        if self.n_unfit:
            lines.append(f"records that cannot be read: {self.n_unfit}")
        if self.rules is not None:
            n_rules = len(self.rules)
            lines.append(f"rules that hold in all records: {n_rules - broken} of {n_rules}")
        return lines

    def _shown(self) -> list[pd.DataFrame]:
        """The tables as counts with shares in text, at most a hundred rows of each."""
        return [
            table[:100].map(lambda n: f"{n} ({_share(n, self.n_rows)})" if n else "")
            for table in self._tables()
            if len(table)
        ]

    def __repr__(self) -> str:
        lines = [
            f"NOT PRIVATE: exact counts of {self.n_rows} records, for the data owner only",
            *self._summary(),
            *(table.to_string() for table in self._shown()),
            *(f"- {line}" for line in self.findings),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = f"<b>NOT PRIVATE</b>: exact counts of {self.n_rows:,} records, for the data owner"
        items = "".join(f"<li>{html.escape(line)}</li>" for line in self.findings)
        tables = "".join(table.to_html() for table in self._shown())
        return f"<p>{title} only</p><p>{'<br>'.join(self._summary())}</p>{tables}<ul>{items}</ul>"


_HEADERS = {
    "below": "clipped from below",
    "above": "clipped from above",
    "to_other": "mapped to other",
    "to_missing": "missing, kept",
    "skipped": "skipped",
    "not_understood": "not understood",
}


def examined(domain: Any, frame: Any) -> DomainReport:
    """What the owner should know of the records before spending. Exact counts.

    Parameters
    ----------
    domain : Domain or None
        None: nothing is declared, and every column is proposed by what it holds.
    frame : Rows
        With the measured columns of the domain, and perhaps others.
    """
    lines, drafts = _findings(domain, frame)
    if domain is None:
        counts = pd.DataFrame(columns=list(_HEADERS))
        return DomainReport(counts, frame.n_rows, 0, findings=(*lines,), drafts=drafts)
    unfit = np.zeros(frame.n_rows, dtype=bool) if frame.unfit is None else frame.unfit
    n_unfit, rows = int(unfit.sum()), {}
    for name, attribute in domain.items():
        rows[name] = attribute._diagnose(frame.column(name))
        rows[name]["to_missing" if attribute.nullable else "skipped"] -= n_unfit
    codes = domain.without_structure().select(domain.names).encode_columns(frame)
    skipped = (codes < 0).any(axis=1) | domain.structure.breaks(codes)
    return DomainReport(
        pd.DataFrame.from_dict(rows, orient="index"),
        frame.n_rows,
        int(skipped.sum()),
        _broken_rules(domain, frame, codes) if domain.structure else None,
        n_unfit,
        (*lines,),
        drafts,
        domain.structure.rules,
    )


def _broken_rules(domain: Any, frame: Any, codes: Any) -> pd.DataFrame:
    """Records that break each rule, or whose value of a derived column is not what it says."""
    structure = domain.structure
    rows = {}
    for rule, broken in structure.broken_by_rule(codes):
        rows[repr(rule)] = {"breaks": int(broken.sum()), "differs": 0}
    for name, rule in structure.derived.items():
        if name in frame.names:
            own = codes[:, domain.index(structure.base_of(name))]
            expected = np.where(own < 0, -1, structure.codes_of(name)[own])
            found = frame.column(name).codes(domain.declared(name).coding())
            differs = (found != expected) & (own >= 0)
            rows[repr(rule)] = {"breaks": 0, "differs": int(differs.sum())}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["breaks", "differs"])


def _findings(domain: Any, frame: Any) -> tuple[list[str], list[Draft]]:
    """Sentences, each of which begins with its column, and a corrected declaration."""
    lines: list[str] = []
    drafts: list[Draft] = []
    declared = {} if domain is None else {name: domain.declared(name) for name in domain.columns}
    known = {} if domain is None else {draft.name: dict(draft.data) for draft in drafts_of(domain)}
    readable = np.ones(frame.n_rows, dtype=bool) if frame.unfit is None else ~frame.unfit
    if not readable.all():
        lines.append(
            f"{_share(int((~readable).sum()), frame.n_rows)} of the records cannot be read: more "
            "fields than the first line has names, or a quote that is left open. Is the first line "
            "a title, --sep another sign, or are there line breaks in quotes (--multiline)?"
        )
    read = {}
    if readable.any():
        read = {name: _Values(frame.column(name), readable) for name in frame.names}
        if _second_header([*read.values()]):
            lines.append("the first record looks like a second line of names: take it out")
            readable[np.flatnonzero(readable)[0]] = False
            read = {name: _Values(frame.column(name), readable) for name in read}
    for name in dict.fromkeys([*declared, *frame.names]):
        attribute, column = declared.get(name), read.get(name)
        data = known.get(name, {"type": ...})
        if column is not None:
            data = _proposed(column, name) if attribute is None else data
            note = _Notes(name, column.n, data)
            if attribute is not None or domain is None:
                _of_column(column, attribute, note)
            else:
                _repeats(column, note, proposed=False)
            lines += [f"{name}: {line}" for line in note.lines]
            data = note.data
        if domain is None or attribute is not None:
            drafts.append(Draft(name, data, data.pop("note", "")))
    return lines, drafts


def _second_header(columns: Sequence[_Values]) -> bool:
    """Whether the first record has text that occurs once where others have numbers or dates."""
    odd = []
    for column in columns:
        value = column.uniques[column.codes[0]]
        if column.absent[0] or column.n <= 2:
            continue
        if column.counts[column.codes[0]] > 1 or str(value).strip().casefold() in _NO_NUMBER:
            return False
        form, unit, n, _ = column.form
        if (~np.isnan(column.numbers[~column.absent][1:])).mean() >= KIND:
            odd.append(bool(np.isnan(column.numbers[0])))
        elif n >= KIND * (column.n - 1):
            odd.append(moment(value, unit, form) is None)
    return True in odd and False not in odd
