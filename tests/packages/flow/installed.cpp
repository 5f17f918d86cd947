// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Starts and stops the installed executor.
#include <cstdio>
#include <punctual/flow.hpp>

int main()
{
	punctual::flow::Scheduler scheduler;
	if (punctual::flow::Status status = scheduler.start(punctual::flow::Settings{}); !status)
		return status.print(stderr);
	if (punctual::flow::Status status = scheduler.stop(); !status)
		return status.print(stderr);
	return 0;
}
