/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads with names, which wait until standard input ends: the first argument is the first
 * thread's name, which it takes last; then comes one thread for each. Each has its name before the
 * next one is started; one after a colon has it only when a line comes.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static sem_t started, line;

static void *idle(void *argument)
{
	const char *name = argument;

	if (*name == ':') {
		name++;
		pthread_setname_np(pthread_self(), "nameless");
		sem_post(&started);
		sem_wait(&line);
	}
	pthread_setname_np(pthread_self(), name);
	sem_post(&started);
	for (;;)
		pause();
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	int character;

	sem_init(&started, 0, 0);
	sem_init(&line, 0, 0);
	for (int i = 2; i < count; i++) {
		pthread_create(&thread, NULL, idle, arguments[i]);
		sem_wait(&started);
	}
	/* Only now: each new thread has this one's name until it takes its own. */
	if (count > 1)
		pthread_setname_np(pthread_self(), arguments[1]);
	while ((character = getchar()) != EOF) {
		if (character == '\n')
			sem_post(&line);
	}
	return 9;
}
