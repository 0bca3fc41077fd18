"""Estimators over fine bins: which of them use few, and which keep all."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import skdp
from skdp import Categorical, Numeric
from skdp.domain import Domain

# ------------------------------------------------------------------ estimators

AUTO = Domain({"x": Numeric(0, 100), "y": Numeric(0, 1), "c": Categorical(["a", "b"])})


def table(n=400):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"x": rng.uniform(0, 100, n), "y": rng.random(n), "c": rng.choice(["a", "b"], n)}
    )


LABEL = {"target": "c"}
RELEASES = ("HDPView", "PrivBayes", "PrivTree", "KDTree", "Grid")


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        *((getattr(skdp, f"{name}Synthesizer"), {}) for name in RELEASES),
        (skdp.DataCube, {"max_order": 1}),
        (skdp.PrivPfCClassifier, LABEL),
        (skdp.DPTopKSelector, {"k": 1, **LABEL}),
    ],
)
def test_what_counts_cells_releases_few_bins(kind, more):
    rows, more = table(), {"epsilon": 1, "random_state": 0, **more}
    fine, coarse = (kind(domain=d, **more).fit(rows) for d in (AUTO, AUTO.resolved(32)))
    for each in (fine, coarse):
        found = getattr(each, "domain_", None)
        assert found is None or found == AUTO.resolved(32)
    assert fine.domain == AUTO
    if hasattr(fine, "synopsis_"):
        assert fine.synopsis_.domain == AUTO.resolved(32)
        queries = [{"x": (0, 50)}, {"c": "a", "y": (0.2, 0.7)}]
        np.testing.assert_array_equal(fine.count(queries), coarse.count(queries))
    elif hasattr(fine, "predict"):
        np.testing.assert_array_equal(fine.predict_proba(rows), coarse.predict_proba(rows))
    elif hasattr(fine, "plan_"):
        assert fine.plan().domain == fine.plan_.domain == coarse.plan_.domain
    else:
        assert fine.selected_ == coarse.selected_


def test_single_columns_and_marginals_keep_all_bins():
    hours = np.random.default_rng(1).exponential(3, 20_000)
    rows = pd.DataFrame({"hours": hours, "kind": "a"})
    domain = Domain({"hours": Numeric(0, 1000), "kind": Categorical(["a", "b"])})
    release = skdp.MarginalSynthesizer(epsilon=1, domain=domain).fit(rows)
    alone = skdp.RangeTreeHistogram(epsilon=1, domain=(0.0, 1000.0)).fit(rows[["hours"]])
    assert release.synopsis_.domain == domain and alone.domain_.attributes == (domain["hours"],)
    assert release.quantile("hours") == pytest.approx(np.median(hours), rel=0.05)
    assert alone.quantile(0.5) == pytest.approx(np.median(hours), rel=0.05)


def test_what_trains_on_a_release_takes_the_declared_domain():
    rows = table()
    release = skdp.HDPViewSynthesizer(epsilon=1, domain=AUTO.select(["x"]), random_state=0)
    model = skdp.PrivateRegressor(LinearRegression(), release, target_range=(0, 1))
    model.fit(rows[["x"]], rows["y"])
    assert model.synthesizer_.domain_.shape == (32, 32)
