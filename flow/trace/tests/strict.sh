#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The tracer compiles without warnings as strict C99, and its header as C++: with every compiler that is here,
# on and off, with both ports. Cross compilers (also big-endian and 32-bit) compile the part that needs no
# operating system.
#
#   strict.sh SOURCES FOLDER
set -eu
sources=$1
folder=$2
mkdir -p "$folder"
warnings='-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-align -Wundef -Werror'

compile() {
	# shellcheck disable=SC2086 # a list of words
	"$@" $warnings -I"$sources/include" -o "$folder/strict.o"
}

# bare CC: what needs no operating system.
bare() {
	for file in trace check metadata bare; do
		compile "$1" -std=c99 -O2 -DPUNCTUAL_TRACE=1 '-DPUNCTUAL_TRACE_PORT="punctual/trace_bare.h"' \
			-Wstrict-prototypes -c "$sources/src/$file.c"
	done
}

for cc in gcc clang; do
	command -v "$cc" >/dev/null 2>&1 || continue
	for file in trace check metadata files posix; do
		compile "$cc" -std=c99 -O2 -DPUNCTUAL_TRACE=1 -Wstrict-prototypes -c "$sources/src/$file.c"
	done
	bare "$cc"
	echo "$cc"
done
for cc in arm-none-eabi-gcc powerpc-linux-gnu-gcc s390x-linux-gnu-gcc aarch64-linux-gnu-gcc; do
	command -v "$cc" >/dev/null 2>&1 || continue
	bare "$cc"
	echo "$cc"
done
for cxx in g++ clang++; do
	command -v "$cxx" >/dev/null 2>&1 || continue
	for standard in c++11 c++17 c++20; do
		for on in 0 1; do
			printf '%s\n' '#include "punctual/trace.h"' 'void f();' \
				'void f() { punctual_trace_config c{}; (void)punctual_trace_begin(&c);' \
				'punctual_trace_push(1, 2); punctual_trace_count(1, 2); }' |
				compile "$cxx" -std=$standard -O2 -DPUNCTUAL_TRACE=$on -x c++ -c -
		done
	done
	echo "$cxx"
done
