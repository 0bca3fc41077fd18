"""GBLUE and Boost against the closed form."""

import numpy as np
import pytest
from hypothesis import given, settings
from loops import over
from measured_trees import measured_trees

from skdp import hierarchy
from skdp.hierarchy import Blue


@settings(max_examples=40)
@given(measured_trees(exact=False, largest=12, spread=4.0))
def test_gblue_converges_to_blue(case):
    tree, values, variances = case
    blue = Blue(tree, variances)
    found, _ = hierarchy.gblue(tree, values, variances, tol=1e-9)
    known = np.isfinite(blue.variances)
    np.testing.assert_allclose(found[known], blue.estimate(values)[known], atol=1e-6)
    assert np.isfinite(found).all()
    # As in the paper: equal variances.
    equal, _ = hierarchy.gblue(tree, values, tol=1e-9)
    np.testing.assert_allclose(equal, Blue(tree, np.ones(tree.n_nodes)).estimate(values), atol=1e-6)


def test_gblue_says_when_it_stops_early():
    tree = hierarchy.perfect_tree(2, 6)
    values = np.arange(tree.n_nodes) % 7
    with pytest.warns(RuntimeWarning, match="3 sweeps"):
        assert hierarchy.gblue(tree, values, max_sweeps=3)[1] == 3
    with pytest.raises(ValueError, match="positive"):
        hierarchy.gblue(tree, values, tol=0)
    with pytest.raises(ValueError, match="cannot have 9 nodes"):
        hierarchy.boost(np.zeros(9), 2)


@over("branching, height", [(2, 0), (2, 5), (3, 3), (12, 2)])
def test_boost_is_blue_on_perfect_trees(branching, height):
    tree = hierarchy.perfect_tree(branching, height)
    values = np.random.default_rng(0).normal(size=tree.n_nodes)
    np.testing.assert_allclose(
        hierarchy.boost(values, branching),
        Blue(tree, np.ones(tree.n_nodes)).estimate(values),
        atol=1e-10,
    )
