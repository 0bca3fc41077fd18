"""What a declaration does to the records of a table, and what it misses: exact, NOT private.

Everything here is for the data owner at a terminal: nothing of it goes into a domain that is saved,
a ledger or a release. What is seen is shown beside a corrected declaration in which the values are
left blank: they are filled in from public knowledge. Rules between columns are never proposed.
"""

from __future__ import annotations

import functools
import json
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from .._keys import key_of, number_in, number_written
from .._validation import BoolArray, FloatArray, IntArray, digits, some
from ..exceptions import PrivacyLeakWarning
from .attributes import MOST_SINGLE
from .constraints import Structure
from .dates import DAY, EXCEL, in_form, moment

_ABOUT = (
    "NOT PRIVATE: made by looking at the records. Replace every `...`, and check all else, by what "
    "is publicly known, never by what the records hold."
)

# When something is worth a line. None of it protects anything: all numbers are exact.
# Share of the values that must be numbers or dates for a column without a type, and alike.
NUMBERS, KIND = 0.5, 0.95
# Most distinct values of a column that is proposed as categories, also where they are numbers.
CATEGORIES, CODES = 60, 12
# Rows of one person on average, at most, in a column that identifies persons; and how many times
# more rows the person of a row may have than a person, on average.
ROWS, UNEVEN = 50, 2.5
# Share of the records at one value that is this often as common as its neighbours.
POINT, PEAK = 0.05, 3
# Share of the range that holds half of the records where a scale is suggested.
NARROW = 0.1
# Values that are read to recognise a form; their distinct ones, the commonest first. A form that
# reads none of the first `CATEGORIES` is none.
_LOOKED_AT = 2000

_DAYS = (
    "%Y-%m-%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d",
    "%Y-%d-%m", "%d%m%Y", "%m%d%Y", "%d %b %Y", "%d-%b-%Y", "%d%b%Y", "%b %d %Y", "%b %d, %Y",
    "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%m-%y", "%d-%b-%y", "%d %b %y", "%a, %d %b %Y",
)  # fmt: skip
_MONTHS = ("%b-%Y", "%b %Y", "%m/%Y", "%Y/%m", "%Y%m", "%b-%y", "%b %y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S")
# Forms of dates and their units; ISO needs no form.
_FORMS: tuple[tuple[str | None, str], ...] = (
    *((None, unit) for unit in ("day", "month", "quarter")),
    *((day + time, "day") for day in _DAYS for time in _TIMES),
    *((form, "month") for form in _MONTHS),
)
# Text that says that there is no value, also in a column of categories, and in one of numbers.
_GAPS = {"na", "n/a", "#n/a", "nan", "null", "nil", ".", "-", "--", "?", "**", "*"}
_NO_NUMBER = {*_GAPS, "none", "unknown", "missing", "n", "x", "no data", "not available"}
# Words of names. Those of identifiers count where values may be some, the weaker ones only where
# rows of one are few; quantities and dates are no identifiers without a word that says so.
_IDS = set("id ids uuid guid mrn ssn dni nif cpf curp pid key identifier identifiant ident".split())
_JOINED = re.compile(
    r"(?!.*(?:paid|bid|acid|lipid|humid|covid|oid)$)(.{2,})?(id|nr|no|num|number|numero|nummer)"
)
_PERSONS = set("patient paciente person persona subject participant respondent client".split())
_QUANTITY = set("age day days week weeks month months year years hour hours minutes time".split())
_DATES = set("date datum fecha dob day birth birthday admission discharge onset visit".split())
# Codes have a digit and no blanks.
_CODE = re.compile(r"(?=.*\d)(?!\d+[:/])[^\s+%<>]+")
_ZIP = re.compile(r"zip|post_?(al_?)?code|plz|postleitzahl|fips")


# --- declarations with blanks

# What every domain in JSON begins with; one that was read from records is none.
HEAD = {"format": "skdp.domain", "version": 1, "inferred": False}
# Those without which a column is not declared.
NEEDED: dict[str, tuple[str, ...]] = {"categorical": ("categories",)}
NEEDED |= dict.fromkeys(("numeric", "date", "datetime"), ("lower", "upper"))


@dataclass(frozen=True)
class Draft:
    """A column as far as it is known.

    Attributes
    ----------
    name : str
    data : dict
        Its entries in JSON: ``type``, and parameters of the class; ``...`` is to be filled in. The
        type None is none that a column can have.
    note : str
        What is to be known of it.
    """

    name: str
    data: dict[str, Any]
    note: str = ""

    @property
    def entries(self) -> dict[str, Any]:
        """Entries that say something, and blanks."""
        # A flag that is not set is left out; `other` may be the category False.
        data = self.data.items()
        kept = {k: v for k, v in data if v is not None and (v is not False or k == "other")}
        needed = () if "edges" in kept else NEEDED.get(kept.get("type", ""), ())
        return {"type": ..., **dict.fromkeys(needed, ...), **kept}

    def as_json(self) -> dict[str, Any]:
        """Its entry in a file that a person edits."""
        found = {key: "..." if value is ... else value for key, value in self.entries.items()}
        return {"name": self.name, **found, **({"note": self.note} if self.note else {})}


def drafts_of(domain: Any) -> list[Draft]:
    """The columns of a domain."""
    return [Draft(name, domain.declared(name).to_data()) for name in domain.columns]


def json_text(drafts: Iterable[Draft], rules: Iterable[Any], **more: Any) -> str:
    """A domain as JSON that `Domain.from_json` reads, with a line for each column and rule."""
    parts = [f'"{key}": {_dumped(value)}' for key, value in {**HEAD, **more}.items()]
    columns, kept = [draft.as_json() for draft in drafts], [rule.to_data() for rule in rules]
    for key, items in (("attributes", columns), ("structure", kept)):
        if items:
            parts.append(f'"{key}": [\n  ' + ",\n  ".join(map(_dumped, items)) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# --- the values of a column


# A sentence, and what it changes in the declaration.
_Finding: TypeAlias = tuple[str, dict[str, Any]]


class _Form(NamedTuple):
    """How dates are written: a format, the unit that it resolves, how many values it reads."""

    format: str | None
    unit: str
    n: int
    timed: bool  # whether some have a time of day that is not midnight
    other: str | None  # a format that reads as many


class _Values:
    """The distinct values of a column, the commonest first, and how often each occurs."""

    def __init__(self, column: Any, readable: BoolArray) -> None:
        self.kind = column.kind
        codes, uniques = column.factorize()
        plain = [u.item() if isinstance(u, np.number | np.bool_) else u for u in uniques]
        there = [key_of(u.strip() if isinstance(u, str) else u) is not None for u in plain]
        read = codes[readable]
        counts = np.bincount(read[read >= 0], minlength=len(plain)) * np.array(there, dtype=int)
        order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
        place = np.full(len(plain) + 1, -1)
        place[order] = np.arange(len(order))
        # Position of each record in the list of values; -1: it has none.
        self.records: IntArray = place[read]
        self.counts, self.n, self.distinct = counts[order], int(counts.sum()), len(order)
        self.commonest: list[tuple[Any, int]] = [(plain[i], int(counts[i])) for i in order]
        self.texts = [(value, n) for value, n in self.commonest if isinstance(value, str)]
        unread = [each for each in self.texts if np.isnan(number_written(each[0]))]
        self.commas = [each for each in unread if not np.isnan(number_written(each[0], ","))]
        commas = sum(n for _, n in self.commas) >= NUMBERS * self.n > 0
        self.decimal = "," if commas else "."
        numbers = np.array([self._number(value) for value, _ in self.commonest], dtype=np.float64)
        every = np.repeat(numbers, self.counts)
        self.figures: FloatArray = np.sort(every[np.isfinite(every)])
        self.whole = bool((np.rint(self.figures) == self.figures).all())

    def _number(self, value: Any) -> float:
        return number_written(value, self.decimal) if isinstance(value, str) else number_in(value)

    def reads(self, value: Any) -> bool:
        """Whether a value is a date or number as most are."""
        if self.dated:
            return moment(value, self.form.unit, self.form.format) is not None
        return not np.isnan(self._number(value))

    def on(self, values: Sequence[Any], line: str, **changes: Any) -> list[_Finding]:
        """A sentence on some of the values, if there are any; ``such`` is the commonest."""
        if not values:
            return []
        share = _share(sum(n for _, n in values), self.n)
        return [(f"{share} of the values {line.format(such=values[0][0])}", changes)]

    def share_of_texts(self, test: Callable[[str], Any]) -> float:
        """Share of the values that are texts of which something holds."""
        return sum(n for text, n in self.texts if test(text.strip())) / max(self.n, 1)

    @functools.cached_property
    def numeric(self) -> bool:
        """Whether the values are numbers, perhaps with a few words among them."""
        # What says that there is no value is no word, nor what bounds one (<0.5).
        said = [each for each in self.texts if each[0].strip().casefold() not in _NO_NUMBER]
        shown = [(text.lstrip("<>≤≥=~ "), n) for text, n in said]
        words = [n for text, n in shown if np.isnan(number_written(text, self.decimal))]
        few = len(words) <= CODES or sum(words) <= (1 - KIND) * self.n
        return len(self.figures) > 0 and len(self.figures) >= sum(words) and few

    @functools.cached_property
    def form(self) -> _Form:
        """The form of dates that reads most values; ISO needs no format."""
        dates = [each for each in self.commonest if re.search(r"\d", str(each[0]))]
        n_read = {_FORMS[0]: 0}
        for form in _FORMS:
            if any(_reads(value, *form) for value, _ in dates[:CATEGORIES]):
                n_read[form] = sum(n for value, n in dates[:_LOOKED_AT] if _reads(value, *form))
        best = max(n_read, key=n_read.__getitem__)
        alike = [form for form, _ in n_read if n_read[form, _] == n_read[best] > 0 and form]
        read = [(value, n) for value, n in dates if _reads(value, *best)]
        timed = any((moment(value, best[1], best[0]) or 0) % DAY for value, _ in read)
        n = sum(n for _, n in read)
        return _Form(*best, n, timed, alike[1] if best[0] and alike[1:] else None)

    @functools.cached_property
    def dated(self) -> bool:
        """Whether the values are dates: most, or, as numbers of eight or six digits, all."""
        if len(self.figures) >= NUMBERS * self.n:
            return 0 < len(self.figures) == self.form.n
        return self.form.n > NUMBERS * self.n > 0

    @functools.cached_property
    def coded(self) -> bool:
        """Whether numbers begin with zeros, so that they are codes."""
        zeros = self.share_of_texts(re.compile(r"0\d+").fullmatch)
        return zeros > 0.01 and self.share_of_texts(str.isdecimal) >= KIND

    @property
    def counted(self) -> bool:
        """Whether the values may be days as spreadsheets count them."""
        x = self.figures
        return len(x) > 0 and self.whole and 5_000 < x[0] and x[-1] < min(60_000, x[0] + 45_000)

    def few_each(self, most: float) -> bool:
        """Whether there are many different values, each with a few rows, about equally many."""
        even = (self.counts**2).sum() <= UNEVEN * self.n * self.n / max(self.distinct, 1)
        return self.distinct > CODES and bool(even) and self.n <= most * self.distinct

    def identifies(self, name: str) -> bool:
        """Whether the name, or the values by themselves, say that they are of one person each."""
        said = _words_of(name)
        if self.distinct <= CODES or (self.numeric and not (self.whole and self.figures[0] >= 0)):
            return False
        shaped = sum(bool(_CODE.fullmatch(text.strip())) for text, _ in self.texts)
        if not self.numeric and shaped < KIND * self.distinct:
            return self.distinct == self.n
        named = {*said} & _IDS or name.casefold() in _PERSONS
        named = named or any(map(_JOINED.fullmatch, said[-1:]))
        if named and self.n <= ROWS * self.distinct:
            return True
        if not self.numeric:
            return self.few_each(1.5) or (self.distinct > CATEGORIES and self.few_each(ROWS))
        return not {*said} & _QUANTITY and self._serial()

    def _serial(self) -> bool:
        """Whether whole numbers are numbered through, or repeat more than by chance."""
        x = np.unique(self.figures)
        size, once = x[-1] - x[0] + 1, self.distinct == self.n
        if 1500 <= x[0] <= x[-1] <= 2200 or size > 2**53:  # years, and sizes
            return False
        if once and self.n >= 20 and size <= 1.1 * len(x):
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


def _words_of(name: str) -> list[str]:
    """The words of a name such as PatientId or id_paciente."""
    return [word.casefold() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+", name)]


def _reads(value: Any, form: str | None, unit: str) -> bool:
    """Whether a form reads a value, and not just as ISO writes dates."""
    text = digits(value) if isinstance(value, int | float) else str(value).strip()
    if form is not None and in_form(text, form) is None:
        return False
    found = moment(value, unit, form)
    return found is not None and abs(found) < 200 * 366 * DAY


# --- what is proposed for a column of which nothing is declared


def _proposed(column: _Values, name: str) -> Draft:
    """A declaration for a column of which nothing is declared."""
    gaps = {"nullable": bool((column.records < 0).any())}
    categories = Draft(name, {"type": "categorical", **gaps})
    if not column.n:
        return Draft(name, {"type": ..., **gaps})
    if column.kind in ("temporal", "zoned") or column.dated:
        form, timed = column.form, column.form.timed or column.kind == "zoned"
        more = {"unit": None if form.unit == "day" else form.unit, "format": form.format}
        return Draft(name, {"type": "datetime" if timed else "date", **more, **gaps})
    if column.identifies(name) or (column.coded and column.few_each(1.5)):
        return Draft(name, {"type": "identifier"})
    place = column.whole and _ZIP.search(name.casefold())
    if column.coded or place or (column.numeric and _few_codes(column)):
        return categories
    if column.numeric:
        days = column.counted and {*_words_of(name)} & _DATES
        return Draft(name, {"type": "date" if days else "numeric", **gaps})
    if column.distinct <= max(CATEGORIES, column.n // 20):
        return categories
    note = "free text: leave it out, or declare a public list of categories, one of them as other="
    return Draft(name, {"type": None}, note)


def _few_codes(column: _Values) -> bool:
    """Whether a few whole numbers are categories."""
    x = np.unique(column.figures)
    # Amounts may be 0 or of different lengths, and ages of a small file hardly repeat.
    amounts = (x >= 1000).sum() >= 4 and len({len(digits(float(each))) for each in x}) > 1
    narrow = np.ptp(x) <= CODES or column.n >= 5 * len(x)
    return len(x) <= (CODES if column.whole else 4) and bool(narrow) and not amounts


# --- what there is to say of a column


def _share(n: int, total: int) -> str:
    return f"{100 * n / max(total, 1):.3g}%"


def _said_of(column: _Values, attribute: Any, draft: Draft) -> list[_Finding]:
    """All that there is to say of a column; ``attribute`` is None where nothing is declared."""
    data, found = draft.data, _repeats(column, draft)
    share = _share(int((column.records < 0).sum()), len(column.records))
    if share != "0%" and not data.get("nullable", True):
        line = f"{share} of the records have no value and are skipped: nullable"
        found.append((line, {"nullable": True}))
    if draft.note:
        return [(draft.note, {}), *found]
    if data["type"] == "numeric":
        return found + _of_text(column) + _of_numbers(column, attribute, data)
    if data["type"] == "categorical":
        return found + _of_categories(column, attribute)
    return found + (_of_dates(column, attribute, data) if "date" in str(data["type"]) else [])


def _repeats(column: _Values, draft: Draft) -> list[_Finding]:
    """Rows of one value, where values that may identify persons repeat."""
    kind, most = draft.data["type"], int(column.counts.max(initial=0))
    # Free text may be names. That numbers repeat is no sign: ages and amounts do too.
    persons = kind in ("identifier", None) or (
        "date" not in str(kind) and column.identifies(draft.name)
    )
    if most <= 1 or not persons:
        return []
    line = (
        f"{column.n} rows of {column.distinct} persons, if it identifies persons, at most {most} "
        f"of one. Then protect them: --privacy-id {draft.name!r} --max-rows-per-id K, in Python "
        f"privacy_id= and max_rows_per_id= (share of the rows that K keeps: "
        f"{rows_kept(column.counts, column.n)})"
    )
    return [(line, {})]


def rows_kept(counts: IntArray, n: int) -> str:
    """Shares of ``n`` rows that bounds on the rows of each person keep, as text: exact."""
    # Up to the first that keeps all.
    bounds = [k for k in (1, 2, 5, 10, 20, 50) if k // 2 < counts.max(initial=1)]
    return ", ".join(f"{k}: {_share(int(np.minimum(counts, k).sum()), n)}" for k in bounds)


_UNREAD = "are no {}, such as {{such!r}}: mend them, or they count as missing (nullable)"


def _of_text(column: _Values) -> list[_Finding]:
    """Numbers that are written as text."""
    how = "have a decimal comma: --decimal , (in Python pandas.read_csv(..., decimal=','))"
    unread = [each for each in column.texts if not column.reads(each[0])]
    more = column.on(unread, _UNREAD.format("numbers"), nullable=True)
    return column.on(column.commas, how) + more


def _of_numbers(column: _Values, attribute: Any, data: dict[str, Any]) -> list[_Finding]:
    """The steps of numbers, values that many share, and where half of them lie."""
    x, found = column.figures, list[_Finding]()
    if not len(x):
        return found
    low, high = (x[0], x[-1]) if attribute is None else (attribute.lower, attribute.upper)
    # Whether each value has a cell of its own, whatever is special or skewed.
    single = data.get("integer", False) if attribute is None else attribute.one_each
    if not data.get("integer") and data.get("decimals") is None:
        places = next((d for d in range(4) if (np.round(x, d) == x).all()), None)
        if places == 0:
            single = high - low < MOST_SINGLE and not data.keys() & {"edges", "scale"}
            found = [("all values are whole numbers: integer", {"integer": True, "bins": None})]
        elif places is not None:
            text = f"no value has more than {places} decimal places: decimals={places}"
            found = [(text, {"decimals": places})]
    values, counts = np.unique(x, return_counts=True)
    around = np.maximum(np.r_[0, counts[:-1]], np.r_[counts[1:], 0])
    own = np.isin(values, data.get("special") or []) | (single & (low <= values) & (values <= high))
    often = (counts >= POINT * len(x)) & (counts > PEAK * around) & ~own & (len(values) > 50)
    pairs = list(zip(values[often], counts[often].tolist(), strict=True))
    text = "are {such:.15g} or such, far more than near it: special, if that is public"
    found += column.on(pairs, text, special=...)
    rest = x[~np.isin(x, values[often])]
    if single or not len(rest) or data.keys() & {"edges", "scale"}:
        return found
    first, third = np.quantile(rest, [0.25, 0.75])
    if 0 <= low and max(third - first, (third - low) / 2) < NARROW * (high - low):
        text = "half of the values are in a small part of the range: scale='log', if it begins at 0"
        found.append((text, {"scale": "log", "bins": "auto"}))
    return found


def _of_dates(column: _Values, attribute: Any, data: dict[str, Any]) -> list[_Finding]:
    form, own, found = column.form, data.get("format"), list[_Finding]()
    alike = f" ({form.other} reads them too: which is it?)" if form.other else ""
    short = "%y" in (form.format or "")
    pivot = ": of two digits, 00 to 68 are 2000 to 2068, and 69 to 99 are 1969 to 1999" * short
    if attribute is None and form.format is not None:
        found.append((f"dates are written as {form.format}{alike}{pivot}", {}))
    if column.counted and own != EXCEL and not column.dated:
        own = EXCEL
        found.append(("days as a spreadsheet counts them: format", {"format": EXCEL}))
    unit = data.get("unit", "day")
    odd = [each for each in column.texts if moment(each[0], unit, own) is None]
    if form.format in (None, own):
        return found + column.on(odd, _UNREAD.format("dates"), nullable=True)
    line = f"are not read; {form.format} reads {_share(form.n, column.n)}{alike}: format"
    return found + column.on(odd, line, format=form.format)


def _of_categories(column: _Values, attribute: Any) -> list[_Finding]:
    """Gaps that are written as text, and what is not declared."""
    known = set() if attribute is None else attribute.coding().table
    new = [each for each in column.commonest if key_of(each[0]) not in known]
    gaps = [each for each in new if str(each[0]).strip().casefold() in _GAPS]
    missing = "--missing {such} (in Python na_values=[{such!r}]) and nullable, or a category"
    found = column.on(gaps, f"are {{such!r}}: {missing}")
    if attribute is None or attribute.other is not None:
        return found
    mend = "mend their spelling, add them, or one for all others, which other= names too"
    rest = [each for each in new if each not in gaps]
    return found + column.on(rest, f"are not declared, such as {{such!r:.30}}: {mend}")


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
    rules : pandas.DataFrame
        One row per rule that forbids cells: number of records that are skipped because they
        ``break`` it. Values of derived columns in the data are ignored.
    findings : tuple of str
        What the declaration misses: gaps, forms of dates, whole numbers, crowded bins, values that
        many records share, categories that differ by case, values that repeat.
    drafts, structure : sequence
        What :meth:`declaration` writes.
    """

    columns: pd.DataFrame
    n_rows: int
    n_skipped: int
    rules: pd.DataFrame
    findings: tuple[str, ...] = ()
    drafts: Sequence[Draft] = field(default=(), repr=False)
    structure: Sequence[Any] = field(default=(), repr=False)

    def declaration(self) -> str:
        """The corrected declaration as JSON, with ``"..."`` where only the records know the value.

        Fill the blanks in from what is publicly known, never from what the records hold;
        `Domain.from_json` reads the result.
        """
        return json_text(self.drafts, self.structure, about=_ABOUT)

    @property
    def clean(self) -> bool:
        """Whether every value is represented as it is, and no record is skipped."""
        changed = self.columns.drop(columns="to_missing", errors="ignore")
        return not (self.n_skipped or changed.any(axis=None))

    @property
    def tables(self) -> list[pd.DataFrame]:
        """Columns with values that are changed or skipped, and rules that are broken.

        Counts with shares as text, at most a hundred rows of each.
        """
        shown = [table[table.any(axis=1)][:100] for table in (self.columns, self.rules)]
        return [
            x.map(lambda n: f"{n} ({_share(n, self.n_rows)})" * bool(n)) for x in shown if len(x)
        ]

    @property
    def summary(self) -> str:
        """A sentence on all columns and rules."""
        share = _share(self.n_skipped, self.n_rows)
        clean = "; all values are as declared, and all rules hold" * self.clean
        return f"records skipped: {self.n_skipped} of {self.n_rows} ({share}){clean}"

    def __repr__(self) -> str:
        title = f"NOT PRIVATE: exact counts of {self.n_rows} records, for the data owner only"
        found = [table.to_string() for table in self.tables] + [f"- {x}" for x in self.findings]
        return "\n".join([title, *[self.summary] * (not self.columns.empty), *found])


def examined(domain: Any, frame: Any) -> DomainReport:
    """What the owner should know of the records before spending. Exact counts.

    Parameters
    ----------
    domain : Domain or None
        None: nothing is declared, and every column is proposed by what it holds.
    frame : Rows
        With the measured columns of the domain, and perhaps others.
    """
    what = "Domain.check and Domain.propose count exactly: not private, for the data owner only."
    warnings.warn(what, PrivacyLeakWarning, stacklevel=3)
    readable = np.ones(frame.n_rows, dtype=bool) if frame.unfit is None else ~frame.unfit
    columns = {name: _Values(frame.column(name), readable) for name in frame.names}
    lines, drafts = _findings(domain, columns, readable)
    if domain is None:
        return DomainReport(pd.DataFrame(), frame.n_rows, 0, pd.DataFrame(), (*lines,), drafts)
    structure, codes = domain.structure, domain.plain(domain.names).encode_columns(frame)
    fates = {k: _fates(frame.column(k), columns[k], readable, each) for k, each in domain.items()}
    derived = structure.derived.values()
    alone = {
        repr(rule): Structure([*derived, rule], structure._declared).zeros
        for rule in structure.rules
        if not rule.from_
    }
    kept = {name: int(zeros.breaks(codes).sum()) for name, zeros in alone.items()}
    table = pd.DataFrame.from_dict(fates, orient="index")
    rules = pd.DataFrame.from_dict(kept, orient="index", columns=["breaks"])
    skipped = int(((codes < 0).any(axis=1) | structure.zeros.breaks(codes)).sum())
    return DomainReport(table, frame.n_rows, skipped, rules, (*lines,), drafts, structure.rules)


def _fates(column: Any, held: _Values, readable: BoolArray, attribute: Any) -> dict[str, int]:
    """What becomes of the values of a column, in records that could be read."""
    kinds = ("below", "above", "to_other", "to_missing", "skipped", "not_understood")
    found = dict.fromkeys(kinds, 0)
    coding = replace(attribute.coding(), unknown=-2)
    if coding.place is None:
        codes = column.codes(coding)[readable]
        found["skipped" if attribute.other is None else "to_other"] = int((codes == -2).sum())
        # A category may name the gap.
        missing = (codes == coding.missing) & (attribute.nullable or coding.missing < 0)
    else:
        numbers = column.numbers(coding.clock)[readable]
        missing = np.isnan(numbers)
        # Of these what is there, and is no number or date of this column.
        found["not_understood"] = int((missing & (held.records >= 0)).sum())
        numbers = numbers[~np.isin(numbers, attribute.special)]
        found["below"] = int((numbers < attribute.lower).sum())
        found["above"] = int((numbers > attribute.upper).sum())
    found["to_missing" if attribute.nullable else "skipped"] += int(missing.sum())
    return found


def _findings(
    domain: Any, columns: dict[str, _Values], readable: BoolArray
) -> tuple[list[str], list[Draft]]:
    """Sentences, each of which begins with its column, and a corrected declaration."""
    lines: list[str] = []
    if not readable.all():
        share = _share(int((~readable).sum()), len(readable))
        lines.append(
            f"{share} of the records cannot be read: more fields than names, or an open quote. See "
            "--skip-lines (titles above the names), --sep, and --multiline (line breaks in fields)."
        )
    numbers = [name for name in columns if not np.isnan(number_written(str(name)))]
    if domain is None and numbers:
        lines.append(f"{some(numbers)}: numbers as names. Does the first line name the columns?")
    if readable.any() and _second_header(columns.values()):
        lines.append(
            "the first record looks like a second line of names: delete it from the file "
            "(--skip-lines leaves out lines above the names only)"
        )
    if domain is not None and (others := [name for name in columns if name not in domain.columns]):
        what = "not declared, so not released. A fit takes them only as privacy_id="
        lines.append(f"{some(others)}: {what}")
    drafts = {draft.name: draft for draft in (drafts_of(domain) if domain else ())}
    for name, column in columns.items():
        attribute = domain.declared(name) if name in drafts else None
        draft = drafts.get(name) or _proposed(column, name)
        if domain is None or attribute is not None:
            found, drafts[name] = _said_of(column, attribute, draft), draft
        else:
            found = _repeats(column, draft)
        for line, changes in found:
            lines.append(f"{name}: {line}")
            draft.data.update(changes)
    return lines, list(drafts.values())


def _second_header(columns: Iterable[_Values]) -> bool:
    """Whether the first record has text that occurs once where others have numbers or dates."""
    first = [(each, *each.commonest[each.records[0]]) for each in columns if each.records[0] >= 0]
    if any(n > 1 or str(value).strip().casefold() in _NO_NUMBER for _, value, n in first):
        return False
    odd = [not column.reads(value) for column, value, _ in first if column.dated or column.numeric]
    return bool(odd) and all(odd)
