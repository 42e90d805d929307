# The one page of commands. The build itself is meson's; this only names the
# things a developer does.
.PHONY: all clang test asan fuzz tsan msan system attack attack-guards egress cell bench sdk soak crash random guards vm vm-attack vm-reboot vm-slice check \
	mutants cover tidy format format-check valgrind memcheck clean

all: build/build.ninja
	ninja -C build

clang: build-clang/build.ninja		# the second compiler sees other mistakes
	ninja -C build-clang

test: build/build.ninja			# unit, corpus replay, lint
	meson test -C build --print-errorlogs

asan: build-asan/build.ninja		# the same tests, with every memory and UB check
	meson test -C build-asan --print-errorlogs

# Programs with threads, and what they share; then a berthd that serves, is killed and comes back.
TSAN_TESTS = worker key-cache journal mailbox node-link place http http-call store store-host store-sandbox
TSAN_SYSTEM = test_exec test_journal test_processes test_terminals
tsan: all build-tsan/build.ninja	# races between berthd's threads; the second half needs root
	@start=$$(date +%s) && ninja -C build-tsan src/berthd/berthd && \
	TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tools/tsan.supp" \
		meson test -C build-tsan --print-errorlogs -t 4 $(TSAN_TESTS) && \
	BERTH_TEST_SLOW=4 tests/tools/with-tsan build-tsan \
		python3 tests/system/run.py --build build $(TSAN_SYSTEM) && \
	echo "tsan: $$(( $$(date +%s) - start )) s"

# What reads bytes of others and calls no library that clang did not compile: what jansson, libuv,
# libcrypto and libpq write is uninitialised to the sanitizer, and so is what fstatat() of this C
# library does. What does call them: make valgrind, and make memcheck for berthd as a whole.
MSAN_TESTS = config egress exec file finding frame hello image-name image-proto label \
	node-proto options packet pattern redact sandbox shell-text slot sse str table target wrapper \
	ws-reader fuzz-context fuzz-egress fuzz-exec fuzz-files fuzz-frame fuzz-http fuzz-http-reply \
	fuzz-image-name fuzz-image-proto fuzz-journal fuzz-node-proto fuzz-pattern fuzz-reply-head \
	fuzz-shell fuzz-sse fuzz-tar fuzz-wrapper fuzz-ws-reader
msan: build-msan/build.ninja		# uninitialised memory in the parsers, also over the fuzz corpora
	@start=$$(date +%s) && meson test -C build-msan --print-errorlogs -t 4 $(MSAN_TESTS) && \
	echo "msan: $$(( $$(date +%s) - start )) s"

FUZZ_SECONDS ?= 60
fuzz: build-fuzz/build.ninja
	ninja -C build-fuzz
	@for c in tests/fuzz/corpus/*/; do n=$$(basename $$c); mkdir -p build-fuzz/new/$$n; \
		echo "== $$n"; build-fuzz/tests/fuzz-$$n -max_total_time=$(FUZZ_SECONDS) -timeout=5 \
			-verbosity=0 -print_final_stats=1 build-fuzz/new/$$n $$c 2>&1 | \
			tee build-fuzz/$$n.log | grep -E 'number_of_executed|ERROR|BINGO|SUMMARY'; \
		! grep -qE 'ERROR: (lib|Addr)|SUMMARY|deadly' build-fuzz/$$n.log || exit 1; done

RUNTIME ?= crun
system: all				# real PostgreSQL, real engines; HALF=1: every other file; needs root
	python3 tests/system/run.py --build build --runtime $(RUNTIME) $(if $(HALF),--half $(HALF)) $(TESTS)

egress: all				# berth-egress alone, between namespaces; needs root
	python3 tests/egress/run.py --build build $(TESTS)

attack: all				# berth doctor --attack on a server of its own; RUNTIME=runsc ONLY=bpf
	@python3 tests/attack/run.py --build build --runtime $(RUNTIME) $(ONLY)

attack-guards:				# take defences out of the code: the probes must get through
	python3 tests/attack/guards.py

cell: all				# several hosts on this machine, one database; needs root
	python3 tests/cell/run.py --build build $(TESTS)

bench: all				# figures beside the bare engine: build/bench/figures.json; AGAINST=other/build
	python3 tests/bench/run.py --build build $(if $(AGAINST),--against $(AGAINST)) $(FIGURES)

sdk: all				# both SDKs against a real server; SUITES=typescript|python|examples
	python3 tests/sdk/run.py --build build --runtime $(RUNTIME) $(SUITES)

SECONDS ?= 1800
soak: all				# kill, restart, look for leftovers, again and again
	python3 tests/system/soak.py --build build --seconds $(SECONDS)

CRASH_PROGRAMS = src/berthd/berthd src/node/berth-node src/egress/berth-egress src/cli/berth src/init/berth-init src/image/berth-image \
	src/probe/berth-probe
crash: build-crash/build.ninja		# every scenario x every crash point; SLICE=4m ONLY=create:life.built SEED=1
	ninja -C build-crash $(CRASH_PROGRAMS)
	python3 tests/crash/run.py --build build-crash $(if $(SLICE),--slice $(SLICE)) $(if $(SEED),--seed $(SEED)) $(ONLY)

HOSTS ?= 1
random: all				# clients, and everything that can go wrong, for SECONDS
	python3 tests/crash/random_mode.py --build build --seconds $(SECONDS) --hosts $(HOSTS) $(if $(SEED),--seed $(SEED))

guards:					# take one guard out of the code at a time: make crash must see it
	python3 tests/crash/guards.py $(ONLY)

vm: all build-crash/build.ninja		# on a kernel, systemd and cgroup v2 of its own, in qemu
	ninja -C build-crash
	python3 tests/vm/run.py --build build --full
vm-attack: all				# the same, with every probe of make attack
	python3 tests/vm/run.py --build build --attack
vm-reboot: all				# its power is cut in the middle of work, and it is booted again
	python3 tests/vm/run.py --build build --reboot
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

# clang's build: gcc's sets every variable to 0, and hides what was forgotten. valgrind 3.19 reads no
# DWARF 5. Not those that leave its world: bundle (namespaces), devices (mounts: 3.19 does not know
# that their type may be NULL), proc (signals), types (node).
VALGRIND = valgrind --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite -q
valgrind: build-valgrind/build.ninja	# what the unit tests read before it was written, and leak
	ninja -C build-valgrind
	meson test -C build-valgrind --no-rebuild -t 10 --wrap '$(VALGRIND)' --print-errorlogs \
		$$(meson test -C build-valgrind --list --suite unit 2>/dev/null | sed -n 's,.* / ,,p' | grep -vxE 'bundle|devices|proc|types')

# Each route of the table, then what streams: what berthd read before it was written may have gone to a client.
MEMCHECK_SYSTEM = every_verb other_routes_answer no_new_work_while byte_exact each_failure_has_its_reason \
	ranges_and_etags trees_go_in_and_come_out changes_are_told variables_functions_aliases \
	takes_keys_and_shows scrollback_is_replayed state_stays_and_results same_instance_is_given repository_by_branch
memcheck: all build-valgrind/build.ninja	# the real berthd under valgrind, with system tests; needs root
	@start=$$(date +%s) && ninja -C build-valgrind src/berthd/berthd && \
	BERTH_TEST_SLOW=10 tests/tools/with-valgrind build-valgrind \
		python3 tests/system/run.py --build build $(MEMCHECK_SYSTEM) && \
	echo "memcheck: $$(( $$(date +%s) - start )) s"

check: format-check test asan tidy	# what must be green before a push

build/build.ninja:
	meson setup build
build-clang/build.ninja:
	CC=clang meson setup build-clang
build-asan/build.ninja:
	CC=clang meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false --optimization=1
build-tsan/build.ninja:
	CC=clang meson setup build-tsan -Db_sanitize=thread -Db_lundef=false --optimization=1
build-msan/build.ninja:
	CC=clang meson setup build-msan -Db_sanitize=memory -Db_lundef=false --optimization=1
build-valgrind/build.ninja:
	CC=clang meson setup build-valgrind -Dc_args=-gdwarf-4
build-fuzz/build.ninja:
	CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
build-crash/build.ninja:
	meson setup build-crash -Dcrash=true
build-cover/build.ninja:
	meson setup build-cover -Db_coverage=true --optimization=0

clean:
	rm -rf build build-*
