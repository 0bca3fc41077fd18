"""Trees and forests as estimators."""

import numpy as np
import pandas as pd
from designs import refused
from loops import over

import skdp
from skdp._models import group_values
from skdp.tree import condition

# --- estimators


DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(0, 100, bins=20, nullable=True),
        "smokes": skdp.Categorical(["no", "yes"]),
        "job": skdp.Categorical(list("abcd")),
    }
)


def table(n=6_000, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "smokes": rng.choice(["no", "yes"], n),
            "job": rng.choice(list("abcd"), n),
        }
    )
    score = (rows["age"] - 60) / 10 + (rows["smokes"] == "yes")
    return rows, np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "ill", "well")


def tree(epsilon=1.0, **params):
    return skdp.PrivateDecisionTreeClassifier(
        epsilon=epsilon, domain=DOMAIN, classes=["ill", "well"], random_state=0, **params
    )


@over("algorithm", ["auto", "id3", "c4.5"])
@over("quality", [None, "max", "gini", "clipped"])
def test_a_tree_learns(algorithm, quality):
    model = tree(4.0, algorithm=algorithm, quality=quality).fit(*table())
    assert model.score(*table(seed=1)) > 0.78
    assert np.argmax(model.feature_importances_) == 0
    np.testing.assert_allclose(model.predict_proba(table(20, seed=1)[0]).sum(axis=1), 1)


def test_a_forest_learns():
    model = skdp.PrivateRandomForestClassifier(
        epsilon=4.0, domain=DOMAIN, classes=["ill", "well"], n_trees=3, random_state=0
    ).fit(*table())
    assert model.score(*table(seed=1)) > 0.8
    assert len(model.trees_) == 3
    assert np.argmax(model.feature_importances_) == 0


def test_the_tree_is_printed():
    model = tree(4.0, max_depth=2).fit(*table())
    text = model.tree_.to_text()
    assert text.startswith("|--- age < ")
    assert "or missing" in text
    assert text.count("of about") == model.tree_.model.nodes.count(None)
    assert model.tree_.to_text(1).count("\n") == 4

    one = skdp.Domain({"x": skdp.Categorical(["only"]), "y": skdp.Categorical([7, 8])})
    stump = skdp.PrivateDecisionTreeClassifier(domain=one, target="y")
    stump.fit(pd.DataFrame({"x": ["only"] * 5}), [7] * 5)
    assert stump.tree_.model.nodes == (None,) and stump.tree_.to_text().count("\n") == 1


def test_conditions_in_words():
    number = group_values(skdp.Numeric(0, 10, bins=5, nullable=True), 32)
    assert condition("x", number, np.array([0, 1])) == "x < 4"
    assert condition("x", number, np.array([2, 3, 4, 5])) == "x >= 4 or missing"
    assert condition("x", number, np.array([1, 2])) == "2 <= x < 6"
    assert condition("x", number, np.array([5])) == "x is missing"
    assert condition("x", number, np.arange(5)) == "x is a number"
    word = group_values(skdp.Categorical(list("abcdefg")), 32)
    assert condition("w", word, np.array([2])) == "w is c"
    assert condition("w", word, np.arange(5)) == "w is a or b or c or d or 1 more"
    day = group_values(skdp.Date("2001-01-01", "2004-01-01", bins=4), 32)
    assert condition("d", day, np.array([0, 1])) == "d <= 2002-07-02"
    assert condition("d", day, np.array([2, 3])) == "d >= 2002-07-03"


def test_trees_that_are_too_deep_are_refused_before_the_charge():
    refused(tree(max_depth=17), ValueError, "at most 16", *table(10))
