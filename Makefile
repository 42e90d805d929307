# The one page of commands. The build itself is meson's; this only names the
# things a developer does.
.PHONY: all clang test asan fuzz system attack attack-guards egress cell bench sdk soak crash random guards vm vm-slice check \
	mutants cover tidy format format-check valgrind clean

all: build/build.ninja
	ninja -C build

clang: build-clang/build.ninja		# the second compiler sees other mistakes
	ninja -C build-clang

test: build/build.ninja			# unit, corpus replay, lint
	meson test -C build --print-errorlogs

asan: build-asan/build.ninja		# the same tests, with every memory and UB check
	meson test -C build-asan --print-errorlogs

FUZZ_SECONDS ?= 60
fuzz: build-fuzz/build.ninja
	ninja -C build-fuzz
	@for c in tests/fuzz/corpus/*/; do n=$$(basename $$c); mkdir -p build-fuzz/new/$$n; \
		echo "== $$n"; build-fuzz/tests/fuzz-$$n -max_total_time=$(FUZZ_SECONDS) -timeout=5 \
			-verbosity=0 -print_final_stats=1 build-fuzz/new/$$n $$c 2>&1 | \
			tee build-fuzz/$$n.log | grep -E 'number_of_executed|ERROR|BINGO|SUMMARY'; \
		! grep -qE 'ERROR: (lib|Addr)|SUMMARY|deadly' build-fuzz/$$n.log || exit 1; done

RUNTIME ?= crun
system: all				# real PostgreSQL, real engines; needs root
	python3 tests/system/run.py --build build --runtime $(RUNTIME) $(TESTS)

egress: all				# berth-egress alone, between namespaces; needs root
	python3 tests/egress/run.py --build build $(TESTS)

attack: all				# berth doctor --attack on a server of its own; RUNTIME=runsc ONLY=bpf
	@python3 tests/attack/run.py --build build --runtime $(RUNTIME) $(ONLY)

attack-guards:				# take defences out of the code: the probes must get through
	python3 tests/attack/guards.py

cell: all				# several hosts on this machine, one database; needs root
	python3 tests/cell/run.py --build build $(TESTS)

bench: all				# figures beside the bare engine: build/bench/figures.json
	python3 tests/bench/run.py --build build $(FIGURES)

sdk: all				# both SDKs against a real server; SUITES=typescript|python|examples
	python3 tests/sdk/run.py --build build --runtime $(RUNTIME) $(SUITES)

SECONDS ?= 1800
soak: all				# kill, restart, look for leftovers, again and again
	python3 tests/system/soak.py --build build --seconds $(SECONDS)

CRASH_PROGRAMS = src/api/berthd src/node/berth-node src/egress/berth-egress src/cli/berth src/init/berth-init src/image/berth-image
crash: build-crash/build.ninja		# every scenario x every crash point; SLICE=4m ONLY=create:life.built SEED=1
	ninja -C build-crash $(CRASH_PROGRAMS)
	python3 tests/crash/run.py --build build-crash $(if $(SLICE),--slice $(SLICE)) $(if $(SEED),--seed $(SEED)) $(ONLY)

HOSTS ?= 1
random: all				# clients, and everything that can go wrong, for SECONDS
	python3 tests/crash/random_mode.py --build build --seconds $(SECONDS) --hosts $(HOSTS)

guards:					# take one guard out of the code at a time: make crash must see it
	python3 tests/crash/guards.py $(ONLY)

vm: all build-crash/build.ninja		# on a kernel, systemd and cgroup v2 of its own, in qemu
	ninja -C build-crash
	python3 tests/vm/run.py --build build --full
vm-slice: all
	python3 tests/vm/run.py --build build

COUNT ?= 50
SEED ?= 20261116
mutants:				# change one thing at a time: a unit test must fail; FILES=core/lease.c LINE=90
	tools/mutants --count $(COUNT) --seed $(SEED) $(if $(LINE),--line $(LINE)) $(FILES)

cover: build-cover/build.ninja		# needs gcovr
	meson test -C build-cover
	ninja -C build-cover coverage-text && cat build-cover/meson-logs/coverage.txt

tidy: build-asan/build.ninja		# clang's own build: gcc flags confuse clang-tidy
	ninja -C build-asan clang-tidy

SOURCES = $(shell git ls-files 'src/*.[ch]' 'tests/*.[ch]')
format:
	@clang-format -i $(SOURCES)
format-check:
	@clang-format --dry-run -Werror $(SOURCES)

valgrind: build/build.ninja
	meson test -C build --suite unit --wrap 'valgrind --error-exitcode=9 --leak-check=full -q'

check: format-check test asan tidy	# what must be green before a push

build/build.ninja:
	meson setup build
build-clang/build.ninja:
	CC=clang meson setup build-clang
build-asan/build.ninja:
	CC=clang meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false --optimization=1
build-fuzz/build.ninja:
	CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
build-crash/build.ninja:
	meson setup build-crash -Dcrash=true
build-cover/build.ninja:
	meson setup build-cover -Db_coverage=true --optimization=0

clean:
	rm -rf build build-*
