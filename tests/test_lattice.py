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


@pytest.mark.parametrize(
    "made",
    [
        lambda domain: skdp.HDPViewSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.PrivBayesSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.PrivTreeSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.KDTreeSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.GridSynthesizer(epsilon=1, domain=domain, random_state=0),
        lambda domain: skdp.DataCube(epsilon=1, domain=domain, max_order=1, random_state=0),
        lambda domain: skdp.PrivPfCClassifier(epsilon=1, domain=domain, target="c", random_state=0),
        lambda domain: skdp.DPTopKSelector(1, domain=domain, target="c", random_state=0),
    ],
)
def test_what_counts_cells_releases_few_bins(made):
    rows = table()
    fine, coarse = made(AUTO).fit(rows), made(AUTO.resolved(32)).fit(rows)
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
