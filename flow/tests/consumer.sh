#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Another project finds the installed package, links to it, and traces.
#
#   consumer.sh SOURCES BUILD FOLDER
set -eu
sources=$1
build=$2
folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cmake --install "$build" --prefix "$folder/prefix" >"$folder/install.log"
cmake -S "$sources/tests/consumer" -B "$folder/build" \
	-DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/configure.log"
cmake --build "$folder/build" >"$folder/build.log" || {
	cat "$folder/build.log" >&2
	exit 1
}
[ "$("$folder/build/consumer")" = 'image 1' ]
[ "$("$folder/build/consumer" "$folder/trace")" = 'image 1' ]
[ -s "$folder/trace/metadata" ]
# Nothing of the folder that it was built in.
! grep -rl "$sources" "$folder/prefix/include" "$folder/prefix/lib" --include='*.cmake' --include='*.hpp'
