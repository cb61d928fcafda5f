# Each target makes its own virtual environment in .venv and installs what it needs; nothing has to be set up before.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-lowest lint clean

demo: .venv/.demo
	@$(BIN)/robustrag demo

test: .venv/.dev lint
	$(BIN)/python -m pytest -q

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The integrations against the oldest frameworks that they support, without torch.
LOWEST := -m pip install --quiet --disable-pip-version-check -e . --group test
test-lowest:
	$(PYTHON) -m venv .venv-langchain
	.venv-langchain/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-langchain/bin/python $(LOWEST) langchain-core==1.0.0 langchain==1.0.0 langchain-classic==1.0.0 \
		langchain-tests==1.0.0 langgraph==1.0.10 langgraph-checkpoint==3.0.1
	.venv-langchain/bin/python -m pytest -q tests/langchain
	for version in 0.13.0 0.14.0; do \
		$(PYTHON) -m venv .venv-llamaindex-$$version && \
		.venv-llamaindex-$$version/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip && \
		.venv-llamaindex-$$version/bin/python $(LOWEST) llama-index-core==$$version && \
		.venv-llamaindex-$$version/bin/python -m pytest -q tests/llamaindex || exit 1; \
	done

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
