# Each target makes its own virtual environment in .venv and installs what it needs; nothing has to be set up before.
PYTHON ?= python3
BIN := .venv/bin
export PYTHON
# What containers often set. Tests start hundreds of programs: each would compile thousands of modules again with the
# one, and hide that it does not flush what it prints with the other.
unexport PYTHONDONTWRITEBYTECODE
unexport PYTHONUNBUFFERED
INSTALL := .ci/install
tests = $(1) -m pytest -q -n auto --dist worksteal $(2)

.PHONY: demo check docs notebooks test test-lowest test-installs lint release clean

demo: .venv/.demo
	@$(BIN)/robustrag demo

# Two minutes on two cores: everything but what takes long (tests/slow.txt), every room included.
check: .venv/.dev lint
	$(call tests,$(BIN)/python,--quick)

# In an order that was drawn once, so that a red run can be had again: no test may need what another one left behind.
# `make test ORDER=any` draws another one, which the last lines name.
ORDER ?= 259834
test: .venv/.dev lint
	$(call tests,$(BIN)/python,--shuffle $(ORDER))

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation site, in build/site/html; a warning or a link that leads nowhere is an error. CI builds it in a test.
docs: .venv/.dev
	$(BIN)/python -m docs.site

# The core, its servers and the integrations against the oldest libraries that they support, without torch and
# transformers, which take gigabytes.
LOWEST := -e . --group test pytest-xdist
CORE_LOWEST := idna==3.15 numpy==1.26.0 packaging==23.2 spacy==3.8.16 bm25s==0.3.0 pypdf==6.16.1 langchain-text-splitters==1.1.2 \
	beautifulsoup4==4.13.3 lxml==6.1.0 markdownify==1.2.0 python-docx==1.1.2 openpyxl==3.1.2 \
	httpx==0.27.0 scipy==1.15.0 tqdm==4.66.3 pyyaml==6.0.1 \
	starlette==1.3.1 uvicorn==0.30.0 h11==0.16.0 anyio==4.4.0 pydantic==2.11.0 jinja2==3.1.6 fpdf2
CORE_TESTS := $(addprefix tests/,$(addsuffix .py,defenses/test_front_door plans/test_drivers models/test_callable_model \
	corpus/test_corpus models/server/test_openai_model defenses/decoding/test_token_choice certification/test_metrics plans/test_watch \
	text/test_spacy_extractor text/test_words))
# The same for safety: hostile words, responses, files and servers' replies, failing functions.
CORE_TESTS += $(addprefix tests/,$(addsuffix .py,text/test_crafted_words \
	corpus/test_hostile_files corpus/test_pages_and_word_files models/server/test_hostile_replies models/test_caller package/test_redaction \
	defenses/test_failing_functions defenses/test_hostile_input fuzz/test_fuzz _util/test_yaml_files \
	serve/test_hostile_requests serve/test_connections))
test-lowest:
	$(INSTALL) .venv-core $(LOWEST) $(CORE_LOWEST)
	$(call tests,.venv-core/bin/python,$(CORE_TESTS))
	$(INSTALL) .venv-langchain $(LOWEST) langchain-core==1.4.0 langchain==1.3.1 langchain-classic==1.0.7 \
		langchain-tests==1.0.0 langgraph==1.2.0
	$(call tests,.venv-langchain/bin/python,tests/contract tests/langchain)
	$(INSTALL) .venv-llamaindex $(LOWEST) llama-index-core==0.14.20
	$(call tests,.venv-llamaindex/bin/python,tests/contract tests/llamaindex)

# Every snippet and every example with what its install line names, and nothing else (tests/installs).
test-installs:
	rm -rf .venv-installs
	$(INSTALL) .venv-installs/environments/none pip
	.venv-tools/bin/python -m pip download --quiet -c constraints.txt -d .venv-installs/wheels torch
	.venv-tools/bin/python -m pip wheel --quiet --no-deps -w .venv-installs/wheels .
	$(PYTHON) -m tests.installs

# Two examples as notebooks, in build/notebooks; a test runs them.
notebooks: .venv/.dev
	$(BIN)/python -m docs.notebooks

# Wheel and source distribution in dist/, with the bill of materials of an install with all extras, the hashes of every
# dependency, and those of the files themselves, checked: metadata, contents, licences, size, versions that agree. Nothing
# runs but what .ci/release.txt pins by its hash: neither the dependencies nor another version of a tool.
RELEASE := .venv-release/bin
release:
	rm -rf dist .venv-release
	$(PYTHON) -m venv .venv-release
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r .ci/release.txt
	$(RELEASE)/python -m hatchling build
	$(RELEASE)/twine check --strict dist/*
	$(RELEASE)/uv pip compile --quiet --universal --generate-hashes --all-extras --no-annotate --no-header \
		-c constraints.txt -o dist/requirements.txt pyproject.toml
	$(RELEASE)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible -o dist/sbom.cdx.json dist/requirements.txt
	cd dist && sha256sum * >SHA256SUMS
	PYTHONPATH=. RELEASE=dist $(RELEASE)/python -m pytest -q tests/package/test_release.py

clean:
	rm -rf .venv .venv-*

# torch comes first and through pip: pip's configuration may say where to find builds of it that uv does not look for.
.venv/.torch: pyproject.toml constraints.txt
	@echo "installing into .venv (torch, spaCy and the frameworks take a minute or two) ..."
	$(INSTALL) .venv --with-pip -c constraints.txt --no-compile pip torch
	@touch $@

.venv/.demo: .venv/.torch
	$(INSTALL) .venv -c constraints.txt -e '.[cli,local]'
	@touch $@

.venv/.dev: .venv/.torch
	$(INSTALL) .venv -c constraints.txt -e '.[all]' --group dev
	@touch $@ .venv/.demo
