"""Loops over cases fail where a case fails, and say which."""

import inspect

import pytest
from loops import narrowed, over


def test_every_case_runs_and_failures_are_named():
    seen = []

    @over("first, second", [(1, 2), (3, 3), (5, 4), (6, 6)])
    def both(first, second, fixture):
        seen.append((first, fixture))
        assert first <= second
        if first == 3:
            pytest.skip("nothing to see")
        assert first != second, "equal"

    assert list(inspect.signature(both).parameters) == ["fixture"]
    with pytest.raises(AssertionError) as caught:
        both(fixture="f")
    assert seen == [(1, "f"), (3, "f"), (5, "f"), (6, "f")]
    (note,) = caught.value.__notes__
    assert "2 of 4 cases fail" in note and "(5, 4)" in note and "(6, 6)" in note


def test_a_loop_over_nothing_fails():
    with pytest.raises(AssertionError, match="no case"):
        over("case", [])(lambda case: None)()


class Touchy:
    """Raises at one value, and at two others together."""

    n_fits = 0

    def fit(self, values):
        self.n_fits += 1
        if 71 in values:
            raise ValueError("a number too many")
        if {3, 96} <= {*values}:
            raise SystemExit


@pytest.mark.parametrize(
    ("values", "error", "named"),
    [
        (range(100), ValueError, "71"),
        ([*range(70), *range(80, 100)], SystemExit, "3, 96"),
        ([96, 3], SystemExit, "96, 3"),
        ([71], ValueError, "71"),
    ],
)
def test_the_value_that_raises_is_named(values, error, named):
    touchy = Touchy()
    with pytest.raises(error) as caught:
        narrowed(touchy.fit, values)
    assert caught.value.__notes__ == [f"It raises with {named} alone."]
    assert touchy.n_fits < 60
