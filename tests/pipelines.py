"""Small estimators and rows from which the tests of `privacy_report` compose pipelines."""

import numpy as np
from estimators import DOMAIN, people
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp.preprocessing import as_numbers, as_texts

ROWS = people(200)
X, Y = ROWS.drop(columns="income"), ROWS["income"]


def release(epsilon=1.0, **changes):
    return skdp.HDPViewSynthesizer(
        epsilon=epsilon, **{"domain": DOMAIN, "target": "income", **changes}
    )


def model(estimator=None, epsilon=1.0, **changes):
    """A classifier that is trained on a release."""
    inner = LogisticRegression() if estimator is None else estimator
    return skdp.PrivateClassifier(inner, release(epsilon, **changes))


class Changed(skdp.HDPViewSynthesizer):
    """A release of a user's, which keeps what it reads."""

    def fit(self, X, y=None):
        self.rows_ = X
        return super().fit(X, y)


def applied(function, **changes):
    return FunctionTransformer(function, **changes)


def clip(low, high):
    return applied(np.clip, kw_args={"a_min": low, "a_max": high})


def numbers():
    """The step after which rules for numbers hold."""
    return applied(as_numbers)


def texts():
    """The step that makes every cell a text."""
    return applied(as_texts)
