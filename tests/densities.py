"""Random densities over small domains, and their joint tables by definition."""

import itertools
import math

import numpy as np
from scipy.special import ndtri

from skdp.release import Intervals, PairTable, Query, TreeDensity, TreeModel, couple


def asked(products):
    """Queries of one product of weights each."""
    return [Query((each,)) for each in products]


def reach_of(model, weights, level):
    """Standard deviation of an answer, how far it may be off below and above, and what that is."""
    found = model.reach(asked([weights]), level)
    return found.std[0], found.below[0], found.above[0], found.guarantee


def random_forest(rng, shape, *, grouped=(), zeros=False):
    """A density of random views, each attribute joined to an earlier one with a probability."""
    groups = {axis: np.arange(shape[axis]) // 2 for axis in grouped}
    marginals = []
    for size in shape:
        mu = rng.gamma(1.0, size=size)
        if zeros and size > 1:
            mu[rng.integers(size)] = 0.0
        marginals.append(mu / mu.sum())
    bare = TreeDensity(marginals, (), groups)
    edges = []
    for node in range(1, len(shape)):
        if rng.random() < 0.85:
            other = int(rng.integers(node))
            table = rng.gamma(0.5, size=(bare.sizes[other], bare.sizes[node]))
            table = couple(table, bare.grouped[other], bare.grouped[node])
            edges.append(PairTable((other, node), table))
    return TreeDensity(marginals, edges, groups)


def dense(forest):
    """The joint table of all attributes, by the definition of the density."""
    shape = [len(mu) for mu in forest.marginals]
    table = np.ones(shape)
    for codes in itertools.product(*(range(size) for size in shape)):
        value = math.prod(forest.marginals[axis][code] for axis, code in enumerate(codes))
        for edge in forest.edges:
            a, b = (
                int(forest.groups[axis][codes[axis]]) if axis in forest.groups else codes[axis]
                for axis in edge.axes
            )
            bottom = forest.grouped[edge.axes[0]][a] * forest.grouped[edge.axes[1]][b]
            value *= edge.table[a, b] / bottom if bottom > 0 else 0.0
        table[codes] = value
    return table


def by_tree(tree):
    """A model whose one row is too few to be drawn from, so that the tree serves."""
    row = np.zeros((1, len(tree.marginals)), dtype=np.int32)
    return TreeModel(tree, 1.0, rows=row, row_weights=np.ones(1))


class GaussianNoise(Intervals):
    """Noise of known variances, its sum as Gaussian: intervals whose ends are easy to say."""

    def __init__(self, variance):
        super().__init__()
        self.variance = np.array(variance, dtype=float)

    def variances(self, n_boxes):
        return self.variance

    def reach(self, cut, alpha, exact=True):
        width = -float(ndtri(alpha / 2)) * math.sqrt(float(cut.mean**2 @ self.variance))
        return width, width, "known variances, their sum as Gaussian"
