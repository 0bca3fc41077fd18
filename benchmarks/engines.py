"""Counting in engines: marginals of a hundred million rows, time against rows and distinct rows.

Rows of 8 columns are generated into Parquet files of a temporary directory, 2,000,000 rows a file,
from a pool of distinct rows, and removed afterwards. Every fit runs in a separate process; its
peak memory includes its child processes. "engine" is the time spent waiting for counts, "rest" is
the rest of the fit: noise, selection, joining the views.

Each part can be run separately with ``--part``:

``large``
    Marginals at epsilon 1 of 100,000,000 rows through DuckDB: the targets.
``engines``
    The same for 10,000,000 rows through every engine.
``growth``
    Time of DuckDB and Polars against the number of rows, and of distinct rows.
``views``
    All sets of one to three of the 8 columns of 6,000,000 rows, counted together, through DuckDB
    and Polars, against the time of only scanning and coding the rows. The domain is too large for
    a table of its distinct rows.
``large_views``
    The same for 100,000,000 rows that DuckDB generates itself: the target.

Run as ``python -m benchmarks.engines --out engines.json --picture engines.png``; ``--quick``
divides all numbers of rows by 50.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from benchmarks import _data
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric
from skdp.rows import coded as engine_rows
from skdp.rows import count_rows, read_rows

ROWS_PER_FILE = 2_000_000
MOST_MEMORY = 2 * 2**30
MOST_SECONDS = 180.0
MOST_REST = 20.0
MOST_SCANS = 2.0
ENGINES = ("duckdb", "polars", "dask", "pyspark")

REGIONS = [f"region {number:02d}" for number in range(20)]
SCHOOLS = ["none", "primary", "secondary", "vocational", "bachelor", "master", "doctor", "other"]
JOBS = ["office", "care", "trade", "craft", "none"]


def domain(pay_bins: int = 32) -> Domain:
    """Public ranges of the 8 columns: 13,312,000 cells with 32 bins of the pay."""
    return Domain(
        {
            "age": Numeric(18, 98, bins=26),
            "pay": Numeric(0, 200_000, bins=pay_bins),
            "hours": Numeric(0, 80, bins=10),
            "sex": Categorical(["F", "M"]),
            "region": Categorical(REGIONS),
            "school": Categorical(SCHOOLS, other="other"),
            "job": Categorical(JOBS),
            "owner": Categorical([False, True]),
        }
    )


def pool(n_distinct: int, seed: int = 0) -> np.ndarray:
    """Distinct rows of codes, correlated and skewed like real records, (n_distinct, 8)."""
    rng = np.random.default_rng(seed)
    shape = domain().shape
    found = np.zeros(0, dtype=np.int64)
    while len(found) < n_distinct:
        n = 2 * n_distinct
        level = rng.normal(size=n)
        columns = []
        for place, size in enumerate(shape):
            noisy = 0.5 * level * (place % 3 - 1) + rng.normal(size=n)
            spread = 1 / (1 + np.exp(-1.2 * noisy))
            columns.append(np.minimum((spread * size).astype(np.int64), size - 1))
        found = np.union1d(found, np.ravel_multi_index(columns, shape))
    chosen = rng.permutation(found)[:n_distinct]
    return np.stack(np.unravel_index(chosen, shape), axis=1).astype(np.int16)


def generate(folder: Path, n_rows: int, n_distinct: int) -> None:
    """Write the rows as Parquet files; distinct rows occur unevenly, nearly all at least once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    profiles = pool(n_distinct)
    texts = {"sex": ["F", "M"], "region": REGIONS, "school": SCHOOLS, "job": JOBS}
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, n_rows, ROWS_PER_FILE)):
        rng = np.random.default_rng([1, number])
        n = min(ROWS_PER_FILE, n_rows - first)
        codes = profiles[(rng.random(n) ** 1.5 * n_distinct).astype(np.int64)]
        inside = rng.random((n, 2))
        columns: dict[str, Any] = {
            "age": 18 + (codes[:, 0] + inside[:, 0]) * (80 / 26),
            "pay": np.round((codes[:, 1] + inside[:, 1] * 0.99) * (200_000 / 32), 2),
            "hours": codes[:, 2] * 8 + rng.integers(0, 8, n),
            "owner": codes[:, 7].astype(bool),
        }
        for place, name in enumerate(domain().names):
            if name in texts:
                indices = pa.array(codes[:, place].astype(np.int8))
                columns[name] = pa.DictionaryArray.from_arrays(indices, texts[name])
        # Without the Arrow schema, readers see plain text.
        pq.write_table(
            pa.table({name: columns[name] for name in domain().names}),
            folder / f"rows{number:04d}.parquet",
            store_schema=False,
        )


def generate_views(folder: Path, n_rows: int) -> None:
    """Write rows as Parquet files of DuckDB; the columns depend on each other."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    listed = {
        name: "[" + ", ".join(f"'{each}'" for each in names) + "]"
        for name, names in (("region", REGIONS), ("school", SCHOOLS), ("job", JOBS))
    }
    connection = duckdb.connect(config={"threads": 2})
    for number, first in enumerate(range(0, n_rows, 10 * ROWS_PER_FILE)):
        n = min(10 * ROWS_PER_FILE, n_rows - first)
        connection.execute(
            f"""
            COPY (
                SELECT
                    18 + 80 * (a + b) / 2 AS age,
                    round(200000 * a * c, 2) AS pay,
                    (80 * (b + c) / 2)::INTEGER AS hours,
                    CASE WHEN c < 0.3 + 0.4 * a THEN 'F' ELSE 'M' END AS sex,
                    {listed["region"]}[1 + floor(20 * b * d)::INTEGER] AS region,
                    {listed["school"]}[1 + floor(8 * a)::INTEGER] AS school,
                    {listed["job"]}[1 + floor(5 * (a + d) / 2)::INTEGER] AS job,
                    c * d < 0.2 AS owner
                FROM (
                    SELECT random() AS a, random() AS b, random() AS c, random() AS d
                    FROM range({n})
                )
            ) TO '{folder}/rows{number:04d}.parquet' (FORMAT parquet)
            """
        )


def lazy(engine: str, folder: Path) -> Any:
    """The lazy frame of an engine on two cores."""
    files = f"{folder}/*.parquet"
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect(config={"threads": 2})
        globals()["_connection"] = connection
        return connection.read_parquet(files)
    if engine == "polars":
        os.environ.setdefault("POLARS_MAX_THREADS", "2")
        import polars as pl

        return pl.scan_parquet(files)
    if engine == "dask":
        import dask.dataframe as dd
        from distributed import Client

        Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
        return dd.read_parquet(files)
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return session.config("spark.driver.memory", "2g").getOrCreate().read.parquet(files)


class _Memory(threading.Thread):
    """Peak memory of this process and its children: the sum of the memory that each holds alone."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._over = threading.Event()

    def run(self) -> None:
        import psutil

        me = psutil.Process()
        while not self._over.wait(0.1):
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    pass
            self.peak = max(self.peak, total)

    def stop(self) -> int:
        self._over.set()
        self.join()
        return self.peak


def fit(engine: str, folder: Path) -> dict[str, Any]:
    """One fit, measured in this process."""
    memory = _Memory()
    memory.start()
    rows = lazy(engine, folder)
    waited = [0.0]
    ask = engine_rows.guarded

    def timed(name: str, question: Any) -> Any:
        begin = time.perf_counter()
        try:
            return ask(name, question)
        finally:
            waited[0] += time.perf_counter() - begin

    engine_rows.guarded = timed
    begin, cpu = time.perf_counter(), time.process_time()
    view = MarginalSynthesizer(epsilon=1.0, domain=domain()).fit(rows)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {
        "engine": engine,
        "wall": seconds,
        "in_engine": waited[0],
        "rest": seconds - waited[0],
        "cpu": cpu,
        "peak": memory.stop(),
        "total": view.count(),
    }


def views(engine: str, folder: Path) -> dict[str, Any]:
    """All small sets of columns counted together, and a scan alone, measured in this process."""
    memory = _Memory()
    memory.start()
    space = domain(pay_bins=64)
    rows = read_rows(lazy(engine, folder)).select(space.names)
    frame = rows.coded(space)._frame
    sets = [
        (axes, [None] * width)
        for width in (1, 2, 3)
        for axes in itertools.combinations(range(len(space)), width)
    ]

    def scan() -> Any:
        least = (nw.col(name).min() for name in frame.collect_schema())
        return engine_rows._collect(frame.select(*least), engine)

    def count() -> Any:
        return list(count_rows(rows, space, together=()).regrouped_many(sets))

    found: dict[str, Any] = {"engine": engine, "sets": len(sets)}
    for name, work in (("scan", scan), ("views", count)):
        begin, cpu = time.perf_counter(), time.process_time()
        result = work()
        found[name] = time.perf_counter() - begin
        found[f"{name}_cpu"] = time.process_time() - cpu
    found["ratio"] = found["views"] / found["scan"]
    found["ratio_cpu"] = found["views_cpu"] / found["scan_cpu"]
    return {**found, "total": int(result[0].sum()), "peak": memory.stop()}


def measured_views(engine: str, n_rows: int, folder: Path) -> dict[str, Any]:
    """Views of rows that DuckDB generated, in a separate process."""
    place = folder / f"views_{n_rows}"
    if not place.exists():
        generate_views(place, n_rows)
    row = {"rows": n_rows, **_apart("views", engine, place)}
    print(
        f"{engine:<8} {n_rows:>12,} rows, {row['sets']} sets: {row['views']:.1f} s "
        f"({row['views_cpu']:.1f} s CPU), {row['ratio']:.2f} times a scan ({row['ratio_cpu']:.2f} "
        f"in CPU time), peak {row['peak'] / 2**30:.2f} GB",
        flush=True,
    )
    return row


def _apart(what: str, engine: str, place: Path) -> dict[str, Any]:
    """What a function of this module measures in a separate process."""
    code = (
        "import json, sys, pathlib, benchmarks.engines as e; "
        f"print('RESULT', json.dumps(e.{what}(sys.argv[1], pathlib.Path(sys.argv[2]))))"
    )
    if engine == "dask":
        code = f"if __name__ == '__main__': {code}"
    done = subprocess.run(
        [sys.executable, "-c", code, engine, str(place)], capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"{engine} failed:\n{done.stderr[-3000:]}")
    return dict(json.loads(lines[-1].removeprefix("RESULT ")))


def measured(engine: str, n_rows: int, n_distinct: int, folder: Path) -> dict[str, Any]:
    """One fit in a separate process, on rows generated earlier if they exist."""
    place = folder / f"{n_rows}_{n_distinct}"
    if not place.exists():
        begin = time.perf_counter()
        generate(place, n_rows, n_distinct)
        print(f"  made {n_rows:,} rows in {time.perf_counter() - begin:.0f} s", flush=True)
    row = {"rows": n_rows, "distinct": n_distinct, **_apart("fit", engine, place)}
    print(
        f"{engine:<8} {n_rows:>12,} {n_distinct:>10,} {row['wall']:>8.1f} {row['in_engine']:>8.1f} "
        f"{row['rest']:>8.1f} {row['cpu']:>8.1f} {row['peak'] / 2**30:>8.2f}",
        flush=True,
    )
    return row


def large(folder: Path, divide: int) -> list[dict[str, Any]]:
    """A hundred million rows through DuckDB."""
    return [measured("duckdb", 100_000_000 // divide, 2_000_000 // divide, folder)]


def engines(folder: Path, divide: int) -> list[dict[str, Any]]:
    """Ten million rows through every engine."""
    n_rows, n_distinct = 10_000_000 // divide, 2_000_000 // divide
    return [measured(engine, n_rows, n_distinct, folder) for engine in ENGINES]


def growth(folder: Path, divide: int) -> list[dict[str, Any]]:
    """Time against rows at 200,000 distinct ones, and against distinct ones at 5,000,000 rows."""
    sizes = [(rows, 200_000) for rows in (1_000_000, 2_500_000, 5_000_000, 10_000_000, 20_000_000)]
    sizes += [(5_000_000, distinct) for distinct in (2_000, 20_000, 500_000, 1_000_000, 2_000_000)]
    rows = []
    for n_rows, n_distinct in sizes:
        for engine in ("duckdb", "polars"):
            rows.append(measured(engine, n_rows // divide, n_distinct // divide, folder))
        shutil.rmtree(folder / f"{n_rows // divide}_{n_distinct // divide}")
    return rows


def some_views(folder: Path, divide: int) -> list[dict[str, Any]]:
    """Sets of columns of six million rows."""
    return [measured_views(engine, 6_000_000 // divide, folder) for engine in ("duckdb", "polars")]


def large_views(folder: Path, divide: int) -> list[dict[str, Any]]:
    """Sets of columns of a hundred million rows."""
    return [measured_views("duckdb", 100_000_000 // divide, folder)]


PARTS = {
    "large": large,
    "engines": engines,
    "growth": growth,
    "views": some_views,
    "large_views": large_views,
}


def bars(row: dict[str, Any]) -> list[tuple[str, bool]]:
    """The targets of the large fit, and whether it meets them."""
    memory, seconds, rest = row["peak"], row["wall"], row["rest"]
    return [
        (f"peak memory {memory / 2**30:.2f} of 2 GB", memory < MOST_MEMORY),
        (f"{seconds:.0f} of {MOST_SECONDS:.0f} s in all", seconds < MOST_SECONDS),
        (f"{rest:.1f} of {MOST_REST:.0f} s without the group-by", rest < MOST_REST),
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Time in the engine and of the whole fit, against rows and against distinct rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    fixed = max(row["distinct"] for row in rows if row["rows"] == max(r["rows"] for r in rows))
    at = sorted(row["rows"] for row in rows)[len(rows) // 2]
    for engine, colour in (("duckdb", "#0072B2"), ("polars", "#D55E00")):
        mine = [row for row in rows if row["engine"] == engine]
        for axes, key, chosen in (
            (left, "rows", [row for row in mine if row["distinct"] == fixed]),
            (right, "distinct", [row for row in mine if row["rows"] == at]),
        ):
            chosen = sorted(chosen, key=lambda row: row[key])
            xs = [row[key] for row in chosen]
            axes.plot(xs, [row["wall"] for row in chosen], "o-", color=colour, label=engine)
            axes.plot(xs, [row["in_engine"] for row in chosen], "o:", color=colour, mfc="white")
    left.set(xlabel="rows", ylabel="seconds", title=f"{fixed:,} distinct rows", ylim=0)
    right.set(xlabel="distinct rows", title=f"{at:,} rows", ylim=0, xscale="log")
    left.xaxis.set_major_formatter(lambda rows, _: f"{rows / 1e6:g} million" if rows else "0")
    left.locator_params(axis="x", nbins=4)
    left.plot([], [], "o:", color="#767676", mfc="white", label="waiting for the engine")
    left.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=list(PARTS), action="append", help="default: all")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the rows")
    parser.add_argument(
        "--folder", type=Path, help="keep the generated rows here, or use those kept here"
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument(
        "--picture", type=Path, help="PNG file to write with a plot of the part growth"
    )
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="skdp_engines_"))
    print(
        f"{'':<8} {'rows':>12} {'distinct':>10} {'wall s':>8} {'engine s':>8} {'rest s':>8} "
        f"{'CPU s':>8} {'peak GB':>8}",
        flush=True,
    )
    results: dict[str, Any] = {}
    try:
        for part in arguments.part or PARTS:
            results[part] = PARTS[part](folder, 50 if arguments.quick else 1)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)
    if "large" in results:
        results["bars"] = bars(results["large"][0])
        for promise, kept in results["bars"]:
            print(f"{'yes' if kept else 'NO':<4} {promise}")
    if "large_views" in results:
        ratio = results["large_views"][0]["ratio"]
        kept = bool(ratio < MOST_SCANS)
        results.setdefault("bars", []).append(("views in two scans", kept))
        print(f"{'yes' if kept else 'NO':<4} views in {ratio:.2f} of {MOST_SCANS:.0f} scans")
    if "growth" in results and arguments.picture is not None:
        draw(results["growth"], arguments.picture)
    _data.write_json(arguments.out, "engines", results)


if __name__ == "__main__":
    main()
