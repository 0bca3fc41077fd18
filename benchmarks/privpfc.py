"""Adult as the works on classification have it, the folds, and the learner on true rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from benchmarks import _data
from benchmarks._fidelity_tables import Table
from skdp import Categorical, Domain, Numeric
from skdp.algorithms.groupings import groupings
from skdp.algorithms.privpfc import Options

# As listed in the description of the data set.
_CATEGORIES = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, "
    "Without-pay, Never-worked",
    "education": "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, "
    "7th-8th, 12th, Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool",
    "marital-status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, "
    "Married-spouse-absent, Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, "
    "Prof-specialty, Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, "
    "Transport-moving, Priv-house-serv, Protective-serv, Armed-Forces",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, "
    "Outlying-US(Guam-USVI-etc), India, Japan, Greece, South, China, Cuba, Iran, Honduras, "
    "Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal, Ireland, France, "
    "Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala, Nicaragua, "
    "Scotland, Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong, Holand-Netherlands",
}
_MARITAL = {
    "Never-married": "never",
    "Married-civ-spouse": "married",
    "Married-AF-spouse": "married",
}


def adult(multiclass: bool = False) -> Table:
    """Adult without rows with missing values: income, or marital status in three groups."""
    rows = _data.frame("adult")
    rows = rows[(rows != "?").all(axis=1)].drop(columns="fnlwgt").reset_index(drop=True)
    for column in ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week"):
        rows[column] = pd.to_numeric(rows[column])
    income = "income" if "income" in rows else "class"
    attributes: dict[str, Any] = {
        "age": Numeric(17, 90, integer=True),
        "workclass": None,
        "education": None,
        "education-num": Numeric(1, 16, integer=True),
        "marital-status": None,
        "occupation": None,
        "relationship": None,
        "race": None,
        "sex": None,
        "capital-gain": Numeric(0, 100_000, bins=1_000),
        "capital-loss": Numeric(0, 5_000, bins=500),
        "hours-per-week": Numeric(1, 99, integer=True),
        "native-country": None,
        income: Categorical(["<=50K", ">50K"]),
    }
    for column, listed in _CATEGORIES.items():
        attributes[column] = Categorical(listed.split(", "))
    if multiclass:
        rows["status"] = rows.pop("marital-status").map(lambda text: _MARITAL.get(text, "before"))
        attributes.pop("marital-status")
        attributes["status"] = Categorical(["never", "married", "before"])
    name = "adult, marital status" if multiclass else "adult"
    return Table(name, rows, Domain(attributes), list(attributes)[-1])


def boosting(problem: Table) -> Any:
    """Gradient boosting on true rows."""
    texts = [c for c in problem.predictors if isinstance(problem.domain[c], Categorical)]
    return HistGradientBoostingClassifier(
        categorical_features=texts or None, random_state=0, max_iter=100
    )


def folds(problem: Table) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds, the same for all methods."""
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    return list(splitter.split(problem.rows, problem.labels))


def options_of(attribute: Any, limit: int) -> Options:
    """Groupings of a predictor, as the estimator offers them."""
    families = groupings(attribute, limit)
    return Options(tuple(level.groups for family in families for level in family))
