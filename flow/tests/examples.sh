#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The examples run, and babeltrace2 finds every task and channel in their traces.
#
#   examples.sh EXAMPLES FOLDER
set -eu
examples=$1
folder=$2

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

command -v babeltrace2 >/dev/null 2>&1 || {
	echo 'SKIPPED: there is no babeltrace2 here (the package babeltrace2)'
	exit 77
}
rm -rf "$folder"
mkdir -p "$folder"

# traced NAME OBJECT…: the trace can be read without a complaint, and has all kinds of events and all objects.
traced() {
	name=$1
	shift
	babeltrace2 "$folder/$name" >"$folder/$name.txt" 2>"$folder/$name.err" ||
		fail "$name: babeltrace2 failed: $(cat "$folder/$name.err")"
	[ ! -s "$folder/$name.err" ] || fail "$name: babeltrace2 complains: $(cat "$folder/$name.err")"
	for word in push: activation: start: stop: "$@"; do
		grep -q -- "$word" "$folder/$name.txt" || fail "$name: there is no $word in the trace"
	done
}

# Ten numbers, or as many as a slow machine makes in the time.
"$examples/flow-minimal" "$folder/minimal" >"$folder/minimal.out" || fail 'flow-minimal'
[ "$(head -n 1 "$folder/minimal.out")" = 0 ] || fail "flow-minimal printed: $(cat "$folder/minimal.out")"
traced minimal '"tick"' '"numbers"' '"count"' '"print"'

for policy in fifo lifo priority; do
	for executors in 1 2 3; do
		name=optical-$policy-$executors
		"$examples/flow-optical-navigation" --policy $policy --executors $executors \
			--seconds 0.4 --scale 0.05 --trace "$folder/$name" >"$folder/$name.out" ||
			fail "flow-optical-navigation --policy $policy --executors $executors"
		traced "$name" '"tick1"' '"tick2"' '"image1"' '"image2"' '"craters"' '"features"' '"pose"' \
			'"cam1"' '"cam2"' '"craT"' '"feaT"' '"navi"' '"ter1"' '"ter2"'
		grep -q "policy = \"$policy\"" "$folder/$name/metadata" ||
			fail "$name: the metadata has another policy"
		grep -q "executors = $executors;" "$folder/$name/metadata" ||
			fail "$name: the metadata has another number of executors"
	done
done

# What cannot be is said, and what to do.
status=0
"$examples/flow-optical-navigation" --policy round 2>"$folder/usage" || status=$?
{ [ "$status" = 2 ] && grep -q Usage "$folder/usage"; } || fail 'flow-optical-navigation --policy round'
status=0
"$examples/flow-optical-navigation" --executors 65 2>"$folder/many" || status=$?
{ [ "$status" = 1 ] && grep -q '64 executors' "$folder/many"; } ||
	fail 'flow-optical-navigation --executors 65'
