"""What is known of the objects of others: who wrote them, and which generators they share."""

import copy
import random

import numpy as np
import pytest
from pipelines import model, release
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp._foreign import is_held, library, replaced, shared_generators

GLOBAL = np.random.RandomState(0)
NESTED = {"deep": [random.Random(0)]}


class Subclass(OneHotEncoder):
    pass


class Borrowed(StandardScaler):
    pass


Borrowed.__module__, Borrowed.__qualname__ = "sklearn.preprocessing", "Binarizer"


def patched(estimator, name="fit"):
    setattr(estimator, name, lambda *args, **kwargs: estimator)
    return estimator


def test_libraries():
    assert library(StandardScaler()) == "sklearn" and library(release()) == "skdp"
    assert library(Borrowed()) == "" and library(Subclass()) == __name__.partition(".")[0]
    assert is_held(StandardScaler) and is_held(Subclass) and not is_held(Borrowed)


def test_instances():
    assert replaced(StandardScaler().fit([[1.0]])) == "" == replaced(model())
    assert replaced(patched(LinearRegression())) == "fit"
    assert replaced(patched(model(), "classes_")) == ""


class OfTheClass(LinearRegression):
    generator = np.random.default_rng(0)


class OfTheMethod(LinearRegression):
    def fit(self, X, y):
        return [GLOBAL.random() for _ in X]


class OfTheHelper(LinearRegression):
    def fit(self, X, y):
        return helper()


def helper(default=random.Random(0)):  # noqa: B008
    return [lambda: NESTED["deep"][0].random(), default]


def closes_over(generator):
    return lambda X: generator.random()


@pytest.mark.parametrize(
    "make, n_shared",
    [
        (LinearRegression, 0),
        (OfTheClass, 1),
        (OfTheMethod, 1),
        # In a default, and in a list in a dict that a function within it names.
        (OfTheHelper, 2),
        (lambda: closes_over(random.Random(0)), 1),
        (lambda: np.array([closes_over(np.random.default_rng(0))]), 1),
        # Copies have generators of their own.
        (lambda: [np.random.default_rng(0), {"a": random.Random(0)}], 0),
        (lambda: LinearRegression().set_params(n_jobs=GLOBAL), 0),
    ],
)
def test_generators_that_copies_share(make, n_shared):
    one = make()
    shared = shared_generators(one, copy.deepcopy(one))
    assert len(shared) == n_shared
    assert all(hasattr(each, "random") for each in shared)
