"""pytest collects docstring examples from the package; scripts are not modules to import."""

from hypothesis import settings

collect_ignore = ["skdp/demo.py", "skdp/__main__.py"]

# Property tests repeat themselves, so that a failure of the default run is never luck;
# `pytest --hypothesis-profile=search` looks for new counterexamples.
settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=1000, deadline=None)
settings.load_profile("repeat")
