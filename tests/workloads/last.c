// A control loop that ends, and fails, within its last job: no wait ends that. It takes longer than
// the period of 10 ms.
#include "workload.h"

int main(void)
{
	const int64_t period = 10 * MS;
	become_fifo("control", 60);
	int64_t due = now_ns() + period;
	for (int job = 0; job < 40; job++, due += period)
		sleep_until(due);
	burn(25 * MS);
	return 3;
}
