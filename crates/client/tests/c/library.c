/* punctual.h, function by function: what each promises. */
#include <errno.h>
#include <pthread.h>
#include <punctual.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not so: %s (last error %s: %s)\n", __FILE__, \
				__LINE__, #what, punctual_error_name(punctual_last_error()), \
				punctual_last_error_message()); \
			return 1; \
		} \
	} while (0)

#define MS 1000000ull

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

/* Whether the thread has this policy, or gets it: one that has taken more than its runtime, on a
 * slow machine or because of a slow library, is demoted until its next period; and a spec that gets
 * what others have taken begins when that is paid. */
static bool becomes(int expected)
{
	for (int ms = 0; ms < 20000; ms++) {
		if (policy() == expected)
			return true;
		usleep(1000);
	}
	return false;
}

static int arguments(struct punctual *connection)
{
	struct punctual_params *params = punctual_params_new();
	uint64_t ns = 7;
	uint32_t priority = 7;
	char plugin[8] = "-";

	CHECK(punctual_last_error() == PUNCTUAL_OK &&
		strcmp(punctual_last_error_message(), "") == 0);
	CHECK(punctual_params_get_runtime(params, &ns) == 0 &&
		punctual_params_get_period(params, &ns) == 0 && ns == 7);
	CHECK(punctual_params_get_priority(params, &priority) == 0 && priority == 7);
	CHECK(punctual_params_get_plugin(params, plugin, sizeof plugin) == 0 &&
		strcmp(plugin, "-") == 0);
	CHECK(punctual_params_get_ignore_admission(params) == 0);

	CHECK(punctual_params_set_runtime(params, 1) == 0 &&
		punctual_params_get_runtime(params, &ns) == 1 && ns == 1);
	CHECK(punctual_params_set_desired_runtime(params, 2) == 0 &&
		punctual_params_get_desired_runtime(params, &ns) == 1 && ns == 2);
	CHECK(punctual_params_set_deadline(params, 3) == 0 &&
		punctual_params_get_deadline(params, &ns) == 1 && ns == 3);
	CHECK(punctual_params_set_period(params, 4) == 0 &&
		punctual_params_get_period(params, &ns) == 1 && ns == 4);
	CHECK(punctual_params_set_priority(params, 5) == 0 &&
		punctual_params_get_priority(params, &priority) == 1 && priority == 5);
	CHECK(punctual_params_set_ignore_admission(params, true) == 0 &&
		punctual_params_get_ignore_admission(params) == 1);
	CHECK(punctual_params_set_plugin(params, "a long name") == 0);
	CHECK(punctual_params_get_plugin(params, plugin, sizeof plugin) == 1 &&
		strcmp(plugin, "a long ") == 0);
	CHECK(punctual_params_get_plugin(params, NULL, 0) == 1 &&
		punctual_params_get_period(params, NULL) == 1);
	CHECK(punctual_params_set_plugin(params, NULL) == 0 &&
		punctual_params_get_plugin(params, plugin, sizeof plugin) == 0);
	CHECK(punctual_params_set_plugin(params, "\xff") == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_params_clear(params) == 0 && punctual_params_get_period(params, &ns) == 0);

	/* NULL is an error wherever it makes no sense, and ignored by what ends handles. */
	struct punctual_spec *spec = NULL;
	CHECK(punctual_connect(NULL, NULL) == PUNCTUAL_ERROR_INVALID &&
		punctual_set_interactive(NULL, true) == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_params_set_period(NULL, 1) == PUNCTUAL_ERROR_INVALID &&
		punctual_params_get_period(NULL, &ns) == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_spec_create(NULL, params, NULL, &spec) == PUNCTUAL_ERROR_INVALID && !spec);
	CHECK(punctual_spec_create(connection, NULL, NULL, &spec) == PUNCTUAL_ERROR_INVALID &&
		!spec);
	CHECK(punctual_spec_create(connection, params, NULL, NULL) == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_spec_change(NULL, params) == PUNCTUAL_ERROR_INVALID &&
		punctual_spec_attach(NULL, 0) == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_spec_detach(NULL) == PUNCTUAL_ERROR_INVALID &&
		punctual_spec_release(NULL) == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_spec_start(NULL) == PUNCTUAL_ERROR_INVALID &&
		punctual_spec_wait_period(NULL) == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_list_plugins(connection, NULL) == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_last_error() == PUNCTUAL_ERROR_INVALID &&
		strstr(punctual_last_error_message(), "the list"));
	punctual_disconnect(NULL);
	punctual_params_free(NULL);
	punctual_spec_free(NULL);
	punctual_plugin_list_free(NULL);
	punctual_params_free(params);

	CHECK(punctual_connect("/nowhere/at/all", &connection) == PUNCTUAL_ERROR_UNREACHABLE);
	CHECK(strstr(punctual_last_error_message(), "/nowhere/at/all"));
	return 0;
}

static int life(struct punctual *connection)
{
	struct punctual_params *params = punctual_params_new();
	struct punctual_spec *spec = NULL;
	char plugin[64];
	uint64_t ns;

	/* Nothing can be admitted of nothing; zero is a value. */
	CHECK(punctual_spec_create(connection, params, NULL, &spec) < 0 && !spec);
	punctual_params_set_period(params, 20 * MS);
	punctual_params_set_runtime(params, 0);
	CHECK(punctual_spec_create(connection, params, NULL, &spec) ==
			PUNCTUAL_ERROR_OUT_OF_BOUNDS &&
		!spec);
	CHECK(strstr(punctual_last_error_message(), "runtime is 0 ns"));
	punctual_params_set_runtime(params, UINT64_MAX);
	CHECK(punctual_spec_create(connection, params, NULL, &spec) ==
			PUNCTUAL_ERROR_OUT_OF_BOUNDS &&
		!spec);
	punctual_params_set_runtime(params, 10 * MS);
	punctual_params_set_plugin(params, "no such");
	CHECK(punctual_spec_create(connection, params, NULL, &spec) ==
			PUNCTUAL_ERROR_NO_SUCH_PLUGIN &&
		!spec);
	punctual_params_set_plugin(params, "RM");

	CHECK(punctual_spec_create(connection, params, "a name", &spec) == PUNCTUAL_OK && spec);
	CHECK(punctual_spec_get_accepted_runtime(spec, &ns) == 1 && ns == 10 * MS);
	CHECK(punctual_spec_get_plugin(spec, plugin, sizeof plugin) == 0 &&
		strcmp(plugin, "RM") == 0);
	CHECK(punctual_spec_get_policy(spec) == PUNCTUAL_POLICY_FIFO &&
		punctual_spec_get_policy_priority(spec) > 0);
	CHECK(punctual_spec_get_processor(spec) >= 0 && punctual_spec_is_partial(spec) == 0 &&
		punctual_spec_is_admission_ignored(spec) == 0);

	int before = policy();
	CHECK(punctual_spec_detach(spec) == PUNCTUAL_ERROR_NOT_ATTACHED);
	CHECK(punctual_spec_attach(spec, -1) == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_spec_attach(spec, 0) == PUNCTUAL_OK && becomes(SCHED_FIFO));
	CHECK(punctual_spec_attach(spec, 0) == PUNCTUAL_ERROR_ALREADY_ATTACHED);

	struct punctual_spec_list *specs;
	CHECK(punctual_list_specs(connection, &specs) == 0);
	const struct punctual_spec_info *found = NULL;
	for (size_t i = 0; i < specs->count; i++)
		if (specs->items[i]->id == punctual_spec_get_id(spec))
			found = specs->items[i];
	CHECK(found && strcmp(found->name, "a name") == 0 && strcmp(found->plugin, "RM") == 0);
	CHECK(found->process == getpid() && found->thread == (pid_t)syscall(SYS_gettid) &&
		found->user == getuid());
	CHECK(punctual_params_get_period(found->params, &ns) == 1 && ns == 20 * MS &&
		found->accepted_runtime_ns == 10 * MS);
	CHECK(found->policy == PUNCTUAL_POLICY_FIFO && found->policy_priority > 0 &&
		!found->partial && !found->admission_ignored);
	punctual_spec_list_free(specs);

	struct punctual_plugin_list *plugins;
	CHECK(punctual_list_plugins(connection, &plugins) == 0 && plugins->count > 0);
	const struct punctual_plugin *rm = NULL;
	for (size_t i = 0; i < plugins->count; i++)
		if (strcmp(plugins->items[i]->name, "RM") == 0)
			rm = plugins->items[i];
	CHECK(rm && rm->processor_count > 0 && rm->threshold > 0 && rm->priority_min > 0 &&
		rm->priority_max >= rm->priority_min);
	uint32_t carried = 0;
	for (size_t i = 0; i < rm->processor_count; i++)
		carried += rm->processors[i].specs;
	CHECK(carried >= 1 && strlen(rm->kind) > 0 && strlen(rm->admission) > 0);
	punctual_plugin_list_free(plugins);

	struct punctual_client_list *clients;
	CHECK(punctual_list_clients(connection, &clients) == 0);
	bool listed = false;
	for (size_t i = 0; i < clients->count; i++)
		listed |= clients->items[i]->process == getpid() && clients->items[i]->specs >= 1;
	CHECK(listed);
	punctual_client_list_free(clients);

	/* A change that fails changes nothing; one that succeeds may go to another plugin. */
	punctual_params_set_runtime(params, 30 * MS);
	CHECK(punctual_spec_change(spec, params) < 0 && becomes(SCHED_FIFO));
	punctual_params_set_runtime(params, 10 * MS);
	punctual_params_set_priority(params, 10);
	punctual_params_set_plugin(params, "RR");
	CHECK(punctual_spec_change(spec, params) == 0 && becomes(SCHED_RR));
	CHECK(punctual_spec_get_plugin(spec, plugin, sizeof plugin) == 0 &&
		strcmp(plugin, "RR") == 0);

	CHECK(punctual_spec_detach(spec) == 0 && policy() == before);
	CHECK(punctual_spec_release(spec) == 0);
	punctual_params_free(params);
	return 0;
}

static void nothing(int signal)
{
	(void)signal;
}

static uint64_t now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static int loop(struct punctual *connection)
{
	struct punctual_params *params = punctual_params_new();
	struct punctual_spec *spec;
	uint64_t first, release, period = 10 * MS;

	punctual_params_set_priority(params, 10);
	punctual_params_set_plugin(params, "FP");
	CHECK(punctual_spec_create(connection, params, NULL, &spec) == 0);
	CHECK(punctual_spec_get_accepted_runtime(spec, NULL) == 0);
	CHECK(punctual_spec_start(spec) == PUNCTUAL_ERROR_INVALID &&
		strstr(punctual_last_error_message(), "no period"));
	CHECK(punctual_spec_release(spec) == 0);

	punctual_params_set_period(params, period);
	CHECK(punctual_spec_create(connection, params, NULL, &spec) == 0);
	CHECK(punctual_spec_wait_period(spec) == PUNCTUAL_ERROR_INVALID &&
		punctual_spec_get_release(spec, NULL) == 0);

	/* Signals must not end the sleep: one comes every millisecond. */
	struct sigaction action = {.sa_handler = nothing};
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	sigaction(SIGALRM, &action, NULL);
	CHECK(punctual_spec_start(spec) == 0 && punctual_spec_get_release(spec, &first) == 1);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uint64_t job = 1; job <= 5; job++) {
		CHECK(punctual_spec_wait_period(spec) >= 0);
		CHECK(punctual_spec_get_release(spec, &release) == 1 &&
			release == first + job * period && now() >= release);
	}
	setitimer(ITIMER_REAL, &never, NULL);

	/* A job that takes more than two periods is late; so is the next, which was released in
	 * time. Releases do not shift. */
	CHECK(punctual_spec_start(spec) == 0 && punctual_spec_get_deadline_misses(spec) == 0 &&
		punctual_spec_get_release(spec, &first) == 1);
	while (now() < first + 2 * period + period / 2)
		usleep(1000);
	CHECK(punctual_spec_wait_period(spec) == 1 && punctual_spec_wait_period(spec) == 1);
	CHECK(punctual_spec_get_deadline_misses(spec) >= 2 &&
		punctual_spec_get_overruns(spec) == 0);
	/* The daemon shows what the loop says. */
	struct punctual_spec_list *specs;
	const struct punctual_spec_info *info = NULL;
	CHECK(punctual_list_specs(connection, &specs) == 0);
	for (size_t at = 0; at < specs->count; at++)
		if (specs->items[at]->id == punctual_spec_get_id(spec))
			info = specs->items[at];
	CHECK(info && info->says && info->says_jobs == 2 && info->says_misses == 2 &&
		info->says_worst_response_ns > 2 * period);
	punctual_spec_list_free(specs);
	CHECK(punctual_spec_get_release(spec, &release) == 1 && release == first + 2 * period);
	CHECK(punctual_spec_release(spec) == 0);
	punctual_params_free(params);
	return 0;
}

/* One mode gives way to another: both at once would be too much for the processors. */
static int modes(struct punctual *connection)
{
	struct punctual_params *params = punctual_params_new();
	struct punctual_spec *first = NULL, *second = NULL;
	char plugin[8];
	uint64_t ns;

	punctual_params_set_period(params, 100 * MS);
	punctual_params_set_runtime(params, 10 * MS);
	punctual_params_set_plugin(params, "RM");
	CHECK(punctual_spec_create(connection, params, "first", &first) == 0);
	CHECK(punctual_spec_create(connection, params, "second", &second) == 0);
	CHECK(punctual_spec_attach(second, 0) == 0);
	uint64_t id = punctual_spec_get_id(second);

	struct punctual_params *most = punctual_params_new();
	punctual_params_set_period(most, 200 * MS);
	punctual_params_set_runtime(most, 20 * MS);
	punctual_params_set_plugin(most, "RM");
	struct punctual_params *none = punctual_params_new();
	punctual_params_set_plugin(none, "no such");
	struct punctual_replacement steps[] = {{.params = none, .name = "third"},
		{.spec = second, .params = most}, {.spec = first}};

	/* Nothing has changed after an error. */
	CHECK(punctual_replace_specs(NULL, steps, 3) == PUNCTUAL_ERROR_INVALID &&
		punctual_replace_specs(connection, NULL, 3) == PUNCTUAL_ERROR_INVALID);
	CHECK(punctual_replace_specs(connection, steps, 3) == PUNCTUAL_ERROR_NO_SUCH_PLUGIN);
	CHECK(!steps[0].spec && steps[1].spec == second && steps[2].spec == first);
	CHECK(punctual_spec_get_accepted_runtime(second, &ns) == 1 && ns == 10 * MS);
	struct punctual_replacement twice[] = {{.spec = first}, {.spec = first}};
	CHECK(punctual_replace_specs(connection, twice, 2) == PUNCTUAL_ERROR_INVALID &&
		strstr(punctual_last_error_message(), "twice"));
	struct punctual_replacement nothing[] = {{.name = "of no parameters"}};
	CHECK(punctual_replace_specs(connection, nothing, 1) == PUNCTUAL_ERROR_INVALID);

	punctual_params_set_plugin(none, "RM");
	punctual_params_set_period(none, 50 * MS);
	punctual_params_set_runtime(none, 5 * MS);
	CHECK(punctual_replace_specs(connection, steps, 3) == 0);
	CHECK(steps[0].spec && steps[1].spec == second && !steps[2].spec);
	CHECK(punctual_spec_get_accepted_runtime(second, &ns) == 1 && ns == 20 * MS);
	CHECK(punctual_spec_get_id(second) == id && becomes(SCHED_FIFO));
	CHECK(punctual_spec_get_accepted_runtime(steps[0].spec, &ns) == 1 && ns == 5 * MS);
	CHECK(punctual_spec_get_plugin(steps[0].spec, plugin, sizeof plugin) == 0 &&
		strcmp(plugin, "RM") == 0);
	CHECK(punctual_spec_release(steps[0].spec) == 0 && punctual_spec_release(second) == 0);
	CHECK(punctual_replace_specs(connection, steps, 0) == 0);
	punctual_params_free(none);
	punctual_params_free(most);
	punctual_params_free(params);
	return 0;
}

static int children(struct punctual *connection, const struct punctual_spec *of_parent)
{
	pid_t child = fork();
	if (child == 0) {
		struct punctual *own = NULL;
		struct punctual_spec_list *specs;
		if (punctual_ping(connection) != PUNCTUAL_ERROR_FORKED ||
			punctual_spec_attach((struct punctual_spec *)of_parent, 0) !=
				PUNCTUAL_ERROR_FORKED)
			_exit(2);
		punctual_disconnect(connection);
		if (punctual_connect(NULL, &own) != 0 || punctual_ping(own) != 0)
			_exit(3);
		/* The parent's spec is seen, and is the parent's. */
		if (punctual_list_specs(own, &specs) != 0)
			_exit(4);
		for (size_t i = 0; i < specs->count; i++)
			if (specs->items[i]->id == punctual_spec_get_id(of_parent) &&
				specs->items[i]->process == getppid())
				_exit(0);
		_exit(5);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 0);
	CHECK(punctual_ping(connection) == 0);
	return 0;
}

static struct punctual *shared;

static void *many_calls(void *unused)
{
	(void)unused;
	struct punctual_params *params = punctual_params_new();
	char own[32];
	snprintf(own, sizeof own, "no %ld", (long)syscall(SYS_gettid));
	for (int round = 0; round < 50; round++) {
		struct punctual_spec *spec;
		punctual_params_clear(params);
		punctual_params_set_priority(params, 5);
		punctual_params_set_plugin(params, "FP");
		if (punctual_spec_create(shared, params, own, &spec) != 0)
			return "create";
		/* Errors are the thread's own. */
		punctual_params_set_plugin(params, own);
		if (punctual_spec_change(spec, params) != PUNCTUAL_ERROR_NO_SUCH_PLUGIN ||
			!strstr(punctual_last_error_message(), own))
			return "change";
		if (punctual_spec_attach(spec, 0) != 0 || policy() != SCHED_FIFO)
			return "attach";
		if (punctual_spec_release(spec) != 0 || policy() != SCHED_OTHER)
			return "release";
	}
	punctual_params_free(params);
	return NULL;
}

static int threads(void)
{
	pthread_t thread[4];
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, many_calls, NULL) == 0);
	for (int i = 0; i < 4; i++) {
		void *failed;
		pthread_join(thread[i], &failed);
		if (failed) {
			fprintf(stderr, "a thread failed to %s\n", (char *)failed);
			return 1;
		}
	}
	CHECK(punctual_last_error() != PUNCTUAL_ERROR_NO_SUCH_PLUGIN);
	return 0;
}

int main(void)
{
	struct punctual *connection = NULL;
	CHECK(punctual_connect(NULL, &connection) == 0 && punctual_ping(connection) == 0);
	CHECK(punctual_set_timeout(connection, 20000 * MS) == 0 && punctual_ping(connection) == 0);
	/* Whether somebody may be asked makes no difference to root. */
	CHECK(punctual_set_interactive(connection, true) == 0 && punctual_ping(connection) == 0);
	CHECK(punctual_set_interactive(connection, false) == 0);
	if (arguments(connection) || life(connection) || loop(connection) || modes(connection))
		return 1;

	struct punctual_params *params = punctual_params_new();
	struct punctual_spec *spec;
	punctual_params_set_priority(params, 5);
	CHECK(punctual_spec_create(connection, params, NULL, &spec) == 0);
	punctual_params_free(params);
	if (children(connection, spec))
		return 1;
	shared = connection;
	if (threads())
		return 1;
	/* The handle of a spec outlives that of its connection. */
	punctual_disconnect(connection);
	CHECK(punctual_spec_attach(spec, 0) == 0 && punctual_spec_release(spec) == 0);
	puts("all is so");
	return 0;
}
