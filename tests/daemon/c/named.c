/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads with names, which wait until standard input ends. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *idle(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (;;)
		pause();
	return NULL;
}

int main(void)
{
	char *names[] = { "control", "audio", "audio", "unknown" };
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, idle, names[i]);
	while (getchar() != EOF)
		;
	return 9;
}
