#!/bin/sh
# shellcheck disable=SC2016 # what until_so evaluates is to be expanded each time
# Tests the daemon and the watch under systemd: units as `make install` installs them, users with and without
# rights, restarts, removal. Prints like cargo test.
set -u
list=$(mktemp)
said=$(mktemp)
trap 'rm -f "$list" "$said"' EXIT
passed=0
failed=0
ignored=0
limit=/proc/sys/kernel/sched_rt_runtime_us
socket=/run/punctual/io.punctual.Scheduler1
before=$(cat $limit)

# check NAME: runs the function of that name, in which every command must succeed. Not within a condition,
# which would switch `set -e` off.
check() {
	(
		set -e
		"$1"
	) >"$said" 2>&1
	status=$?
	if [ $status = 0 ]; then
		echo "test systemd::$1 ... ok"
		passed=$((passed + 1))
	else
		echo "test systemd::$1 ... FAILED"
		sed 's/^/    /' "$said"
		journalctl --no-pager --quiet -u punctuald.service -u punctuald.socket \
			-u punctual-watch@beat.service -n 15 | sed 's/^/    /'
		failed=$((failed + 1))
	fi
}
as() {
	user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --init-groups -- "$@"
}
# is EXPECTED WHAT…: what a command says, in one line.
is() {
	expected=$1
	shift
	found=$("$@" | tr '\n' ' ' | sed 's/ $//')
	[ "$found" = "$expected" ] && return
	echo "$*: expected '$expected', but it says '$found'"
	return 1
}
# fails WHAT…: that it does not succeed.
fails() {
	if "$@"; then
		echo "$*: succeeded"
		return 1
	fi
}
# until_so WHAT…: it comes, within a minute of the machine's time.
until_so() {
	for _ in $(seq 600); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "$*: never came"
	return 1
}
property() { systemctl show --value -p "$1" "${2:-punctuald.service}"; }
policy() { chrt -p "$1" | sed -n 's/.*scheduling policy: //p'; }
# A field of the status, as JSON has it.
status() { punctual ctl status --json | tr -d ' \n' | grep -o "\"$1\":[0-9]*" | head -n 1 | cut -d : -f 2; }

# A program of alice's that waits, scheduled as its arguments say. Its number is $waiting. Where it took more
# than its runtime to get there, it is demoted until its next period.
begin() {
	rm -f /tmp/waiting
	mkfifo -m 666 /tmp/end 2>/dev/null || true
	as alice punctual ctl run --quiet "$@" -- sh -c 'echo $$ >/tmp/waiting; read _ </tmp/end' &
	until_so test -s /tmp/waiting
	waiting=$(cat /tmp/waiting)
}
end() {
	echo >/tmp/end
	wait
}

units_are_in_order() {
	[ -z "$(systemd-analyze verify --man=no punctuald.service punctuald.socket 2>&1 | tee /dev/stderr)" ]
}

little_is_exposed() {
	systemd-analyze security --no-pager punctuald.service | tail -n 1
	systemd-analyze security --no-pager --threshold=20 punctuald.service >/dev/null
}

the_first_request_starts_it() {
	systemctl enable --now punctuald.socket
	is inactive property ActiveState
	is 'srw-rw-rw- root root' stat -c '%A %U %G' $socket
	punctual ctl status
	is 'active running' eval 'property ActiveState; property SubState'
	is notify property Type
	is 0 status specs
}

# What is installed, with a group that is let in, EDF beside RM, and a plugin of one's own.
configuration() {
	mkdir -p /etc/punctual
	cp /usr/local/share/punctual/punctuald.toml /usr/local/share/punctual/rules.conf /etc/punctual/
	cat >>/etc/punctual/punctuald.toml <<-'END'
		[[plugin]]
		name = "EDF"
		kind = "EDF"
		[[plugin]]
		name = "harmonic"
		object = "/usr/lib/punctual/harmonic.so"
		priorities = [20, 40]
	END
	echo '@realtime - max_utilization 0.5' >>/etc/punctual/rules.conf
}

a_reload_takes_another_configuration() {
	is 1 eval 'punctual ctl plugins --json | grep -c "\"name\""'
	configuration
	systemctl reload punctuald
	until_so eval '[ "$(punctual ctl plugins --json | grep -c "\"name\"")" = 3 ]'
	# A wrong one changes nothing.
	echo 'nonsense' >>/etc/punctual/rules.conf
	systemctl reload punctuald
	until_so eval 'punctual ctl status | grep -q rules.conf'
	sed -i '$d' /etc/punctual/rules.conf
	systemctl reload punctuald
	until_so eval '! punctual ctl status | grep -q rules.conf'
	is 3 eval 'punctual ctl plugins --json | grep -c "\"name\""'
	is 'active running' eval 'property ActiveState; property SubState'
}

a_user_is_let_in_and_scheduled() {
	begin --period 10ms --runtime 2ms
	until_so is 'SCHED_FIFO|SCHED_RESET_ON_FORK' policy "$waiting"
	is 1 status attached
	end
	until_so eval '[ "$(status specs)" = 0 ]'
	begin --period 10ms --runtime 2ms --plugin harmonic
	until_so is 'SCHED_FIFO|SCHED_RESET_ON_FORK' policy "$waiting"
	end
}

deadlines_lift_the_limit_and_restore_it() {
	is "$before" cat $limit
	begin --period 10ms --runtime 2ms --plugin EDF
	is 'SCHED_DEADLINE|SCHED_RESET_ON_FORK' policy "$waiting"
	is -1 cat $limit
	end
	until_so eval "[ \$(cat $limit) = $before ]"
}

who_has_no_rule_is_refused() {
	code=0
	as bob punctual ctl run --period 10ms --runtime 2ms -- true || code=$?
	[ $code = 6 ]
	punctual rules explain --user bob --period 10ms --runtime 2ms
	punctual rules explain --user alice --period 10ms --runtime 2ms
}

killed_it_is_started_again_and_knows_all() {
	begin --period 10ms --runtime 2ms --plugin EDF
	was=$(property MainPID)
	restarts=$(property NRestarts)
	systemctl kill --signal=KILL punctuald.service
	until_so eval "[ \$(property NRestarts) -gt $restarts ] && [ \$(property ActiveState) = active ]"
	[ "$(property MainPID)" != "$was" ]
	is '1 1' eval 'status specs; status attached'
	is 'SCHED_DEADLINE|SCHED_RESET_ON_FORK' policy "$waiting"
	is -1 cat $limit
	end
	until_so eval '[ "$(status specs)" = 0 ]'
	until_so is "$before" cat $limit
}

killed_often_it_still_comes_back() {
	begin --period 10ms --runtime 2ms --plugin EDF
	for _ in $(seq 8); do
		restarts=$(property NRestarts)
		systemctl kill --signal=KILL punctuald.service
		until_so eval "[ \$(property NRestarts) -gt $restarts ] && [ \$(property ActiveState) = active ]"
	done
	is '1 1' eval 'status specs; status attached'
	end
	until_so eval "[ \$(cat $limit) = $before ]"
}

# Who asks meanwhile waits, and is answered once it is mended.
a_wrong_configuration_is_waited_out() {
	systemctl stop punctuald.service
	echo nonsense >>/etc/punctual/punctuald.toml
	fails systemctl start punctuald.service
	until_so eval '[ "$(property NRestarts)" -gt 6 ]'
	is active property ActiveState punctuald.socket
	status specs >/tmp/answer &
	sed -i '$d' /etc/punctual/punctuald.toml
	wait
	is 0 cat /tmp/answer
}

what_ended_while_it_was_away_is_undone() {
	begin --period 10ms --runtime 2ms --plugin EDF
	systemctl kill --signal=STOP punctuald.service
	end
	systemctl kill --signal=KILL punctuald.service
	until_so eval "[ \$(cat $limit) = $before ]"
	is 0 status specs
}

a_stop_undoes_all() {
	begin --period 10ms --runtime 2ms --plugin EDF
	systemctl stop punctuald.service
	is SCHED_OTHER policy "$waiting"
	is "$before" cat $limit
	is success property Result
	# The socket is there, and whoever asks starts it again.
	is 0 status specs
	end
}

a_kill_by_systemctl_is_a_stop() {
	begin --period 10ms --runtime 2ms
	systemctl kill punctuald.service
	until_so eval '[ "$(property ActiveState)" = inactive ]'
	is SCHED_OTHER policy "$waiting"
	is success property Result
	end
}

it_may_do_nothing_else() {
	punctual ctl status >/dev/null
	main=$(property MainPID)
	# CAP_SYS_PTRACE (19), CAP_SYS_ADMIN (21), CAP_SYS_NICE (23) and CAP_PERFMON (38).
	is 0000004000a80000 sed -n 's/^CapEff:\t//p' "/proc/$main/status"
	is '1 2' sed -n 's/^NoNewPrivs:\t//p; s/^Seccomp:\t//p' "/proc/$main/status"
	inside() { nsenter --target "$main" --mount -- "$@"; }
	fails inside sh -c 'echo x >/etc/x'
	fails inside sh -c 'echo 1 >/proc/sys/kernel/sched_rr_timeslice_ms'
	fails inside sh -c 'echo x >/usr/x'
	inside sh -c 'echo x >/run/punctual/x; rm /run/punctual/x'
	inside sh -c "cat $limit >/tmp/limit; cat /tmp/limit >$limit"
}

the_watch_is_in_order() {
	[ -z "$(systemd-analyze verify --man=no punctual-watch@beat.service 2>&1 | tee /dev/stderr)" ]
	systemd-analyze security --no-pager --threshold=20 punctual-watch@beat.service | tail -n 1
}

# agree WCET: what the jobs of a thread that waits again and again may take.
agree() {
	mkdir -p /etc/punctual
	printf '[[task]]\nname = "beat"\nthread = { comm = "bash" }\nwcet = "%s"\n' "$1" \
		>/etc/punctual/beat.contract.toml
}
metrics() {
	bash -c 'exec 3<>/dev/tcp/127.0.0.1/9464
		printf "GET /metrics HTTP/1.1\r\nHost: lab\r\n\r\n" >&3; cat <&3'
}
# sample NAME VALUE: that it has a value like this, as a pattern.
sample() { metrics | tr -d '\r' | grep -q "^$1{task=\"beat\",term=\"wcet\"} $2"; }

a_watch_starts_and_tells() {
	unit=punctual-watch@beat.service
	# Without a contract there is nothing to watch.
	systemctl start $unit
	is inactive property ActiveState $unit
	agree 1ns
	echo 'OPTIONS=--keep /var/lib/punctual-watch/beat' >/etc/punctual/beat.env
	mkfifo /tmp/beat
	chrt -f 10 bash -c 'exec 3<>/tmp/beat; until read -r -t 0.05 _ <&3; do :; done' &
	systemctl start $unit
	until_so sample punctual_violations_total '[1-9]'
	is 'active running' eval "property ActiveState $unit; property SubState $unit"
	main=$(property MainPID $unit)
	is punctual-watch stat -c %U "/proc/$main"
	# CAP_PERFMON (38) and CAP_BPF (39).
	is 000000c000000000 sed -n 's/^CapEff:\t//p' "/proc/$main/status"
	is '1 2' sed -n 's/^NoNewPrivs:\t//p; s/^Seccomp:\t//p' "/proc/$main/status"
	until_so eval 'journalctl --no-pager -t punctual PUNCTUAL_TASK=beat | grep -q "agreed at most 1 ns"'
	until_so eval 'ls /var/lib/punctual-watch/beat | grep -q .'
	agree 1h
	systemctl reload $unit
	until_so sample punctual_agreed 3600
	is "$main" property MainPID $unit
	systemctl stop $unit
	# That the contract was broken is no failure of the unit.
	is success property Result $unit
	echo >/tmp/beat
	wait
}

# What docs/daemon.md shows of varlinkctl, as it stands there; ReleaseSpec names a spec that is not there.
the_manual_is_right_about_varlinkctl() {
	sed -n 's/ *#.*//; /^S=\|^varlinkctl /p' /lab/daemon.md >"$list"
	[ "$(grep -c '^varlinkctl' "$list")" -ge 5 ]
	while read -r line; do
		case $line in
		*ReleaseSpec*) fails eval "$line" ;;
		*) eval "$line" ;;
		esac
	done <"$list"
}

# unit NAME LINES…: a service of alice's that waits, and its drop-in.
unit() {
	name=$1
	shift
	mkdir -p "/etc/systemd/system/$name.service.d"
	printf '[Service]\nUser=alice\nExecStart=sleep 1000\n' >"/etc/systemd/system/$name.service"
	printf '[X-Punctual]\n' >"/etc/systemd/system/$name.service.d/timing.conf"
	printf '%s\n' "$@" >>"/etc/systemd/system/$name.service.d/timing.conf"
	systemctl daemon-reload
}
no_unit() {
	systemctl stop "$1.service"
	rm -r "/etc/systemd/system/$1.service" "/etc/systemd/system/$1.service.d"
	systemctl daemon-reload
}

a_unit_declares_its_timing() {
	unit control Period=10ms Runtime=2ms Plugin=RM
	systemctl start control.service
	main=$(property MainPID control.service)
	until_so is 'SCHED_FIFO|SCHED_RESET_ON_FORK' policy "$main"
	is alice stat -c %U "/proc/$main"
	systemctl status --no-pager control.service |
		grep 'Status: "spec [0-9]* under RM, 2 ms every 10 ms on processor'
	punctual ctl list | grep control.service
	systemctl restart control.service
	until_so is 'SCHED_FIFO|SCHED_RESET_ON_FORK' policy "$(property MainPID control.service)"
	is 1 status specs
	no_unit control
	until_so is 0 status specs
}

# Whatever kernel.perf_event_paranoid says: Debian's level is 3.
runtimes_are_enforced() {
	cat /proc/sys/kernel/perf_event_paranoid
	as alice punctual ctl run --quiet --period 100ms --runtime 5ms --plugin RM -- \
		sh -c 'echo $$ >/tmp/spinning; while :; do :; done' &
	until_so test -s /tmp/spinning
	until_so is SCHED_OTHER policy "$(cat /tmp/spinning)"
	until_so eval 'punctual ctl stats --json | tr -d " \n" | grep "\"overruns\":[1-9]"'
	kill "$(cat /tmp/spinning)"
	wait || true
	rm /tmp/spinning
	fails grep -q 'not enforced' <<-EOF
		$(journalctl --no-pager --quiet -u punctuald.service)
	EOF
}

a_unit_that_is_refused_fails_unless_it_may_not() {
	unit greedy Period=10ms Runtime=11ms
	fails systemctl start greedy.service
	is failed property ActiveState greedy.service
	journalctl --no-pager -u greedy.service | grep 'runtime is 11 ms, but must be at most 10 ms'
	unit greedy Period=10ms Runtime=11ms Required=no
	systemctl start greedy.service
	is SCHED_OTHER policy "$(property MainPID greedy.service)"
	no_unit greedy
}

taken_away_it_leaves_nothing() {
	begin --period 10ms --runtime 2ms --plugin EDF
	systemctl disable --now punctuald.socket punctuald.service
	is SCHED_OTHER policy "$waiting"
	is "$before" cat $limit
	fails test -e $socket
	rm /usr/local/lib/systemd/system/punctuald.service /usr/local/lib/systemd/system/punctuald.socket
	systemctl daemon-reload
	is not-found property LoadState
	end
	is '' find /etc/systemd /run/systemd -name 'punctual*'
}

the_system_is_up() {
	until_so systemctl is-system-running || {
		systemctl --failed --no-pager
		return 1
	}
}

all='the_system_is_up units_are_in_order little_is_exposed the_first_request_starts_it
	a_reload_takes_another_configuration a_user_is_let_in_and_scheduled
	deadlines_lift_the_limit_and_restore_it who_has_no_rule_is_refused
	killed_it_is_started_again_and_knows_all killed_often_it_still_comes_back
	a_wrong_configuration_is_waited_out what_ended_while_it_was_away_is_undone
	runtimes_are_enforced
	a_unit_declares_its_timing a_unit_that_is_refused_fails_unless_it_may_not
	a_stop_undoes_all a_kill_by_systemctl_is_a_stop it_may_do_nothing_else
	the_watch_is_in_order a_watch_starts_and_tells'
for name in $all; do
	check "$name"
done
if command -v varlinkctl >/dev/null; then
	check the_manual_is_right_about_varlinkctl
else
	echo 'test systemd::the_manual_is_right_about_varlinkctl ... ignored (this systemd has no varlinkctl)'
	ignored=1
fi
check taken_away_it_leaves_nothing
echo
if [ $failed = 0 ]; then result=ok; else result=FAILED; fi
echo "test result: $result. $passed passed; $failed failed; $ignored ignored"
[ $failed = 0 ]
