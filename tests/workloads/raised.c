// A control loop whose priority rises within a job of three and a half periods of 10 ms: that job is
// neither task's, and the next ones are late for it.
#include "workload.h"

#include <sched.h>

int main(void)
{
	const int64_t period = 10 * MS;
	become_fifo("control", 60);
	int64_t due = now_ns() + period;
	for (int job = 0; job < 80; job++, due += period) {
		sleep_until(due);
		if (job != 40)
			continue;
		burn(15 * MS);
		must(set_attributes(0, SCHED_FIFO, 70), "sched_setattr");
		burn(20 * MS);
	}
	return 0;
}
