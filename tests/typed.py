"""A user's script; `tests/test_packaging.py` runs a strict mypy on it."""

from typing import assert_type

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skdp
from skdp.inspection import PrivacyReport, privacy_report

people = pd.DataFrame({"age": [30, 40, 50], "sex": ["Female", "Male", "Male"]})
domain = skdp.Domain({"age": skdp.Numeric(18, 90), "sex": skdp.Categorical(["F", "M"])})

view = skdp.MarginalSynthesizer(epsilon=1.0, domain=domain, ledger=skdp.PrivacyLedger(9.0))
assert_type(view.fit(people), skdp.MarginalSynthesizer)
answer: skdp.QueryResult = view.count("age < 40", return_interval=True)
assert_type(view.synopsis_, skdp.Synopsis)
assert_type(view.synopsis_.sample(), pd.DataFrame)

cube = assert_type(skdp.DataCube(epsilon=1.0, domain=domain).fit(people), skdp.DataCube)
assert_type(cube.cuboid(["sex"]), pd.DataFrame)

trees = skdp.PrivPfCClassifier(epsilon=1.0)
assert_type(trees.fit(people, people["sex"]), skdp.PrivPfCClassifier)
model = skdp.PrivateClassifier(LogisticRegression(), view)
assert_type(model.fit(people, people["sex"]), skdp.PrivateClassifier)
pipeline = make_pipeline(skdp.PrivateStandardScaler(epsilon=1.0), trees)
pipeline.fit(people, people["sex"])
assert_type(privacy_report(pipeline), PrivacyReport)
