# A thin front for the CMake presets. `make help` lists what can be made.
PREFIX       ?= /usr/local
FUZZ_SECONDS ?= 60
LONG_FUZZ    ?= 120
REPEATS      ?= 3
KILLS        ?= 10000
JOBS         ?= $(shell nproc)
CTEST         = ctest -j $(JOBS) --preset
.NOTPARALLEL:

.PHONY: all
all: build ## build build/gpulab (the default)

.PHONY: run
run: setup build ## set up, build, and run a first study on this machine
	@tools/setup report || echo "Going on without them: the report comes without pictures."
	@tools/first-study build/gpulab

.PHONY: test
test: setup-test build ## set up, build, and run every test
	$(CTEST) release -LE long

.PHONY: check
check: ## format, layers, language, headers, banned functions, static analysis, gcc and clang with -Werror
	@tools/setup build check
	@tools/check

.PHONY: format
format: ## format every source
	@tools/setup check
	@tools/check --format

.PHONY: install
install: build ## install program, man pages and completions below PREFIX (/usr/local); obeys DESTDIR
	@cmake --build --preset release --target manual
	cmake --install build --prefix $(abspath $(PREFIX))

.PHONY: man
man: build ## write the man pages to build/manual/man1
	@cmake --build --preset release --target manual
	@ls build/manual/man1/*.1

.PHONY: bench
bench: setup build ## compare the CPU device with bare loops on the same cores
	bench/cpu

.PHONY: bench-against
bench-against: setup ## time the CPU side against version REF; fails if slower; ROWS= and BLOCKS= select
	@bench/against "$(REF)" $(if $(ROWS),--rows "$(ROWS)") $(if $(BLOCKS),--blocks "$(BLOCKS)")

.PHONY: asan tsan
asan tsan: setup-test ## build and test with AddressSanitizer and UBSan; with ThreadSanitizer
	@tools/sanitized-tests $@

.PHONY: fuzz
fuzz: ## fuzz each parser for FUZZ_SECONDS (60)
	@tools/setup build check
	@tools/fuzz $(FUZZ_SECONDS)

.PHONY: fuzz-day
fuzz-day: ## fuzz all parsers for a day, and print what share of their branches was reached
	@tools/setup build check
	@tools/fuzz day

.PHONY: test-numa
test-numa: ## boot a four-node machine under QEMU and prove where threads run and pages lie
	@tools/setup build numa
	@$(MAKE) --no-print-directory portable
	tests/numa/run

.PHONY: test-torture
test-torture: setup-test build ## make each fallible call of seven commands fail in turn; POINTS= limits each class
	@tests/torture/torture.py $(if $(POINTS),--points $(POINTS)) $(if $(SEED),--seed $(SEED))

.PHONY: test-kills
test-kills: setup-test build ## kill run, resume, record, export, report and tune KILLS (10000) times: an hour
	@GPULAB_TEST_KILLS=$(KILLS) tests/program/nothing_lost.sh build/gpulab . build

.PHONY: test-power
test-power: setup-test build ## cut the power at each point of six commands, lose LOSSES (1000) sets of unsynced writes
	@tests/power/power.py $(if $(LOSSES),--losses $(LOSSES)) $(if $(SEED),--seed $(SEED)) || [ $$? = 77 ]

.PHONY: test-faults
test-faults: setup-test build ## a day of faults (HOURS=24) in 12 minutes, over a recorder and studies
	@tests/faults/faults.py $(if $(HOURS),--hours $(HOURS)) $(if $(SEED),--seed $(SEED)) || [ $$? = 77 ]

.PHONY: test-gpu
test-gpu: ## tests that need a GPU, from the portable build; without one they are skipped
	@if tools/setup --check build >/dev/null 2>&1 || [ ! -x build/portable/gpu-tests/run ]; then \
		$(MAKE) --no-print-directory portable && \
		cmake --build build/portable --target gpu_tests; fi
	@build/portable/gpu-tests/run || [ $$? = 77 ]

.PHONY: test-gpu-sanitizer
test-gpu-sanitizer: test-gpu ## look for memory errors and races in the kernels; needs a GPU and its toolkit
	tools/gpu-sanitizer build/portable/gpu-tests/test_ops

.PHONY: test-long
test-long: setup-test build ## all tests, the long ones too, some REPEATS (3) times; fuzzers, LONG_FUZZ (120) each
	$(CTEST) release
	$(CTEST) release -LE 'long|build' --repeat until-fail:$(REPEATS)
	@$(MAKE) --no-print-directory asan tsan test-numa
	@TIDY_PATHS=225000 tools/tidy
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(LONG_FUZZ)

.PHONY: portable
portable: setup ## build build/portable/gpulab, which runs on any Linux with glibc 2.28 or later
	@tools/setup portable
	@cmake --preset portable $(PORTABLE_FLAGS) >build/portable.log || { cat build/portable.log; exit 1; }
	@cmake --build --preset portable

.PHONY: dist
dist: portable ## archives of sources and program, Debian package, wheel and SBOM in build/dist
	@tools/setup dist
	@tools/dist

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z][a-z -]*\):.*## \(.*\)/\1|\2/p' Makefile | \
	while IFS='|' read -r target text; do printf '  make %-18s %s\n' "$$target" "$$text"; done

.PHONY: setup setup-test
setup:
	@tools/setup build
	@mkdir -p build
setup-test:
	@tools/setup build test
	@mkdir -p build

# Ninja looks at the folders again each time, so a new source file needs nothing but `make`.
.PHONY: build
build: build/build.ninja
	@cmake --build --preset release

build/build.ninja:
	@tools/setup --check build
	@mkdir -p build
	@cmake --preset release >build/configure.log || { cat build/configure.log; exit 1; }
