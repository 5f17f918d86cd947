#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Another project finds the installed package and links to it: on, and off.
#
#   installed.sh BUILD FOLDER
set -eu
build=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder/project"
cmake --install "$build" --prefix "$folder/prefix" >"$folder/install.log"
cat >"$folder/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(consumer LANGUAGES C)
find_package(punctual-flow 0.1 REQUIRED)
foreach(library trace trace-off)
	add_executable(with-${library} main.c)
	target_link_libraries(with-${library} PRIVATE punctual::${library})
endforeach()
CMAKE
cat >"$folder/project/main.c" <<'C'
#include <punctual/trace.h>
#include <stdio.h>

int main(int count, char **arguments)
{
	struct punctual_trace_config config = {0};
	struct punctual_trace_statistics statistics;

	config.producers = 1;
	config.folder = arguments[count - 1];
	if (punctual_trace_begin(&config) != PUNCTUAL_TRACE_OK)
		return puts(punctual_trace_message()), 1;
	punctual_trace_push(1, 0);
	if (punctual_trace_end(&statistics) != PUNCTUAL_TRACE_OK)
		return 1;
	printf("%d\n", (int)statistics.events);
	return 0;
}
C
cmake -S "$folder/project" -B "$folder/project/build" \
	-DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/configure.log"
cmake --build "$folder/project/build" >"$folder/build.log"
[ "$("$folder/project/build/with-trace" "$folder/on")" = 1 ]
[ "$("$folder/project/build/with-trace-off" "$folder/off")" = 0 ]
[ -s "$folder/on/stream_0" ] && [ ! -e "$folder/off" ]
