/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Asks the installed daemon, through the installed library, whether it is there. */
#include <punctual.h>
#include <stdio.h>

int main(void)
{
	struct punctual *connection;
	if (punctual_connect(NULL, &connection) < 0 || punctual_ping(connection) < 0) {
		fprintf(stderr, "client: %s\n", punctual_last_error_message());
		return 1;
	}
	punctual_disconnect(connection);
	return 0;
}
