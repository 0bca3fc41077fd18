"""No record decides what another record is: every kind of attribute, reader, and odd record.

Readers of files choose the type of a column by its values, so that one record more may make text of
numbers, or floats of integers. Here a file is written as text and read by each reader as it infers
the types, with one odd record more and without it. What the OTHER records become, their codes and
their persons, must be the same; and none of these records may decide whether a table is refused.

Persons are keyed as they are written: what a reader has merged, "01" and "1" as integers, cannot be
seen, so they are compared in tables of one schema, and the loss states the assumption.
"""

from __future__ import annotations

import io
import warnings
from argparse import Namespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv

import skdp
from skdp import Categorical, Date, Datetime, Domain, Numeric
from skdp._random import noise_source
from skdp.app.csv import open_source
from skdp.app.outputs import Progress
from skdp.exceptions import DomainError
from skdp.tables import (
    TYPES_DECLARED,
    Contributions,
    as_frame,
    count_rows,
    identities,
    read_rows,
)

duckdb = pytest.importorskip("duckdb")

# One more record holds one of these.
ODD = [
    *("", "x", "1.5", "01", "true", "nan", "12e45678", "0x1F", "12345678901234567890123"),
    *("2020-01-01", "2020-01-01T10:00:00Z", "10:30"),
]

# --- what is declared, and the records that are not odd

CODES = {
    "numbers, whole": (Numeric(0, 10, bins=10), ["0", "3", "7", "10"]),
    "numbers, whole, one each": (Numeric(0, 9, integer=True, nullable=True), ["0", "3", "9"]),
    "numbers, whole, with gaps": (Numeric(0, 9, integer=True, nullable=True), ["0", "", "9"]),
    "numbers, fractions": (Numeric(0, 1, bins=4), ["0.1", "0.5", "0.75"]),
    "numbers, more digits than a float has": (Numeric(0, 1, bins=10), ["0.29999999999999999"]),
    "numbers, truth values": (Numeric(0, 1, bins=2), ["true", "false"]),
    "numbers, given dates": (Numeric(0, 1, bins=2), ["2020-01-01", "2020-01-02"]),
    "words": (Categorical(["a", "b"], nullable=True), ["a", "b", ""]),
    "words, other": (Categorical(["a", "b"], other="b"), ["a", "b", "c"]),
    "digits as text": (Categorical(["1", "2"]), ["1", "2", "2"]),
    "digits as text, with gaps": (Categorical(["1", "2"], nullable=True), ["1", "2", ""]),
    "digits as text, written as floats": (Categorical(["1", "2"]), ["1.0", "2.0"]),
    "digits as text, leading zeros": (Categorical(["01", "02"]), ["01", "02"]),
    "integers": (Categorical([1, 2]), ["1", "2", "2"]),
    "integers, with gaps": (Categorical([1, 2], nullable=True), ["1", "", "2"]),
    "integers, large": (Categorical([2**53 + 1, 7]), [str(2**53 + 1), "7"]),
    "fractions": (Categorical([0.5, 1.5]), ["0.5", "1.5"]),
    "truth values as text": (Categorical(["True", "False"]), ["true", "false"]),
    "truth values": (Categorical([True, False]), ["true", "false", "True"]),
    "dates as text": (Categorical(["2020-01-01", "2020-01-02"]), ["2020-01-01", "2020-01-02"]),
    "times of the day as text": (Categorical(["10:30", "11:00"]), ["10:30", "11:00"]),
    "dates": (Date("2020-01-01", "2020-01-31"), ["2020-01-01", "2020-01-09"]),
    "dates, in UTC": (Date("2020-01-01", "2020-01-31"), ["2020-01-09T00:00:00Z"]),
    "moments": (Datetime("2020-01-01", "2020-01-31", unit="hour"), ["2020-01-02 10:00:00"]),
    "moments, in UTC": (
        Datetime("2020-01-01", "2020-01-31", unit="hour"),
        ["2020-01-02T10:00:00Z"],
    ),
    "no value at all": (Categorical(["a", "b"], nullable=True), ["", ""]),
}

PERSONS = {
    "names": ["p1", "p2", "p1", ""],
    "whole numbers": ["1", "2", "1", "30"],
    "whole numbers, with gaps": ["1", "2", "", "1"],
    "fractions": ["0.5", "1.5", "0.5"],
    "18 digits": [str(10**18 + i) for i in (0, 1, 2, 1)],
    "all infinite as numbers": ["12e45678", "9e456781", "12e45678"],
    "exponents": ["1e300", "1e301", "1e300"],
    "truth values": ["true", "false", "true"],
    "leading zeros": ["01", "02", "01"],
    "leading zeros or none": ["01", "1", "2"],
    "dates": ["2020-01-01", "2020-01-02", "2020-01-01"],
}

# --- the readers, each with the types that it infers


def value_of(field):
    """A field as Python's own readers give it."""
    for kind in (int, float):
        try:
            return kind(field)
        except ValueError:
            pass
    return {"": None, "true": True, "false": False}.get(field.lower(), field)


def values_of(content):
    lines = content.decode().splitlines()[1:]
    return [value_of(line.partition(",")[0]) for line in lines]


def objects_of(content):
    values = values_of(content)
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


CONNECTION = duckdb.connect(config={"threads": 1})


def of_duckdb(content, folder):
    path = folder / "data.csv"
    path.write_bytes(content)
    return CONNECTION.read_csv(str(path), header=True, sep=",", all_varchar=True)


def dictionaries(content):
    table = csv.read_csv(io.BytesIO(content))
    return pa.table({name: table[name].dictionary_encode() for name in table.column_names})


READERS = {
    "pandas": lambda content: pd.read_csv(io.BytesIO(content)),
    "pandas, pyarrow": lambda content: pd.read_csv(io.BytesIO(content), engine="pyarrow"),
    "Polars": lambda content: pl.read_csv(io.BytesIO(content), infer_schema_length=None),
    "Arrow": lambda content: csv.read_csv(io.BytesIO(content)),
    "Arrow, dictionaries": dictionaries,
    "lists": lambda content: [[value] for value in values_of(content)],
    "array of objects": objects_of,
    "column of objects": lambda content: pd.DataFrame({"c": objects_of(content)[:, 0]}),
    "array": lambda content: np.array(values_of(content)).reshape(-1, 1),
    # Their types are declared, see `test_losses_of_lazy_frames_assume_declared_types`.
    "DuckDB, declared": None,
    "command line": None,
}
FLAG = Domain({"k": Categorical([0, 1])})


def written(fields):
    """A file of one column, and another, so that no line is empty."""
    return "\n".join(["c,k", *(f"{field},1" for field in fields), ""]).encode()


def command_line(content, folder, domain, unit=None):
    path = folder / "cli.csv"
    path.write_bytes(content)
    with open_source(str(path), domain, unit) as source:
        return source.rows(Progress(True))


class Unread(Exception):
    """The reader itself cannot read the file: old Polars refuses integers beyond 64 bits."""


def read(reader, content):
    """A frame of a file, by a reader that guesses types."""
    try:
        return READERS[reader](content)
    except pl.exceptions.ComputeError as error:
        raise Unread from error


def codes_of(reader, attribute, fields, folder):
    """Codes of the records, or how many have each code; None if the table is refused."""
    domain, content = Domain({"c": attribute}), written(fields)
    try:
        if reader == "DuckDB, declared":
            rows = read_rows(of_duckdb(content, folder)).select(["c"])
            domain.check_schema(rows)
            table = count_rows(rows, domain)
            return dict(zip(table.codes[:, 0].tolist(), table.counts.tolist(), strict=True))
        if reader == "command line":
            rows = as_frame(command_line(content, folder, domain))
        else:
            rows = as_frame(read(reader, content))
        rows = domain.with_names(rows, []) if rows.n_unnamed else rows.select(["c"])
        domain.check_schema(rows)
        return domain.encode(rows)[:, 0].tolist()
    except DomainError:
        return None


def persons_of(reader, fields, folder):
    """For each record the first of the same person, -1 for nobody; in an engine how many are.

    And the type of the column.
    """
    content = written(fields)
    if reader == "DuckDB, declared":
        one = Contributions("c", 1, noise_source(0))
        rows = read_rows(of_duckdb(content, folder))
        return count_rows(rows, Domain({"k": Categorical(["0", "1"])}), one).n, ""
    if reader == "command line":
        rows = as_frame(command_line(content, folder, FLAG, "c")).column("c")
    else:
        rows = as_frame(read(reader, content))
        rows = rows.column(rows.names[0])
    owners = identities(rows).tolist()
    return [-1 if owner < 0 else owners.index(owner) for owner in owners], rows.dtype


def same(alone, more, n):
    """Whether n records are the same with one record more, of tables of one schema."""
    if isinstance(alone, tuple):
        return alone[1] != more[1] or same(alone[0], more[0], n)
    if alone is None or more is None:
        return alone is more
    if isinstance(alone, list):
        return alone[:n] == more[:n]
    if isinstance(alone, int):
        return 0 <= more - alone <= 1
    added = [more.get(code, 0) - alone.get(code, 0) for code in {*alone, *more}]
    return min(added, default=0) >= 0 and sum(added) <= 1


def changed(outcome, fields, reader):
    """The odd records that change what others are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = outcome(fields)
        # It reads text alone, and is slow.
        tried = ODD[:2] if reader == "DuckDB, declared" else ODD
        found = []
        for odd in tried:
            try:
                more = outcome([*fields, odd])
            except Unread:
                continue
            if not same(alone, more, len(fields)):
                found.append(odd)
        return found


def codes_changed(kind, reader, folder):
    attribute, fields = CODES[kind]
    return changed(lambda fields: codes_of(reader, attribute, fields, folder), fields, reader)


def persons_changed(kind, reader, folder):
    return changed(lambda fields: persons_of(reader, fields, folder), PERSONS[kind], reader)


# Decimals that pandas before 3 reads to another float than the nearest.
ROUNDED = pd.read_csv(io.StringIO("c\n0.29999999999999999"))["c"][0] != 0.3


@pytest.mark.parametrize("reader", READERS)
def test_no_record_decides_the_code_of_another(reader, tmp_path):
    kinds = [*CODES]
    if ROUNDED and reader == "pandas":
        kinds.remove("numbers, more digits than a float has")
    found = {kind: codes_changed(kind, reader, tmp_path) for kind in kinds}
    assert {kind: odd for kind, odd in found.items() if odd} == {}


@pytest.mark.parametrize("reader", READERS)
def test_no_record_decides_the_person_of_another_in_tables_of_one_schema(reader, tmp_path):
    found = {kind: persons_changed(kind, reader, tmp_path) for kind in PERSONS}
    assert {kind: odd for kind, odd in found.items() if odd} == {}
    # What a guessing reader has merged cannot be seen: that types were declared is assumed.
    if reader not in ("command line", "DuckDB, declared"):
        rows = as_frame(read(reader, written(["1"])))
        rows.privacy_id = rows.names[0]
        assert rows.assumes == TYPES_DECLARED


# --- two persons never share a key


def is_shared(table):
    """Whether two rows of a column of different values have one person."""
    owners = identities(as_frame(table).column("who"))
    return len(set(owners[owners >= 0])) < (owners >= 0).sum()


APART = {
    "infinite as numbers": ["12e45678", "9e456781", "inf", "-1e999"],
    "leading zeros": ["01", "1", "001", "+1", "1.0", " 1", "1e0"],
    "truth values": ["true", "1", "True", "TRUE"],
    "one double": ["0.1", "0.10", "1e-1", "0.1000000000000000000001"],
    "digits": [str(10**18 + i) for i in range(20)],
    "joined digits": ["1_0", "10", "1_00", "100"],
}


@pytest.mark.parametrize("name", APART)
def test_no_two_texts_are_one_person(name, tmp_path):
    texts = APART[name]
    tables = [pd.DataFrame({"who": pd.Series(texts, dtype=kind)}) for kind in ("str", object)]
    tables += [pl.DataFrame({"who": texts}), pa.table({"who": texts})]
    assert not any(is_shared(table) for table in tables)
    # On the command line all of them are persons, each by its text.
    assert persons_of("command line", texts, tmp_path)[0] == list(range(len(texts)))


def test_what_an_encoding_cannot_read_is_nobody(tmp_path):
    # Both names are read as J?rg, and two persons would share the bound of one.
    path = tmp_path / "data.csv"
    path.write_bytes(b"k,who\n1,J\xf6rg\n1,J\xfcrg\n1,Anna\n")
    for encoding, persons in (("utf-8", [-1, -1, 0]), ("latin-1", [0, 1, 2]), (None, [0, 1, 2])):
        with open_source(str(path), FLAG, "who", options=Namespace(encoding=encoding)) as source:
            rows = as_frame(source.rows(Progress(True)))
        assert identities(rows.column("who")).tolist() == persons


def test_integers_of_18_digits_are_persons_of_their_own():
    integers = [10**18 + i for i in range(100)]
    for column in (integers, np.array(integers), pd.array(integers, dtype="Int64")):
        owners = identities(as_frame(pd.DataFrame({"who": column})).column("who"))
        assert len(set(owners)) == 100 and min(owners) == 0
    # One fraction among objects changes nobody; among floats nobody can be told from another.
    objects = as_frame(pd.DataFrame({"who": pd.Series([*integers, 1.5], dtype=object)}))
    assert len(set(identities(objects.column("who")))) == 101
    floats = identities(as_frame(pd.DataFrame({"who": np.array([*integers, 1.5])})).column("who"))
    assert floats.tolist() == [-1] * 100 + [0]


@pytest.mark.parametrize("persons", [["12e45678", "9e456781"], ["01", "1"], ["true", "1"]])
def test_items_of_two_persons_are_counted_as_those_of_two(persons):
    # They shared the bound of one person, so that one more took items of the other away.
    def found(who):
        table = skdp.most_frequent_items(
            ["a"] * len(who), 1, ["a", "b"], epsilon=5_000, max_items=1, persons=who, random_state=0
        )
        return table["count"].iloc[0]

    alone = found(persons[:1])
    assert found(persons) - alone == found(persons[1:]) in (0, 1)


def test_floats_of_an_engine_that_are_no_integers_are_nobody():
    who = [1.0, 2.0, 2.0**53, 1e300, float("inf"), float("nan"), None]
    one = Contributions("who", 1, noise_source(0))
    frame = pl.LazyFrame({"who": who, "k": ["0"] * len(who)})
    assert count_rows(read_rows(frame), Domain({"k": Categorical(["0", "1"])}), one).n == 2


# --- what cannot be seen is assumed, and stands in the loss


GUESSED = {
    # By all records DuckDB's sniffer makes booleans of these, and parsers of dates make dates.
    "booleans": (["no", "no"], Categorical(["yes", "no"]), "yes", "x"),
    "days first": (["01/03/2024"] * 2, Categorical(["01/03/2024"]), "25/03/2024", "x"),
    "dates": (["2024-03-01"] * 2, Date("2024-01-01", "2024-12-31"), "2024-05-01", "x"),
}


@pytest.mark.parametrize("name", GUESSED)
def test_a_loss_assumes_declared_types_where_guessing_them_changes_codes(name, tmp_path):
    fields, attribute, alike, odd = GUESSED[name]
    domain = Domain({"c": attribute, "k": Categorical([0, 1])})
    codes = {}
    for last in (alike, odd):
        path = tmp_path / f"{last[0]}.csv"
        path.write_bytes(written([*fields, last]))
        sniffed = CONNECTION.read_csv(str(path))
        frames = [sniffed, sniffed.to_arrow_table(), sniffed.df(), pl.scan_csv(path)]
        frames += [pl.read_csv(path, try_parse_dates=True)]
        for form, frame in enumerate(frames):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss = skdp.GridSynthesizer(epsilon=1, domain=domain).fit(frame).privacy_loss_
            rows = read_rows(frame)
            codes.setdefault(form, []).append((loss.assumes, count_rows(rows, domain).n))
    for (one, n_one), (other, n_other) in codes.values():
        # One of the two tables says it wherever one record changed others.
        assert TYPES_DECLARED in (one, other) or abs(n_one - n_other) <= 1
        assert {one, other} <= {TYPES_DECLARED, ""}
    if name == "dates":
        # Dates are found in other columns than of dates, so that both say it.
        assert {said for each in codes.values() for said, _ in each} == {TYPES_DECLARED}


def test_losses_say_what_they_assume_of_types(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(written(["a", "b", "a"]))
    domain = Domain({"c": Categorical(["a", "b"]), "k": Categorical([0, 1])})
    plain = pd.read_csv(path)
    typed = plain.assign(k=plain["k"] == 1)
    ledger = skdp.PrivacyLedger(20)
    fits = [
        skdp.GridSynthesizer(epsilon=1, domain=domain, ledger=ledger),
        skdp.DataCube(epsilon=1, domain=domain, ledger=ledger),
        skdp.MarginalSynthesizer(epsilon=1, domain=domain, ledger=ledger),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fit in fits:
            for frame in (pl.scan_csv(path), CONNECTION.read_csv(str(path)), typed):
                loss = fit.fit(frame).privacy_loss_
                assert loss.assumes == TYPES_DECLARED
                assert f"it assumes that {TYPES_DECLARED}" in loss.neighbours
            assert fit.fit(plain).privacy_loss_.assumes == ""
            # The command line reads each field as text.
            read = command_line(path.read_bytes(), tmp_path, domain)
            assert fit.fit(read).privacy_loss_.assumes == ""
        flags = [True, False, True]
        quantiles = skdp.private_quantiles(flags, [0.5], epsilon=1, domain=(0, 1))
        assert "assumes" not in repr(quantiles.privacy_loss)
        for given in (np.array(flags), pd.Series(flags), pl.Series(flags)):
            quantiles = skdp.private_quantiles(given, [0.5], epsilon=1, domain=(0, 1))
            assert quantiles.privacy_loss.assumes == TYPES_DECLARED
            skdp.most_frequent_items(given, 1, [0, 1], epsilon=1, max_items=1, ledger=ledger)
        skdp.DPKMeans(2, epsilon=1, domain=(0, 1), ledger=ledger).fit(np.array([flags]).T)
    said = list(ledger.to_frame()["assumes"])
    assert said == [*[TYPES_DECLARED] * 3, "", ""] * 3 + [TYPES_DECLARED] * 4


def test_losses_of_persons_assume_declared_types(tmp_path):
    rows = pd.DataFrame({"c": ["a", "b", "a"], "who": [1, 2, 1]})
    domain = Domain({"c": Categorical(["a", "b"])})
    release = skdp.GridSynthesizer(epsilon=1, domain=domain, privacy_id="who", max_rows_per_id=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert release.fit(rows).privacy_loss_.assumes == TYPES_DECLARED
        # The command line reads each field as text.
        read = command_line(rows.to_csv(index=False).encode(), tmp_path, domain, "who")
        assert release.fit(read).privacy_loss_.assumes == ""
