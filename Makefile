# Each target makes its own virtual environment in .venv and installs what it needs; nothing has to be set up before.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint clean

demo: .venv/.demo
	@$(BIN)/robustrag demo

test: .venv/.dev lint
	$(BIN)/python -m pytest -q

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

.venv/.demo: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing into .venv (torch and spaCy take a minute or two) ..."
	$(PIP) -e '.[cli,local]'
	@touch $@

.venv/.dev: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing into .venv (torch, spaCy and the frameworks take a few minutes) ..."
	$(PIP) -e '.[all]' --group dev
	@touch $@ .venv/.demo
