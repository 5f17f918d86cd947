#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The functions for probes exist under their own names, in a library and in programs, however they are
# optimised. They begin with an instruction that the kernel emulates (nop), and are called, not inlined. With
# tracing off, no symbol of the tracer and no reading of a clock is left.
#
#   symbols.sh SOURCES FOLDER TRACED_LIBRARY UNTRACED_LIBRARY
set -eu
sources=$1
folder=$2
traced=$3
untraced=$4
symbols='punctual_flow_push punctual_flow_activate punctual_flow_start punctual_flow_stop'

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

for tool in nm objdump; do
	command -v "$tool" >/dev/null 2>&1 || {
		echo "SKIPPED: there is no $tool here"
		exit 77
	}
done
mkdir -p "$folder"
# Of a run that was ended.
rm -f "$folder"/*.o

# probed FILE: each symbol is defined once, as a global function; its first instruction is nop (x86, Arm), and
# there are no clones.
probed() {
	nm "$1" >"$folder/names"
	objdump -d --no-show-raw-insn "$1" >"$folder/code"
	for symbol in $symbols; do
		[ "$(grep -c " [Tt] $symbol\$" "$folder/names")" = 1 ] ||
			fail "$1 has no function $symbol, or several"
		! grep " $symbol\.\(constprop\|isra\|part\|lto_priv\)" "$folder/names" ||
			fail "$1 has copies of $symbol"
		first=$(sed -n "/<$symbol>:\$/{n;s/^[^:]*:[[:space:]]*//;s/[[:space:]]*\$//;p;q;}" "$folder/code")
		[ "$first" = nop ] || fail "$1: $symbol begins with \"$first\", not with nop"
		grep -Eq "(call|bl|jmp|b)[a-z]* .*<$symbol(\$|>|@|-)" "$folder/code" ||
			grep -q " $symbol" "$folder/relocations" || fail "$1: $symbol is not called"
	done
}

for library in "$traced" "$untraced"; do
	objdump -r "$library" >"$folder/relocations"
	probed "$library"
done

# Off: no symbol of the tracer in all of the library, and no clock where an activation passes.
! nm "$untraced" | grep punctual_trace || fail "$untraced: something is left of the tracer"
activation=$(cd "$folder" && ar x "$untraced" && ls activation*.o)
! nm "$folder/$activation" | grep -E 'clock|context|Trace' || fail "$untraced: an activation looks at a clock"
! objdump -d "$folder/$activation" | grep -E 'rdtsc|cntvct' ||
	fail "$untraced: an activation reads a counter"
# That this can tell: on, they are there.
nm "$traced" | grep -q punctual_trace_begin || fail "$traced: does not trace"
rm "$folder/$activation"
activation=$(cd "$folder" && ar x "$traced" && ls activation*.o)
nm "$folder/$activation" | grep -q 'Trace5clock' || fail "$traced: an activation looks at no clock"
rm -f "$folder"/*.o

# Programs that contain the library, fully optimised, with and without the protection that puts endbr64 at the
# start of functions. Nothing needs exceptions or RTTI.
tried=0
while read -r cxx flags; do
	command -v "$cxx" >/dev/null 2>&1 || continue
	case "$flags $(uname -m)" in *cf-protection*x86_64) ;; *cf-protection*) continue ;; esac
	: >"$folder/relocations"
	for source in "$sources"/src/*.cpp "$sources/examples/minimal.cpp"; do
		protection=
		case "$source $(uname -m)" in */activation.cpp\ x86_64) protection=-fcf-protection=none ;; esac
		object=$folder/$(basename "$source" .cpp).o
		# shellcheck disable=SC2086
		"$cxx" -std=c++17 ${flags%%-Wl,*} $protection -fno-exceptions -fno-rtti -Wall -Wextra -Werror \
			-Wno-unused-command-line-argument -I"$sources/include" -I"$sources/src" -c "$source" -o "$object"
	done
	# shellcheck disable=SC2086
	"$cxx" -std=c++17 $flags "$folder"/*.o -pthread -o "$folder/program"
	rm "$folder"/*.o
	probed "$folder/program"
	tried=$((tried + 1))
done <<'PROGRAMS'
g++ -O0
g++ -O3 -flto
g++ -Os -ffunction-sections -Wl,--gc-sections
g++ -O2 -fPIC -shared
g++ -O2 -fcf-protection=full
clang++ -O2
clang++ -O3 -fPIC -shared
PROGRAMS
[ "$tried" -gt 0 ] || fail 'there is neither g++ nor clang++'
echo "$tried programs"
