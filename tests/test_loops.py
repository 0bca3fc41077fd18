"""Loops over cases fail where a case fails, and say which."""

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

    with pytest.raises(AssertionError) as caught:
        both(fixture="f")
    assert seen == [(1, "f"), (3, "f"), (5, "f"), (6, "f")]
    (note,) = caught.value.__notes__
    assert "2 of 4 cases fail" in note and "(5, 4)" in note and "(6, 6)" in note


def test_the_value_that_raises_is_named():
    with pytest.raises(ZeroDivisionError) as caught:
        narrowed(lambda values: [1 / value for value in values], [3, 0, 5])
    assert caught.value.__notes__ == ["Alone it raises with number 1."]
