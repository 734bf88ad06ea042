# Everything here works from a bare checkout with python3 and make.
PYTHON ?= python3
# Where torch comes from: builds for the CPU only. For CUDA: make TORCH_INDEX= test
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
JOBS ?= 2

BIN := .venv/bin
READY := .venv/.ready
DEMO := .venv/.demo
START := $(shell date +%s)

OLD_PROCESSOR := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 \
	MKL_ENABLE_INSTRUCTIONS=SSE4_2 OMP_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE
NUMERICS := tests/executor tests/graph tests/imperative tests/ops tests/optimizer tests/checkpoint \
	tests/gluon/test_golden.py tests/gluon/test_layers.py tests/gluon/test_rnn_cells.py

.PHONY: help test test-gpu lint format demo bench docs site clean

help:
	@echo "make test    run the linters, the type checker and all tests"
	@echo "make test-gpu  run the tests of devices and operators on the GPU of this machine"
	@echo "make demo    train a small network; results go to demo_output/"
	@echo "make bench   measure speed"
	@echo "make docs    regenerate stubs and the tables of operators and variables"
	@echo "make site    build the documentation site in build/site"
	@echo "make format  format the code"
	@echo "make clean   remove what the other commands made"

.venv: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) tools/set_up.py dev --torch-index "$(TORCH_INDEX)"
	@touch $(READY)

# The demo needs little: a whole environment is used if it is there.
$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) tools/set_up.py demo --torch-index "$(TORCH_INDEX)"
	@touch $(DEMO)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

# All tests with the instructions of this processor, then numerics with the oldest and two threads.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS)
	$(OLD_PROCESSOR) $(BIN)/python -m pytest -q -n $(JOBS) -m "not slow" $(NUMERICS)
	@seconds=$$(($$(date +%s) - $(START))); \
	echo "make test: $$((seconds / 60)) min $$((seconds % 60)) s, $(JOBS) processes at a time"

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

site: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q

clean:
	rm -rf .venv build dist demo_output .pytest_cache .ruff_cache
	find mxnet tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
