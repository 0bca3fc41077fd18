"""``skdp domain``, and files of domains and of structure that are not what they should be."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp import Categorical, Domain, Identifier, Numeric
from skdp.__main__ import main

DOMAIN = Domain(
    {
        "id": Identifier(),
        "city": Categorical(["a", "b", "c"]),
        "state": Categorical(["X", "Y"]),
        "amount": Numeric(0, 100, bins=20),
        "balance": Numeric(0, 100, bins=20),
    }
)
RULES = [
    {"rule": "at_most", "column": "balance", "bound": "amount"},
    {"rule": "derived", "column": "state", "from": "city", "map": {"a": "X", "b": "X", "c": "Y"}},
]
BOOK = """name,type,min,max,values
id,identifier,,,
city,category,,,a; b; c
state,category,,,X; Y
amount,number,0,100,
balance,number,0,100,
"""


def run(*arguments):
    return main([str(argument) for argument in arguments])


def loans(n=1_500):
    rng = np.random.default_rng(0)
    amount = rng.uniform(0, 100, n)
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "city": rng.choice(["a", "b", "c"], n),
            "amount": amount,
            "balance": amount * rng.random(n),
        }
    )
    return frame.assign(state=frame["city"].map(RULES[1]["map"]))


@pytest.fixture
def files(tmp_path):
    loans().to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "domain.json").write_text(DOMAIN.to_json())
    (tmp_path / "rules.json").write_text(json.dumps(RULES))
    (tmp_path / "book.csv").write_text(BOOK)
    return tmp_path


def release(files, *more, data="data.csv", domain="domain.json", rules="rules.json"):
    return run(
        "release", files / data, "--domain", files / domain, "--structure", files / rules,
        "--epsilon", 1, "--out", files / "view.skdp", "--force", *more,
    )  # fmt: skip


# Schemas


DOCTOR = "id,age,term\n" + "".join(f"{i},{20 + i % 50}.0,{36 + 24 * (i % 2)}\n" for i in range(99))


def test_the_doctor_speaks_at_a_terminal_only(files, capsys):
    (files / "data.csv").write_text(DOCTOR)
    assert run("domain", "check", files / "data.csv") == 2
    assert "--show" in capsys.readouterr().err
    assert run("domain", "check", files / "data.csv", "--show") == 1
    shown = capsys.readouterr()
    # A file that keeps what is printed gets no findings.
    assert "whole numbers" in shown.err and "whole numbers" not in shown.out
    assert '"lower": "..."' in shown.out and "NOT PRIVATE" in shown.err
    domain = skdp.Domain({"age": skdp.Numeric(0, 99, 9), "term": skdp.Numeric(30, 70)})
    (files / "few.json").write_text(domain.to_json())
    arguments = ["domain", "check", files / "data.csv", "--domain", files / "few.json"]
    assert run(*arguments) == 0
    assert "whole numbers" not in capsys.readouterr().out
    assert run(*arguments, "--show", "--python") == 0
    shown = capsys.readouterr().out
    assert "- age: all values are whole numbers" in shown
    assert "'age': Numeric(0, 99, integer=True)" in shown


def test_a_code_book_becomes_a_domain(files, capsys):
    assert run("domain", "from-schema", files / "book.csv") == 0
    domain = Domain.from_json(capsys.readouterr().out)
    assert domain.columns == DOMAIN.columns
    assert run("domain", "from-schema", files / "book.csv", "--out", files / "new.json") == 0
    assert Domain.from_json(files / "new.json") == domain
    # Where a domain is expected, a code book is one.
    assert release(files, domain="book.csv") == 0


def test_rules_in_an_object(files, capsys):
    text = '{"structure": [{"rule": "at_most", "column": "balance", "bound": "amount"}]}'
    (files / "rules.json").write_text(text)
    assert release(files, domain="book.csv") == 0


@pytest.mark.parametrize(
    ("book", "message"),
    [
        (b"name,type\nage,wizard\n", "wizard"),
        (b"name,type\nage,integer\n", "age"),
        (b"height\n3\n", "name"),
        (b"", ""),
        (b"\0\xff\xfe" * 50, ""),
    ],
)
def test_schemas_that_declare_nothing(files, capsys, book, message):
    (files / "bad.csv").write_bytes(book)
    assert run("domain", "from-schema", files / "bad.csv") == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Refused:") and message in shown
    # In other commands nothing of it is quoted: it may be a file of records.
    assert release(files, domain="bad.csv") == 2
    shown = capsys.readouterr().err
    assert "declares no domain" in shown and "wizard" not in shown


def test_a_code_book_that_is_not_there_is_refused(files, capsys):
    assert run("domain", "from-schema", files / "nowhere.csv") == 2
    assert "nowhere.csv" in capsys.readouterr().err


# Check, describe


def test_check_counts_exactly_and_says_so(files, capsys):
    assert run("domain", "check", files / "data.csv", "--domain", files / "domain.json") == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("NOT PRIVATE") and "1500 records" in shown.out
    odd = loans(20)
    odd.loc[0, "city"], odd.loc[1, "balance"], odd.loc[2, "state"] = "?", 100.0, "Y"
    text = odd.to_csv(index=False) + 'x\n"\n\n'
    (files / "data.csv").write_text(text)
    arguments = [files / "data.csv", "--domain", files / "domain.json", "--quiet"]
    assert run("domain", "check", *arguments, "--structure", files / "rules.json") == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("NOT PRIVATE") and "Reading" not in shown.err
    assert "records that cannot be read: 1" in shown.out
    assert "at_most('balance', 'amount')" in shown.out
    # The line with an "x" is a record without its other fields.
    assert "records skipped: 4 of 22" in shown.out


def test_check_knows_what_a_reader_cannot_read(files, capsys):
    lines = (files / "data.csv").read_text().splitlines()
    check = ["domain", "check", files / "other.csv", "--quiet"]

    def said(rows, *more):
        (files / "other.csv").write_text("\n".join(rows) + "\n")
        code = run(*check, "--domain", files / "domain.json", *more)
        return code, "".join(capsys.readouterr())

    # Text in a column of numbers is no missing value.
    years = [line.replace(",", " years,") if place else line for place, line in enumerate(lines)]
    code, told = said(years, "--show")
    assert code == 1 and "amount: 100% of the values are no numbers, such as" in told
    assert "amount: 100% of the records have no value" not in told
    # A second line of names, lines that are cut, and another sign between the fields.
    code, told = said([lines[0], "no.,town,EUR,EUR,canton", *lines[1:]])
    assert code == 1 and "If it is a second line of names, remove it" in told
    code, told = said([*lines, '1,a,"2', '",3,X'])
    assert code == 1 and "--multiline" in told and "second line" not in told
    code, told = said([line.replace(",", ";") for line in lines])
    assert code == 2 and "has no comma, and has ';'" in told and "give --sep ';'" in told
    assert said([line.replace(",", ";") for line in lines], "--sep", ";")[0] == 0
    assert said(["A title", *lines])[0] == 2
    assert run(*check, "--sep", ",") == 2
    told = capsys.readouterr().err
    assert "--show" in told and "--domain FILE" in told
    assert run("release", files / "data.csv", "--domain", files / "blank.json", "--epsilon", 1,
               "--out", files / "v") == 2  # fmt: skip
    blank = Domain({"id": Numeric(0, 1)}).to_json().replace("0.0", '"..."')
    (files / "blank.json").write_text(blank)
    assert run("plan", "--domain", files / "blank.json", "--epsilon", 1) == 2
    assert "blank.json declares no valid domain. " in capsys.readouterr().err


def test_check_of_parquet(files, capsys):
    pytest.importorskip("pyarrow")
    loans().drop(columns=["id", "state"]).to_parquet(files / "data.parquet")
    arguments = [files / "data.parquet", "--domain", files / "domain.json"]
    assert run("domain", "check", *arguments) == 2  # the state is not derived
    assert run("domain", "check", *arguments, "--structure", files / "rules.json") == 0
    assert "1500 records" in capsys.readouterr().out


def test_check_refuses_types_that_do_not_fit(files, capsys):
    pytest.importorskip("pyarrow")
    loans().assign(amount=[[2020]] * len(loans())).to_parquet(files / "data.parquet")
    arguments = [files / "data.parquet", "--domain", files / "domain.json"]
    assert run("domain", "check", *arguments) == 2
    shown = capsys.readouterr().err
    assert "amount" in shown and "2020" not in shown


def test_describe_lists_columns_and_rules(files, capsys):
    domain = Domain(dict(zip(DOMAIN.columns, map(DOMAIN.declared, DOMAIN.columns), strict=True)),
                    structure=skdp.domain.structure_from_data(RULES))  # fmt: skip
    (files / "domain.json").write_text(domain.to_json())
    assert run("domain", "describe", files / "domain.json") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in DOMAIN.columns)
    assert "at_most('balance', 'amount')" in shown


# Structure


def test_structure_holds_in_what_is_released(files, capsys):
    assert release(files) == 0
    assert run("sample", files / "view.skdp", "--out", files / "rows.csv") == 0
    rows = pd.read_csv(files / "rows.csv")
    assert list(rows) == list(DOMAIN.columns) and rows["id"].is_unique
    assert (rows["balance"] <= rows["amount"]).all()
    assert (rows["state"] == rows["city"].map(RULES[1]["map"])).all()
    assert run("info", files / "view.skdp") == 0
    assert "at_most('balance', 'amount')" in capsys.readouterr().out


def test_derived_columns_and_identifiers_may_be_absent(files):
    loans().drop(columns=["id", "state"]).to_csv(files / "data.csv", index=False)
    assert release(files) == 0
    # Where they are present, they are not looked at.
    loans().assign(id="x", state="y").to_csv(files / "data.csv", index=False)
    assert release(files) == 0
    assert abs(skdp.Synopsis.load(files / "view.skdp").count() - 1_500) < 600


def test_an_identifier_may_be_the_unit(files):
    loans().assign(id=lambda frame: frame["id"] // 5).to_csv(files / "data.csv", index=False)
    assert release(files, "--privacy-id", "id", "--max-rows-per-id", 2) == 0
    view = skdp.Synopsis.load(files / "view.skdp")
    assert view.privacy_loss.max_rows_per_id == 2 and abs(view.count() - 600) < 600


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("{bad", "not a structure in JSON"),
        ("3", "not a structure"),
        ('{"rules": []}', "not a structure"),
        ('[{"rule": "almost", "column": "a"}]', "almost"),
        ('[{"rule": "at_most"}]', "at_most"),
        ('[{"rule": "at_most", "column": "balance", "bound": "height"}]', "height"),
        ('[{"rule": "forbid", "condition": "amount >= 0"}]', "amount >= 0"),
        ("[" * 100_000, "structure"),
    ],
)
def test_wrong_structure_costs_nothing(files, capsys, rules, message):
    (files / "rules.json").write_text(rules)
    assert release(files, "--ledger", files / "ledger", "--budget", 1) == 2
    shown = capsys.readouterr().err
    assert message in shown and "rules.json" in shown and not (files / "ledger").exists()


@pytest.mark.parametrize("method", ["grid", "hdpview", "kdtree", "privbayes", "privtree"])
def test_methods_that_cannot_keep_the_structure_refuse_it(files, capsys, method):
    assert release(files, "--method", method, "--ledger", files / "l", "--budget", 1) == 2
    assert "MarginalSynthesizer" in capsys.readouterr().err and not (files / "l").exists()


def test_data_given_for_what_is_public(files, capsys):
    assert release(files, domain="data.csv") == 2
    assert "both as the data and as the domain" in capsys.readouterr().err
    assert release(files, rules="data.csv") == 2
    assert "both as the data and as the structure" in capsys.readouterr().err
