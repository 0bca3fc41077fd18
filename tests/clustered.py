"""What tests of k-means share: tasks, sources with seeds, and noise that is none."""

from fractions import Fraction

import numpy as np
import pytest

from skdp._random import noise_source, sampling_generator
from skdp.algorithms.kmeans.algorithms import algorithm_parts
from skdp.algorithms.kmeans.lloyd import Task
from skdp.exceptions import InsecureSeedWarning

EXACT = Fraction(10_000)  # so much budget that noise is zero


def seeded(seed):
    with pytest.warns(InsecureSeedWarning):
        return noise_source(seed)


def points_in(shape, n, seed):
    generator = np.random.default_rng(seed)
    return (generator.random((n, len(shape))) * shape).astype(np.int32)


def make_task(points, shape, k=3, algorithm="auto", epsilon=Fraction(1), seed=0, **changes):
    source = seeded(seed)
    n_records = changes.pop("n_records", None)
    given = {
        "points": points,
        "shape": shape,
        "clusters": (k,),
        "parts": algorithm_parts(algorithm, epsilon, n_records),
        "n_records": n_records,
        "n_init": 6,
        "n_rounds": None,
        "init": None,
        "source": source,
        "generator": sampling_generator(source),
    }
    return Task(**{**given, **changes})
