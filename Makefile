# Each target makes its own virtual environment in .venv and installs what it needs; nothing has to be set up before.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-lowest lint clean

demo: .venv/.demo
	@$(BIN)/robustrag demo

test: .venv/.dev lint
	$(BIN)/python -m pytest -q -n auto --dist loadfile || $(BIN)/python -m pytest -q --last-failed  # alone, as clocks matter to some

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The core and the integrations against the oldest libraries that they support, without torch. (torch 2.6.0 and
# transformers 5.0.0 take gigabytes; the same tests passed with them on Python 3.10.)
LOWEST := -m pip install --quiet --disable-pip-version-check -e . --group test pytest-xdist
CORE_LOWEST := numpy==1.26.0 spacy==3.8.16 tenacity==8.3.0 bm25s==0.3.0 pypdf==5.1.0 langchain-text-splitters==0.3.8 \
	openai==1.60.0 opentelemetry-api==1.27.0 opentelemetry-sdk==1.27.0 matplotlib==3.9.0 tqdm==4.66.0 fpdf2
CORE_TESTS := $(addprefix tests/,$(addsuffix .py,defenses/test_front_door plans/test_drivers models/test_callable_model \
	corpus/test_corpus models/server/test_openai_model defenses/decoding/test_token_choice test_metrics plans/test_watch \
	keywords/test_keywords docs/test_threat_model))
test-lowest:
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-core/bin/python $(LOWEST) $(CORE_LOWEST)
	.venv-core/bin/python -m pytest -q -n auto $(CORE_TESTS)
	.venv-core/bin/python -m pip install --quiet --disable-pip-version-check openai==3.52.0  # another HTTP library
	.venv-core/bin/python -m pytest -q tests/models/server/test_openai_model.py
	$(PYTHON) -m venv .venv-langchain
	.venv-langchain/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-langchain/bin/python $(LOWEST) langchain-core==1.0.0 langchain==1.0.0 langchain-classic==1.0.0 \
		langchain-tests==1.0.0 langgraph==1.0.10 langgraph-checkpoint==3.0.1
	.venv-langchain/bin/python -m pytest -q -n auto tests/langchain
	$(PYTHON) -m venv .venv-llamaindex
	.venv-llamaindex/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-llamaindex/bin/python $(LOWEST) llama-index-core==0.13.0
	.venv-llamaindex/bin/python -m pytest -q -n auto tests/llamaindex

clean:
	rm -rf .venv .venv-*

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
