#!/bin/sh
# Runs as root in a clean system: installs the package and then the tarball, uses them as people would, and
# removes them. scripts/packages starts it. Ends with 0 if everything worked; says what did not.
#
#   inside.sh VERSION
set -eu
version=$1
cd /try

fail() {
	echo "inside: $*" >&2
	exit 1
}
# step WHAT COMMAND…: shows the command's output only if it fails.
step() {
	what=$1
	shift
	"$@" >/try/log 2>&1 || {
		cat /try/log >&2
		fail "$what: $* failed"
	}
}

# use PREFIX: everything that was installed.
use() {
	[ "$(punctual --version)" = "punctual $version" ] || fail "punctual --version: $(punctual --version)"
	step 'reading a recording' punctual replay demo --force -o demo.timing.json
	step 'showing models' punctual show demo.timing.json
	step 'checking this kernel' punctual doctor
	step 'observing' punctual extract --for 1s
	step 'manual pages' man -w punctual punctual-extract punctuald
	[ -f "$1/share/bash-completion/completions/punctual" ] || fail 'no completions'
	# Where zsh of Debian and Ubuntu looks, and where others do.
	zsh=site-functions
	if [ "$1" = /usr ]; then zsh=vendor-completions; fi
	[ -f "$1/share/zsh/$zsh/_punctual" ] || fail "no completion of zsh in $1/share/zsh/$zsh"
	# shellcheck disable=SC2016 # expanded by the inner shell
	step 'compiling with libpunctual' sh -c 'cc client.c -o client $(pkg-config --cflags --libs punctual)'
	daemon
	step 'removing the client' rm client
}

# The daemon answers the command and the client, and ends when asked.
daemon() {
	mkdir -p /run/punctual
	punctuald >/try/daemon.log 2>&1 &
	daemon=$!
	tries=0
	until punctual ctl list >/dev/null 2>&1; do
		tries=$((tries + 1))
		if [ "$tries" = 600 ] || ! kill -0 "$daemon" 2>/dev/null; then
			cat /try/daemon.log >&2
			fail 'punctuald does not answer'
		fi
		sleep 0.1
	done
	step 'a client of libpunctual' ./client
	kill "$daemon"
	wait "$daemon" || fail "punctuald ended with $?"
}

gone() {
	left=$(find / -xdev -name '*punctual*' ! -path '/try/*' ! -path '/var/lib/dpkg/*' ! -path '/var/log/*' \
		! -path '/var/cache/*' ! -path '/run/*' 2>/dev/null || true)
	[ -z "$left" ] || fail "left behind: $left"
}

step 'installing the package' dpkg -i punctual.deb
use /usr
[ -f /etc/punctual/rules.conf ] || fail 'no rules'
step 'finding the executor' cmake -S flow -B build
step 'linking the executor' cmake --build build
step 'running the executor' ./build/installed
step 'removing the package' dpkg --purge punctual
gone

step 'unpacking the tarball' tar -C /usr/local --strip-components=1 -xf punctual.tar.gz
step 'telling the linker' ldconfig
# The shell remembers where commands were.
hash -r
use /usr/local
