#!/bin/sh
# Measures what events cost with each observer, in a machine of the lab; tests/vm/src/bench.rs makes a table
# of the output. "without" runs first and last, to show that no observer left anything behind.
#
#   measure.sh BATCHES
set -u
cd /tmp || exit 1
workload="/workloads/instructions --batches $1"
tracing=/sys/kernel/tracing
failed=0

# Without it programs of eBPF are interpreted, which nobody does.
echo 1 >/proc/sys/net/core/bpf_jit_enable

# observed NAME [COMMAND…]: the workload, as what COMMAND starts.
observed() {
	name=$1
	shift
	echo "observer $name"
	# shellcheck disable=SC2086 # its options are words
	"$@" $workload 2>errors || {
		echo "failed: exit code $?: $(tail -n 1 errors)"
		failed=1
	}
}

# elsewhere NAME COMMAND…: the workload by itself, while COMMAND observes another process.
elsewhere() {
	name=$1
	shift
	rm -f ready
	# shellcheck disable=SC2016 # $$ is to be its own
	"$@" sh -c 'echo $$ >ready; exec sleep 100000' 2>/dev/null &
	# It is started when the observer is ready.
	until [ -s ready ]; do sleep 0.1; done
	observed "elsewhere $name" env
	kill "$(cat ready)"
	wait
}

has() {
	command -v "$1" >/dev/null && return
	echo "missing: $1"
	return 1
}

punctual() {
	set -- "$1" /usr/local/bin/punctual extract --quiet --force --output models.json --attach "$1" --
	observed "$@"
	# Records that are lost cost less.
	grep -q '"lost_records": 0$' models.json || {
		echo "failed: $(grep lost_records models.json)"
		failed=1
	}
	elsewhere "$@"
	rm -f models.json
}

# ftrace COMMAND…: the command, and its threads.
# shellcheck disable=SC2317 # both() calls it
ftrace() {
	echo 1 >"$tracing/options/event-fork"
	for event in sched/sched_switch sched/sched_waking raw_syscalls/sys_enter raw_syscalls/sys_exit; do
		echo 1 >"$tracing/events/$event/enable" || failed=1
	done
	# The shell's number is then the command's.
	# shellcheck disable=SC2016,SC2317
	sh -c 'echo $$ >'"$tracing"'/set_event_pid; exec "$@"' sh "$@"
	code=$?
	echo 0 >"$tracing/events/enable"
	echo >"$tracing/set_event_pid"
	echo 0 >"$tracing/options/event-fork"
	return "$code"
}

both() {
	observed "$@"
	elsewhere "$@"
}

observed without env
punctual fentry
punctual tracepoint
both ftrace ftrace
if has perf; then
	echo "tool $(perf --version)"
	both 'perf trace' perf trace -o calls.txt
	both 'perf record' perf record --quiet -o perf.data \
		-e raw_syscalls:sys_enter,raw_syscalls:sys_exit,sched:sched_switch,sched:sched_waking --
	rm -f calls.txt perf.data perf.data.old
fi
if has strace; then
	echo "tool $(strace --version | head -n 1)"
	both strace strace -f -qq -e trace=read -o calls.txt
	both 'strace --seccomp-bpf' strace -f -qq --seccomp-bpf -e trace=read -o calls.txt
	rm -f calls.txt
fi
observed 'without, again' env
exit $failed
