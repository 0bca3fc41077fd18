"""PrivPfC: misclassification after one private release, by epsilon, and the time of a fit.

Five-fold cross-validation with a new release for each fold; the mean over ten seeds on Adult and
two on the other tables. Three ways to use a release: logistic regression trained on the grid's
cells (`PrivateClassifier`), the histogram classifier, and the histogram classifier of the
dissertation's procedure (two seeds). The baselines are the majority label, and logistic regression
and boosting on the true rows, which are not private. All seeds share the folds, so the standard
errors measure the noise only. Times are CPU times of this process.

Run as ``python -m benchmarks.privpfc --out privpfc.json``; ``--seeds`` changes the number of seeds
and ``--quick`` uses one.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks import _data
from skdp import (
    Categorical,
    Domain,
    Numeric,
    PrivateClassifier,
    PrivPfCClassifier,
    PrivPfCTransformer,
)
from skdp.algorithms.groupings import groupings
from skdp.algorithms.privpfc import Options
from skdp.exceptions import InsecureSeedWarning

EPSILONS = (0.05, 0.1, 0.5, 1.0)
FOLDS = 5
METHODS = ("logistic", "histogram", "paper")
# The dissertation's procedure has no target.
PAPER_SEEDS = 2


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


def problems() -> list[Problem]:
    """All tables, the one with targets first."""
    return [adult(), adult(multiclass=True), nltcs(), phoneme(), electricity()]


def one_hot_logistic(problem: Problem) -> Any:
    """Logistic regression on true rows, categories one-hot and numbers scaled."""
    from sklearn.compose import make_column_transformer

    numbers = [c for c in problem.predictors if isinstance(problem.domain[c], Numeric)]
    texts = [c for c in problem.predictors if c not in numbers]
    encode = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), texts)
    )
    return make_pipeline(encode, LogisticRegression(max_iter=500))


def boosting(problem: Problem) -> Any:
    """Gradient boosting on true rows."""
    texts = [c for c in problem.predictors if isinstance(problem.domain[c], Categorical)]
    return HistGradientBoostingClassifier(
        categorical_features=texts or None, random_state=0, max_iter=100
    )


def folds(problem: Problem) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds, the same for all methods."""
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return list(splitter.split(problem.rows, problem.labels))


def lines(problem: Problem) -> dict[str, float]:
    """Errors of the majority label and of training on the true rows."""
    X, y = problem.predictors, problem.labels
    for column in X:
        if isinstance(problem.domain[column], Categorical):
            X[column] = X[column].astype("category")
    errors: dict[str, list[float]] = {"majority": [], "true, logistic": [], "true, boosting": []}
    for train, test in folds(problem):
        values, counts = np.unique(y[train], return_counts=True)
        errors["majority"].append(float(np.mean(y[test] != values[counts.argmax()])))
        for name, model in (("logistic", one_hot_logistic), ("boosting", boosting)):
            fitted = model(problem).fit(X.iloc[train], y[train])
            errors[f"true, {name}"].append(1 - fitted.score(X.iloc[test], y[test]))
    return {name: statistics.fmean(found) for name, found in errors.items()}


def releases(problem: Problem, epsilon: float, seeds: int) -> dict[str, Any]:
    """Errors of private training, and the CPU seconds of a fit."""
    X, y = problem.predictors, problem.labels
    errors: dict[str, list[float]] = {name: [] for name in METHODS}
    seconds = []
    for seed in range(seeds):
        for number, (train, test) in enumerate(folds(problem)):
            given: dict[str, Any] = {
                "domain": problem.domain,
                "target": problem.target,
                "random_state": 1000 * seed + number,
            }
            X_train, y_train, X_test, y_test = X.iloc[train], y[train], X.iloc[test], y[test]
            begin = time.process_time()
            model = PrivateClassifier(
                LogisticRegression(max_iter=500), PrivPfCTransformer(epsilon=epsilon, **given)
            )
            model.fit(X_train, y_train)
            seconds.append(time.process_time() - begin)
            errors["logistic"].append(1 - model.score(X_test, y_test))
            histogram = PrivPfCClassifier(epsilon=epsilon, **given).fit(X_train, y_train)
            errors["histogram"].append(1 - histogram.score(X_test, y_test))
            if seed < PAPER_SEEDS:
                paper = PrivPfCClassifier(epsilon=epsilon, calibration="paper", **given)
                errors["paper"].append(1 - paper.fit(X_train, y_train).score(X_test, y_test))
    result: dict[str, Any] = {"seeds": seeds}
    for name, found in errors.items():
        by_seed = np.reshape(found, (-1, FOLDS)).mean(axis=1)
        result[name] = float(by_seed.mean())
        result[f"{name}, standard error"] = (
            float(np.std(by_seed, ddof=1)) / len(by_seed) ** 0.5 if len(by_seed) > 1 else None
        )
    result["cpu"] = statistics.median(seconds)
    result["most_cpu"] = max(seconds)
    return result


def _with_error(row: dict[str, Any], name: str) -> str:
    error = row[f"{name}, standard error"]
    return f"{row[name]:.4f}" + ("" if error is None else f" +- {error:.4f}")


def options_of(attribute: Any, limit: int) -> Options:
    """Groupings of a predictor, as the estimator offers them."""
    families = groupings(attribute, limit)
    return Options(tuple(level.groups for family in families for level in family))


def main() -> None:
    """Print the results and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--seeds", type=int, help="seeds on every table (default 10 on Adult, 2)")
    parser.add_argument("--only", nargs="+", help="names of tables")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InsecureSeedWarning)

    results: dict[str, Any] = {}
    for problem in problems():
        if arguments.only and problem.name not in arguments.only:
            continue
        seeds = arguments.seeds or (10 if problem.name == "adult" else 2)
        if arguments.quick:
            seeds = 1
        found: dict[str, Any] = {"lines": lines(problem)}
        texts = [f"{name} {error:.4f}" for name, error in found["lines"].items()]
        print(f"\n{problem.name}: {len(problem.rows)} rows; {', '.join(texts)}", flush=True)
        print(f"{'eps':>5} {'logistic':>16} {'histogram':>16} {'paper':>16} {'CPU s':>6}")
        for epsilon in EPSILONS:
            row = releases(problem, epsilon, seeds)
            found[str(epsilon)] = row
            cells = " ".join(f"{_with_error(row, name):>16}" for name in METHODS)
            print(f"{epsilon:>5g} {cells} {row['cpu']:>6.2f}", flush=True)
        results[problem.name] = found
    _data.write_json(arguments.out, "privpfc", results)


if __name__ == "__main__":
    main()
