#!/bin/bash
# Runs the tests of punctuald that need a kernel, one program after the other. Arguments: parts of names of
# tests; by default, all tests.
set -u
# As many descriptors as a service manager or a login sets: the kernel's first process has 4096, and two
# thousand connections need two each.
ulimit -n 65536
# What the tests would build is built.
export PUNCTUALD=/usr/local/bin/punctuald PUNCTUAL=/usr/local/bin/punctual
export LIBPUNCTUAL=/lab/daemon PUNCTUAL_COMPILED=/lab/daemon
# Those with random input leave what failed with the sources, which are not here.
export PROPTEST_DISABLE_FAILURE_PERSISTENCE=1
# Wants a compiler, and is about that.
skip=the_header_and_this_file_agree
failed=0
for program in /lab/daemon/tests-*; do
	# The harness takes one name at a time; none matches all.
	for name in "${@:-}"; do
		"$program" --color never --test-threads 1 --nocapture --skip "$skip" "$name" || failed=1
	done
done
exit $failed
