/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A trace's folder: the files `metadata` and `stream_N`. Whatever happens to the program between
 * two of these calls, or inside one, what is in the folder is a trace. Not for users, and not
 * installed.
 */
#ifndef PUNCTUAL_TRACE_FILES_H
#define PUNCTUAL_TRACE_FILES_H

#include "core.h"

struct punctual_trace_files;

/* Makes the folder. NULL: it failed, and punctual_trace_message says why. */
struct punctual_trace_files *punctual_trace_files_open(const struct punctual_trace_config *config);

/* Writes the metadata into it, and makes empty files of streams. PUNCTUAL_TRACE_OK, or _IO, and
 * punctual_trace_message says why. */
int punctual_trace_files_begin(
	struct punctual_trace_files *files, const struct punctual_trace_config *config);

/*
 * Writes the metadata, or what takes their place, with the kernel's numbers of those threads that
 * are not 0 (as many as there are producers). Returns 0 or errno.
 */
int punctual_trace_files_metadata(struct punctual_trace_files *files, const uint32_t *threads);

/* Appends a packet to a stream, or writes it over the one below, if that is there. Returns 0 or
 * errno; then it can be tried again. */
int punctual_trace_files_packet(
	struct punctual_trace_files *files, uint32_t producer, const void *packet);

/* The same for a packet that will be written again, with more in it. */
int punctual_trace_files_unfinished(
	struct punctual_trace_files *files, uint32_t producer, const void *packet);

/* What to do where errno is this, for messages. */
const char *punctual_trace_files_remedy(int error);

/* Which file was written to last: for messages. */
const char *punctual_trace_files_last(const struct punctual_trace_files *files);

/* Cuts off what a failed write has left behind the last whole packets, closes all, and frees. NULL
 * will do. */
void punctual_trace_files_close(struct punctual_trace_files *files);

/* The same after fork, for the child: leaves the files as they are. */
void punctual_trace_files_abandon(struct punctual_trace_files *files);

#endif
