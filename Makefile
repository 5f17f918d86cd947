# Commands for people: `make help` lists them.
# Each target installs what it needs (scripts/setup) and says what.

# Where rustup puts cargo: a shell started before its installation does not have it in its path.
# Once: build scripts run again where it has changed.
export PATH := $(PATH)$(if $(findstring :$(HOME)/.cargo/bin,:$(PATH)),,:$(HOME)/.cargo/bin)
export CARGO_TARGET_DIR ?= $(CURDIR)/target

CARGO ?= cargo
PREFIX ?= /usr/local
# To cross-compile: aarch64-unknown-linux-gnu.
TARGET ?=
BUILT := $(CARGO_TARGET_DIR)$(TARGET:%=/%)
CROSS := $(if $(TARGET),scripts/cross $(TARGET))
# Built quickly, and tested: cargo's profile `dev`.
PUNCTUAL := $(BUILT)/debug/punctual
PUNCTUALD := $(BUILT)/debug/punctuald
# Installed, packaged and measured: profile `dist`.
DIST := $(BUILT)/dist
# The command as a person would type it.
SHOWN := $(PUNCTUAL:$(CURDIR)/%=%)
WORKLOADS := $(BUILT)/workloads
MANUALS := $(CARGO_TARGET_DIR)/man
COMPLETIONS := $(CARGO_TARGET_DIR)/completions
# How long `make fuzz` runs each target.
SECONDS ?= 300
# Observing needs privileges, building does not.
SUDO ?= $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
KERNEL ?= 6.1
comma := ,
LAB := CARGO=$(CARGO) $(CARGO_TARGET_DIR)/debug/lab

ifeq ($(firstword $(MAKECMDGOALS)),vm-run)
# The words that follow are a command, even if they name targets. One with quotes:
# make vm-run COMMAND="sh -c 'uname -r; id'"
COMMAND ?= $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))

vm-run:
	$(if $(strip $(COMMAND)),, \
		@echo 'vm-run: no command. Example: make vm-run KERNEL=6.1 -- punctual doctor' >&2; exit 2)
	@$(MAKE) --silent lab
	@$(LAB) run --kernel "$(KERNEL)" -- $(COMMAND)

$(filter-out vm-run,$(MAKECMDGOALS)):
	@:

.PHONY: $(MAKECMDGOALS)
else

define HELP
Try it
  make demo             watch threads with known timing for ten seconds; what was found, beside the truth
  make demo-flow        trace a dataflow program under two policies, on one to three executors; compare
  make demo-tt          make a table of threads that were just observed, dispatch it, admit jobs meanwhile
  make demo-guarantee   from observation to proof, contract, admission, and an alarm when a thread grows

Build and install
  make build            command, daemon and library, quickly: $(SHOWN)
  make dist             the same, optimized, in target/dist; TARGET=aarch64-unknown-linux-gnu cross-compiles
  make install          the latter, with manual pages and completions, to PREFIX ($(PREFIX))
  make packages         a .deb and a tarball that run with glibc 2.31 or newer; make try-packages uses both
                        in clean systems of Debian 12 and 13 and Ubuntu 22.04; SYSTEMS="bookworm trixie jammy"
  make install-debug    symbols of command and daemon, for gdb, perf and backtraces
  make python           the Python package: a wheel for Python 3.9 and newer, in $(WHEELS)
  make flow             dataflow executor and tracer (flow/, CMake), with their tests
  make man completions  manual pages and shell completions
  make book             documents as a book (needs mdbook)
  make images           pictures of the documents, from the demonstration
  make clean            remove everything that was built

Check and test
  make check            formatting, lints, compiler warnings, shell scripts, documents
  make test             what every change needs to pass, on this kernel and in one virtual machine: 20 minutes
  make test-all         everything there is, on all kernels: hours
  make python-test      those of the Python package alone
  make test-formats     one run recorded by every recorder at once, imported from every format, compared
  make test-clusters    its drivers for Dask, Ray and Spark; installs all three (700 MB)
  make test-random      property tests, with other random cases each time
  make test-faults      kill the daemon 100 times under 200 clients (make test: 5 times)
  make stress-flow      10 million pushes on 1 to 8 executors, also under ThreadSanitizer; every compiler
  make fuzz             readers of foreign input, SECONDS ($(SECONDS)) each; TARGETS="…" (scripts/fuzz list)

Other kernels, in virtual machines (docs/lab.md)
  make vm-test          end-to-end and daemon tests; KERNELS="…" (make vm-kernels), SUITE=…, TESTS="…"
  make vm-systemd       the daemon under systemd, on Debian 12 and 13
  make vm-run           one command: make vm-run KERNEL=6.1 -- punctual doctor
  make vm-shell         a shell: make vm-shell KERNEL=7.2-rt
  make vm-bench         instructions per observed event, beside strace, perf and ftrace; KERNELS="…"
  make bench-latency    cost of observing the scheduling latency, beside timerlat and preemptirqsoff

Measure (tables go to docs/benchmarks.md)
  make bench-overhead   what watching costs the watched
  make bench-record     what recording costs beyond extracting
  make bench-why        what explaining late jobs costs, beside ftrace, perf and bpftrace
  make bench-replay     speed of replay, size of recordings
  make bench-extract    jobs per second that extraction handles (printed only)
  make bench-import     speed of importing other tools' traces; merging 1,000 summaries
  make bench-python     extraction of arrays by the Python package, beside Rust's (printed only)
  make bench-table      making time-triggered tables; aperiodic jobs in their slack; the manager's cost
  make bench-tt         how late slots of a table begin, beside SCHED_RR and clock_nanosleep
  make bench-check      speed of checking a recording, beside replay
  make bench-contracts  contracts of one run: further runs kept, slower programs found
  make bench-prove      how long a proof of 1,000 threads takes
  make bench-watch      the same; cost of checker and live view, memory over a simulated day, alarms
  make bench-accuracy   periods and slips found in simulated tasks, beside the published algorithm
  make bench-truth      models of live threads under load, beside what their jobs log
  make bench-daemon     requests to punctuald, beside an empty exchange and the direct system call
  make bench-profiles   what is tested (profile dev) beside what is installed (profile dist)
  make bench-flow       activations, their traces and probes, and the analysis of traces
endef

help:
	@: $(info $(HELP))

setup:
	@scripts/setup build
	@$(if $(TARGET),scripts/setup cross $(TARGET))

# Without this make's variables (PREFIX=…, DESTDIR=…), which the makefile of libbpf would take for its own.
PLAIN := $(CROSS) env -u MAKEFLAGS $(CARGO)
# The whole workspace each time, however little of it is wanted: with fewer packages, what they depend on
# would have other features and be compiled once more.
BUILD := $(PLAIN) build --workspace $(TARGET:%=--target %)
BUILD_DIST := $(PLAIN) build --profile dist $(TARGET:%=--target %) \
	$(addprefix -p punctual-,cli daemon c bench extract conformance)
# libpunctual.so and its pkg-config file, made by the C compiler, in `client` beside the programs.
library = @$(CROSS) $(MAKE) --silent -C crates/client OUT=$(1)/client ARCHIVE=$(1)/libpunctual_c.a \
	PREFIX=$(PREFIX) $(if $(TARGET),CC='$$(TARGET_CC)')
# announce PROGRAM WHAT TIME: what is about to be built, and how long that takes where nothing is.
announce = @[ -e $(1) ] || echo 'Building $(2): about $(3) on two processors, this time only.'

command: setup
	$(call announce,$(PUNCTUAL),the command punctual,4 minutes)
	$(BUILD) --bin punctual

build: setup
	$(call announce,$(PUNCTUALD),the command$(comma) the daemon and the library,5 minutes)
	$(BUILD) --lib --bin punctual --bin punctuald
	$(call library,$(BUILT)/debug)

dist: setup
	$(call announce,$(DIST)/punctuald,the command$(comma) the daemon and the library$(comma) optimized,\
		12 minutes)
	$(BUILD_DIST) --lib --bin punctual --bin punctuald
	@$(CROSS) scripts/strip $(DIST)/punctual $(DIST)/punctuald
	$(call library,$(DIST))

# Everything, and all tests; TESTS_BUILT lists the test programs, as cargo's messages.
TESTS_BUILT := $(BUILT)/debug/tests-built.json
build-tests: setup workloads
	@mkdir -p $(BUILT)/debug
	$(BUILD) --lib --bin punctual --bin punctuald --bin lab --example generate --tests \
		--message-format json-render-diagnostics >$(TESTS_BUILT)
	$(call library,$(BUILT)/debug)

workloads: setup
	@$(CROSS) $(MAKE) --silent -C tests/workloads OUT=$(WORKLOADS) $(if $(TARGET),CC='$$(TARGET_CC)') all

demo: command workloads
	@scripts/setup observe
	@SUDO='$(SUDO)' PUNCTUAL=$(PUNCTUAL) WORKLOADS=$(WORKLOADS) SHOWN=$(SHOWN) scripts/demo

TESTED := SUDO='$(SUDO)' PUNCTUAL=$(PUNCTUAL) PUNCTUALD=$(PUNCTUALD) LIBPUNCTUAL=$(BUILT)/debug/client \
	WORKLOADS=$(WORKLOADS) TESTS_BUILT=$(TESTS_BUILT) CARGO='$(CARGO)'
test: setup
	@$(TESTED) scripts/test

test-all: setup
	@$(TESTED) scripts/test all

test-random: setup
	$(CARGO) test --workspace --no-fail-fast --quiet \
		--exclude punctual-e2e --exclude punctual-daemon --exclude punctual-daemon-tests

# Tests run by SUDO, with these variables. A variable, because a comma would end an argument of $(if).
AS_ROOT := --config 'target."cfg(all())".runner = ["$(SUDO)", "-E"]'
test-faults: setup
	@PUNCTUAL_TEST_ALL=1 $(CARGO) test -q -p punctual-daemon --test daemon $(if $(SUDO),$(AS_ROOT)) faults

# babeltrace2 of Debian 13 writes CTF 2; LTTng's kernel modules are built for a kernel of the lab.
test-formats: build workloads lab
	@scripts/setup test
	@scripts/setup observe
	@PUNCTUAL_TEST_FORMATS=1 PUNCTUAL_E2E_ONLY=formats:: \
		BABELTRACE2_ROOT="$$(scripts/debian unpack --with-dependencies trixie amd64 babeltrace2)" \
		$(CARGO) test -q -p punctual-e2e $(if $(SUDO),$(AS_ROOT))
	@$(LAB) test --kernel 6.1 --suite end-to-end --attach tracepoint lttng::

# A CMake project of its own, outside the workspace.
flow stress-flow:
	@scripts/setup flow
	@scripts/flow $(if $(filter flow,$@),test,stress)

WHEELS := $(CARGO_TARGET_DIR)/wheels
python: setup
	@scripts/setup python
	@scripts/python wheel $(WHEELS)

python-test: setup
	@scripts/setup python
	@scripts/python test $(TESTS)

test-clusters: setup
	@scripts/setup clusters
	@scripts/python test test_drivers.py

bench-python: python
	$(BUILD_DIST) --example bench_arrays
	@$(CARGO_TARGET_DIR)/python/installed/bin/python crates/python/bench/extract.py \
		$(DIST)/examples/bench_arrays

# Only what the demonstration runs: no tests, so none of what they need.
FLOW_DEMO := $(CARGO_TARGET_DIR)/flow-demo
demo-flow: command
	@scripts/setup flow-demo
	@mkdir -p $(FLOW_DEMO)
	@cmake -S flow -B $(FLOW_DEMO) -DPUNCTUAL_FLOW_TESTS=OFF -DPUNCTUAL_FLOW_STRICT=ON \
		>$(FLOW_DEMO)/configure.log 2>&1 || \
		{ cat $(FLOW_DEMO)/configure.log >&2; exit 1; }
	@cmake --build $(FLOW_DEMO) -j 2 --target flow-optical-navigation >$(FLOW_DEMO)/build.log 2>&1 || \
		{ cat $(FLOW_DEMO)/build.log >&2; exit 1; }
	@PUNCTUAL=$(PUNCTUAL) PROGRAM=$(FLOW_DEMO)/examples/flow-optical-navigation scripts/demo-flow

demo-tt: build workloads
	@scripts/setup observe
	@SUDO='$(SUDO)' PUNCTUAL=$(PUNCTUAL) PUNCTUALD=$(PUNCTUALD) WORKLOADS=$(WORKLOADS) scripts/demo-tt

demo-guarantee: build workloads
	@scripts/setup observe
	@SUDO='$(SUDO)' PUNCTUAL=$(PUNCTUAL) PUNCTUALD=$(PUNCTUALD) WORKLOADS=$(WORKLOADS) scripts/demo-guarantee

bench-flow: dist workloads
	@scripts/setup flow-bench
	scripts/flow build -DPUNCTUAL_FLOW_BENCH=ON
	$(BUILD_DIST) --bin bench-flow
	@$(SUDO) env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-flow

fuzz: setup
	@scripts/setup fuzz
	@CARGO='$(CARGO)' scripts/fuzz $(SECONDS) $(TARGETS)

check:
	@scripts/setup check
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@# Other versions of clang-format wrap some lines differently.
	@if clang-format --version | grep -q 'version 14'; then \
		clang-format --dry-run --Werror $$(git ls-files '*.c' '*.h' '*.cpp' '*.hpp'); \
	else echo 'check: clang-format 14 is not installed: the formatting of C and C++ is not checked' >&2; fi
	@# Workloads and eBPF programs are always compiled with -Wall -Wextra -Werror.
	$(MAKE) --silent -C tests/workloads OUT=$(CARGO_TARGET_DIR)/workloads-check --always-make all
	@touch crates/observe/build.rs crates/dispatch/build.rs
	$(CARGO) check --workspace
	scripts/check-docs
	@if command -v mdbook >/dev/null; then mdbook build --dest-dir $(CARGO_TARGET_DIR)/book; \
	else echo 'check: mdbook is not installed: the book is not built' >&2; fi
	shellcheck scripts/setup scripts/flow scripts/python scripts/strip scripts/fuzz scripts/demo \
		scripts/demo-flow scripts/demo-tt scripts/demo-guarantee scripts/images scripts/debian \
		scripts/kernel scripts/cross scripts/packages tests/packages/inside.sh .ci/run \
		flow/trace/tests/*.sh flow/tests/*.sh

images: command workloads
	@scripts/setup images
	@scripts/setup observe
	@SUDO='$(SUDO)' PUNCTUAL=$(PUNCTUAL) WORKLOADS=$(WORKLOADS) scripts/images

book:
	mdbook build --dest-dir $(CARGO_TARGET_DIR)/book

bench-overhead: dist workloads
	@scripts/setup observe
	$(BUILD_DIST) --bins
	@$(SUDO) env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-overhead

bench-record: dist workloads
	@scripts/setup observe
	$(BUILD_DIST) --bins
	@$(SUDO) env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-record

bench-why: dist workloads
	@scripts/setup observe
	@scripts/setup bench-why
	$(BUILD_DIST) --bins
	@$(SUDO) env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-why

bench-replay: dist
	$(BUILD_DIST) --bins
	@env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-replay

# The client is in C, as most clients of the daemon are.
bench-daemon-client: dist
	$(CC) -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -pthread -Icrates/client/include \
		bench/c/daemon.c -L$(DIST)/client -lpunctual -o $(CARGO_TARGET_DIR)/bench-daemon-client

bench-daemon: bench-daemon-client
	$(BUILD_DIST) --bin bench-daemon
	@$(SUDO) env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-daemon

bench-profiles: bench-daemon-client build
	$(BUILD) --example bench_extract
	$(BUILD_DIST) --example bench_extract --bin bench-profiles
	@$(SUDO) env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-profiles

bench-extract: setup
	$(BUILD_DIST) --example bench_extract
	@$(DIST)/examples/bench_extract

bench-import: dist
	$(BUILD_DIST) --bin bench-import
	@env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-import

bench-table: setup
	$(BUILD_DIST) --bin bench-table
	@$(DIST)/bench-table

bench-accuracy: setup
	$(BUILD_DIST) --bin bench-accuracy
	@$(DIST)/bench-accuracy $(SERIES:%=--series %)

bench-truth: dist workloads
	@scripts/setup truth
	@scripts/setup observe
	$(BUILD_DIST) --bin bench-truth
	@$(SUDO) env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-truth

man: dist
	@$(DIST)/punctual man $(MANUALS)
	@echo 'Wrote $(MANUALS)'

completions: dist
	@mkdir -p $(COMPLETIONS)
	@$(DIST)/punctual completions bash > $(COMPLETIONS)/punctual
	@$(DIST)/punctual completions zsh > $(COMPLETIONS)/_punctual
	@$(DIST)/punctual completions fish > $(COMPLETIONS)/punctual.fish
	@echo 'Wrote $(COMPLETIONS)'

install: man completions
	install -D -m 755 $(DIST)/punctual $(DESTDIR)$(PREFIX)/bin/punctual
	install -D -m 755 $(DIST)/punctuald $(DESTDIR)$(PREFIX)/bin/punctuald
	@$(MAKE) --silent -C crates/client OUT=$(DIST)/client ARCHIVE=$(DIST)/libpunctual_c.a PREFIX=$(PREFIX) \
		DESTDIR=$(DESTDIR) install
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include crates/daemon/include/punctual-plugin.h
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/punctual dist/punctuald.toml dist/rules.conf \
		dist/grafana-dashboard.json dist/org.freedesktop.RealtimeKit1.conf \
		dist/org.freedesktop.RealtimeKit1.service
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/polkit-1/actions dist/io.punctual.scheduler1.policy
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/punctual/flow-probes dist/flow-probes/*
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/punctual \
		README.md ARCHITECTURE.md CHANGELOG.md SECURITY.md
	find docs -type f -exec install -D -m 644 {} $(DESTDIR)$(PREFIX)/share/doc/punctual/{} \;
	mkdir -p $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' dist/punctuald.service \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system/punctuald.service
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' dist/punctual-watch@.service \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system/punctual-watch@.service
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system dist/punctuald.socket
	mkdir -p $(DESTDIR)$(PREFIX)/lib/systemd/system-generators
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' dist/punctual-generator \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system-generators/punctual-generator
	chmod 755 $(DESTDIR)$(PREFIX)/lib/systemd/system-generators/punctual-generator
	install -D -m 644 dist/punctual-watch.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/punctual-watch.conf
	for section in 1 5 8; do \
		install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$$section $(MANUALS)/*.$$section || exit; \
	done
	install -D -m 644 $(COMPLETIONS)/punctual $(DESTDIR)$(PREFIX)/share/bash-completion/completions/punctual
	install -D -m 644 $(COMPLETIONS)/_punctual $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_punctual
	install -D -m 644 $(COMPLETIONS)/punctual.fish \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/punctual.fish

# Where gdb, perf and Rust's backtraces look for the symbols of what is installed.
install-debug: dist
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/bin/.debug $(DIST)/punctual.debug $(DIST)/punctuald.debug

packages: setup
	@scripts/setup packages
	@scripts/packages build

try-packages: packages
	@$(SUDO) env CARGO_TARGET_DIR=$(CARGO_TARGET_DIR) scripts/packages try $(SYSTEMS)

clean:
	$(CARGO) clean
	rm -rf demo.timing.json demo.html demo.recording

# The lab: other kernels in virtual machines (tests/vm).
lab: setup
	@scripts/setup lab
	@$(BUILD) --quiet --bin lab

vm-test: lab
	@$(LAB) test $(if $(KERNELS),--kernel "$(KERNELS)") $(SUITE:%=--suite %) $(TESTS)

# The installed files, in minimal systems of Debian 12 and 13.
vm-systemd: lab
	@rm -rf $(CARGO_TARGET_DIR)/vm/installed
	@mkdir -p $(CARGO_TARGET_DIR)/vm
	@$(MAKE) --silent install DESTDIR=$(CARGO_TARGET_DIR)/vm/installed PREFIX=/usr/local \
		>$(CARGO_TARGET_DIR)/vm/install.log
	@$(LAB) systemd --installed $(CARGO_TARGET_DIR)/vm/installed $(RELEASES:%=--release %)

vm-bench: dist lab
	@$(LAB) bench $(if $(KERNELS),--kernel "$(KERNELS)")

bench-latency: dist lab
	@$(LAB) bench-latency

bench-tt: dist lab
	$(BUILD_DIST) --bin bench-tt
	@$(SUDO) env PUNCTUAL=$(DIST)/punctual $(DIST)/bench-tt
	@$(LAB) bench-tt

bench-prove: dist
	$(BUILD_DIST) --bin bench-prove
	@env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-prove

bench-contracts: dist workloads
	@scripts/setup observe
	@$(SUDO) env PUNCTUAL=$(DIST)/punctual WORKLOADS=$(WORKLOADS) bench/contracts

bench-check: dist
	$(BUILD_DIST) --bin bench-check
	@env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-check

bench-watch: bench-check workloads
	@scripts/setup observe
	@scripts/setup terminal
	$(BUILD_DIST) --example bench_check --bin bench-watch --bin bench-alarms
	@$(DIST)/examples/bench_check
	@$(SUDO) env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-watch
	@$(SUDO) env TARGET_DIR=$(CARGO_TARGET_DIR) $(DIST)/bench-alarms

# Fetches the kernels that are packages, and builds the one that is not, unless one that fits is there.
vm-kernels: lab
	@scripts/kernel find >/dev/null 2>&1 || scripts/kernel build >/dev/null
	@$(LAB) kernels

vm-shell: lab
	@$(LAB) shell --kernel "$(KERNEL)"

.PHONY: help setup command build dist build-tests workloads demo test test-all test-random test-faults \
	flow stress-flow demo-flow python python-test test-clusters test-formats \
	bench-python demo-tt demo-guarantee \
	bench-flow fuzz check images book bench-overhead bench-record bench-why bench-replay bench-daemon \
	bench-daemon-client bench-profiles bench-extract bench-import bench-table bench-accuracy bench-truth \
	bench-latency bench-check bench-contracts bench-prove bench-watch bench-tt lab vm-test vm-systemd \
	vm-bench vm-kernels vm-shell man completions install install-debug packages try-packages clean
endif
