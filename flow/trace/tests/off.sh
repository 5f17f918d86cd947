#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Switched off at compile time, the tracer leaves nothing: no symbols, and the same instructions as without
# calls.
#
#   off.sh SOURCES FOLDER CC…
set -eu
sources=$1
folder=$2
shift 2

fail() {
	echo "$*" >&2
	exit 1
}

# compile NAME FLAG…: into $folder/NAME.o; its instructions into NAME.code, without the file's name.
compile() {
	object=$folder/$1
	shift
	"$cc" -std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror -I"$sources/include" "$@" \
		-c "$sources/tests/off.c" -o "$object.o"
	objdump -d -r "$object.o" | sed '/file format/d' >"$object.code"
	[ -s "$object.code" ] || fail "objdump shows nothing of $object.o"
}

command -v objdump >/dev/null 2>&1 || {
	echo 'SKIPPED: there is no objdump here'
	exit 77
}
mkdir -p "$folder"
for cc; do
	command -v "$cc" >/dev/null 2>&1 || continue
	for level in -O1 -O2 -O3 -Os; do
		compile without "$level" -DWITHOUT_CALLS
		compile undefined "$level"
		compile off "$level" -DPUNCTUAL_TRACE=0
		compile on "$level" -DPUNCTUAL_TRACE=1
		for name in undefined off; do
			cmp "$folder/without.code" "$folder/$name.code" ||
				fail "$cc $level: the code differs when tracing is $name"
			! nm "$folder/$name.o" | grep punctual ||
				fail "$cc $level: symbols are left when tracing is $name"
		done
		# This test can fail: with tracing, the code and the symbols are there.
		! cmp -s "$folder/without.code" "$folder/on.code" || fail "$cc $level: tracing makes no difference"
		nm "$folder/on.o" | grep -q ' U punctual_trace_next_packet' ||
			fail "$cc $level: tracing has no symbols"
	done
done
