"""Marginals with a target: pairs with it come first, and rows predict it."""

import warnings

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp import Categorical, Domain, MarginalSynthesizer, Numeric

DOMAIN = Domain(
    {
        **{name: Numeric(0, 1, bins=16) for name in "xyz"},
        "kind": Categorical(list("abcd")),
        "label": Categorical(["no", "yes"]),
    }
)


def rows(n: int, share: float, told: bool, seed: int = 0) -> pd.DataFrame:
    """Rows whose label follows from x and y together, or from nothing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.random(n) for name in "xyz"})
    frame["kind"] = rng.choice(list("abcd"), n)
    yes = (frame["x"] > 0.5) & (frame["y"] > 0.4) if told else rng.random(n) < share
    frame["label"] = np.where(yes, "yes", "no")
    return frame


def release(frame: pd.DataFrame, epsilon: float, **parameters) -> MarginalSynthesizer:
    view = MarginalSynthesizer(
        epsilon=epsilon, domain=DOMAIN, target="label", random_state=0, **parameters
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return view.fit(frame)


def pairs_of(view):
    return {axes for axes in view.synopsis_.model.coefficients.looks if len(axes) == 2}


def test_pairs_with_the_target_are_measured_first():
    for epsilon in (0.05, 1.0):
        view = release(rows(20_000, 0.3, told=True), epsilon)
        assert pairs_of(view) >= {(axis, 4) for axis in range(4)}


def test_a_label_that_nothing_tells_of_is_independent_in_the_release():
    view = release(rows(4000, 0.1, told=False), 0.5)
    synthetic = view.sample(20_000, random_state=0)
    yes = synthetic["label"] == "yes"
    for name in "xyz":
        assert (yes.groupby(synthetic[name] > 0.5).mean() < 0.5).all()
    assert (yes.groupby(synthetic["kind"]).mean() < 0.5).all()


def test_two_columns_tell_a_label_together():
    view = release(rows(20_000, 0.3, told=True), 1.0)
    synthetic = view.sample(20_000, random_state=0)
    told = (synthetic["x"] > 0.5) & (synthetic["y"] > 0.4)
    assert ((synthetic["label"] == "yes") == told).mean() > 0.88


def test_an_empty_table_has_a_release():
    view = release(rows(0, 0.3, told=False), 1.0)
    assert isinstance(view.synopsis_, skdp.Synopsis)
    assert len(view.sample(100, random_state=0)) == 100


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_three_classes_of_which_one_has_three_records(epsilon):
    domain = Domain({**dict(DOMAIN.items()), "label": Categorical(["no", "rare", "yes"])})
    frame = rows(3000, 0.3, told=True)
    frame.loc[:2, "label"] = "rare"
    view = MarginalSynthesizer(epsilon=epsilon, domain=domain, target="label", random_state=0).fit(
        frame
    )
    synthetic = view.sample(20_000, random_state=0)
    assert (synthetic["label"] == "rare").mean() < 0.1
    told = (synthetic["x"] > 0.5) & (synthetic["y"] > 0.4)
    if epsilon >= 1:
        usual = synthetic["label"] != "rare"
        assert ((synthetic["label"] == "yes") == told)[usual].mean() > 0.75


@pytest.mark.parametrize("bins", [2, 60])
def test_a_target_may_be_a_number_of_few_or_many_codes(bins):
    rng = np.random.default_rng(0)
    x = rng.random(10_000)
    frame = pd.DataFrame({"x": x, "z": rng.random(10_000)})
    y = pd.Series(np.clip(x + rng.normal(0, 0.1, 10_000), 0, 0.999), name="y")
    domain = Domain({name: Numeric(0, 1, bins=32) for name in "xz"} | {"y": Numeric(0, 1, bins)})
    view = MarginalSynthesizer(epsilon=1.0, domain=domain, target="y", random_state=0).fit(frame, y)
    X, drawn, weight = view.make_training_set(5000, random_state=0)
    assert list(X.columns) == ["x", "z"] and weight is None
    # Two codes, each spread over its half, have a correlation of 0.72.
    assert np.corrcoef(X["x"], drawn)[0, 1] > 0.65
    assert abs(np.corrcoef(X["z"], drawn)[0, 1]) < 0.2


def test_columns_that_tell_the_same_count_once():
    rng = np.random.default_rng(0)
    n = 40_000
    x = rng.integers(0, 16, n)
    frame = pd.DataFrame({name: (x + rng.random(n)) / 16 for name in "xyz"})
    frame["kind"] = rng.choice(list("abcd"), n)
    frame["label"] = np.where(rng.random(n) < 0.4 + 0.2 * (x >= 8), "yes", "no")
    synthetic = release(frame, 2.0).sample(40_000, random_state=0)
    high = (synthetic[list("xyz")] >= 0.5).all(axis=1)
    # Three independent columns in each class would say 0.77.
    assert (synthetic.loc[high, "label"] == "yes").mean() == pytest.approx(0.6, abs=0.06)
