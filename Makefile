# Commands for developers and CI. `make` lists them.

VENV := .venv
PYTHON_IN := $(VENV)/bin/python
EXTRAS := spark,java,objectstore,report,cli,prometheus,polars,duckdb,sql,zookeeper,dynamodb,hive,glue,cloudwatch,kafka
READY := $(VENV)/.ready
SPARK4 := .venv-spark4
SPARK4_READY := $(SPARK4)/.ready
OLDEST := .venv-oldest
OLDEST_READY := $(OLDEST)/.ready

# Two processes, each with its own Spark session, because a single one leaves a core idle half of the time. Each process
# starts with one half of the tests, in order, so that few module fixtures are created twice. PYTEST_PROCESSES=1 disables it.
IN_PARALLEL = -n $(or $(PYTEST_PROCESSES),2) --dist worksteal
# a write waits for the disk at each file, which leaves a core idle: files of tests are in memory, but where ALL=1
IN_MEMORY := $(if $(ALL),,scripts/in_memory.sh)
# variants of what others test, too (tests/cases.py), take as long again: ALL=1 runs them
# and half of the examples and a third of the places where something dies are tried, but where ALL=1 or a number says otherwise
export PYHUDI_EXAMPLES ?= $(if $(ALL),1,0.5)
# tests start many Python processes, which would compile pyhudi again each time
export PYTHONDONTWRITEBYTECODE =
not = $(if $(ALL),$(if $(1),-m 'not $(1)'),-m 'not slow$(if $(1), and not $(1))')

.DEFAULT_GOAL := help
.PHONY: help quickstart test check lint types boundaries unit spark spark-and-interop spark4 connect oldest random-sequences random-statements interop trino bench bench-quick bench-memory docs format clean

help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | awk -F'|' '{printf "  make %-16s %s\n", $$1, $$2}'

# The main environment has pyspark 3.5, the version that Apache Hudi, Delta and Iceberg support as well.
$(READY): pyproject.toml scripts/environment.sh
	@scripts/environment.sh $(VENV) 'pyspark==3.5.9' -e '.[$(EXTRAS)]' --group dev
	@touch $@

$(SPARK4_READY): pyproject.toml scripts/environment.sh
	@scripts/environment.sh $(SPARK4) 'pyspark>=4.1,<5' -e '.[$(EXTRAS)]' --group dev
	@touch $@

$(OLDEST_READY): pyproject.toml scripts/environment.sh scripts/oldest_versions.py
	@python3 scripts/oldest_versions.py > $(OLDEST).txt
	@scripts/environment.sh $(OLDEST) -c $(OLDEST).txt -e '.[$(EXTRAS)]' --group dev
	@touch $@

quickstart: $(READY) ## a complete example on 336,776 flights, with a report of the table
	@$(PYTHON_IN) examples/quickstart.py

test: $(READY) ## every check and test on Spark 3.5, the real Apache Hudi included (what CI runs; ALL=1: all variants)
	@$(MAKE) --no-print-directory -j2 check unit
	@$(MAKE) --no-print-directory spark-and-interop

check: lint types boundaries ## ruff, mypy --strict, import boundaries

lint: $(READY)
	$(PYTHON_IN) -m ruff check .
	$(PYTHON_IN) -m ruff format --check .

types: $(READY)
	$(PYTHON_IN) -m mypy

boundaries: $(READY)
	$(VENV)/bin/lint-imports --no-cache
	$(VENV)/bin/lint-imports --no-cache scripts/type_imports.toml

unit: $(READY) ## tests without Spark
	$(IN_MEMORY) $(PYTHON_IN) -m pytest $(IN_PARALLEL) tests/unit tests/golden $(call not,interop)

spark: $(READY) ## tests on Spark 3.5
	$(IN_MEMORY) $(PYTHON_IN) -m pytest $(IN_PARALLEL) tests/spark $(call not)

# in one run, so that no core waits for the end of one suite; Apache Hudi first, in one of the processes
spark-and-interop: $(READY)
	$(IN_MEMORY) $(PYTHON_IN) -m pytest $(IN_PARALLEL) tests/interop tests/spark $(call not)

spark4: $(SPARK4_READY) ## the same tests on the newest Spark 4
	$(IN_MEMORY) $(SPARK4)/bin/python -m pytest $(IN_PARALLEL) tests/spark $(call not)

connect: $(SPARK4_READY) ## the tests of statements in sessions of Spark Connect, on the newest Spark 4
	PYHUDI_TEST_CONNECT=1 $(IN_MEMORY) $(SPARK4)/bin/python -m pytest $(IN_PARALLEL) tests/spark/sql tests/spark/dml $(call not)

oldest: $(OLDEST_READY) ## tests without Spark, and of queries on Spark, with the oldest releases of libraries that are permitted
	$(IN_MEMORY) $(OLDEST)/bin/python -m pytest $(IN_PARALLEL) tests/unit tests/golden tests/spark/read $(call not,interop)

random-statements: $(READY) ## random SQL statements, with the same rows in Apache Iceberg (SEEDS=20 FIRST=0)
	$(IN_MEMORY) $(PYTHON_IN) -m tests.random_statements --seeds $(or $(SEEDS),20) --first $(or $(FIRST),0)

random-sequences: $(READY) ## random lives of whole tables against a model (SEEDS=20 FIRST=0 MINIMIZE=1 WITH_HUDI=1)
	$(IN_MEMORY) $(PYTHON_IN) -m tests.random_sequences --seeds $(or $(SEEDS),20) --first $(or $(FIRST),0) $(if $(MINIMIZE),--minimize)

interop: $(READY) ## the real Apache Hudi 0.15, 1.0, 1.2 and hudi-rs against ours, both ways
	$(IN_MEMORY) $(PYTHON_IN) -m pytest $(IN_PARALLEL) tests/interop $(call not)

trino: $(READY) ## tables in Trino, which Maven fetches at the first run (needs Java 25)
	PYHUDI_TEST_TRINO=1 $(PYTHON_IN) -m pytest tests/interop/trino

bench: $(READY) $(SPARK4_READY) ## the benchmark against Apache Hudi, Delta, Iceberg and parquet (BENCH_SF=1)
	$(PYTHON_IN) -m bench

bench-quick: $(READY) ## quick run of the benchmark on little data, one repetition
	BENCH_SF=0.01 BENCH_REPEAT=1 $(PYTHON_IN) -m bench --no-write

bench-memory: $(READY) ## check that a worker's memory does not grow with the partition (2 minutes)
	$(PYTHON_IN) -m bench.worker_memory

docs: $(READY) ## regenerate the references of options and of the API
	$(PYTHON_IN) -m pyhudi.config.options_reference > docs/reference/options.md
	$(PYTHON_IN) scripts/api_reference.py > docs/reference/api.md

format: $(READY) ## format the code
	$(PYTHON_IN) -m ruff check --fix .
	$(PYTHON_IN) -m ruff format .

clean: ## remove environments, caches and build output
	rm -rf $(VENV) $(SPARK4) .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse
