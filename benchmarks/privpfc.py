"""Tables with a label to predict, and their public domains."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from benchmarks import _data
from skdp import (
    Categorical,
    Domain,
    Numeric,
)
from skdp.algorithms.groupings import groupings
from skdp.algorithms.privpfc import Options


class Problem(NamedTuple):
    """A table with a label to predict, and its public domain."""

    name: str
    rows: pd.DataFrame
    domain: Domain

    @property
    def target(self) -> str:
        """The label: the last column of the domain."""
        return self.domain.names[-1]

    @property
    def labels(self) -> np.ndarray:
        """The labels of all rows."""
        return self.rows[self.target].to_numpy()

    @property
    def predictors(self) -> pd.DataFrame:
        """The rows without the label."""
        return self.rows.drop(columns=self.target)


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


def adult(multiclass: bool = False) -> Problem:
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
    return Problem("adult, marital status" if multiclass else "adult", rows, Domain(attributes))


def nltcs() -> Problem:
    """Sixteen limitations of daily life; the last one is the label."""
    patterns, counts = _data.nltcs()
    names = [f"item {number + 1}" for number in range(patterns.shape[1])]
    rows = pd.DataFrame(np.repeat(patterns, counts, axis=0), columns=names)
    return Problem("nltcs", rows, Domain({name: Categorical([0, 1]) for name in names}))


def phoneme() -> Problem:
    """Five features of a sound; is it nasal or oral?"""
    rows = _data.frame("phoneme")
    label = rows.columns[-1]
    attributes: dict[str, Any] = {name: Numeric(-4, 4, bins=64) for name in rows.columns[:-1]}
    return Problem(
        "phoneme", rows, Domain({**attributes, label: Categorical(list(np.unique(rows[label])))})
    )


def electricity() -> Problem:
    """Prices and demand, scaled to 0..1; does the price rise?"""
    rows = _data.frame("electricity")
    label = rows.columns[-1]
    attributes: dict[str, Any] = {
        name: Numeric(1, 7, integer=True) if name == "day" else Numeric(0, 1, bins=256)
        for name in rows.columns[:-1]
    }
    return Problem(
        "electricity",
        rows,
        Domain({**attributes, label: Categorical(list(np.unique(rows[label])))}),
    )


def boosting(problem: Problem) -> Any:
    """Gradient boosting on true rows."""
    texts = [c for c in problem.predictors if isinstance(problem.domain[c], Categorical)]
    return HistGradientBoostingClassifier(
        categorical_features=texts or None, random_state=0, max_iter=100
    )


def folds(problem: Problem) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds, the same for all methods."""
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    return list(splitter.split(problem.rows, problem.labels))


def options_of(attribute: Any, limit: int) -> Options:
    """Groupings of a predictor, as the estimator offers them."""
    families = groupings(attribute, limit)
    return Options(tuple(level.groups for family in families for level in family))
