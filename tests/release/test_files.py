"""Files that are written whole or not at all, and files of releases that are not what they say."""

import copy
import errno
import io
import itertools
import json
import math
import os
import pickle
import resource
import stat
import zipfile
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from estimators import DOMAIN, people
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruled import RULED

import skdp
from skdp import Categorical, Date, Datetime, Domain, Numeric
from skdp.__main__ import main
from skdp._validation import write_text

ROWS = people(600)
DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


@pytest.fixture(scope="module")
def fitted():
    return skdp.GridSynthesizer(epsilon=1, domain=DOMAIN).fit(ROWS)


@pytest.fixture(scope="module")
def view(tmp_path_factory, fitted):
    path = tmp_path_factory.mktemp("view") / "view.skdp"
    fitted.synopsis_.save(path)
    return path


@pytest.fixture
def full_disk():
    """No file can grow beyond a few bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run_sample(view, path):
    if main(["sample", str(view), "--rows", "100", "--out", str(path)]) != 0:
        raise OSError(errno.EFBIG, "refused")


def test_a_write_that_fails_keeps_what_was_there(tmp_path, fitted, view, full_disk):
    for name, write in (
        ("view.skdp", fitted.synopsis_.save),
        ("page.html", fitted.synopsis_.page),
        ("rows.csv", partial(run_sample, view)),
    ):
        path = tmp_path / name
        path.write_text("precious")
        with pytest.raises(OSError):
            write(path)
        assert path.read_text() == "precious" and list(tmp_path.iterdir()) == [path]
        path.unlink()
        with pytest.raises(OSError):
            write(path)
        assert not list(tmp_path.iterdir())


def test_what_is_written_replaces_a_file_and_nothing_else(tmp_path, fitted):
    path = tmp_path / "view.skdp"
    path.write_text("old")
    path.chmod(0o640)
    other, link = tmp_path / "other", tmp_path / "link"
    os.link(path, other)
    link.symlink_to(path)
    fitted.synopsis_.save(link)
    assert link.is_symlink() and other.read_text() == "old"
    assert skdp.Synopsis.load(path).epsilon == 1 and stat.S_IMODE(path.stat().st_mode) == 0o640
    mask = os.umask(0o027)
    fitted.synopsis_.save(tmp_path / "third")
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "third").stat().st_mode) == 0o640
    assert not list(tmp_path.glob(".*"))
    # Pipes and devices are written, not replaced.
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    write_text(tmp_path / "pipe", "text")
    assert os.read(held, 9) == b"text" and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    os.close(held)


# -- what is read ---------------------------------------------------------------------------------


def packed(path, metadata, arrays, how=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", how) as archive:
        archive.writestr("metadata.json", metadata)
        for name, content in arrays.items():
            archive.writestr(name, content)


def unpacked(path):
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(held.pop("metadata.json")), held


def as_npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


HUGE = "{'descr': '<i8', 'fortran_order': False, 'shape': (9999999999999,), }"
HUGE = b"\x93NUMPY\x01\x00v\x00" + HUGE.ljust(117).encode() + b"\n"


def test_foreign_and_hostile_files_are_refused(tmp_path, view):
    (metadata, arrays), path = unpacked(view), tmp_path / "case"

    def changed(*keys, to):
        data = inner = copy.deepcopy(metadata)
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = to
        return json.dumps(data)

    for text, counts, message in (
        ('{"a": 1}', None, "not written by skdp"),
        ("[" * 100_000, None, "not a usable synopsis"),
        (changed("version", to=1), None, "version is 1 and this skdp reads 2"),
        (changed("model", "kind", to="tree"), None, "'tree' is unknown"),
        (changed("privacy", "parts", "counts", to="1/2"), None, "must sum to epsilon"),
        (changed("model", "noise_epsilon", to=["1e999999999"]), None, "not an exact fraction"),
        (changed("model", "noise_epsilon", to=["0"]), None, "positive"),
        (changed("privacy", "seeded", to=0), None, "whether it was seeded"),
        (None, as_npy(np.array([print] * 40, dtype=object)), "Object arrays"),
        (None, HUGE, "not a usable|available memory"),
        (None, as_npy(np.zeros(39)), "one number for each of the"),
    ):
        more = {} if counts is None else {"counts.npy": counts}
        packed(path, text or json.dumps(metadata), {**arrays, **more})
        with pytest.raises(ValueError, match=message):
            skdp.Synopsis.load(path)
    packed(path, json.dumps(metadata), arrays)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("counts.npy", arrays["counts.npy"])
    with pytest.raises(ValueError, match="no metadata.json"):
        skdp.Synopsis.load(path)
    for content in (b"", b"PK", b"age,sex\n1,2\n", pickle.dumps({"a": 1})):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a usable synopsis"):
            skdp.Synopsis.load(path)
    packed(path, json.dumps(metadata), {**arrays, "x.npy": b"\0" * 30_000_000})
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match="max_bytes=1,000,000"):
        skdp.Synopsis.load(path, max_bytes=1_000_000)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_files_raise_value_error_or_load(tmp_path, view, data):
    path, content = tmp_path / "release", bytearray(view.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    path.write_bytes(content)
    try:
        loaded = skdp.Synopsis.load(path)
    except ValueError:
        return
    assert math.isfinite(loaded.count()) and len(loaded.sample_codes(3, 0)) == 3
    assert repr(loaded) and len(loaded.to_frame()) == len(loaded.model.boxes)


def test_long_metadata_are_refused_before_they_are_parsed(tmp_path, view, monkeypatch):
    metadata, arrays = unpacked(view)
    metadata["more"] = ["x" * 999] * 9_000
    bomb = tmp_path / "bomb"
    packed(bomb, json.dumps(metadata), arrays)
    assert bomb.stat().st_size < 100_000
    with monkeypatch.context() as patched:
        patched.setattr(json, "loads", None)
        with pytest.raises(ValueError, match="of memory, more than max_bytes=67,108,864"):
            skdp.Synopsis.load(bomb, max_bytes=1 << 26)
    assert skdp.Synopsis.load(bomb).epsilon == 1


def test_no_more_is_unpacked_than_a_file_says(tmp_path, view):
    metadata, arrays = unpacked(view)
    name = sorted(arrays)[0]
    packed(tmp_path / "bz2", json.dumps(metadata), arrays, zipfile.ZIP_BZIP2)
    with pytest.raises(ValueError, match="compression"):
        skdp.Synopsis.load(tmp_path / "bz2")
    # The central directory says 9 bytes; there are 9 million.
    packed(tmp_path / "lies", json.dumps(metadata), {**arrays, name: b"\0" * 9_000_000})
    content = bytearray((tmp_path / "lies").read_bytes())
    entry = content.rindex(b"PK\1\2", 0, content.rindex(name.encode()))
    content[entry + 24 : entry + 28] = (9).to_bytes(4, "little")
    (tmp_path / "lies").write_bytes(content)
    whole = zipfile.ZipExtFile._read1
    with patch.object(zipfile.ZipExtFile, "_read1", autospec=True, side_effect=whole) as read:
        with pytest.raises(ValueError, match="not a usable synopsis"):
            skdp.Synopsis.load(tmp_path / "lies")
    assert 0 < max(call.args[1] for call in read.call_args_list) < 1_000_000


def test_a_pipe_is_no_release(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    # Both ends are open, so that reading it would wait for nobody.
    held = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    for path in (tmp_path / "pipe", os.devnull):
        with pytest.raises(ValueError, match="a pipe or a device"):
            skdp.Synopsis.load(path)
    os.close(held)


@pytest.fixture(scope="module", params=["sets", "joint counts", "rules", "boxes"])
def with_bars(request, tmp_path_factory):
    """Files of releases of each kind."""
    ruled = skdp.Domain(DOMAIN, structure=[skdp.forbid("work == 'none' and sex == 'Male'")])
    made = {
        "sets": skdp.MarginalSynthesizer(epsilon=3, domain=DOMAIN),
        "joint counts": skdp.MarginalSynthesizer(epsilon=30, domain=DOMAIN),
        "rules": skdp.MarginalSynthesizer(epsilon=3, domain=ruled),
        "boxes": skdp.HDPViewSynthesizer(epsilon=3, domain=DOMAIN),
    }
    path = tmp_path_factory.mktemp("bars") / "view.skdp"
    made[request.param].fit(ROWS).synopsis_.save(path)
    return unpacked(path)


NONSENSE = [None, True, -1, 0, 2, 0.5, math.inf, math.nan, 10**400]
NONSENSE += ["x", "0.5", [], {}, [1], {"a": 1}]
MUTATED = {"columns", "looks", "possible", "cells", "noise_epsilon", "spread"}
QUESTIONS = ["age > 30", "age > 30 and sex == 'Male'", "age < 19 and sex == 'Male'"]
QUESTIONS += ["sex == 'Male' and work == 'full'", "age > 30 and sex == 'Male' and work == 'full'"]


def mutants(held):
    """A value replaced by nonsense, or one part of it so, left out, or given another name."""
    yield from NONSENSE
    # Of long lists the first ones.
    if isinstance(held, dict):
        for key in list(held)[:9]:
            rest = {name: value for name, value in held.items() if name != key}
            yield from ({**held, key: part} for part in mutants(held[key]))
            yield from (rest, {**rest, "renamed": held[key]})
    elif isinstance(held, list):
        for i in range(min(len(held), 2)):
            yield from ([*held[:i], part, *held[i + 1 :]] for part in mutants(held[i]))
            yield [*held[:i], *held[i + 1 :]]


def test_mutants_of_releases_load_and_answer_or_are_refused(tmp_path, with_bars):
    metadata, arrays = with_bars
    model = metadata["model"]
    mutated = {name: model[name] for name in model if name in MUTATED}
    kept = {name: model[name] for name in model if name not in MUTATED}
    # A fifth of them, spread over all places and all kinds of nonsense.
    some = itertools.islice(mutants(mutated), len(NONSENSE), None, 5)
    cases = [({**kept, **changed}, {}) for changed in some]
    for name, content in arrays.items():
        array = np.load(io.BytesIO(content))
        # Of another type; and a number of records that no table has.
        other = (array % 100).astype(np.int8) if array.ndim else np.array(1e308)
        cases.append((model, {name: as_npy(other)}))
    loaded = 0
    for changed, other in cases:
        held = json.dumps({**metadata, "model": changed})
        packed(tmp_path / "view", held, arrays | other, zipfile.ZIP_STORED)
        try:
            view = skdp.Synopsis.load(tmp_path / "view")
        except ValueError:
            continue
        loaded += 1
        for question in QUESTIONS:
            answer = view.count(question, return_interval=True, level=0.8)
            assert answer.lower <= max(answer.value, 0) and answer.std >= 0, changed
    assert len(cases) > 20 and 0 < loaded < len(cases) / 2


def test_releases_and_domains_have_the_published_schema(tmp_path):
    """Also domains of every kind of column and rule; what does not belong there is refused."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DOCS / "_static" / "release-2.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    more = {
        "uneven": Numeric(edges=[0, 1, 5]),
        "mixed": Categorical(["F", "M", 3], nullable=True, ordered=True),
        "day": Date("2024-01-01", "2024-03-31", bins=13),
        "hour": Datetime("2024-01-01", "2024-01-02", unit="hour", tz="UTC"),
    }
    columns = {name: RULED.declared(name) for name in RULED.columns} | more
    domain = Domain(columns, structure=RULED.structure.rules)
    part = validator.evolve(schema=schema["$defs"]["domain"] | {"$defs": schema["$defs"]})
    part.validate(json.loads(domain.to_json()))
    path = tmp_path / "view.skdp"
    for kind in ("HDMM", "Marginal", "PrivBayes", "PrivTree"):
        made = getattr(skdp, f"{kind}Synthesizer")
        made(epsilon=1.0, domain=DOMAIN.select(["age", "sex"])).fit(
            ROWS[["age", "sex"]]
        ).synopsis_.save(path)
        metadata, _ = unpacked(path)
        validator.validate(metadata)
        for wrong in ({"version": 1}, {"seed": 1}, {"model": {"kind": "other"}}):
            assert not validator.is_valid(metadata | wrong)
