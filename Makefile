# Everything a user runs. `make help` lists it; setup/ does the installing.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(HOME)/.cargo/bin:$(PATH)
PY := .venv/bin/python
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find wire words routing verify planner protocol switch hostagent -name '*.rs' -o -name '*.proto' -o -name Cargo.toml 2>/dev/null)

# What the demo takes from the command line; see README.
SWITCH ?= wormcast
TOPOLOGY ?= testbed
DEMO_ARGS := --switch $(SWITCH) --topology $(TOPOLOGY) \
  $(if $(FILE),--file '$(FILE)') $(if $(SIZE),--size $(SIZE)) $(if $(RATE),--rate $(RATE)) \
  $(if $(SCHEMES),--schemes $(SCHEMES)) $(if $(IMPAIR),--impair '$(IMPAIR)') $(if $(OUT),--out '$(OUT)') \
  $(if $(MTU),--mtu '$(MTU)') $(if $(FABRIC_MTU),--fabric-mtu '$(FABRIC_MTU)') \
  $(if $(SWITCHING),--switching '$(SWITCHING)') $(if $(CUT),--cut $(CUT)) $(if $(SEED),--seed $(SEED))

.PHONY: help demo lab test test-quick seeds build setup onos bench lint fmt clean lock dist docs

help: ## list the targets
	@echo 'Wormcast: reliable multicast on programmable Ethernet.'
	@echo
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'
	@echo
	@echo 'Settings of make demo (defaults): SWITCH=wormcast|bmv2 TOPOLOGY=testbed|torus:4|irregular:8:SEED|line:4|star:4|FILE.json'
	@echo '  FILE=your.bin SIZE=64MiB RATE=100 (Mb/s) SCHEMES=tree,switch (all)'
	@echo '  IMPAIR=loss=0.01,corrupt=0.001,reorder=0.01 CUT=auto OUT=out/demo SEED=1'
	@echo '  SWITCHING=packet|wormhole|wormhole:flush|wormhole:interrupt'
	@echo '  MTU=65535 (hosts; default 1500) FABRIC_MTU=65535 (links between switches; default MTU and 100)'

setup: ## install what is needed: system packages, Rust, .venv
	@setup/install

build: setup .build/built ## build the switch, the agent, the binding and the Python package

.build/built: $(RUST_SOURCES) $(shell find controller mininet verify/python planner/python -name '*.py' -o -name 'pyproject.toml' 2>/dev/null) pyproject.toml setup/build setup/rust
	@setup/build
	@mkdir -p .build && touch $@

demo: build ## a real file to every member through P4 switches, under every scheme
	@.venv/bin/wormcast demo $(DEMO_ARGS)

lab: build ## a lab in a sandbox: make lab LAB=queues; without LAB the list of labs
	@switch/labs/run $(LAB)

test: build ## every test: Rust, Python, conformance, Mininet end to end
	@setup/test

test-quick: build ## the tests that need no network namespaces
	@setup/test --quick

SEEDS ?= 10000
seeds: build ## fabrics on virtual time, drawn from SEEDS=10000 seeds that no commit had before
	@setup/seeds $(SEEDS)

dist: build ## packages in dist/: wheel, .deb, static programs, source distribution
	@$(PY) packaging/package.py

onos: ## the ONOS application, targets/onos/target/wormcast-onos-*.oar
	@setup/onos

bench: build ## measurements, side by side; see bench/README.md
	@bench/run

docs: build ## the documentation as pages that need no server and no network: out/docs/index.html
	@setup/docs
	@$(PY) docs/site/build.py

lint: build ## rustfmt, clippy, ruff, mypy
	@setup/lint

fmt: setup ## format Rust and Python
	cargo fmt --all
	.venv/bin/ruff format controller mininet switch verify targets tests bench setup packaging docs
	.venv/bin/ruff check --fix controller mininet switch verify targets tests bench setup packaging docs

lock: setup ## pin the Python dependencies anew (with hashes, without addresses)
	.venv/bin/pip-compile --quiet --allow-unsafe --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --extra dev --output-file requirements.lock pyproject.toml
	$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["docs"], sep="\n")' | \
	  .venv/bin/pip-compile --quiet --allow-unsafe --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header --output-file setup/docs.lock -

clean: ## remove what was built (not .venv)
	cargo clean 2>/dev/null || rm -rf target
	rm -rf .build build dist out targets/onos/target targets/onos/integration/target controller/wormcast/agentrpc/agent_pb2*
