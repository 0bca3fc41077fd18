"""Which data files are there, and how those that are missing are made.

``python -m benchmarks.data`` says of each file whether it is the one that was measured, and of a
missing one what to get, from where, and under which licence. Originals lie in ``originals`` of the
folder of the data under the names that `SOURCES` has; ``--build`` makes of them every file that is
missing, byte for byte. The exit code is 1 if a file differs from its checksum.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.io import arff

from benchmarks import _data

_LIST = Path(__file__).with_name("data.toml")


def listed() -> dict[str, dict[str, Any]]:
    """What ``data.toml`` says of each file, by its name within the folder."""
    return tomllib.loads(_LIST.read_text(encoding="utf-8"))


def state(name: str, sha256: str, root: Path) -> str:
    """Whether one file is "present", "missing" or "different" from what was measured."""
    path = root / name
    if not path.is_file():
        return "missing"
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    return "present" if found == sha256 else "different"


# --- a script a source: from originals to the bytes of a file

ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
)  # fmt: skip
# Numbers of Adult: the first code, or the ends of a hundred bins, closed on the right.
_WHOLE = {"age": 17, "education-num": 1, "hours-per-week": 1}
_BINNED = {"fnlwgt": (10_000, 1_500_000), "capital-gain": (0, 100_000), "capital-loss": (0, 5_000)}


def _npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _table(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    # A header without a name and a system, as `gzip.compress` no longer writes it.
    with gzip.GzipFile("", "wb", 9, out, mtime=0) as file:
        file.write(frame.to_csv(index=False).encode())
    return out.getvalue()


def adult(train: Path, test: Path) -> bytes:
    """All rows, the training rows first, without the remark and the full stops of the test rows."""
    lines = train.read_text().splitlines() + test.read_text().splitlines()[1:]
    rows = [line.rstrip(".").split(", ") for line in lines if line]
    return _table(pd.DataFrame(rows, columns=list(ADULT)))


def openml(path: Path) -> bytes:
    """The columns of an ARFF file; labels of classes count from 0 where they are numbers."""
    frame = pd.DataFrame(arff.loadarff(path)[0])
    texts = frame.select_dtypes(object).columns
    frame[texts] = frame[texts].apply(lambda column: column.str.decode("utf-8"))
    label = frame.columns[-1]
    if frame[label].str.isdigit().all():
        frame[label] = frame[label].astype(int) - frame[label].astype(int).min()
    return _table(frame)


def histograms(*paths: Path) -> bytes:
    """Histograms of DPBench, by the names of their files."""
    return _npz(**{path.stem: np.load(path).astype(np.int64) for path in paths})


def nltcs(path: Path) -> bytes:
    """Rows of 16 answers and their count; the first answer is the lowest digit of the order."""
    rows = np.loadtxt(path, dtype=np.int64)
    rows = rows[rows[:, -1] > 0]
    rows = rows[np.argsort(rows[:, :-1] @ (1 << np.arange(16)))]
    return _npz(patterns=rows[:, :-1].astype(np.uint8), counts=rows[:, -1].astype(np.int32))


def items(first: int | None, path: Path) -> bytes:
    """How many of the (first) transactions have each item that occurs, by its number."""
    lines = path.read_text().splitlines()[:first]
    numbers = np.concatenate([np.unique(np.array(line.split(), dtype=np.int64)) for line in lines])
    return _npy(np.unique(numbers, return_counts=True)[1])


def _codes(table: Path) -> dict[str, np.ndarray]:
    """Codes of the columns of Adult: categories in the order of the alphabet."""
    raw = pd.read_csv(table, dtype=str, keep_default_na=False)
    found = {name: np.unique(raw[name], return_inverse=True)[1] for name in raw}
    found |= {name: raw[name].astype(int).to_numpy() - first for name, first in _WHOLE.items()}
    for name, (low, high) in _BINNED.items():
        edges = np.linspace(low, high, 101)
        found[name] = np.maximum(np.searchsorted(edges, raw[name].astype(int)) - 1, 0)
    return found


def adult_points(table: Path) -> bytes:
    """Six columns of Adult in [-1, 1], by the numbers of their codes."""
    codes = _codes(table)
    # Of age the range from 16 to 100 is declared, of which code 0 is 17.
    of = {"age": (codes["age"] + 1, 84), "education-num": (codes["education-num"], 15)}
    of |= {name: (codes[name], 99) for name in _BINNED}
    of["hours-per-week"] = (codes["hours-per-week"], 98)
    points = np.column_stack([2 * of[n][0] / of[n][1] - 1 for n in ADULT if n in of])
    return _npz(X=points.astype(np.float32), n_clusters=np.int64(5))


def points(path: Path) -> bytes:
    """A point in the middle of its cell of [-1, 1] squared for each record of a histogram."""
    histogram = np.load(path)
    cells = np.repeat(np.argwhere(histogram), histogram[histogram > 0], axis=0)
    middles = (cells + 0.5) * 2 / np.array(histogram.shape) - 1
    return _npz(X=middles.astype(np.float32), n_clusters=np.int64(5))


def random_ranges(table: _data.RangeTable, n_columns: int, n_queries: int, seed: int) -> np.ndarray:
    """Ranges between two random codes on random columns, (n_queries, 3 * n_columns)."""
    rng = np.random.default_rng(seed)
    out = np.empty((n_queries, 3 * n_columns), dtype=np.int64)
    for query in out:
        for k, axis in enumerate(rng.choice(len(table.shape), n_columns, replace=False)):
            ends = np.sort(rng.integers(0, table.shape[axis], 2))
            query[3 * k : 3 * k + 3] = axis, *ends
    return out


def _ranges(codes: np.ndarray, shape: tuple[int, ...], columns: tuple[str, ...]) -> bytes:
    """Distinct rows with counts, and random ranges of two columns.

    The seed of the ranges that were measured was not kept, so these are others: the tables are the
    same, and figures of the works, which draw their own queries.
    """
    distinct, counts = np.unique(codes, axis=0, return_counts=True)
    kept = distinct.astype(np.uint8), counts.astype(np.int32)
    table = _data.RangeTable(*kept, shape, columns, np.empty((0, 6), dtype=np.int64))
    queries = random_ranges(table, 2, 3_000, seed=0).astype(np.int16)
    sizes = np.array(shape, dtype=np.int64)
    return _npz(
        codes=kept[0], counts=kept[1], columns=np.array(columns), shape=sizes, queries=queries
    )


def adult_ranges(columns: tuple[str, ...], table: Path) -> bytes:
    """Some columns of Adult."""
    codes = _codes(table)
    shape = [100 if name in _BINNED else int(codes[name].max()) + 1 for name in columns]
    return _ranges(np.column_stack([codes[name] for name in columns]), tuple(shape), columns)


def plane_ranges(path: Path) -> bytes:
    """The records of a histogram of two columns."""
    histogram = np.load(path)
    cells = np.repeat(np.argwhere(histogram), histogram[histogram > 0], axis=0)
    return _ranges(cells, histogram.shape, ("x0", "x1"))


class Source(NamedTuple):
    """How a file is made, and the files that it is made of, within the folder of the data."""

    make: Callable[..., bytes]
    needs: tuple[str, ...]


def _raw(*names: str) -> tuple[str, ...]:
    return tuple(f"originals/{name}" for name in names)


_LINES = ("ADULTFRANK", "HEPTH", "INCOME", "NETTRACE", "SEARCHLOGS")
SOURCES = {
    "adult.csv.gz": Source(adult, _raw("adult.data", "adult.test")),
    "electricity.csv.gz": Source(openml, _raw("electricity-normalized.arff")),
    "phoneme.csv.gz": Source(openml, _raw("phoneme.arff")),
    "dpbench_1d.npz": Source(histograms, _raw(*(f"{name}.n4096.npy" for name in _LINES))),
    "nltcs.npz": Source(nltcs, _raw("nltcs.txt")),
    "items/retail_freq.npy": Source(partial(items, None), _raw("retail.dat")),
    "items/kosarak_head_freq.npy": Source(partial(items, 36_683), _raw("kosarak.dat")),
    "kmeans/adult_numeric.npz": Source(adult_points, ("adult.csv.gz",)),
    "kmeans/checkin.npz": Source(points, _raw("gowalla_256_256.npy")),
}


_SMALL = ("age", "workclass", "race", "capital-gain")
_NUMBERS = tuple(name for name in ADULT if name in (*_WHOLE, *_BINNED, "income"))
for _name, _columns in (("adult", ADULT), ("numerical", _NUMBERS), ("small", _SMALL)):
    SOURCES[f"hdpview/{_name}.npz"] = Source(partial(adult_ranges, _columns), ("adult.csv.gz",))
for _name, _file in (("mdsalary", "MDSalary2D_256_256"), ("twitter", "twitter_256_256")):
    SOURCES[f"hdpview/{_name}.npz"] = Source(plane_ranges, _raw(f"{_file}.npy"))


def build(name: str, root: Path) -> bool:
    """Make a file that is missing, if its originals are there; whether it was made."""
    source = SOURCES.get(name)
    if source is None or not all((root / need).is_file() for need in source.needs):
        return False
    made = source.make(*(root / need for need in source.needs))
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(made)
    return True


def report(root: Path, make: bool = False) -> int:
    """List all files, after making those that can be made; returns the exit code."""
    files = listed()
    print(f"Data in {root}")
    counts = {"present": 0, "missing": 0, "different": 0}
    for name, facts in files.items():
        if make and not (root / name).is_file():
            build(name, root)
        found = state(name, facts["sha256"], root)
        counts[found] += 1
        print(f"{found:10} {name}")
        if found != "present":
            source = facts["identifier"] if "identifier" in facts else "no identifier"
            print(f"{'':10}   {facts['content']}")
            print(f"{'':10}   from {facts['source']} ({source}); licence: {facts['licence']}")
            if name in SOURCES:
                print(f"{'':10}   get {', '.join(SOURCES[name].needs)}, then --build")
    if counts["different"]:
        print(f"{counts['different']} files differ from those that were measured; so will figures.")
    if counts["missing"]:
        print(
            f"{counts['missing']} of {len(files)} files are missing. None is part of the project, "
            "and none is fetched. SKDP_DATA names the folder. A script that needs a file says so."
        )
    return int(counts["different"] > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", action="store_true", help="make files that are missing")
    sys.exit(report(_data.ROOT, parser.parse_args().build))
