"""A user's script; `tests/test_packaging.py` runs a strict mypy on it."""

from typing import assert_type

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdp import (
    Categorical,
    DataCube,
    Domain,
    MarginalSynthesizer,
    Numeric,
    PrivacyLedger,
    PrivateClassifier,
    PrivateStandardScaler,
    PrivPfCClassifier,
    QueryResult,
    Synopsis,
)
from skdp.inspection import PrivacyReport, privacy_report

people = pd.DataFrame({"age": [30, 40, 50], "sex": ["Female", "Male", "Male"]})
domain = Domain({"age": Numeric(18, 90, integer=True), "sex": Categorical(["Female", "Male"])})
ledger = PrivacyLedger(9.0)

view = assert_type(
    MarginalSynthesizer(epsilon=1.0, domain=domain, ledger=ledger).fit(people), MarginalSynthesizer
)
assert_type(view.count("age < 40", return_interval=True), QueryResult)
assert_type(view.synopsis_, Synopsis)
assert_type(view.synopsis_.sample(), pd.DataFrame)

cube = assert_type(DataCube(epsilon=1.0, domain=domain, ledger=ledger).fit(people), DataCube)
assert_type(cube.cuboid(["sex"]), pd.DataFrame)

model = PrivateClassifier(LogisticRegression(), MarginalSynthesizer(epsilon=1.0, domain=domain))
assert_type(model.fit(people, people["sex"]), PrivateClassifier)
assert_type(PrivPfCClassifier(epsilon=1.0).fit(people, people["sex"]), PrivPfCClassifier)
pipeline = make_pipeline(PrivateStandardScaler(epsilon=1.0), PrivPfCClassifier(epsilon=1.0))
pipeline.fit(people, people["sex"])
assert_type(privacy_report(pipeline), PrivacyReport)
