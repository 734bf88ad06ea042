# Everything here works from a bare checkout with python3 and make.
PYTHON ?= python3
# Where torch comes from: builds for the CPU only. For CUDA: make TORCH_INDEX= test
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
JOBS ?= 2

BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo

.PHONY: help test lint format demo bench docs site clean

help:
	@echo "make test    run the linters, the type checker and all tests"
	@echo "make demo    train a small network; results go to demo_output/"
	@echo "make bench   measure speed"
	@echo "make docs    regenerate stubs and the tables of operators and variables"
	@echo "make site    build the documentation site in build/site"
	@echo "make format  format the code"
	@echo "make clean   remove what the other commands made"

.venv: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $(READY)

# The demo needs little: a whole environment is used if it is there.
$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[demo]'
	@touch $(DEMO)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS)

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(if $(wildcard $(READY)),$(READY),$(DEMO))
	$(BIN)/python examples/demo.py

bench: $(READY)
	$(BIN)/python -m benchmarks.run

docs: $(READY)
	$(BIN)/python -m tools.stubs
	$(BIN)/python -m tools.operator_table
	$(BIN)/python -m tools.env_table

site: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q

clean:
	rm -rf .venv build dist demo_output .pytest_cache .ruff_cache
	find mxnet tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
