#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the example for Cortex-M3, runs it in QEMU, and has `compare` look at its trace.
#
#   cortex-m3.sh SOURCES FOLDER COMPARE
set -eu
sources=$1
folder=$2
compare=$3

for tool in arm-none-eabi-gcc qemu-system-arm; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "SKIPPED: there is no $tool here"
		exit 77
	}
done
rm -rf "$folder"
mkdir -p "$folder/trace"
make --silent -C "$sources/examples/cortex-m3" OUT="$folder" \
	PORT="$sources/tests/port_cortex_m3.h" MORE="$sources/tests/clock_cortex_m3.c"
cd "$folder"
# QEMU's files are where it was started.
timeout 60 qemu-system-arm -M lm3s6965evb -nographic -monitor none -serial none \
	-semihosting-config enable=on,target=native -kernel cortex-m3.elf
mv metadata stream_0 stream_1 trace/
"$compare" "$folder/trace"
