"""pytest collects docstring examples from the package; scripts are not modules to import."""

collect_ignore = ["skdp/demo.py", "skdp/__main__.py"]
