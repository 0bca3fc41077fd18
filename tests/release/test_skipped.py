"""Records that a release skips: exact cells of the rows, what is released of them, stops."""

import dataclasses
import hashlib
import math
import pickle
import re
from fractions import Fraction
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from estimators import CASES
from loops import over

import skdp
from skdp import __main__ as program
from skdp.__main__ import main
from skdp._random import noise_source
from skdp.audit import replay
from skdp.release import SkippedRecords
from skdp.tables import Coded, Contributions, read_rows

DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(0, 100, bins=10),
        "sex": skdp.Categorical(["F", "M"]),
        "pay": skdp.Numeric(0, 10, bins=5),
    },
    structure=[skdp.forbid("age < 50 and sex == 'M'")],
)


def messy(n=400, seed=0):
    """Rows of which many do not fit, for one reason or several."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.choice([10.0, 60.0, np.nan, 70.0], n),
            "sex": rng.choice(["F", "M", "x", None], n, p=[0.5, 0.3, 0.1, 0.1]),
            "pay": rng.choice([1.0, 5.0, np.nan], n),
            "person": rng.choice([*map(float, range(60)), np.nan], n),
        }
    )


def cell_of(row):
    """One row at a time."""
    for place, name in enumerate(DOMAIN.names, 1):
        value = row[name]
        if pd.isna(value) or (name == "sex" and value not in ("F", "M")):
            return place
    return 4 if row["age"] < 50 and row["sex"] == "M" else 0


def by_hand(frame, most=None):
    """Cells of the rows; of a person, kept ones first and `most` together."""
    cells = frame.apply(cell_of, axis=1)
    if most is None:
        return np.bincount(cells, minlength=5)
    counted = [cell for _, own in cells.groupby(frame["person"]) for cell in sorted(own)[:most]]
    return np.bincount(counted, minlength=5)


@pytest.mark.parametrize("n_parts", [1, 3])
@pytest.mark.parametrize("most", [None, 1, 3, 50])
def test_cells_are_those_of_brute_force(n_parts, most):
    frame = messy()
    table = frame
    if n_parts > 1:
        # Records of one person lie in several parts.
        table = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=n_parts)
    bound = None if most is None else Contributions("person", most, noise_source(1))
    coded = Coded(read_rows(table), DOMAIN, bound)
    np.testing.assert_array_equal(coded.cells, by_hand(frame, most))
    # What is kept here is what is counted.
    assert coded.counts().n == coded.cells[0]


# --- what is released of them

SYNTHESIZERS = [case.estimator for case in CASES if case.name.endswith("Synthesizer")]
PLANE = skdp.Domain({name: DOMAIN[name] for name in ("age", "sex")})


def plane(n=20_000, lost=0.3, seed=0):
    """Rows of which a share has no age."""
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < lost, np.nan, rng.uniform(0, 100, n))
    return pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], n)})


@over("synthesizer", SYNTHESIZERS)
def test_every_synthesizer_tells_what_it_skipped(synthesizer, tmp_path):
    rows = plane()
    with pytest.warns(UserWarning, match=r"records \(3.%\) because of 'age': missing values"):
        view = synthesizer(epsilon=1, domain=PLANE, random_state=1).fit(rows)
    lost = view.synopsis_.skipped
    # Six standard deviations of noise: a false alarm in 10,000 at most.
    assert abs(lost.kept - rows["age"].notna().sum()) < 6 * lost.std
    assert abs(lost.columns["age"] - rows["age"].isna().sum()) < 6 * lost.std
    assert list(lost.columns) == ["age", "sex"] and lost.rules is None and lost.lines is None
    assert view.privacy_loss_.parts["skipped"] == lost.epsilon == Fraction(1, 100)
    # Laplace noise of scale 100.
    assert lost.std == pytest.approx(100 * math.sqrt(2), rel=0.01)
    assert "because of 'age'" in repr(view.synopsis_)
    view.synopsis_.save(tmp_path / "view.skdp")
    loaded = skdp.Synopsis.load(tmp_path / "view.skdp")
    assert loaded.skipped == lost and loaded.skipped.texts() == lost.texts()
    assert repr(loaded) == repr(view.synopsis_)
    view.page(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Skipped: about" in page and f"<td>{lost.kept:,}</td>" in page


@over("synthesizer", SYNTHESIZERS)
def test_a_loss_stops_before_the_rest_is_spent(synthesizer):
    ledger = skdp.PrivacyLedger(1)
    view = synthesizer(epsilon=1, domain=PLANE, ledger=ledger, on_loss="stop", random_state=1)
    with pytest.raises(skdp.RecordsLostError, match="because of 'age'") as caught:
        view.fit(plane())
    assert ledger.spent == caught.value.privacy_loss.epsilon == Fraction(1, 100)
    assert not hasattr(view, "synopsis_")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.skipped == caught.value.skipped and str(again) == str(caught.value)
    # What is left pays for the corrected release, in two charges.
    view.set_params(epsilon=0.99).fit(plane(lost=0))
    assert ledger.remaining == 0
    assert list(ledger.to_frame()["parts"][:2]) == ["skipped=0.01", "skipped=0.0099"]
    assert view.privacy_loss_.parts["skipped"] == Fraction(99, 10_000)


# --- false alarms


@over("n_columns, spread", [(1, True), (60, False), (60, True)])
def test_noise_hardly_ever_stops_a_release(n_columns, spread):
    names = [f"c{place}" for place in range(n_columns)]
    rng = np.random.default_rng(n_columns)
    for total in (0, 5000):
        skipped = np.zeros(n_columns, dtype=int)
        # Just a tenth, in one column or in all.
        skipped[: n_columns if spread else 1] = total // 10 // (n_columns if spread else 1)
        cells = [total - skipped.sum(), *skipped]
        noise = np.subtract(*rng.geometric(-math.expm1(-0.01), (2, 2000, len(cells))))
        stops = warnings = 0
        for row in (cells + noise).tolist():
            columns = dict(zip(names, row[1:], strict=True))
            found = SkippedRecords(row[0], columns, None, None, Fraction(1, 100))
            stops += found.too_many
            warnings += bool(found.above_noise())
        # Binomial(2000, .005) exceeds 27, Binomial(2000, .001) 11, with probability 1e-5 at most.
        assert stops <= 27
        assert total or warnings <= 11


# --- replays


def part_of(result):
    """The loss of the counts of skipped records."""
    return sum(loss for step, loss in result.by_part.items() if "_go_on" in step)


def crowd(n_unfit, n_fit):
    """One person with many records, most of which do not fit."""
    odd = pd.DataFrame({"age": [np.nan, 5.0] * n_unfit, "sex": ["F", "x"] * n_unfit})
    fit = pd.DataFrame({"age": [5.0] * n_fit, "sex": ["F"] * n_fit})
    mine = pd.concat([odd, fit], ignore_index=True).assign(who="eve")
    others = plane(30).assign(who=[f"p{place % 7}" for place in range(30)])
    return pd.concat([others, mine], ignore_index=True), others


@over(
    "n_unfit, n_fit, on_loss",
    [(0, 9, "warn"), (9, 0, "stop"), (9, 2, "stop"), (9, 9, "warn"), (1, 0, "warn")],
)
def test_a_person_with_many_hostile_records_costs_no_more(n_unfit, n_fit, on_loss):
    rows, others = crowd(n_unfit, n_fit)
    view = skdp.GridSynthesizer(
        epsilon=0.5, domain=PLANE, privacy_id="who", max_rows_per_id=3, on_loss=on_loss
    )
    result = replay(view, rows, others, n=4, epsilon=0.5)
    assert result.passed, str(result)
    claimed = 0.005 * min(n_fit + 2 * n_unfit, 3) / 3
    assert 0.999 * claimed < part_of(result) <= claimed * (1 + 1e-9)


# --- the ledger


@pytest.mark.parametrize(
    ("on_loss", "name", "spent"),
    [("warn", "_go_on", 1), ("stop", "_go_on", 0.01), ("stop", "_release", 1)],
)
def test_what_was_charged_before_an_error_stays_spent(on_loss, name, spent, monkeypatch):
    ledger = skdp.PrivacyLedger(1)
    monkeypatch.setattr(skdp.GridSynthesizer, name, Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        skdp.GridSynthesizer(epsilon=1, domain=PLANE, ledger=ledger, on_loss=on_loss).fit(plane(9))
    assert float(ledger.spent) == spent


def test_another_release_may_take_the_rest(monkeypatch):
    ledger = skdp.PrivacyLedger(1)
    code = Coded.__init__

    def code_and_charge(self, *given):
        ledger.charge("another", 0.5)
        code(self, *given)

    monkeypatch.setattr(Coded, "__init__", code_and_charge)
    view = skdp.GridSynthesizer(epsilon=1, domain=PLANE, ledger=ledger, on_loss="stop")
    with pytest.raises(skdp.BudgetExceededError, match="epsilon=0.99"):
        view.fit(plane(20_000, lost=0))
    assert float(ledger.spent) == 0.51


# --- the command line


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("domain.json").write_text(PLANE.to_json())
    plane().to_csv("gaps.csv", index=False)
    plane(lost=0).to_csv("good.csv", index=False)
    lines = "".join(f'{place % 90},F,"two\nlines"\n' for place in range(3000))
    Path("lines.csv").write_text("age,sex,note\n" + lines)
    return tmp_path


def release(name, *more):
    given = [f"{name}.csv", "--domain", "domain.json", "--out", f"{name}.skdp"]
    return main(["release", *given, "--method", "grid", "--ledger", "l", "--budget", "3", *more])


@pytest.mark.parametrize(("name", "why"), [("gaps", "'age'"), ("lines", "not well formed")])
def test_a_loss_stops_the_command(files, name, why, capsys):
    assert release(name, "--epsilon", "1") == 5
    told = capsys.readouterr().err
    assert why in told and "--accept-loss" in told and "--epsilon 0.99" in told
    # A shell has no keywords.
    assert not re.search(r"on_loss|nullable=True|Domain\.check", told)
    assert not Path(f"{name}.skdp").exists()
    assert float(skdp.PrivacyLedger(path="l").spent) == 0.01
    with pytest.warns(UserWarning, match="skipped about") as given:
        assert release(name, "--epsilon", "0.99", "--accept-loss", "--purpose", "Test") == 0
    assert why in capsys.readouterr().out
    told = program._in_a_shell(given[0].message)
    assert "`skdp domain check` shows" in told and "on_loss" not in told
    assert main(["info", f"{name}.skdp"]) == 0
    assert why in capsys.readouterr().out
    assert list(skdp.PrivacyLedger(path="l").to_frame()["source"]) == [f"{name}.csv"] * 2


def test_verify_compares_the_ledger_and_the_fingerprint(files, capsys):
    assert release("good", "--epsilon", "1", "--purpose", "Report") == 0
    capsys.readouterr()
    skdp.PrivacyLedger(1, path="other").charge("x", 1)
    seeded = skdp.GridSynthesizer(epsilon=1, domain=PLANE, random_state=1).fit(plane(9))
    seeded.synopsis_.save("seed.skdp")
    digits = hashlib.sha256(Path("good.skdp").read_bytes()).hexdigest()
    told = f"seeded: no.*'good.skdp' for 'Report' from 'good.csv'.*{digits}\\nnumbers: UNV"
    for name, more, code, message in (
        ("good", ["--no-replay", "--ledger", "l"], 0, told),
        ("good", ["--no-replay", "--ledger", "other"], 1, ""),
        ("good", ["--fingerprint", digits.upper()], 0, "losses within epsilon(?!.*UNVERIFIED)"),
        ("good", ["--no-replay", "--fingerprint", ""], 1, "fingerprint: .*, not .*NOT AS"),
        ("good", ["--no-replay", "--fingerprint", digits[:12]], 1, f", not {digits[:12]}  <-"),
        ("seed", ["--no-replay"], 1, "seeded: YES.*UNVERIFIED: a ledger shows that such"),
    ):
        assert main(["verify", f"{name}.skdp", *more]) == code
        assert re.search(message, "".join(capsys.readouterr()), re.DOTALL)


@pytest.mark.parametrize("method", ["grid", "hdpview", "kdtree", "marginals", "privtree"])
def test_a_release_with_an_edited_epsilon_is_refused(files, method, capsys):
    """Its ledger is not needed; parts and the counts of skipped records are edited too."""
    given = ["--domain", "domain.json", "--out", "good.skdp", "--method", method]
    assert main(["release", "good.csv", *given, "--epsilon", "1"]) == 0
    check = ["--no-replay", "--out", "check.html"]
    assert main(["verify", "good.skdp", *check]) == 0
    assert "unverified" in Path("check.html").read_text()
    Path("check.html").unlink()
    made = skdp.Synopsis.load("good.skdp")
    parts = {name: part / 10 for name, part in made.privacy_loss.parts.items()}
    loss = skdp.PrivacyLoss(sum(parts.values()), parts)
    lost = dataclasses.replace(made.skipped, epsilon=parts["skipped"])
    edited = skdp.Synopsis(
        made.counted, made.model, privacy_loss=loss, mechanism=made.mechanism, skipped=lost
    )
    edited.save("edited.skdp")
    capsys.readouterr()
    assert main(["verify", "edited.skdp", *check]) == 1
    assert re.search(r"noise: as small as epsilon .* buys, not 0\.1  <-", capsys.readouterr().out)
    text = Path("check.html").read_text()
    assert "Not as it should be: noise." in text and str(Path.cwd()) not in text


def test_an_officer_sees_releases_and_no_paths(files, capsys):
    folder = str(Path.cwd())
    for name, more in (("first", ["--purpose", "Report <b>"]), ("second", [])):
        given = [f"{folder}/good.csv", "--domain", "domain.json", "--out", f"{name}.skdp", *more]
        given += ["--method", "grid", "--epsilon", "0.7", "--ledger", f"{folder}/l"]
        assert main(["release", *given, "--budget", "2"]) == 0
    assert "Warning: no --purpose" in capsys.readouterr().err
    assert main(["ledger", "show", "l", "--out", "page.html"]) == 0
    shown, page = capsys.readouterr().out, Path("page.html").read_text()
    assert shown.splitlines()[3] == "Spent: epsilon 1.4 of 2, by 4 charges; left: 0.6"
    for text in (shown, page):
        assert folder not in text and "PrivacyLedger" not in text
        assert "good.csv" in text and "Report" in text
    assert "Report &lt;b&gt;" in page
    assert main(["ledger", "verify", "l", "second.skdp"]) == 0
    assert "second.skdp: 3 and 4 of" in capsys.readouterr().out
    Path("third.skdp").write_bytes(Path("first.skdp").read_bytes())
    assert main(["ledger", "verify", "l", "third.skdp", "first.skdp", "second.skdp"]) == 1
    assert "third.skdp: NOT IN THIS LEDGER" in capsys.readouterr().out
    # The entry of another release does not pay for this one.
    assert main(["verify", "third.skdp", "--ledger", "l", "--no-replay"]) == 1
    assert "none of this name, but 1 and 2 of" in capsys.readouterr().out
    # What Python charged without a name is anybody's, once.
    ledger = skdp.PrivacyLedger(2, "m")
    domain = skdp.Domain.from_json(Path("domain.json"))
    made = skdp.GridSynthesizer(epsilon=0.7, domain=domain, ledger=ledger)
    made.fit(pd.read_csv("good.csv")).synopsis_.save("fourth.skdp")
    Path("fifth.skdp").write_bytes(Path("fourth.skdp").read_bytes())
    assert main(["verify", "fourth.skdp", "--ledger", "m", "--no-replay"]) == 0
    assert "(names no release" in capsys.readouterr().out
    assert main(["ledger", "verify", "m", "fourth.skdp", "fifth.skdp"]) == 1


def test_another_bound_on_the_rows_of_a_person_was_not_paid_for(files, capsys):
    plane(lost=0).assign(who=range(20_000)).to_csv("good.csv", index=False)
    assert release("good", "--epsilon", "1", "--privacy-id", "who", "--max-rows-per-id", "5") == 0
    made = skdp.Synopsis.load("good.skdp")
    loss = dataclasses.replace(made.privacy_loss, max_rows_per_id=1)
    lost = dataclasses.replace(made.skipped, epsilon=loss.parts["skipped"])
    skdp.Synopsis(
        made.counted, made.model, privacy_loss=loss, mechanism=made.mechanism, skipped=lost
    ).save("edited.skdp")
    for name, code in (("good", 0), ("edited", 1)):
        assert main(["verify", f"{name}.skdp", "--ledger", "l", "--no-replay"]) == code
    shown = capsys.readouterr().out
    assert "ledger entry: none  <-" in shown
    # An officer reads what neighbours are.
    assert "'good.skdp' from 'good.csv': one person by 'who', at most 5 records of each" in shown
    assert main(["ledger", "show", "l"]) == 0
    assert "person by 'who', at most 5 records of each" in capsys.readouterr().out
