"""Queries of single products of weights, and noise of known variances."""

import math

import numpy as np
from scipy.special import ndtri

from skdp.release import Intervals, Query


def asked(products):
    """Queries of one product of weights each."""
    return [Query((each,)) for each in products]


def reach_of(model, weights, level):
    """Standard deviation of an answer, how far it may be off below and above, and what that is."""
    found = model.reach(asked([weights]), level)
    return found.std[0], found.below[0], found.above[0], found.guarantee


class GaussianNoise(Intervals):
    """Noise of known variances, its sum as Gaussian: intervals whose ends are easy to say."""

    def __init__(self, variance):
        super().__init__()
        self.variance = np.array(variance, dtype=float)

    def variances(self, n_boxes):
        return self.variance

    def reach(self, cut, alpha):
        width = -float(ndtri(alpha / 2)) * math.sqrt(float(cut.mean**2 @ self.variance))
        return width, width
