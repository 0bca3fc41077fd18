"""Scores of records of additive models, and of what models say of true rows."""

import numpy as np
from sklearn.base import BaseEstimator

from skdp.algorithms.additive import UNIT
from skdp.model_selection._metrics import as_metric, charge_score, draw_places, scored_by, true_rows


def some_scores(n_outputs, n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-40 * UNIT, 40 * UNIT, size=(n, n_outputs))
    return np.concatenate([scores, np.zeros((1, n_outputs), dtype=np.int64), scores // 50])


class Answers(BaseEstimator):
    """Predicts what a function makes of the rows."""

    def __init__(self, answer):
        self.answer = answer

    def predict(self, X):
        return self.answer(X)


def of_model(metric="accuracy", *, epsilon, domain=None, ledger=None):
    """The score of a model on true rows, predicted as in a cross-validation; losses negated."""
    asked = as_metric(metric, domain)

    def score(model, X, y):
        asked.check_model(model)
        labels, take = true_rows(X, y)
        loss, source = charge_score("a score", epsilon, ledger, None)
        scored = scored_by(model, asked, labels, take, draw_places(len(labels)))
        found = float(asked.release(scored, loss.epsilon, source))
        return -found if asked.compares == "losses" and not asked.negated else found

    return score
