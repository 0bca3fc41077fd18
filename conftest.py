"""What every test shares. pytest also collects examples of docstrings; scripts are not modules.

A failure of the default run is never luck. Property tests repeat their examples, and each test
draws the same "system" entropy at every run, derived from its name, as do the fixtures that tests
share. Nothing else is changed: a source without a seed still says so. Other processes draw from the
operating system, and so does everything under `pytest --hypothesis-profile=search`, which looks for
new counterexamples.
"""

import contextlib
import os
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from skdp import _random
from skdp.base import SAID

# Said once in a process, whichever test is the first.
SAID.update(["ledger", "score", "fit_transform"])

collect_ignore = ["skdp/__main__.py"]

# No property test looks at a clock, which on a busy machine says nothing of a test.
CLOCKS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeat", derandomize=True, **CLOCKS)
settings.register_profile("search", max_examples=1000, **CLOCKS)
settings.load_profile("repeat")


# Modules of tests that hold no tests.
collect_ignore += [
    str(path) for path in Path("tests").rglob("*.py") if not path.name.startswith("test_")
]

# Tests, or functions of tests, that `make test` leaves to `make test-long`; see `tests/long.py`.
LONG = {*(Path(__file__).parent / "tests" / "long.txt").read_text().splitlines()}


def pytest_addoption(parser):
    """`--times`, from which `tests/long.py` makes its list."""
    parser.addoption("--times", metavar="FILE", help="append CPU seconds and name of each test")


def pytest_collection_modifyitems(items):
    """Tests of the list are marked "long"."""
    for item in items:
        if not LONG.isdisjoint((named := name_of(item), named.partition("[")[0])):
            item.add_marker("long")


def name_of(node):
    """The id of a test or module, in whichever folder of `tests` its file lies."""
    file, colons, test = node.nodeid.partition("::")
    folder, _, name = file.rpartition("/")
    return f"tests/{name}{colons}{test}" if folder.startswith("tests/") else node.nodeid


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """CPU seconds of a test with its fixtures and the processes that it started."""
    before = sum(os.times()[:4])
    result = yield
    if file := item.config.getoption("--times"):
        with open(file, "a") as times:
            times.write(f"{sum(os.times()[:4]) - before:.2f} {name_of(item)}\n")
    return result


@contextlib.contextmanager
def entropy_of(name, config):
    """Entropy that depends on a name alone, whatever ran before."""
    if config.getoption("--hypothesis-profile", None) == "search":
        yield
        return
    bits, system, here = seeded(name), _random._entropy, _random.process_mark()

    def entropy(count):
        # A fork has a copy of these bits, so it must not use them.
        return bits.random_raw(count) if _random.process_mark() == here else system(count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_random, "_entropy", entropy)
        # A new source, without what others left in the buffer.
        patch.setattr(_random, "_SYSTEM", _random.NoiseSource())
        yield


def seeded(name):
    """Random bits for skdp; scikit-learn draws from NumPy's global generator without a seed."""
    seed = crc32(name.encode())
    np.random.seed(seed)  # noqa: NPY002
    return _random.seeded_bits(seed)


@pytest.fixture(autouse=True)
def repeated_entropy(request):
    """Entropy that repeats with the name of the test."""
    with entropy_of(name_of(request.node), request.config):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Fixtures that tests share do not depend on the test that asks first."""
    if fixturedef.scope == "function":
        return (yield)
    with entropy_of(f"{name_of(request.node)} {fixturedef.argname}", request.config):
        return (yield)
