"""Private folds and cross-validation: what is released and what is charged."""

from fractions import Fraction

import numpy as np
import pytest
from searched import N, X, Y, model

import skdp
from skdp.model_selection import PrivateKFold, private_cross_val_score

# --- folds


def test_folds_partition_and_do_not_move_others():
    folds = list(PrivateKFold(3).split(X, Y))
    for rows in (*folds, [test for _, test in folds]):
        assert sorted(np.concatenate(rows)) == list(range(N))
    # The fold of a record is the same whoever comes behind it: seeded, one row more at the end.
    seeded = PrivateKFold(4, random_state=7)
    first = [set(test) for _, test in seeded.split(X)]
    fewer = [set(test) for _, test in seeded.split(X.iloc[:-1])]
    assert all(b == a - {N - 1} for a, b in zip(first, fewer, strict=True))


def test_folds_are_uniform_and_differ_between_calls():
    folds = PrivateKFold(4)
    sizes = np.array([[len(test) for _, test in folds.split(X)] for _ in range(50)])
    chi2 = ((sizes.sum(axis=0) - 25_000) ** 2 / 25_000).sum()
    assert chi2 < 40.2  # 3 degrees of freedom: false alarm 1e-8
    assert len({tuple(row) for row in sizes.tolist()}) > 10
    for bad in (1, 2.5, True, "3"):
        with pytest.raises((TypeError, ValueError), match="n_splits"):
            PrivateKFold(bad).get_n_splits()


def test_cross_validation_charges_k_minus_one_fits_and_one_score():
    ledger = skdp.PrivacyLedger(3.5)
    score = private_cross_val_score(model(0.75, ledger=ledger), X, Y, epsilon=0.5, cv=5)
    assert ledger.spent == Fraction(7, 2)
    assert ledger.to_frame()["parts"].tolist() == ["fits=3, score=0.5"]
    assert 0.85 < score.value <= 1 and score.lower < score.value < score.upper + 1e-9
    with pytest.raises(skdp.BudgetExceededError):
        private_cross_val_score(model(0.75, ledger=ledger), X, Y, epsilon=0.5, cv=5)
    assert len(ledger.to_frame()) == 1
