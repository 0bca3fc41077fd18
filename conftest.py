"""pytest collects docstring examples from the package; scripts are not modules to import."""

from hypothesis import HealthCheck, settings

collect_ignore = ["skdp/demo.py", "skdp/__main__.py"]

# Property tests repeat themselves, so that a failure of the default run is never luck;
# `pytest --hypothesis-profile=search` looks for new counterexamples.
# Neither looks at a clock, which on a busy machine says nothing of a test.
CLOCKS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeat", derandomize=True, **CLOCKS)
settings.register_profile("search", max_examples=1000, **CLOCKS)
settings.load_profile("repeat")
