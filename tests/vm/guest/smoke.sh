#!/bin/sh
# Runs end-to-end tests of two lists of parts of names: those of the first with one processor, those of the
# second with two, as the machine has.
#
#   smoke.sh ON_ONE ON_TWO
set -u
second=/sys/devices/system/cpu/cpu1/online
failed=0

# tests PROCESSORS PARTS
tests() {
	[ -n "$2" ] || return
	echo "$(($1 - 1))" >"$second" || failed=1
	PUNCTUAL_E2E_ONLY=$2 e2e --color never --test-threads 1 || failed=1
}
tests 1 "$1"
tests 2 "$2"
exit $failed
