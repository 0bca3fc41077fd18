"""Estimators over fine bins: which of them use few, and which keep all."""

import numpy as np
import pandas as pd
import pytest
from loops import over

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


@over(
    "kind, more",
    [
        *((getattr(skdp, f"{name}Synthesizer"), {}) for name in RELEASES),
        (skdp.DataCube, {"max_order": 1}),
        (skdp.PrivPfCClassifier, LABEL),
        (skdp.DPTopKSelector, {"k": 1, **LABEL}),
    ],
)
def test_what_counts_cells_releases_few_bins(kind, more):
    rows, few = table(), AUTO.resolved(32)
    fine, coarse = (
        kind(domain=domain, epsilon=1, random_state=0, **more).fit(rows) for domain in (AUTO, few)
    )
    assert fine.domain == AUTO and getattr(fine, "domain_", few) == few
    if hasattr(fine, "synopsis_"):
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
