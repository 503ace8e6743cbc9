/* The actor: reads the node that PAYLOAD_NODE names and carries it out, step by step. What it is called and
 * what its arguments say is up to whoever started it; they mean nothing to it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actor.h"

static void must(int result, const char *what, const char *path)
{
	if (result)
		die("%s %s", what, path);
}

static void perform(const char *node);

/* A forked child goes on with a node of its own. */
static void forked(int is_child)
{
	if (!is_child)
		return;
	perform(getenv("PAYLOAD_NODE"));
	_exit(0);
}

/* One step. `f` are its fields, f[0] its name; after the last comes a null pointer. */
static void step(char **f, int n)
{
	const char *s = f[0];

#define IS(name, fields) (!strcmp(s, name) && n >= (fields) + 1)
	if (IS("user", 1))
		burn(number(f[1]));
	else if (IS("kernel", 1))
		burn_kernel(number(f[1]));
	else if (IS("calls", 1))
		cheap_calls(number(f[1]));
	else if (IS("memory", 1))
		heap_fill(number(f[1]));
	else if (IS("dirty", 1))
		heap_dirty(number(f[1]) << 10);
	else if (IS("load", 1))
		load(f[1]);
	else if (IS("miss", 2))
		miss(f[1], number(f[2]));
	else if (IS("write", 2))
		write_file(f[1], number(f[2]));
	else if (IS("read", 1))
		read_file(f[1]);
	else if (IS("mkdir", 1))
		must(mkdir(f[1], 0755), "cannot create", f[1]);
	else if (IS("chdir", 1))
		must(chdir(f[1]), "cannot enter", f[1]);
	else if (IS("env", 2))
		must(setenv(f[1], f[2], 1), "cannot set", f[1]);
	else if (IS("threads", 3))
		run_threads(number(f[1]), number(f[2]), number(f[3]));
	else if (IS("jobs", 1))
		children_at_most(number(f[1]));
	else if (IS("fork", 1))
		forked(fork_node(f[1]));
	else if (IS("forks", 2))
		fork_many(number(f[1]), number(f[2]));
	else if (IS("spawn", 3))
		spawn_node(f[1], f + 2);
	else if (IS("spawns", 4))
		spawn_many(number(f[1]), number(f[2]), f + 3);
	else if (IS("detach", 3))
		detach_node(f[1], f + 2);
	else if (IS("wait", 0))
		wait_all();
	else if (IS("event", 0))
		event_body(f + 1, n - 1);
	else if (IS("queue", 0))
		queue_make(f + 1, n - 1);
	else if (IS("own-events", 0))
		events_own(f + 1, n - 1);
	else if (IS("take-events", 0))
		events_taken();
	else if (IS("thread-events", 1))
		events_in_threads(number(f[1]));
	else if (IS("finish-events", 1))
		events_finish(f[1]);
	else if (IS("channel", 0))
		channel_make();
	else if (IS("hang-up", 0))
		channel_hang_up();
	else if (IS("drain", 2))
		channel_drain(f[1], (int)number(f[2]));
	else {
		errno = EINVAL;
		die("unknown step %s with %d fields", s, n - 1);
	}
#undef IS
}

static char *whole(const char *path)
{
	struct stat about;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	char *text;

	if (file < 0 || fstat(file, &about))
		die("cannot open the node");
	text = malloc(about.st_size + 1);
	while (text && have < (size_t)about.st_size) {
		ssize_t more = read(file, text + have, about.st_size - have);

		if (more <= 0)
			die("cannot read the node");
		have += more;
	}
	if (!text)
		die("cannot allocate the node");
	text[have] = 0;
	close(file);
	return text;
}

static void perform(const char *node)
{
	char *text, *line, *rest;

	snprintf(place.node, sizeof(place.node), "%s", node);
	place.line = 0;
	text = whole(place.node);
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		int fields = 1, n = 0;
		char **f, *field;

		place.line++;
		if (!*line)
			continue;
		for (const char *c = line; *c; c++)
			fields += *c == '\t';
		f = calloc(fields + 1, sizeof(*f));
		if (!f)
			die("cannot allocate a step");
		while ((field = strsep(&line, "\t")))
			f[n++] = field;
		step(f, n);
		free(f);
	}
	free(text);
	wait_all();
}

int main(int argc, char **argv)
{
	const char *node = getenv("PAYLOAD_NODE");
	sigset_t none;

	if (argc > 0)
		place.program = argv[0];
	/* Whoever supervises blocks signals, and no one below has to inherit that. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!node) {
		errno = EINVAL;
		die("PAYLOAD_NODE is not set: only proctrace-payload can start this");
	}
	perform(node);
	return 0;
}
