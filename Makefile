# The commands of the README. Needs python3 (3.11 or newer) and make; everything else goes into .venv and var/.
# PYTHON names another interpreter; DEMO=0 leaves out the demo memory; PORT and BIND say where to listen.

SHELL := /bin/sh
PYTHON ?= python3
PY := .venv/bin/python
export PYTHON

.PHONY: run test lint bench docs openapi requirements clean venv venv-dev

run: venv
	@exec $(PY) -m memory_platform.run

test: venv-dev
	@scripts/test

lint: venv-dev
	@scripts/lint

bench: venv-dev
	@exec $(PY) -m benchmarks

docs: venv-dev
	@$(PY) -m scripts.check_docs
	@$(PY) -m mkdocs build --quiet --strict
	@echo "site/index.html"

openapi: venv
	@exec $(PY) -m scripts.write_openapi

requirements: venv-dev
	@scripts/compile_requirements

clean:
	@scripts/clean

venv:
	@scripts/venv base

venv-dev:
	@scripts/venv base dev
