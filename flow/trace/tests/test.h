/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the tests of the tracer share. A test is a program: 0 is success, 77 says that it cannot run
 * here.
 */
#ifndef TEST_H
#define TEST_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the test, saying what does not hold and, as with printf, what was seen instead. */
#define CHECK(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s does not hold: ", __FILE__, __LINE__, \
				#condition); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			exit(1); \
		} \
	} while (0)

#endif
