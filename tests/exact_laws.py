"""Exact output distributions on tiny domains, for differences that sampling would miss."""

import math
from fractions import Fraction

import numpy as np
from scipy import stats

from skdp._random import NoiseSource


def exact_exp(exponent, bits=400):
    """exp(-exponent) as a fraction, off by less than 2**-bits, by its Taylor series."""
    halvings = max(0, math.ceil(exponent).bit_length())
    x = exponent / 2**halvings
    digits = bits + 2 * halvings + 40
    one = 1 << digits
    term, total, k = one, one, 0
    while term:
        k += 1
        term = term * x.numerator // (x.denominator * k)
        total += -term if k % 2 else term
    for _ in range(halvings):
        total = total * total >> digits
    return Fraction(total, one)


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


def product(factors):
    """Coefficients of the product of the polynomials 1 - c y."""
    coefficients = [1]
    for c in factors:
        shifted = [0, *(-c * x for x in coefficients)]
        coefficients = [a + b for a, b in zip([*coefficients, 0], shifted, strict=True)]
    return coefficients


def series(r, start, coefficients, power):
    """Sum over v >= start of y**power * polynomial(y) at y = r**v."""
    return sum(
        a * r ** (start * (m + power)) / (1 - r ** (m + power)) for m, a in enumerate(coefficients)
    )


def law_of_noisy_max(scores, r):
    start = max(scores)
    law = []
    for i, score in enumerate(scores):
        # Others stay at v or, with a lower index, below it: 1 - r**(v + 1 - q) or 1 - r**(v - q).
        factors = [r ** ((j > i) - q) for j, q in enumerate(scores) if j != i]
        law.append((1 - r) * r**-score * series(r, start, product(factors), 1))
    return dict(enumerate(law))


def probability_of_split(b, r):
    """P(b + N > 0) for discrete Laplace noise of ratio r."""
    return r ** (1 - b) / (1 + r) if b <= 0 else 1 - r**b / (1 + r)


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
