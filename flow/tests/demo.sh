#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What `make demo-flow` builds, and what it prints, with shorter runs of shorter tasks, which a busy machine
# gets through. PUNCTUAL is the command.
#
#   demo.sh REPOSITORY PROGRAM FOLDER
set -eu
repository=$1
program=$2
folder=$3

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

[ -x "${PUNCTUAL:-}" ] || {
	echo 'SKIPPED: PUNCTUAL does not name the command (make build)'
	exit 77
}
rm -rf "$folder"
mkdir -p "$folder"

# Built without tests, of which there is then no target.
cmake -S "$repository/flow" -B "$folder/build" -DPUNCTUAL_FLOW_TESTS=OFF >"$folder/configure.log"
cmake --build "$folder/build" --target help >"$folder/targets"
grep -q flow-optical-navigation "$folder/targets" || fail 'the demonstration has no target'
! grep -E 'flow-.*test|stress|tsan|no-heap' "$folder/targets" ||
	fail 'without tests there are targets for tests'
sed -n '/^demo-flow:/,/^$/p' "$repository/Makefile" >"$folder/steps"
grep -q 'PUNCTUAL_FLOW_TESTS=OFF' "$folder/steps" || fail 'make demo-flow configures tests'
grep -q -- '--target flow-optical-navigation' "$folder/steps" ||
	fail 'make demo-flow builds more than the program'

TMPDIR=$folder PROGRAM=$program SECONDS_EACH=0.5 RUNS=5 SCALE=0.05 \
	"$repository/scripts/demo-flow" >"$folder/out" ||
	fail "scripts/demo-flow: $(tail -n 5 "$folder/out")"

# line PATTERN: the number of the first line that matches.
line() {
	found=$(grep -nE -m 1 -- "$1" "$folder/out") || fail "there is no line $1 in: $(cat "$folder/out")"
	echo "${found%%:*}"
}

# The decisions first, then one run: its tasks with mean and 99th percentile beside the greatest, its chains.
last=0
for pattern in '^== Which policy, and how many executors' '^== One of the runs' \
	'^Task .* Mean .* p99 .* Max' '^Chain .* Mean .* p99 .* Max' '^== A page and a timeline'; do
	next=$(line "$pattern")
	[ "$next" -gt "$last" ] || fail "'$pattern' stands in line $next, before line $last"
	last=$next
done
for file in compare.txt compare.html first.html first.perfetto-trace graph.dot; do
	set -- "$folder"/punctual-demo-flow.*/"$file"
	[ -s "$1" ] || fail "there is no $file"
done
grep -q '^digraph' "$folder"/punctual-demo-flow.*/graph.dot || fail 'graph.dot is not a graph'
rm -r "$folder"/punctual-demo-flow.*
