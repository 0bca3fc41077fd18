"""Forks of the process of the tests."""

import multiprocessing
import warnings
from collections.abc import Callable
from typing import Any

import pytest

FORKS = "fork" in multiprocessing.get_all_start_methods()
needs_fork = pytest.mark.skipif(not FORKS, reason="the platform does not fork")


def in_children(work: Callable[[], Any], n: int = 1) -> list[Any]:
    """What ``work`` returns in forks of this process, ``n`` at once; nothing where one dies."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    children = [context.Process(target=lambda: results.put(work())) for _ in range(n)]
    with warnings.catch_warnings():
        # Newer Python warns of forking beside threads, such as those of linear algebra.
        warnings.simplefilter("ignore", DeprecationWarning)
        for child in children:
            child.start()
    for child in children:
        child.join()
    return [results.get() for child in children if child.exitcode == 0]
