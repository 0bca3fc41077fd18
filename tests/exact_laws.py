"""Exact output distributions on tiny domains, for differences that sampling would miss."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import stats

from skdp._random import NoiseSource


def law_of_permute_and_flip(scores, r):
    pass_ = [r ** (max(scores) - q) for q in scores]
    law = []
    for i in range(len(scores)):
        passed = [1]  # law of the number of others that pass
        for j, p in enumerate(pass_):
            if j != i:
                passed = [
                    (1 - p) * a + p * b for a, b in zip([*passed, 0], [0, *passed], strict=True)
                ]
        law.append(pass_[i] * sum(Fraction(1, m + 1) * a for m, a in enumerate(passed)))
    return dict(enumerate(law))


def fit(seen, law):
    outcomes = sorted(law)
    assert set(seen) <= set(outcomes)
    size = sum(seen.values())
    expected = np.array([float(law[o]) for o in outcomes]) * size
    counts = np.array([seen.get(o, 0) for o in outcomes])
    keep = expected > 20
    counts = np.append(counts[keep], counts[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] < 20:
        counts[-2] += counts[-1]
        expected[-2] += expected[-1]
        counts, expected = counts[:-1], expected[:-1]
    return stats.chisquare(counts, expected * size / expected.sum()).pvalue


class ScriptedSource(NoiseSource):
    """Hands out the given words, and counts those asked for."""

    def __init__(self, words):
        super().__init__()
        self.script = [int(word) for word in words]
        self.taken = 0

    def _take(self, count):
        self.taken += count
        words, self.script = self.script[:count], self.script[count:]
        assert len(words) == count, "the script has run out"
        return np.array(words, dtype=np.uint64)
