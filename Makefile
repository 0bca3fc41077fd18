# Needs only Python (3.11 or newer), pip and make. Every target creates the environment it uses.
PYTHON ?= python3
NEWEST ?= python3.14
# Test workers: a core each, at most eight, which need about 1 GB each.
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 8 ] && echo $$n || echo 8)
# All but the tests of tests/long.txt, and slow ones, which are run by hand.
QUICK = -m 'not long and not slow'

# Tests and docs draw plots without a display.
export MPLBACKEND ?= agg
# On a busy machine, OpenMP threads spend most of their time waiting for each other.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test test-long test-page test-oldest test-newest test-spark audit baseline reproduce mutants lint prose format docs notebooks site-check wizard-check dist clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo         make a private release of real records, query it, train on it'
	@echo 'make test         lint, prose, types and quick tests with the newest dependencies'
	@echo 'make test-long    the tests that take longer than 0.3 seconds'
	@echo 'make test-oldest  quick tests with the oldest dependencies that are supported'
	@echo 'make test-newest  quick tests with the newest Python that is supported'
	@echo 'make test-spark   the tests of PySpark, which need Java'
	@echo 'make audit        replay every estimator'
	@echo 'make baseline     measure a few figures again; any that changed is an error (a minute)'
	@echo 'make reproduce    draw every figure of the five works again, which takes long'
	@echo 'make mutants      break every call of a mechanism; the tests must fail (an hour)'
	@echo 'make docs         build the documentation; warnings and broken links are errors'
	@echo 'make notebooks    run the notebooks; an error in one is an error'
	@echo 'make site-check   open every page of it in Chromium, if installed'
	@echo 'make test-page    ask the page of a release in Chromium, if installed'
	@echo 'make wizard-check go through the wizard in Chromium, if installed'
	@echo 'make dist         build wheel and sdist twice, check them, install and test the wheel'
	@echo 'make lint         ruff, ruff format and mypy only'
	@echo 'make prose        spelling and grammar of docs, README and docstrings'
	@echo 'make format       apply ruff fixes and ruff format'
	@echo 'make clean        remove environments and everything built'

# What goes into each environment.
.venv-demo/complete: INSTALL = --editable '.[demo]'
.venv/complete: INSTALL = --editable '.[test,dev]'
.venv-oldest/complete: INSTALL = --editable '.[test]' --constraint requirements-oldest.txt
.venv-newest/complete: INSTALL = --editable '.[test]'
# Only this one has PySpark.
.venv-spark/complete: INSTALL = --editable '.[test,spark]'
.venv-docs/complete: INSTALL = --editable '.[docs]'
.venv-site/complete: INSTALL = 'playwright>=1.45'
.venv-dist/complete: INSTALL = 'build>=1.2' 'twine>=6' 'cffconvert>=2.0' 'hatchling>=1.27' 'hatch-fancy-pypi-readme>=24.1'
.venv-wheel/complete .venv-wheel-newest/complete: INSTALL = dist/*.whl
.venv-oldest/complete: requirements-oldest.txt
.venv-newest/complete .venv-wheel-newest/complete: PYTHON = $(NEWEST)

# Some systems ship Python and pip without the venv module; virtualenv does the same job there.
.venv-demo/complete .venv/complete .venv-oldest/complete .venv-newest/complete .venv-docs/complete .venv-spark/complete \
.venv-site/complete .venv-dist/complete .venv-wheel/complete .venv-wheel-newest/complete: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "skdp needs Python 3.11 or newer: make PYTHON=...")'
	@echo 'Creating the environment $(@D), once; this takes a minute or two.'
	@rm -rf $(@D)
	@$(PYTHON) -m venv $(@D) >/dev/null 2>&1 || { rm -rf $(@D); \
	    $(PYTHON) -m pip install -qq --target $(@D)-tool virtualenv \
	    && PYTHONPATH=$(@D)-tool $(PYTHON) -m virtualenv --quiet $(@D) && rm -rf $(@D)-tool; }
	@$(@D)/bin/python -m pip install -qq --disable-pip-version-check $(INSTALL)
	@touch $@

demo: .venv-demo/complete
	.venv-demo/bin/python examples/quickstart.py skdp_demo

lint: .venv/complete
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

prose: .venv/complete
	.venv/bin/python .ci/prose.py

format: .venv/complete
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# Lint, types and prose run beside the tests; what they say is shown if they fail.
test: .venv/complete
	@mkdir -p build
	@$(MAKE) --no-print-directory lint prose >build/checks.log 2>&1 & checks=$$!; \
	    .venv/bin/python -m pytest -n $(JOBS) $(QUICK); tests=$$?; \
	    wait $$checks || { cat build/checks.log; exit 1; }; exit $$tests

test-long: .venv/complete
	.venv/bin/python -m pytest -n $(JOBS) -m 'long and not slow'

# Tests that need a library or a program that is not there say so.
test-page: .venv/complete
	@.venv/bin/python -m pip install -qq --disable-pip-version-check 'playwright>=1.45' \
	    || echo 'Playwright cannot be installed: pages are not opened in a browser.'
	.venv/bin/python -m pytest -n $(JOBS) -m slow -rs tests/release/test_page.py

test-oldest: .venv-oldest/complete
	.venv-oldest/bin/python -m pytest -n $(JOBS) $(QUICK)

# Frames of PySpark, which needs a Java runtime.
test-spark: .venv-spark/complete
	.venv-spark/bin/python -m pytest -m 'slow or not slow' -k spark tests

test-newest: .venv-newest/complete
	.venv-newest/bin/python -m pytest -n $(JOBS) $(QUICK)

audit: .venv/complete
	.venv/bin/python -c 'import skdp.audit; exit(not all(print(each) or each.passed for each in skdp.audit.replay_library()))'

# Tables whose data are not in the folder of SKDP_DATA, or in data, are left out, and it says so.
baseline: .venv/complete
	.venv/bin/python -m benchmarks.baseline --quick

# Builds the data files that it can from what was downloaded, says what is missing, and draws the rest.
reproduce: .venv/complete
	-.venv/bin/python -m benchmarks.data --build
	.venv/bin/python -m benchmarks.reproduce --all --jobs $(JOBS) --out build/figures
	.venv/bin/python -m benchmarks.reproduce --publish docs/_static/reproduction --out build/figures

mutants: .venv/complete
	.venv/bin/python tests/mutants.py

docs: .venv-docs/complete
	.venv-docs/bin/python -m sphinx -W --keep-going -b html docs docs/_build/html
	.venv-docs/bin/python docs/check_site.py docs/_build/html

notebooks: .venv-docs/complete
	rm -rf build/notebooks
	PATH=$(CURDIR)/.venv-docs/bin:$$PATH .venv-docs/bin/python -m nbconvert --log-level=WARN --execute --to notebook \
	    --output-dir build/notebooks docs/notebooks/*.ipynb

site-check: docs .venv-site/complete
	.venv-site/bin/python docs/check_site.py docs/_build/html --browser

wizard-check: .venv/complete
	@.venv/bin/python -m pip install -qq --disable-pip-version-check 'playwright>=1.45' \
	    || echo 'Playwright cannot be installed: the wizard is not opened in a browser.'
	.venv/bin/python tests/wizard_in_browser.py build/wizard-check

# The wheel is built from the sdist, so a file missing from the sdist makes this fail. Both are built again
# from the unpacked sdist and must be the same, byte by byte. The wheel is tested from another folder and in
# isolated mode, so that nothing is imported from the checkout, and with the newest Python if it is there.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
dist: .venv-dist/complete
	rm -rf dist build/again .venv-wheel .venv-wheel-newest
	mkdir -p build/again
	.venv-dist/bin/cffconvert --validate
	.venv-dist/bin/python -m build --no-isolation --outdir dist
	.venv-dist/bin/python -m twine check --strict dist/*
	tar -xf dist/*.tar.gz -C build/again
	.venv-dist/bin/python -m build --no-isolation --outdir build/again build/again/skdp-*/
	for each in dist/*; do cmp $$each build/again/$$(basename $$each) || exit 1; done
	@$(MAKE) --no-print-directory .venv-wheel/complete
	cd / && $(CURDIR)/.venv-wheel/bin/python -I $(CURDIR)/.ci/check_wheel.py $(CURDIR)/dist
	@if command -v $(NEWEST) >/dev/null; then \
	    $(MAKE) --no-print-directory .venv-wheel-newest/complete \
	    && cd / && $(CURDIR)/.venv-wheel-newest/bin/python -I $(CURDIR)/.ci/check_wheel.py $(CURDIR)/dist; \
	fi

clean:
	rm -rf .venv .venv-* build dist *.egg-info docs/_build docs/api docs/auto_examples
	rm -rf skdp_demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find skdp tests benchmarks examples docs -name __pycache__ -prune -exec rm -rf {} +
