"""Releases with equal seeds are what they were: a move or a rewrite must not change any number.

`releases.json` holds a hash of what each estimator releases and answers, by its first branch of
parameters and on a large table. It stays until an algorithm changes on purpose; then the changed
entries are recorded again with ``python tests/test_unchanged.py`` and the change is named in
CHANGELOG.md.

Integers are compared exactly, and floats to ten digits of the largest in their array: a product of
matrices may round its last bits differently where memory is aligned differently. Hashes hold for
the versions of NumPy and SciPy that they were recorded with.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import warnings
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
from replays import BRANCHES, Branch, spread
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_info

import skdp
from skdp._random import recording, shared_generators_kept
from skdp.audit._tapes import Alignment, Recorder
from skdp.preprocessing import QuantileResult

# One branch of each estimator and function: replays see the others.
FIRST = list({branch.name.partition(",")[0]: branch for branch in reversed(BRANCHES)}.values())[
    ::-1
]
RECORDED = Path(__file__).with_name("releases.json")
VERSIONS = {"numpy": np.__version__, "scipy": scipy.__version__}
# Exponentials and products of matrices differ in their last bits between processors. Sampled rows
# and clusters can follow such a bit, numbers of noise cannot.
PROCESSOR = {
    "blas": sorted({str(each.get("architecture")) for each in threadpool_info()}),
    "simd": np.show_config(mode="dicts")["SIMD Extensions"]["found"],
}
FOLLOWS_BITS = ("MarginalSynthesizer", "DPKMeans", "PrivateClassifier", "PrivateRegressor", "large")
SEED = 7

EIGHT = skdp.Domain(
    {
        "age": skdp.Numeric(17, 90, integer=True),
        "pay": skdp.Numeric(0, 5000, bins=200),
        "rate": skdp.Numeric(-1, 1, bins=16, nullable=True),
        "hours": skdp.Numeric(0, 99, bins=99),
        "work": skdp.Categorical([f"w{i}" for i in range(9)], nullable=True),
        "place": skdp.Categorical([f"p{i}" for i in range(40)]),
        "sex": skdp.Categorical(["F", "M"]),
        "income": skdp.Categorical(["low", "high"]),
    }
)
PLANE = skdp.Domain({name: EIGHT[name] for name in ("pay", "hours")})
LINE = skdp.Domain({"pay": EIGHT["pay"]})
FOUR = skdp.Domain({name: EIGHT[name] for name in ("age", "work", "sex", "income")})


def large() -> dict:
    """Estimators with enough rows and columns that they leave the ways for small tables."""
    rows = spread(EIGHT, 20_000)
    X, y = rows.drop(columns="income"), rows["income"]
    cloud = np.clip(np.random.default_rng(3).normal(0, 0.4, (20_000, 6)), -1, 1)
    full = {
        "HDPView": skdp.HDPViewSynthesizer(epsilon=1, domain=EIGHT),
        "PrivTree": skdp.PrivTreeSynthesizer(epsilon=1, domain=EIGHT),
        "Marginal": skdp.MarginalSynthesizer(epsilon=1, domain=EIGHT),
        "Marginal, single columns": skdp.MarginalSynthesizer(epsilon=1, domain=EIGHT, max_order=1),
        "PrivBayes": skdp.PrivBayesSynthesizer(epsilon=1, domain=EIGHT),
        "PrivBayes, hierarchical": skdp.PrivBayesSynthesizer(
            epsilon=1, domain=EIGHT, encoding="hierarchical"
        ),
        "KDTree": skdp.KDTreeSynthesizer(epsilon=1, domain=PLANE),
        "KDTree, hierarchical": skdp.KDTreeSynthesizer(
            epsilon=1, domain=PLANE, strategy="hierarchical"
        ),
        "RangeTree": skdp.RangeTreeHistogram(epsilon=1, domain=LINE),
        "RangeTree, adaptive": skdp.RangeTreeHistogram(
            epsilon=1, domain=LINE, partition="adaptive"
        ),
        "RangeTree, dawa": skdp.RangeTreeHistogram(epsilon=1, domain=LINE, partition="dawa"),
        "Grid": skdp.GridSynthesizer(epsilon=1, domain=PLANE),
        "Cube": skdp.DataCube(epsilon=1, domain=FOUR),
        "Cube, optimized": skdp.DataCube(epsilon=1, domain=FOUR, strategy="optimized"),
    }
    labelled = {
        "Marginal, label": skdp.MarginalSynthesizer(epsilon=1, domain=EIGHT, target="income"),
        "PrivPfC": skdp.PrivPfCClassifier(epsilon=1, domain=EIGHT, target="income", max_grids=2000),
        "PrivPfC, transformer": skdp.PrivPfCTransformer(epsilon=1, domain=EIGHT, target="income"),
        "DiffGen": skdp.DiffGenTransformer(epsilon=1, domain=EIGHT, target="income"),
        "TopK": skdp.DPTopKSelector(3, epsilon=1, domain=EIGHT, target="income"),
    }
    clouds = {
        f"KMeans, {algorithm}": skdp.DPKMeans(4, epsilon=1, domain=(-1, 1), algorithm=algorithm)
        for algorithm in ("auto", "lloyd-improved", "hybrid", "extended-grid")
    }
    return {
        **{f"large, {name}": (each, rows[list(each.domain)]) for name, each in full.items()},
        **{f"large, {name}": (each, (X, y)) for name, each in labelled.items()},
        **{f"large, {name}": (each, cloud) for name, each in clouds.items()},
    }


LARGE = large()
# Planned or scored for seconds, and measured as others are.
SLOW = (
    "large, Cube, optimized",
    "large, KMeans, extended-grid",
    "large, KMeans, hybrid",
    "large, Marginal, label",
    "large, PrivPfC, transformer",
)
ROUNDED = [name for name, (made, _) in LARGE.items() if hasattr(made, "sample")]


def rounded(array):
    """Floats to ten digits of the largest."""
    finite = array[np.isfinite(array)]
    scale = 2.0 ** np.ceil(np.log2(np.abs(finite).max())) if finite.any() else 1.0
    return np.round(array / scale, 10) + 0.0


def fingerprint(value, digest):
    """Feed a value into a hash."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind == "O":
            return fingerprint(array.tolist(), digest)
        if array.dtype.kind == "f":
            array = rounded(array)
        digest.update(f"{array.dtype.kind}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    elif isinstance(value, pd.DataFrame):
        for name in value.columns:
            fingerprint([str(name), value[name].tolist()], digest)
        fingerprint([str(each) for each in value.index[:50]], digest)
    elif isinstance(value, pd.Series | pd.Index):
        fingerprint(value.tolist(), digest)
    elif isinstance(value, float):
        digest.update(f"{value:.10g}".encode())
    elif isinstance(value, bool | int | str | bytes | Fraction | type(None)):
        digest.update(repr(value).encode())
    elif isinstance(value, dict):
        for key, part in value.items():
            fingerprint([key, part], digest)
    elif isinstance(value, list | tuple):
        digest.update(f"({len(value)}".encode())
        for part in value:
            fingerprint(part, digest)
    elif isinstance(value, skdp.PrivacyLoss):
        digest.update(str(value).encode())
    elif isinstance(value, skdp.QueryResult):
        held = [value.value, value.std, value.lower, value.upper, value.guarantee]
        fingerprint(held, digest)
    elif isinstance(value, QuantileResult):
        fingerprint(list(vars(value).values()), digest)
    elif hasattr(value, "save"):
        _file(value, digest)
        fingerprint(_attributes(value), digest)
    elif isinstance(value, BaseEstimator):
        fingerprint(_attributes(value), digest)


def _attributes(value):
    """What estimators publish, by name."""
    return {
        name: part
        for name, part in sorted(vars(value).items())
        if name.endswith("_") and not name.startswith("_")
    }


def _file(value, digest):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release"
        value.save(path)
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                digest.update(name.encode())
                content = archive.read(name)
                if name.endswith(".json"):
                    fingerprint(json.loads(content), digest)
                else:
                    fingerprint(np.load(io.BytesIO(content)), digest)


def answers(fitted, rows):
    """What users ask of a release."""
    asked = [fitted]
    synopsis = getattr(fitted, "synopsis_", None)
    if synopsis is not None:
        domain = synopsis.domain
        halves = {
            name: (each.lower, (each.lower + each.upper) / 2)
            for name, each in domain.items()
            if isinstance(each, skdp.Numeric)
        }
        names = list(domain)[:2]
        drawn = synopsis.sample(200, random_state=0, method="independent")
        asked += [drawn, synopsis.total, synopsis.view(names)]
        asked += [synopsis.count(halves), synopsis.aggregate(names[0])]
        try:
            asked += [_interval(synopsis, query) for query in (None, halves)]
        except ValueError:  # nothing is known of the noise, or it was not paid for
            asked.append("no intervals")
        asked += [synopsis.sum(name) for name in halves]
    if isinstance(fitted, skdp.RangeTreeHistogram):
        asked += [fitted.to_frame(), fitted.quantile([0.1, 0.5]), fitted.plan()]
        asked += [fitted.sample(50, random_state=0, method="independent")]
        asked += [fitted.count((1.0, 4.0), return_interval=True)]
    if isinstance(fitted, skdp.DataCube):
        asked += [fitted.to_frame(), fitted.plan().to_frame()]
    if isinstance(rows, pd.DataFrame):
        # Foreign models refuse infinite numbers.
        rows = rows[np.isfinite(rows.select_dtypes("number")).all(axis=1)]
    if not isinstance(rows, pd.DataFrame | np.ndarray) or not len(rows):
        return asked
    if hasattr(fitted, "predict"):
        asked.append(fitted.predict(rows))
    if hasattr(fitted, "predict_proba"):
        asked.append(fitted.predict_proba(rows))
    if hasattr(fitted, "transform"):
        asked.append(fitted.transform(rows))
    return asked


def _interval(synopsis, query):
    """The interval of a count, before it is cut off at what is possible."""
    queries = [skdp.release.parse(query, synopsis.domain)]
    [std], [below], [above], text = synopsis.model.reach(queries, 0.95)
    value = synopsis.count(query)
    return skdp.QueryResult(value, std, value - below, value + above, text)


def seeded(estimator):
    seeds = {
        name: SEED for name in estimator.get_params() if name.split("__")[-1] == "random_state"
    }
    return estimator.set_params(**seeds)


def release(made, data):
    """Fit an estimator, or call a function, with a seed; and what its release answers."""
    if not isinstance(made, BaseEstimator):
        # What a function draws is answered by a tape; its values are written in the error.
        with recording(Recorder(SEED, "noisy", Alignment(data, data))):
            return [made(data)]
    if getattr(made, "estimator", 0) is None:
        # The noise of a default model has no seed.
        with recording(Recorder(SEED, "noisy", Alignment(data, data))):
            return answers(*fit(made, data))
    return answers(*fit(made, data))


def fit(made, data):
    """Fit an estimator with a seed; and the rows that its release is asked about."""
    parts = data if isinstance(data, tuple) else (data,)
    fitted = seeded(made).fit(*parts)
    rows = parts[0]
    if hasattr(rows, "columns") and hasattr(fitted, "transform"):
        rows = rows[list(fitted.feature_names_in_)]
    return fitted, rows


def digest_of(made, data):
    with warnings.catch_warnings(), shared_generators_kept() as seed:
        warnings.simplefilter("ignore")
        # Of models that draw from the generators of the process.
        seed([SEED])
        return _hash(release(made, data))


def _hash(value):
    digest = hashlib.sha256()
    fingerprint(value, digest)
    return digest.hexdigest()[:16]


def of_branch(branch: Branch, n_epsilons: int = 2) -> list[str]:
    """Hashes of a branch on a few of its data sets, at one or two epsilons."""
    data = [first for first, _ in branch.pairs().values()]
    chosen = data if branch.runs > 1 else data[-2:]
    return [
        digest_of(branch.make(epsilon), rows)
        for epsilon in branch.epsilons[:n_epsilons]
        for rows in chosen[::3]
    ]


def of_large(name: str) -> dict[str, list[str]]:
    """Hashes of a large release and of its rounded rows."""
    made, data = LARGE[name]
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted, rows = fit(made, data)
        found[name] = [_hash(answers(fitted, rows))]
        if name in ROUNDED:
            found[f"{name}, rounded"] = [_hash(fitted.sample(300, random_state=0))]
    return found


def parameters():
    import importlib.util

    for branch in FIRST:
        missing = [name for name in branch.needs if importlib.util.find_spec(name) is None]
        mark = pytest.mark.skipif(bool(missing), reason=f"{missing} not installed")
        yield pytest.param(branch, id=branch.name, marks=mark)


def recorded():
    table = json.loads(RECORDED.read_text())
    if table["versions"] != VERSIONS:
        pytest.skip(f"recorded with {table['versions']}, this is {VERSIONS}")
    return table["hashes"]


def assert_unchanged(name, found, expected):
    other = json.loads(RECORDED.read_text())["processor"] != PROCESSOR
    if other and found != expected and name.startswith(FOLLOWS_BITS):
        pytest.skip("recorded on another processor, whose last bits differ")
    assert found == expected, name


@pytest.mark.parametrize("branch", list(parameters()))
def test_releases_are_unchanged(branch):
    assert_unchanged(branch.name, of_branch(branch, 1), recorded()[branch.name])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in LARGE],
)
def test_large_releases_are_unchanged(name):
    table = recorded()
    for key, found in of_large(name).items():
        assert_unchanged(key, found, table[key])


def test_the_table_has_no_dead_entry():
    names = {*LARGE, *(f"{name}, rounded" for name in ROUNDED)}
    assert set(recorded()) == {*names, *(branch.name for branch in FIRST)}


if __name__ == "__main__":
    hashes = {branch.name: of_branch(branch, 1) for branch in FIRST}
    for large_name in LARGE:
        hashes |= of_large(large_name)
    table = {"versions": VERSIONS, "processor": PROCESSOR, "hashes": hashes}
    RECORDED.write_text(json.dumps(table, indent=1) + "\n")
