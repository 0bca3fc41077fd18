"""What every test shares. pytest also collects examples of docstrings; scripts are not modules.

A failure of the default run is never luck. Property tests repeat their examples, and each test draws
the same "system" entropy at every run, derived from its name, in its own process. Nothing else is
changed: a source without a seed still says so. `pytest --hypothesis-profile=search` looks for new
counterexamples, with the operating system's entropy.
"""

from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from skdp import _random

collect_ignore = ["skdp/demo.py", "skdp/__main__.py"]

# No property test looks at a clock, which on a busy machine says nothing of a test.
CLOCKS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeat", derandomize=True, **CLOCKS)
settings.register_profile("search", max_examples=1000, **CLOCKS)
settings.load_profile("repeat")


@pytest.fixture(autouse=True)
def repeated_entropy(request):
    """Entropy that depends on the name of the test alone, wherever and beside whatever it runs."""
    if request.config.getoption("--hypothesis-profile", None) == "search":
        yield
        return
    seed = crc32(request.node.nodeid.encode())
    bits, system, here = _random.seeded_bits(seed), _random._entropy, _random.process_mark()

    def entropy(count):
        # A fork has a copy of these bits, so it must not use them.
        return bits.random_raw(count) if _random.process_mark() == here else system(count)

    # scikit-learn's estimators without a seed draw from NumPy's global generator.
    np.random.seed(seed)  # noqa: NPY002
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_random, "_entropy", entropy)
        # Another source, so that no test gets what the one before left in the buffer.
        patch.setattr(_random, "_SYSTEM", _random.NoiseSource())
        yield
