/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The folder of a trace: the files `metadata` and `stream_N`. If the program is killed between two
 * of these calls, or within one, the folder is still a valid trace. Not for users, and not
 * installed.
 */
#ifndef PUNCTUAL_TRACE_FILES_H
#define PUNCTUAL_TRACE_FILES_H

#include "core.h"

struct punctual_trace_files;

/* Makes the folder. Returns NULL if that failed; punctual_trace_message says why. */
struct punctual_trace_files *punctual_trace_files_open(const struct punctual_trace_config *config);

/* Writes the metadata, and makes empty stream files. Returns PUNCTUAL_TRACE_OK, or _IO;
 * punctual_trace_message says why. */
int punctual_trace_files_begin(
	struct punctual_trace_files *files, const struct punctual_trace_config *config);

/*
 * Writes or replaces the metadata, with the TIDs in `threads` (one for each producer; 0 if
 * unknown). Returns 0 or errno.
 */
int punctual_trace_files_metadata(struct punctual_trace_files *files, const uint32_t *threads);

/* Appends a packet to a stream, or replaces an incomplete one (see below). Returns 0 or errno;
 * after an error it can be called again. */
int punctual_trace_files_packet(
	struct punctual_trace_files *files, uint32_t producer, const void *packet);

/* The same for an incomplete packet, which will be written again with more events. */
int punctual_trace_files_unfinished(
	struct punctual_trace_files *files, uint32_t producer, const void *packet);

/* Advice for an errno, for messages. */
const char *punctual_trace_files_remedy(int error);

/* The file last written to, for messages. */
const char *punctual_trace_files_last(const struct punctual_trace_files *files);

/* Truncates the remains of a failed write after the last whole packets, closes all files, and
 * frees. NULL is ignored. */
void punctual_trace_files_close(struct punctual_trace_files *files);

/* The same for the child after a fork: leaves the files as they are. */
void punctual_trace_files_abandon(struct punctual_trace_files *files);

#endif
