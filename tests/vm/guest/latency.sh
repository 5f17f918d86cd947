#!/bin/bash
# Measures what observing the scheduling latency costs, in a machine of the lab; tests/vm/src/bench_latency.rs
# makes a table of the output. The kernel without an observer runs first and last, to show that none
# left anything behind.
#
#   latency.sh
set -u
cd /tmp || exit 1
tracing=/sys/kernel/tracing
failed=0

# measure NAME: the cost of a system call that does nothing, of a context switch, of messages, and cyclictest.
# shellcheck disable=SC2317 # observed() calls it
measure() {
	hackbench=$(hackbench -g 2 -l 20 | sed -n 's/^Time: //p')
	cyclictest=$(cyclictest -q -p 90 -i 1000 -l 2000 |
		sed -n 's/.*Avg: *\([0-9]*\) Max: *\([0-9]*\).*/\1 \2/p')
	echo "row $hackbench $cyclictest $1"
}

# traced NAME TRACER: the same while ftrace's tracer is on.
traced() {
	echo "$2" >$tracing/current_tracer || failed=1
	measure "$1"
	echo nop >$tracing/current_tracer
}

# observed NAME OPTION…: the same while Punctual observes, how many interrupts the kernel handed over,
# and how much data that was.
observed() {
	name=$1
	shift
	rm -f model.json
	punctual latency "$@" -o model.json -- bash -c "measure '$name'" 2>messages || failed=1
	cat messages >&2
	interrupts=0
	while read -r count; do
		interrupts=$((interrupts + count))
	done < <(sed -n 's/^ *"count": \([0-9]*\),*$/\1/p' model.json)
	ns=$(sed -n 's/^ *"observed_ns": \([0-9]*\),*$/\1/p' model.json)
	echo "data $interrupts $ns $(sed -n 's/.*of interrupts, \([0-9.]*\) KB.*/\1/p' messages) $name"
}

# The shell's functions, for the command that Punctual starts.
export -f measure
measure 'nothing'
observed 'punctual latency --measure off' --measure off
observed 'punctual latency'
observed 'punctual latency --verify' --verify
traced 'ftrace, preemptirqsoff' preemptirqsoff
traced 'ftrace, timerlat' timerlat
measure 'nothing, again'
exit $failed
