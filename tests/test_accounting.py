import copy
import itertools
import math
import multiprocessing
import os
import pickle
import signal
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pandas as pd
import pytest
from children import in_children, needs_fork
from loops import over

import skdp
from skdp import accounting
from skdp.accounting import LedgerError, PrivacyLedger, PrivacyLoss, _stores
from skdp.accounting._stores import FileStore
from skdp.exceptions import BudgetExceededError


@pytest.fixture(params=["memory", "file"])
def make_ledger(request, tmp_path):
    numbers = iter(range(1000))

    def make(epsilon, name=None):
        path = None if request.param == "memory" else tmp_path / f"ledger{next(numbers)}.db"
        return PrivacyLedger(epsilon, path, name=name)

    return make


@pytest.fixture
def path(tmp_path):
    return tmp_path / "l.db"


# --- PrivacyLoss --------------------------------------------------------------------------------


def test_parts_must_sum():
    for parts in (
        {},
        {"a": 0.1},
        {"a": 0.1, "b": 0.1 + 0.1 + 1e-16},
        {"a": 0.5, "b": -0.2},
        {"a": math.nan},
    ):
        with pytest.raises(ValueError):
            PrivacyLoss(0.3, parts)


def test_losses_compose():
    first = PrivacyLoss(0.3, {"a": 0.1, "b": 0.2})
    assert first.epsilon == Fraction(3, 10) and first.parts["b"] == Fraction(1, 5)
    second = PrivacyLoss(0.1, {"b": 0.1}, seeded=True)
    assert first + second == PrivacyLoss(0.4, {"a": 0.1, "b": 0.3}, seeded=True)
    with pytest.raises(ValueError, match="do not add up"):
        first + PrivacyLoss(1, max_rows_per_id=3)
    again = pickle.loads(pickle.dumps(second))
    assert again == second != PrivacyLoss(0.1, {"b": 0.1}) and hash(again) == hash(second)


# --- charging -----------------------------------------------------------------------------------


def test_sums_with_any_denominators_are_held(make_ledger):
    # Coprime: each adds 100 digits to the denominator of an exact sum, and Python writes 4,300.
    asked = [Fraction(1, 10**100 + 3**number) for number in range(50)]
    ledger, exact = make_ledger(1), Fraction(0)
    for value in asked:
        ledger.charge("odd", PrivacyLoss(value, {"a": value / 3, "b": value * 2 / 3}, seeded=True))
        exact += value
        # Never less than what was asked, and hardly more.
        assert exact <= ledger.spent < exact + Fraction(1, 10**50)
    frame = ledger.to_frame()
    assert sum(map(Fraction, frame["exact"])) == ledger.spent and frame["seeded"].all()
    assert "left: ~1" in repr(ledger)
    assert all(map(Fraction.__ge__, map(Fraction, frame["exact"]), asked))
    ledger.charge("the rest", ledger.remaining)
    assert ledger.remaining == 0
    with pytest.raises(BudgetExceededError):
        ledger.charge("more", Fraction(1, 10**200))
    if ledger.path is not None:
        assert PrivacyLedger(path=ledger.path).spent == 1
    tenths = make_ledger(0.3)
    for _ in range(3):
        tenths.charge("a tenth", 0.1)
    assert tenths.remaining == 0
    # Nor is it rounded beyond the total.
    full = make_ledger(Fraction(1, 3))
    full.charge("all but nothing", Fraction(1, 3) - Fraction(1, 10**70))
    assert full.remaining == 0


# Of more digits than Python writes.
TINY = Fraction(1, 10**5_000)


def test_an_epsilon_is_written_or_refused_before_the_charge(tmp_path):
    ledger = PrivacyLedger(2, tmp_path / "ledger")
    with pytest.raises(ValueError, match="part 'a' must be a fraction .* at most 4,300 digits"):
        PrivacyLoss(1, {"a": TINY, "b": 1 - TINY})
    # As long as an estimator takes one.
    epsilon = 1 + Fraction(1, 10**900)
    view = skdp.GridSynthesizer(epsilon=epsilon, domain=skdp.Numeric(0, 1), ledger=ledger)
    view.fit([[0.5]]).synopsis_.save(tmp_path / "view")
    assert skdp.Synopsis.load(tmp_path / "view").privacy_loss.epsilon == epsilon


def test_frame(make_ledger):
    ledger = make_ledger(5)
    empty = ledger.to_frame()
    ledger.charge("Überblick, \x00 'quoted'", PrivacyLoss(1, {"a": 0.25, "b": 0.75}))
    ledger.charge("third", PrivacyLoss(Fraction(1, 3), seeded=True))
    frame = ledger.to_frame()
    assert len(empty) == 0 and list(frame.dtypes) == list(empty.dtypes)
    assert frame[["name", "exact", "parts", "seeded"]].values.tolist() == [
        ["Überblick, \x00 'quoted'", "1", "a=0.25, b=0.75", False],
        ["third", "1/3", "total=1/3", True],
    ]
    assert set(frame["process"]) == {os.getpid()}
    assert (pd.Timestamp.now(tz="UTC") - frame["time"]).abs().max() < pd.Timedelta("1min")
    assert frame["time"].is_monotonic_increasing


# --- copies, processes, threads -----------------------------------------------------------------


def test_memory_ledger_leaves_its_budget_behind():
    ledger = PrivacyLedger(1, name="clinic")
    ledger.charge("x", 0.5)
    twin = pickle.loads(pickle.dumps({"a": ledger, "b": [ledger]}))
    assert twin["a"] is twin["b"][0]
    for use in (
        lambda: twin["a"].charge("x", 0.1),
        lambda: twin["a"].spent,
        lambda: twin["a"].to_frame(),
        lambda: pickle.loads(pickle.dumps(copy.deepcopy(twin["a"]))).charge("x", 0.1),
    ):
        with pytest.raises(LedgerError, match=r"'clinic'.*set_params\(ledger=.*path="):
            use()
    assert repr(twin["a"]) == "<PrivacyLedger 'clinic': detached>"
    assert ledger.spent == Fraction(1, 2)


def test_a_prepaid_handle_charges_what_goes_beyond(make_ledger):
    ledger = make_ledger(1)
    handle = accounting.prepaid(ledger, Fraction(1, 2))
    assert accounting.same_budget(handle, ledger)
    handle.charge("paid", 0.3)
    assert ledger.spent == handle.spent == 0
    # Nothing is prepaid for what goes to another process.
    twin = pickle.loads(pickle.dumps(handle))
    if ledger.path is None:
        with pytest.raises(LedgerError, match="path="):
            twin.charge("beyond", 0.01)
    else:
        twin.charge("beyond", 0.01)
        assert ledger.spent == Fraction(1, 100)
    before = ledger.spent
    handle.charge("beyond", 0.3)
    assert ledger.spent == before + Fraction(3, 10)
    accounting.settle(handle)
    handle.charge("after", 0.1)
    assert ledger.spent == handle.spent == before + Fraction(4, 10)
    inner = accounting.prepaid(outer := accounting.prepaid(ledger, Fraction(1)), Fraction(1))
    accounting.settle(outer)
    accounting.settle(inner)
    with pytest.raises(BudgetExceededError):
        inner.charge("too much", 1)
    assert not accounting.same_budget(ledger, make_ledger(1))


def spend_all(ledger, part):
    """Charge a part until it is refused; how often it was not."""
    for done in itertools.count():
        try:
            ledger.charge("part", part)
        except BudgetExceededError:
            return done


@needs_fork
def test_eight_processes_never_exceed(path, monkeypatch):
    # No process gives up waiting for the lock.
    monkeypatch.setattr(FileStore, "BUSY_SECONDS", 250.0)
    # Each opens the ledger by itself and the first makes the file. Behind the second barrier all
    # know that each has charged once: however busy the machine is, all eight contend for the rest.
    start, everyone = (multiprocessing.Barrier(8, timeout=250) for _ in range(2))

    def work():
        start.wait()
        ledger = PrivacyLedger(1, path, name="set")
        ledger.charge("part", Fraction(1, 151))
        everyone.wait()
        return 1 + spend_all(ledger, Fraction(1, 151))

    accepted = in_children(work, 8)
    assert len(accepted) == 8 and sum(accepted) == 151
    # Opening adds up all rows and compares with the running sum.
    ledger = PrivacyLedger(path=path)
    assert ledger.spent == 1
    frame = ledger.to_frame()
    assert list(frame["exact"]) == ["1/151"] * 151 and frame["process"].nunique() == 8


def test_threads_never_exceed(make_ledger, monkeypatch):
    monkeypatch.setattr(FileStore, "BUSY_SECONDS", 250.0)
    ledger = make_ledger(1)
    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(lambda _: spend_all(ledger, Fraction(1, 41)), range(6))) == 41
    assert ledger.spent == 1


def test_no_charge_comes_between_the_balance_and_the_entry(path, monkeypatch):
    one, other = PrivacyLedger(1, path), PrivacyLedger(path=path)
    monkeypatch.setattr(FileStore, "BUSY_SECONDS", 0.0)
    read, tried = FileStore._read_spent, []

    def between(store, connection):
        found = read(store, connection)
        if not tried:
            tried.append(found)
            # Once it is written, not even a power cut gives the budget back.
            assert connection.execute("PRAGMA synchronous").fetchone()[0] >= 2
            with pytest.raises(LedgerError, match="locked"):
                other.charge("between", 1)
            # Nor can anybody begin to write.
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                sqlite3.connect(path, timeout=0).execute("BEGIN IMMEDIATE")
        return found

    monkeypatch.setattr(FileStore, "_read_spent", between)
    one.charge("first", 1)
    assert tried == [0] and one.spent == other.spent == 1


@needs_fork
def test_a_killed_process_leaves_its_charge(path):
    PrivacyLedger(1, path)

    def charge_and_die():
        PrivacyLedger(path=path).charge("killed", 0.7)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_children(charge_and_die) == []
    assert PrivacyLedger(path=path).spent == Fraction(7, 10)


@needs_fork
def test_a_fork_has_a_copy_of_a_ledger_in_memory_and_charges_a_file(path, monkeypatch):
    memory, file = PrivacyLedger(1), PrivacyLedger(1, path)
    memory.charge("before", 0.25)

    def child():
        with pytest.raises(LedgerError, match="has only a copy.*path="):
            memory.charge("child", 0.25)
        file.charge("child", 0.25)
        return repr(memory)

    [shown] = in_children(child)
    assert "epsilon 0.25 of" in shown and memory.spent == file.spent == Fraction(1, 4)
    # A process with the id of its grandparent is another.
    identity, forks = memory._store._process
    monkeypatch.setattr(_stores, "process_mark", lambda: (identity, forks + 2))
    with pytest.raises(LedgerError, match="has only a copy"):
        memory.charge("x", 0.5)


# --- the file -----------------------------------------------------------------------------------


def test_restart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    odd = "läger #1?mode=memory%20&x.db"
    first = PrivacyLedger(0.3, odd, name="clinic")
    # The file stays where it was when the process goes elsewhere.
    monkeypatch.chdir(tmp_path / "other")
    first.charge("x", PrivacyLoss(0.1, {"a": 0.1}, seeded=True))
    ledger = PrivacyLedger(path=tmp_path / odd)
    assert (ledger.epsilon, ledger.name) == (Fraction(3, 10), "clinic")
    assert list(ledger.to_frame()["seeded"]) == [True]
    again = pickle.loads(pickle.dumps(ledger))
    again.charge("y", 0.05)
    assert ledger.spent == again.spent == Fraction(3, 20)
    assert (again.name, again.path, again.epsilon) == (ledger.name, ledger.path, ledger.epsilon)
    with pytest.raises(ValueError, match="has the total epsilon=0.3, but epsilon=2 was given"):
        PrivacyLedger(2, tmp_path / odd)
    # An empty file becomes a ledger.
    (tmp_path / "empty").touch()
    PrivacyLedger(1, tmp_path / "empty").charge("x", 0.5)
    assert PrivacyLedger(1, str(tmp_path / "empty")).spent == Fraction(1, 2)


# --- units of privacy


def test_the_loss_of_a_record_and_that_of_a_person_are_not_summed(make_ledger):
    person, record = PrivacyLoss(1, max_rows_per_id=3), PrivacyLoss(1)
    for first, second in ((person, record), (record, person)):
        ledger = make_ledger(3)
        ledger.charge("first", first)
        with pytest.raises(LedgerError, match=r"Bound the contributions.*m \* epsilon"):
            ledger.charge("second", second)
        assert ledger.spent == 1 and len(ledger.to_frame()) == 1
        ledger.charge("first", first)
        assert list(ledger.to_frame()["unit"]) == ["record" if first is record else "person"] * 2
    people = make_ledger(3)
    people.charge("first", person)
    with pytest.raises(LedgerError, match="protect one person"):
        people.charge("a number is of a record", 0.1)


# --- older copies


def test_an_older_copy_under_an_open_ledger_is_noticed(path):
    ledger = PrivacyLedger(2, path, name="old")
    ledger.charge("first", 0.25)
    older = path.read_bytes()
    # What others charged is known once it was seen.
    PrivacyLedger(path=path).charge("lost", 1)
    assert ledger.spent == Fraction(5, 4)
    travelled = pickle.dumps(ledger)
    path.write_bytes(older)
    for one in (ledger, pickle.loads(travelled)):
        for use in (lambda one=one: one.charge("x", 1), lambda one=one: one.spent, one.to_frame):
            with pytest.raises(LedgerError, match="has lost the charge 'lost'"):
                use()
    assert "has lost the charge" in repr(ledger)
    # Others have charged the older copy: the row has its number again, and is another one.
    PrivacyLedger(path=path).charge("lost", 1)
    with pytest.raises(LedgerError, match="has lost the charge 'lost'"):
        ledger.charge("x", 0.5)


def edit(path, command):
    """Change the file of a ledger by another program."""
    other = sqlite3.connect(path)
    other.execute(command)
    other.commit()
    other.close()


DAMAGED = "damaged|Cannot use"


@over(
    "damage, match",
    [
        *((content, "not a (ledger|database)") for content in (b"age,sex\n17,F\n" * 200, b"x")),
        (b"\x00" * 4096, "not a (ledger|database)"),
        ("DELETE FROM ledger", DAMAGED),
        ("INSERT INTO ledger SELECT * FROM ledger", DAMAGED),
        ("UPDATE ledger SET total = 'much'", DAMAGED),
        ("UPDATE ledger SET total = '1/0'", DAMAGED),
        ("UPDATE charges SET spent = '0'", DAMAGED),
        ("UPDATE charges SET epsilon = '1/20'", DAMAGED),
        ("UPDATE charges SET parts = '[1]'", DAMAGED),
        ("UPDATE charges SET time = 'yesterday'", DAMAGED),
        ("DROP TABLE charges", DAMAGED),
        ("DELETE FROM charges WHERE id = 1", DAMAGED),
        ("PRAGMA application_id = 1234", "other software"),
        *((f"PRAGMA user_version = {version}", f"format {version}") for version in (3, 5)),
    ],
)
def test_damaged_and_foreign_files_are_refused_as_they_are(damage, match, tmp_path):
    path = tmp_path / f"{hash(damage)}.db"
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        ledger = PrivacyLedger(1, path)
        for _ in range(2):
            ledger.charge("x", 0.1)
        edit(path, damage)
        assert "<PrivacyLedger" in repr(ledger)
    before = path.read_bytes()
    for total in (1, None):
        with pytest.raises(LedgerError, match=match):
            PrivacyLedger(total, path)
    assert path.read_bytes() == before


def test_a_directory_and_a_missing_one(tmp_path):
    for path, words in (
        (tmp_path, "is a directory"),
        (tmp_path / "missing" / "l.db", "unable to open"),
        (os.devnull, "device"),
    ):
        with pytest.raises(LedgerError, match=words):
            PrivacyLedger(1, path)
    with pytest.raises(LedgerError, match="no ledger at"):
        PrivacyLedger(path=tmp_path / "x.db")
    assert not list(tmp_path.iterdir())


def test_a_charge_waits_for_a_lock_and_is_refused_at_last(path, monkeypatch):
    monkeypatch.setattr(FileStore, "BUSY_SECONDS", 0.1)
    ledger = PrivacyLedger(1, path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    for use in (lambda: ledger.charge("x", 0.5), lambda: PrivacyLedger(1, path)):
        with pytest.raises(LedgerError, match="database is locked. Nothing was spent"):
            use()
    # Longer than any machine is busy.
    monkeypatch.setattr(FileStore, "BUSY_SECONDS", 250.0)
    timer = threading.Timer(0.3, other.execute, ["ROLLBACK"])
    timer.start()
    ledger.charge("x", 0.5)
    timer.join()
    other.close()
    assert ledger.spent == Fraction(1, 2)


def test_a_removed_a_replaced_and_an_edited_file(path):
    ledger = PrivacyLedger(1, path)
    ledger.charge("x", 1)
    path.unlink()
    with pytest.raises(LedgerError, match="unable to open"):
        ledger.charge("x", 0.5)
    assert not path.exists()
    another = PrivacyLedger(1, path)
    for one in (ledger, pickle.loads(pickle.dumps(ledger))):
        with pytest.raises(LedgerError, match="replaced"):
            one.charge("x", 0.5)
    assert PrivacyLedger(path=path).spent == 0
    edit(path, "UPDATE ledger SET total = '100'")
    with pytest.raises(LedgerError, match="edited"):
        another.charge("x", 50)


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on file sizes")
def test_a_full_disk(path):
    ledger = PrivacyLedger(10**6, path)

    def fill():
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
        with pytest.raises(LedgerError, match="Nothing was spent"):
            for _ in range(10_000):
                ledger.charge("some name " * 30, 1)
        return ledger.spent

    [spent] = in_children(fill)
    assert 0 < spent == PrivacyLedger(path=path).spent
