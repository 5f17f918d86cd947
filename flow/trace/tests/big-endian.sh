#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests the contents of traces on a 32-bit big-endian machine: PowerPC, in QEMU. babeltrace2 is the host's.
#
#   big-endian.sh SOURCES FOLDER
set -eu
sources=$1
folder=$2
mkdir -p "$folder"

# build NAME PORT SOURCE…
build() {
	name=$1
	port=$2
	shift 2
	(
		cd "$sources/src"
		powerpc-linux-gnu-gcc -std=c99 -O2 -static -pthread -I../include -I../tests \
			-DPUNCTUAL_TRACE=1 "-DPUNCTUAL_TRACE_PORT=\"$port\"" \
			"$@" "../tests/$name.c" ../tests/reading.c -o "$folder/$name"
	)
}
build events port_posix.h trace.c check.c metadata.c files.c posix.c
build notes port_posix.h trace.c check.c metadata.c files.c posix.c
build bare port_bare.h trace.c check.c metadata.c bare.c
for name in events notes bare; do
	qemu-ppc "$folder/$name" "$folder/$name.trace"
	grep -q 'byte_order = be;' "$folder/$name.trace/metadata"
done
