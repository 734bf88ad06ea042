# Everything here works from a bare checkout with python3 and make.
PYTHON ?= python3
# Where torch comes from: builds for the CPU only. For CUDA: make TORCH_INDEX= test
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# On two cores: many tests wait for other processes, not for a core.
JOBS ?= 3

BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo
START := $(shell date +%s)
# Hundreds of processes import the package: without bytecode each would compile it again.
unexport PYTHONDONTWRITEBYTECODE

OLD_PROCESSOR := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 \
	MKL_ENABLE_INSTRUCTIONS=SSE4_2 OMP_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE
# What kernels compute; structure, files and processes do not depend on the instructions.
NUMERICS := tests/runtime tests/ops tests/optimizer \
	tests/graph/test_optimize.py tests/graph/test_fuse_recurrent.py \
	tests/gluon/test_golden.py tests/gluon/test_layers.py tests/gluon/test_rnn_cells.py
# The core without processes, other formats and properties of every operator: the daily loop.
QUICK := tests/runtime tests/gluon tests/graph tests/io tests/metric \
	tests/module tests/ndarray tests/numpy tests/ops tests/optimizer tests/symbol tests/state \
	$(filter-out %docs.py %docstrings.py %memory.py %runtime.py,$(wildcard tests/test_*.py))
# Tests of a file run in one process: fixtures of a module are made once. Files with slow tests
# come first (tests/conftest.py); xdist would begin with those that have many tests.
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

.PHONY: help test test-here test-quick nightly test-gpu style types lint format demo bench docs site clean

help:
	@echo "make test        run the linters, the type checker and all tests"
	@echo "make test-quick  run the quick tests of the core, for the daily loop (2 minutes)"
	@echo "make nightly     run all samples in all surroundings, and 1,000 seeds of faults (2 hours)"
	@echo "make test-gpu    run the tests of devices and operators on the GPU of this machine"
	@echo "make demo        train a small network; results go to demo_output/"
	@echo "make bench       measure speed"
	@echo "make docs        regenerate stubs and the tables of operators and variables"
	@echo "make site        build the documentation site in build/site"
	@echo "make format      format the code"
	@echo "make clean       remove what the other commands made"

.venv: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) tools/set_up.py dev --torch-index "$(TORCH_INDEX)"
	@touch $(READY)

# The demo needs little: a whole environment is used if it is there.
$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) tools/set_up.py demo --torch-index "$(TORCH_INDEX)"
	@touch $(DEMO)

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/basedpyright

lint: style types

# All tests with the instructions of this processor, types meanwhile; then numerics with the oldest
# instructions and two threads.
test: style
	@$(MAKE) --no-print-directory -j2 types test-here
	$(OLD_PROCESSOR) $(PYTEST) -m "not slow" $(NUMERICS)
	@seconds=$$(($$(date +%s) - $(START))); \
	echo "make test: $$((seconds / 60)) min $$((seconds % 60)) s, $(JOBS) processes at a time"

test-here: $(READY)
	OMP_NUM_THREADS=1 $(PYTEST)

test-quick: $(READY)
	$(BIN)/ruff check .
	OMP_NUM_THREADS=1 $(PYTEST) -m "not slow" $(QUICK)

# Every sample row in every surrounding, all pairs of operators, and a thousand faults: two hours.
nightly: $(READY)
	OMP_NUM_THREADS=1 MXNEXT_TEST_ALL_ROWS=1 $(BIN)/python -m pytest -q -n $(JOBS) \
		tests/grammar/test_surroundings.py tests/grammar/test_pairs.py
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.chaos --seeds 1000

# The tests of devices on a real accelerator (without one, on two devices in ordinary memory), all
# operators included. For CUDA: make TORCH_INDEX= test-gpu
test-gpu: $(READY)
	MXNEXT_TEST_DEVICE=1 $(BIN)/python -m pytest -q tests/device/cases
	$(BIN)/python -m pytest -q -p tests.device.plugin tests/optimizer tests/metric tests/test_autograd.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(if $(wildcard $(READY)),$(READY),$(DEMO))
	$(BIN)/python examples/demo.py

bench: $(READY)
	$(BIN)/python -m benchmarks.run

docs: $(READY)
	$(BIN)/python -m tools.stubs
	$(BIN)/python -m tools.tables
	$(BIN)/python -m tools.compatibility

site: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clean:
	rm -rf .venv build dist demo_output .pytest_cache .ruff_cache
	find mxnet tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
