"""Dense tables and their boxes, kernels without noise, and queries of one product of weights."""

import math

import numpy as np
from hypothesis import strategies as st
from scipy.special import ndtri

import skdp
from skdp.algorithms import dpcube, privtree
from skdp.hierarchy import budget
from skdp.release import Boxes, BoxModel, Intervals, Query
from skdp.tables import CountTable


def as_table(cells):
    occupied = np.argwhere(cells > 0)
    return CountTable.from_codes(occupied, cells.shape, cells[tuple(occupied.T)])


def slices(lower, upper):
    return tuple(slice(a, b) for a, b in zip(lower, upper, strict=True))


def corners(boxes):
    """The ends of each box, as tuples."""
    ends = zip(boxes.lower.tolist(), boxes.upper.tolist(), strict=True)
    return [(tuple(lower), tuple(upper)) for lower, upper in ends]


def random_boxes(shape, n_boxes, generator):
    """A partition by random cuts."""
    lower, upper = [np.zeros(len(shape), dtype=int)], [np.array(shape)]
    while len(lower) < n_boxes:
        i = int(generator.integers(len(lower)))
        open_axes = np.flatnonzero(upper[i] - lower[i] > 1)
        if not len(open_axes):
            continue
        axis = generator.choice(open_axes)
        cut = generator.integers(lower[i][axis] + 1, upper[i][axis])
        lower.append(lower[i].copy())
        upper.append(upper[i].copy())
        lower[-1][axis] = upper[i][axis] = cut
    return Boxes(np.array(lower), np.array(upper))


def one_box_each(domain, counts, law=None):
    """A synopsis with one box for each cell."""
    lower = np.indices(domain.shape).reshape(len(domain.shape), -1).T
    model = BoxModel(Boxes(lower, lower + 1), np.ravel(counts), domain.shape, law)
    return skdp.Synopsis(domain, model)


def expanded(boxes, counts, shape):
    """Expected count of every cell."""
    cells = np.zeros(shape)
    for low, high, count in zip(boxes.lower, boxes.upper, counts, strict=True):
        cells[slices(low, high)] += count / math.prod((high - low).tolist())
    return cells


def weighted(cells, weights):
    """Cells times weights of the codes of some axes."""
    for axis, vector in weights.items():
        cells = cells * vector.reshape([-1 if a == axis else 1 for a in range(cells.ndim)])
    return cells


@st.composite
def dense_tables(draw, least=0, largest=40, most_side=6):
    shape = tuple(draw(st.lists(st.integers(1, most_side), min_size=1, max_size=3)))
    count = st.one_of(st.just(0), st.integers(least, 3), st.integers(least, largest))
    n_cells = math.prod(shape)
    cells = draw(st.lists(count, min_size=n_cells, max_size=n_cells))
    return np.array(cells, dtype=np.int64).reshape(shape)


class Recorder:
    """Stands for `discrete_laplace`: adds no noise and remembers what it was asked."""

    def __init__(self):
        self.calls = []

    def __call__(self, values, epsilon, sensitivity=1, *, random_state=None):
        self.calls.append((np.array(values), epsilon, sensitivity))
        return np.array(values, dtype=np.int64)

    def above_threshold(self, values, epsilon, threshold, *, random_state=None):
        return self(values, epsilon) > threshold


def quieted(monkeypatch):
    """No noise in the kernels; the calls are recorded."""
    recorder = Recorder()
    monkeypatch.setattr(privtree, "discrete_laplace", recorder)
    monkeypatch.setattr(privtree, "above_threshold", recorder.above_threshold)
    for module in (dpcube, budget):
        monkeypatch.setattr(module, "discrete_laplace", recorder)
    return recorder


WIDE = skdp.Domain({f"c{i}": skdp.Numeric(0, 1, bins=10) for i in range(12)})


# ------------------------------------------------------------------------------------------------
# Queries of single products of weights, and noise of known variances.


def asked(products):
    """Queries of one product of weights each."""
    return [Query((each,)) for each in products]


def random_query(rng, shape):
    """Weights of any sign, shares, ranges that end inside a code and single codes of some axes."""
    weights = {}
    for axis in sorted(rng.permutation(len(shape))[: rng.integers(len(shape) + 1)].tolist()):
        codes, size = np.arange(shape[axis]), shape[axis]
        upto = np.clip(rng.uniform(0, size) - codes, 0, 1)
        kinds = rng.random(size), rng.normal(size=size), upto, codes == rng.integers(size)
        weights[axis] = np.asarray(kinds[rng.integers(4)], dtype=float)
    return Query((weights,))


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

    def reach(self, cut, counts, alpha):
        width = -float(ndtri(alpha / 2)) * math.sqrt(float(cut[0] ** 2 @ self.variance))
        return width, width
