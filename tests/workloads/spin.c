// A real-time thread that never waits.
//
//   spin [--for SECONDS]
#include "workload.h"

int main(int argc, char **argv)
{
	int64_t until = now_ns() + (int64_t)(number_option(argc, argv, "--for", 0.5) * SECOND);
	become_fifo("spin", 20);
	while (now_ns() < until)
		;
	return 0;
}
