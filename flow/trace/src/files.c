/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _POSIX_C_SOURCE	  200809L
#define _FILE_OFFSET_BITS 64

#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct stream {
	int file;
	/* Whether those packets are followed by one that will be written again. */
	int unfinished;
	/* Final bytes in the file. */
	uint64_t packets;
};

struct punctual_trace_files {
	char *folder;
	int directory;
	uint32_t producers;
	uint32_t packet_size;
	/* The metadata without the threads, which belong at `threads_at`. */
	char *text;
	size_t length;
	size_t threads_at;
	char last[4096];
	struct stream *streams;
};

/* A sink that collects metadata in memory. */
static int collect(void *context, const char *text, size_t length)
{
	struct punctual_trace_files *const files = context;
	char *const longer = realloc(files->text, files->length + length);

	if (!longer)
		return -1;
	memcpy(longer + files->length, text, length);
	files->text = longer;
	files->length += length;
	return 0;
}

static int prepare_metadata(struct punctual_trace_files *files, struct punctual_trace_config config)
{
	config.sink.context = files;
	config.sink.metadata = collect;
	if (punctual_trace_write_env(&config) != 0)
		return ENOMEM;
	files->threads_at = files->length;
	return punctual_trace_write_layout(&config) != 0 ? ENOMEM : 0;
}

static int is_empty(int directory)
{
	const int again = fcntl(directory, F_DUPFD_CLOEXEC, 0);
	DIR *const entries = again < 0 ? NULL : fdopendir(again);
	const struct dirent *entry;
	int count = 0;

	if (!entries) {
		if (again >= 0)
			(void)close(again);
		return 0;
	}
	while ((entry = readdir(entries)) != NULL)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(entries);
	return count == 0;
}

static int open_folder(struct punctual_trace_files *files)
{
	if (mkdir(files->folder, 0777) != 0 && errno != EEXIST)
		return errno;
	files->directory = open(files->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (files->directory < 0)
		return errno;
	return is_empty(files->directory) ? 0 : ENOTEMPTY;
}

static void name_file(
	struct punctual_trace_files *files, char *name, size_t size, uint32_t producer)
{
	(void)snprintf(name, size, "stream_%lu", (unsigned long)producer);
	(void)snprintf(files->last, sizeof files->last, "%s/%s", files->folder, name);
}

static int open_streams(struct punctual_trace_files *files)
{
	char name[32];

	for (uint32_t producer = 0; producer < files->producers; producer++) {
		name_file(files, name, sizeof name, producer);
		files->streams[producer].file = openat(
			files->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (files->streams[producer].file < 0)
			return errno;
	}
	return 0;
}

const char *punctual_trace_files_remedy(int error)
{
	switch (error) {
	case ENOTEMPTY:
		return "name another folder, or remove that one";
	case ENOENT:
		return "make its parent folder first, or name another";
	case ENOSPC:
		return "free some space there, or name a folder elsewhere";
	case EFBIG:
		return "raise the limit on file sizes (ulimit -f), or name a folder elsewhere";
	case EMFILE:
		return "raise the limit on open files (ulimit -n), or use fewer producers";
	case ENOMEM:
		return "free some memory, or make packets, packet_size or producers smaller";
	default:
		return "name a folder that can be written to";
	}
}

static int cannot_make(const char *file, int error)
{
	return punctual_trace_fail(PUNCTUAL_TRACE_IO, "cannot make the trace", file,
		strerror(error), punctual_trace_files_remedy(error));
}

struct punctual_trace_files *punctual_trace_files_open(const struct punctual_trace_config *config)
{
	struct punctual_trace_files *const files = calloc(1, sizeof *files);
	int error = ENOMEM;

	if (files) {
		files->directory = -1;
		files->packet_size = config->packet_size;
		files->folder = malloc(strlen(config->folder) + 1);
		files->streams = calloc(config->producers, sizeof *files->streams);
	}
	if (files && files->folder && files->streams) {
		memcpy(files->folder, config->folder, strlen(config->folder) + 1);
		files->producers = config->producers;
		for (uint32_t producer = 0; producer < files->producers; producer++)
			files->streams[producer].file = -1;
		(void)snprintf(files->last, sizeof files->last, "%s", files->folder);
		error = open_folder(files);
	}
	if (!error)
		return files;
	(void)cannot_make(files ? files->last : config->folder, error);
	punctual_trace_files_abandon(files);
	return NULL;
}

int punctual_trace_files_begin(
	struct punctual_trace_files *files, const struct punctual_trace_config *config)
{
	int error = prepare_metadata(files, *config);

	if (!error)
		error = punctual_trace_files_metadata(files, NULL);
	if (!error)
		error = open_streams(files);
	return error ? cannot_make(files->last, error) : PUNCTUAL_TRACE_OK;
}

static int write_at(int file, const void *bytes, size_t size, uint64_t position)
{
	const unsigned char *next = bytes;

	while (size) {
		const ssize_t written = pwrite(file, next, size, (off_t)position);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return errno;
		if (written == 0)
			return ENOSPC;
		next += written;
		position += (uint64_t)written;
		size -= (size_t)written;
	}
	return 0;
}

static int write_threads(int file, const uint32_t *threads, uint32_t count, uint64_t *position)
{
	for (uint32_t producer = 0; threads && producer < count; producer++) {
		/* Producers may set theirs concurrently. */
		const uint32_t thread = PUNCTUAL_TRACE_LOAD(&threads[producer]);
		char line[64];
		int length;
		int error;

		if (!thread)
			continue;
		length = snprintf(line, sizeof line, "\tthread_%lu = %lu;\n",
			(unsigned long)producer, (unsigned long)thread);
		error = write_at(file, line, (size_t)length, *position);
		if (error)
			return error;
		*position += (uint64_t)length;
	}
	return 0;
}

int punctual_trace_files_metadata(struct punctual_trace_files *files, const uint32_t *threads)
{
	/* Readers ignore files whose names begin with a dot. */
	static const char fresh[] = ".metadata.new";
	uint64_t position = files->threads_at;
	int error = 0;
	int file;

	(void)snprintf(files->last, sizeof files->last, "%s/metadata", files->folder);
	file = openat(files->directory, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (file < 0)
		return errno;
	error = write_at(file, files->text, files->threads_at, 0);
	if (!error)
		error = write_threads(file, threads, files->producers, &position);
	if (!error)
		error = write_at(file, files->text + files->threads_at,
			files->length - files->threads_at, position);
	if (close(file) != 0 && !error)
		error = errno;
	if (!error && renameat(files->directory, fresh, files->directory, "metadata") != 0)
		error = errno;
	if (error)
		(void)unlinkat(files->directory, fresh, 0);
	return error;
}

/*
 * Writes a new packet with one call: no reader may find a whole one without its header. If the
 * packet is already in the file, its header, which has its valid size, is written last: the program
 * may be killed in between or, if a packet is larger than a page, within a write.
 */
static int write_packet(
	struct punctual_trace_files *files, uint32_t producer, const unsigned char *packet)
{
	const struct stream *const stream = &files->streams[producer];
	const uint64_t position = stream->packets * files->packet_size;
	char name[32];
	int error;

	name_file(files, name, sizeof name, producer);
	if (!stream->unfinished)
		return write_at(stream->file, packet, files->packet_size, position);
	error = write_at(stream->file, packet + PUNCTUAL_TRACE_HEAD,
		files->packet_size - PUNCTUAL_TRACE_HEAD, position + PUNCTUAL_TRACE_HEAD);
	return error ? error : write_at(stream->file, packet, PUNCTUAL_TRACE_HEAD, position);
}

int punctual_trace_files_packet(
	struct punctual_trace_files *files, uint32_t producer, const void *packet)
{
	const int error = write_packet(files, producer, packet);

	if (error)
		return error;
	files->streams[producer].unfinished = 0;
	files->streams[producer].packets++;
	return 0;
}

int punctual_trace_files_unfinished(
	struct punctual_trace_files *files, uint32_t producer, const void *packet)
{
	const int error = write_packet(files, producer, packet);

	if (!error)
		files->streams[producer].unfinished = 1;
	return error;
}

const char *punctual_trace_files_last(const struct punctual_trace_files *files)
{
	return files->last;
}

void punctual_trace_files_close(struct punctual_trace_files *files)
{
	for (uint32_t producer = 0; files && producer < files->producers; producer++) {
		const struct stream *const stream = &files->streams[producer];
		const uint64_t whole =
			(stream->packets + (stream->unfinished ? 1 : 0)) * files->packet_size;
		struct stat now;

		/* If that fails too, readers stop at the last whole packet anyway. */
		if (stream->file >= 0 && fstat(stream->file, &now) == 0 &&
			(uint64_t)now.st_size > whole && ftruncate(stream->file, (off_t)whole) != 0)
			continue;
	}
	punctual_trace_files_abandon(files);
}

void punctual_trace_files_abandon(struct punctual_trace_files *files)
{
	if (!files)
		return;
	for (uint32_t producer = 0; producer < files->producers; producer++) {
		if (files->streams[producer].file >= 0)
			(void)close(files->streams[producer].file);
	}
	if (files->directory >= 0)
		(void)close(files->directory);
	free(files->text);
	free(files->streams);
	free(files->folder);
	free(files);
}
