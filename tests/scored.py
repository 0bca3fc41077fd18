"""Scores of records of additive models, and of what models say of true rows."""

import numpy as np

from skdp.algorithms.additive import UNIT
from skdp.model_selection._guard import answers_of, draw_places, true_rows
from skdp.model_selection._metrics import Scored, as_metric, charge_score, class_positions


def some_scores(n_outputs, n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-40 * UNIT, 40 * UNIT, size=(n, n_outputs))
    return np.concatenate([scores, np.zeros((1, n_outputs), dtype=np.int64), scores // 50])


def of_model(metric="accuracy", *, epsilon, domain=None, ledger=None):
    """The score of a model on true rows, predicted as in a cross-validation; losses negated."""
    asked = as_metric(metric, domain)

    def score(model, X, y):
        asked.check_model(model)
        labels, take = true_rows(X, y)
        classes = getattr(model, "classes_", ())
        loss, source = charge_score("a score", epsilon, ledger, None)
        everyone, places = np.arange(len(labels)), draw_places(len(labels))
        guess = answers_of(model, asked.method, take, everyone, places, len(classes))
        scored = Scored(labels, guess, class_positions(classes))
        found = float(asked.release(scored, loss.epsilon, source))
        return -found if asked.compares == "losses" and not asked.negated else found

    return score
