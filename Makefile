# Every task of the project. `make help` lists them.
#
# PYTHON=python3.12        the interpreter that .venv is made from
# CARGO_TARGET_DIR=DIR     where Rust's build products go (default: target/ here)
# PYTEST_ARGS="-k fetch"   what `make test` hands to pytest
# PART=3/6                 which part of `make test-long` runs (default: all of it)
# PYLOG_TEST_SEED=N        what tests draw (default: the commit's number; in a long run one of its own, which it prints)
# ROWS="read-100b p99"     which rows `make bench` runs (default: all)
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROFILE ?= dev
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
# Where it is set, each of the many processes of tests and benchmarks would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
CARGO := cargo
MANIFEST := --manifest-path broker_native/Cargo.toml --locked
RUST_SOURCES := $(shell find broker_native -path '*/src/*.rs' -not -path '*/target/*' 2>/dev/null) $(wildcard broker_native/Cargo.* broker_native/*/Cargo.toml)

.DEFAULT_GOAL := help
.PHONY: help preflight preflight-test develop demo test test-long test-rust test-rust-aside test-python test-beside test-alone test-seconds test-cluster check check-python check-rust format docs bench wheel wheels release-check crash crash-transactions back-to-back crash-sink cluster-chaos five-brokers archive-chaos powercut simulate fuzz attack librdkafka parity clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

# The goals of one command line are made one after the other, first what is missing, then the rest; what can be made at once says so.
ifeq ($(MAKELEVEL),0)
.NOTPARALLEL:
endif

preflight:
	@PYTHON=$(PYTHON) .ci/preflight build

preflight-test:
	@PYTHON=$(PYTHON) .ci/preflight test

$(VENV)/bin/python:
	@.ci/stage "Making a virtual environment in $(VENV)" $(PYTHON) -m venv $(VENV)

# A module is compiled when it is first imported: most of them never are.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# A stamp is newer than all that it was made from.
$(VENV)/.build-tools: requirements-dev.txt | $(VENV)/bin/python
	@grep '^maturin==' requirements-dev.txt | $(PIP_INSTALL) -r /dev/stdin
	@touch $@

# What pylog and the demo need stands first.
$(VENV)/.runtime: requirements-dev.txt examples/flights/requirements.txt $(VENV)/.build-tools
	@sed '/^# Only for tests/,$$d' requirements-dev.txt | $(PIP_INSTALL) -r /dev/stdin
	@$(PIP_INSTALL) --no-deps -r examples/flights/requirements.txt
	@touch $@

$(VENV)/.dependencies: requirements-dev.txt requirements-docs.txt $(VENV)/.runtime
	@$(PIP_INSTALL) -r requirements-dev.txt -r requirements-docs.txt
	@touch $@

$(VENV)/.compiled-$(PROFILE): $(RUST_SOURCES) pyproject.toml $(VENV)/.build-tools
	@rm -f $(VENV)/.compiled-*
	@PIP_QUIET=1 $(BIN)/maturin develop --quiet --locked --profile $(PROFILE) --skip-install
	@touch $@

# Packages are fetched while Rust compiles; neither needs the other. PACKAGES=runtime leaves out those of tests.
$(VENV)/.native-$(PROFILE): $(RUST_SOURCES) pyproject.toml requirements-dev.txt | $(VENV)/bin/python
	@rm -f $(VENV)/.native-*
	@.ci/stage "Compiling the native half, installing Spark (4 minutes)" $(MAKE) --jobs 2 $(VENV)/.compiled-$(PROFILE) $(VENV)/.$(or $(PACKAGES),dependencies)
	@.ci/stage "Installing pylog into $(VENV)" env PIP_QUIET=1 $(BIN)/maturin develop --quiet --locked --profile $(PROFILE)
	@touch $@

develop: preflight ## Build everything into .venv (quick when nothing changed)
	@$(MAKE) --silent --no-print-directory $(VENV)/.native-$(PROFILE)
	@$(MAKE) --silent --question $(VENV)/.dependencies || .ci/stage "Installing what tests need" $(MAKE) $(VENV)/.dependencies

demo: preflight ## The flights story: a broker, a Spark job in, a stream out, a stop, a restart, a replay
	@$(MAKE) --silent --no-print-directory PACKAGES=runtime $(VENV)/.native-$(PROFILE)
	@$(BIN)/python examples/flights/story.py

# Python's tests wait a good deal, for brokers and sessions; Rust's take what that leaves, and speak at their end.
test: preflight-test develop ## Every promise once, 8 minutes on two cores: what to run before a commit
	@$(MAKE) --no-print-directory --jobs 2 test-rust-aside test-beside
	@$(MAKE) --no-print-directory test-alone

test-rust-aside:
	@printed=$$(mktemp); nice -n 3 $(MAKE) --no-print-directory test-rust >$$printed 2>&1; code=$$?; \
	[ $$code = 0 ] && grep '^test result' $$printed || cat $$printed; rm -f $$printed; exit $$code

# The tests of Rust go with the first part.
test-long: export PYLOG_TEST_LONG = 1
test-long: export PYLOG_TEST_PART = $(PART)
test-long: export PYLOG_TEST_SEED := $(or $(PYLOG_TEST_SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
test-long: export PYLOG_PARITY = live
test-long: preflight-test develop $(if $(filter-out 1/%,$(PART)),,test-rust) $(VENV)/.spark-home/classes.jsa ## Everything, with many rounds and a random seed; in parts: PART=1/6 to PART=6/6
	@echo "Seed $(PYLOG_TEST_SEED): make test-long$(if $(PART), PART=$(PART)) PYLOG_TEST_SEED=$(PYLOG_TEST_SEED) draws the same again."
	$(PYTEST) --timeout 3600 -m "not alone and not check" $(PYTEST_ARGS) || [ "$(PYTEST_ARGS)" -a $$? = $(NOTHING_SELECTED) ]
	$(ALONE) --timeout 3600 -m alone $(ALONE_ARGS) || [ $$? = $(NOTHING_SELECTED) ]

test-rust: ## Only the Rust tests
	PROPTEST_RNG_SEED=$(SEED) $(CARGO) test $(MANIFEST) --quiet

# With it Spark starts sooner; tests that are run without make do without it.
$(VENV)/.spark-home/classes.jsa: tests/spark_home.py $(VENV)/.dependencies
	$(BIN)/python -m tests.spark_home

# Files are handed out by tests/harness/order.py, whole: their tests share brokers. What is drawn at random is the commit's.
PYTEST = $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations 25 --durations-min 10 --hypothesis-seed $(SEED)
# What holds a time against a bound, one after the other when everything else is over; only its files are collected.
ALONE = $(BIN)/python -m pytest --durations 5 --durations-min 10
ALONE_ARGS = $(or $(PYTEST_ARGS),$(shell grep -rl --include='test_*.py' 'mark\.alone' tests))
# pytest's exit code when its arguments choose no test.
NOTHING_SELECTED = 5
SEED = $(or $(PYLOG_TEST_SEED),$(COMMIT_SEED))
COMMIT_SEED = $(shell git rev-parse --short=8 HEAD 2>/dev/null | python3 -c 'print(int(input() or "0", 16))' 2>/dev/null || echo 0)
test-python: test-beside ## Only the Python tests (Spark, broker, interop, crash, docs)
	@$(MAKE) --no-print-directory test-alone

test-beside: develop $(VENV)/.spark-home/classes.jsa
	$(PYTEST) -m "not long and not alone and not check" $(PYTEST_ARGS) || [ "$(PYTEST_ARGS)" -a $$? = $(NOTHING_SELECTED) ]

test-alone: develop
	$(ALONE) -m "alone and not long" $(ALONE_ARGS) || [ $$? = $(NOTHING_SELECTED) ]

test-seconds: develop $(VENV)/.spark-home/classes.jsa ## The Python tests, and record in tests/harness what each file takes (on a quiet machine)
	PYLOG_TEST_SECONDS=tests/harness/seconds.json $(if $(PYTEST_ARGS),,PYLOG_TEST_WHOLE=1) $(PYTEST) -m "not long and not check" $(PYTEST_ARGS)

check: develop ## Format, lint, types, import arrows, sizes: what CI checks besides the tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-rust check-python

check-python:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest --quiet -m check tests/test_tidy.py tests/test_types.py tests/test_steady.py tests/docs/test_docstrings.py

check-rust:
	$(CARGO) fmt --manifest-path broker_native/Cargo.toml --all --check
	$(CARGO) clippy $(MANIFEST) --workspace --all-targets --quiet -- -D warnings

format: develop ## Format Python and Rust, sort imports
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	$(CARGO) fmt --manifest-path broker_native/Cargo.toml --all

# The theme's notice is about a later mkdocs than the one that is pinned.
docs: export NO_MKDOCS_2_WARNING = 1
docs: develop ## The documentation as a site in site/, without network; a link that leads nowhere is an error
	$(BIN)/python -m mkdocs build --strict --quiet

test-cluster: preflight-test develop $(VENV)/.spark-home/classes.jsa ## The tests of other clients, of the Python client, of Spark, and the sink under kill -9, against three brokers with replicas
	PYLOG_TEST_CLUSTER=1 PYLOG_SINK_ROUNDS=$${PYLOG_SINK_ROUNDS:-1} $(PYTEST) -m cluster $(PYTEST_ARGS)

bench: preflight-test ## Measure against Apache Kafka and Spark's own connector, side by side
	@$(MAKE) --no-print-directory develop PROFILE=dist
	$(BIN)/python -m benchmarks $(ROWS)

wheel: preflight $(VENV)/.build-tools ## Build the wheel into dist/
	$(BIN)/maturin build --locked --profile dist --out dist

# TARGETS="x86_64-unknown-linux-gnu aarch64-unknown-linux-musl ..."   those of which rustup has added the standard library
TARGETS ?= x86_64-unknown-linux-gnu
# BUILD_STD=1   builds the standard library, too, of the source that lies beside the compiler (rustup component add rust-src)
BUILD_STD ?=
WHEEL_PROFILE ?= dist
RELEASE_TOOLS := $(VENV)/.release-tools
$(RELEASE_TOOLS): requirements-release.txt $(VENV)/.build-tools
	@$(PIP_INSTALL) -r requirements-release.txt
	@touch $@

wheels: preflight $(RELEASE_TOOLS) ## Build wheels that run on old systems, too, for TARGETS (by zig), into dist/
	@rustc="$${RUSTC:-rustc}"; for target in $(TARGETS); do \
	  if [ -n "$(BUILD_STD)" ]; then \
	    [ -f "$$($$rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ] || { echo "BUILD_STD needs the standard library's source beside $$($$rustc --version): rustup component add rust-src." >&2; exit 1; }; \
	    export RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std; \
	  else \
	    [ -d "$$($$rustc --print target-libdir --target $$target 2>/dev/null)" ] || { echo "Rust has no standard library for $$target here: rustup target add $$target, or BUILD_STD=1." >&2; exit 1; }; \
	  fi; \
	  more=; case $$target in *-musl*) tag=musllinux_1_2;; *-apple-*) tag=off; more="--strip=false -- -C strip=none -C link-arg=-F$(CURDIR)/broker_native/macos";; *) tag=manylinux2014;; esac; \
	  PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --locked --profile $(WHEEL_PROFILE) --zig --target $$target --compatibility $$tag --out dist $$more || exit 1; \
	done

release-check: develop $(RELEASE_TOOLS) ## What must be so before a release: versions, changelog, licences, wheels and source in dist/ (built here)
	@rm -rf dist
	@$(MAKE) --no-print-directory wheels
	@$(BIN)/maturin sdist --out dist
	@$(BIN)/python -m tests.packaging.release dist

crash: export PYLOG_TEST_LONG = 1
crash: develop ## Kill the broker 1,000 times under load and check every acknowledged record
	PYLOG_CRASH_ROUNDS=1000 $(BIN)/python -m pytest tests/crash --timeout 14400

crash-transactions: export PYLOG_TEST_LONG = 1
crash-transactions: develop ## Kill client and broker 100 times in a consume-transform-produce loop that must be exactly-once
	PYLOG_TRANSACTION_ROUNDS=100 $(BIN)/python -m pytest tests/crash/test_transactions.py --timeout 3600 -s

back-to-back: develop ## 10,000 transactions of Kafka's Java client, one after the other at once, on three brokers: quiet, under load, while leaders move
	PYLOG_BACK_TO_BACK=10000 $(BIN)/python -m pytest tests/cluster/test_back_to_back.py --timeout 36000 -s

crash-sink: export PYLOG_TEST_LONG = 1
crash-sink: develop ## Kill driver, executor, Python worker and broker 100 times each at every step of Spark's exactly-once sink
	PYLOG_SINK_ROUNDS=100 $(BIN)/python -m pytest tests/crash/test_sink.py --timeout 36000 -s

cluster-chaos: export PYLOG_TEST_LONG = 1
cluster-chaos: develop ## 500 rounds of kills, pauses, partitions and lost sessions on three brokers and ZooKeeper (PYLOG_CHAOS_ROUNDS)
	PYLOG_CHAOS_ROUNDS=$${PYLOG_CHAOS_ROUNDS:-500} $(BIN)/python -m pytest tests/cluster/test_chaos.py --timeout 36000 -s

five-brokers: export PYLOG_TEST_LONG = 1
five-brokers: develop ## 200 rounds in which two of five brokers are killed at once, under load (PYLOG_FIVE_ROUNDS)
	PYLOG_FIVE_ROUNDS=$${PYLOG_FIVE_ROUNDS:-200} $(BIN)/python -m pytest tests/cluster/test_five_brokers.py --timeout 36000 -s

archive-chaos: export PYLOG_TEST_LONG = 1
archive-chaos: develop ## 100 rounds of faults while brokers archive and delete what they have archived, and 100 kills and losses of power of one (PYLOG_ARCHIVED_ROUNDS, PYLOG_ARCHIVE_KILLS, PYLOG_ARCHIVE_POWER_CUTS)
	PYLOG_ARCHIVED_ROUNDS=$${PYLOG_ARCHIVED_ROUNDS:-100} PYLOG_ARCHIVE_KILLS=$${PYLOG_ARCHIVE_KILLS:-100} PYLOG_ARCHIVE_POWER_CUTS=$${PYLOG_ARCHIVE_POWER_CUTS:-100} \
	    $(BIN)/python -m pytest tests/cluster/test_archived.py tests/archive/test_brokers.py tests/archive/test_power.py --timeout 36000 -s

powercut: ## Cut the power of the simulated disk 10,000 times
	PYLOG_POWER_CUTS=10000 $(CARGO) test $(MANIFEST) --release --package pylog-storage --test integration power_loss -- --nocapture

simulate: export PYLOG_TEST_LONG = 1
simulate: develop ## 10,000 simulated clusters under faults (PYLOG_SIM_SEEDS=..., PYLOG_SIM_FIRST=...)
	PYLOG_SIM_SEEDS=$${PYLOG_SIM_SEEDS:-10000} $(BIN)/python -m pytest tests/simulation -s

fuzz: develop ## An hour of each fuzz target with ever new seeds: cases, peak memory, failures (FUZZ_SECONDS=..., FUZZ_JOBS=2, FUZZ_ARGS=--list)
	$(BIN)/python -m tests.hostile.fuzz --seconds $${FUZZ_SECONDS:-3600} --jobs $${FUZZ_JOBS:-1} $(FUZZ_ARGS)

attack: preflight-test develop ## An hour of each attack on a broker beside an honest client (ATTACK_ARGS="--seconds 60 --peer groups", PROFILE=dist for figures)
	$(BIN)/python -m tests.hostile.attack $(ATTACK_ARGS)

librdkafka: develop ## librdkafka's own test programs against pylog (about 20 minutes; LIBRDKAFKA_ARGS="--peer 0052")
	$(BIN)/python -m tests.interop.librdkafka.suite $(LIBRDKAFKA_ARGS)

# All recordings go first: what no test asks for any more is not to stay.
parity: preflight-test develop $(VENV)/.spark-home/classes.jsa ## Ask Spark's own Kafka connector on Apache Kafka again what tests/parity compares with, and write its answers down
	rm -f tests/parity/recorded/*.json
	PYLOG_PARITY=record $(BIN)/python -m pytest tests/parity -m "" $(PYTEST_ARGS)

clean: ## Remove .venv and the build products in this folder
	rm -rf $(VENV) target dist build .cache
