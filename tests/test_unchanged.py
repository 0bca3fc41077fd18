"""Releases with equal seeds are what they were: a move or a rewrite must not change any number.

`releases.json` holds a hash of what some branches and some estimators on a large table release and
answer. It stays until an algorithm changes on purpose; then the changed entries are recorded again
with ``python tests/test_unchanged.py`` and the change is named in CHANGELOG.md.

Integers are compared exactly, and floats to ten digits of the largest in their array: a product of
matrices may round its last bits differently where memory is aligned differently. Hashes hold for
the versions of NumPy and SciPy that they were recorded with.
"""

import hashlib
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy
from estimators import released_arrays
from neighbours import spread
from replays import BRANCHES
from threadpoolctl import threadpool_info

import skdp

RECORDED = Path(__file__).with_name("releases.json")
VERSIONS = {"numpy": np.__version__, "scipy": scipy.__version__}
# Exponentials and products of matrices differ in their last bits between processors. Sampled rows
# and clusters can follow such a bit, numbers of noise cannot.
PROCESSOR = {
    "blas": sorted({str(each.get("architecture")) for each in threadpool_info()}),
    "simd": np.show_config(mode="dicts")["SIMD Extensions"]["found"],
}
FOLLOWS_BITS = ("MarginalSynthesizer", "PrivateRegressor", "large")
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
BRANCHED = [
    "DataCube, means",
    "DPTopKSelector",
    "GridSynthesizer, rule=m-estimator",
    "HDPViewSynthesizer, persons",
    "MarginalSynthesizer, rules",
    "PrivateAdditiveClassifier, two classes",
    "PrivateDecisionTreeClassifier, defaults",
    "PrivateLogisticRegression, functional",
    "PrivateRegressor",
    "PrivateStandardScaler",
    "PrivBayesSynthesizer, hierarchical",
    "RangeTreeHistogram, adaptive, 600 bins",
]


def large():
    """Estimators with enough rows and columns that they leave the ways for small tables."""
    rows = spread(EIGHT, 20_000)
    labelled = rows.drop(columns="income"), rows["income"]
    cloud = np.clip(np.random.default_rng(3).normal(0, 0.4, (20_000, 6)), -1, 1)
    of = {"epsilon": 1, "random_state": SEED}
    found = {
        "HDPView": (skdp.HDPViewSynthesizer(domain=EIGHT, **of), (rows,)),
        "PrivTree": (skdp.PrivTreeSynthesizer(domain=EIGHT, **of), (rows,)),
        "Marginal": (skdp.MarginalSynthesizer(domain=EIGHT, **of), (rows,)),
        "PrivBayes": (skdp.PrivBayesSynthesizer(domain=EIGHT, **of), (rows,)),
        "KDTree": (
            skdp.KDTreeSynthesizer(domain=EIGHT.select(["pay", "hours"]), **of),
            (rows[["pay", "hours"]],),
        ),
        "PrivPfC": (
            skdp.PrivPfCClassifier(domain=EIGHT, target="income", max_grids=2000, **of),
            labelled,
        ),
        "KMeans": (skdp.DPKMeans(4, domain=(-1, 1), **of), (cloud,)),
    }
    return {f"large, {name}": each for name, each in found.items()}


def branched():
    """The first data set of about 40 rows of some branches, at epsilon 1."""
    made = {branch.name: branch for branch in BRANCHES}
    for name in BRANCHED:
        estimator = made[name].make(1.0)
        seeds = [each for each in estimator.get_params() if each.endswith("random_state")]
        yield name, (estimator.set_params(**dict.fromkeys(seeds, SEED)), made[name].usual)


CASES = {**dict(branched()), **large()}


def rounded(array):
    """Floats to ten digits of the largest."""
    if array.dtype.kind != "f":
        return array
    finite = array[np.isfinite(array)]
    scale = 2.0 ** np.ceil(np.log2(np.abs(finite).max())) if finite.any() else 1.0
    return np.round(array / scale, 10) + 0.0


def hash_of(estimator, parts):
    """What is released, drawn and predicted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = estimator.fit(*parts)
        arrays = released_arrays(fitted)
        if getattr(fitted, "synopsis_", None) is not None:
            drawn = fitted.synopsis_.sample(200, random_state=0)
            arrays["drawn"] = fitted.synopsis_.domain.encode(drawn)
        if hasattr(fitted, "predict"):
            predicted = np.asarray(fitted.predict(parts[0]))
            arrays["predicted"] = np.unique(predicted, return_inverse=True)[1]
    digest = hashlib.sha256()
    for path, array in sorted(arrays.items()):
        digest.update(f"{path} {array.dtype.kind}{array.shape}".encode())
        digest.update(np.ascontiguousarray(rounded(array)).tobytes())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("name", CASES)
def test_releases_are_unchanged(name):
    table = json.loads(RECORDED.read_text())
    if table["versions"] != VERSIONS:
        pytest.skip(f"recorded with {table['versions']}, this is {VERSIONS}")
    same = hash_of(*CASES[name]) == table["hashes"][name]
    if table["processor"] != PROCESSOR and not same and name.startswith(FOLLOWS_BITS):
        pytest.skip("recorded on another processor, whose last bits differ")
    assert same


def test_the_table_has_no_dead_entry():
    assert set(json.loads(RECORDED.read_text())["hashes"]) == {*CASES}


if __name__ == "__main__":
    hashes = {name: hash_of(*case) for name, case in CASES.items()}
    table = {"versions": VERSIONS, "processor": PROCESSOR, "hashes": hashes}
    RECORDED.write_text(json.dumps(table, indent=1) + "\n")
