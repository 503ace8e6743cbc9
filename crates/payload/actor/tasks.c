/* Children and threads: as many as the step says, and each child's failure is this process's own. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"

extern char **environ;

static uint64_t jobs = UINT64_MAX, running;

static void wait_one(void)
{
	int status;
	pid_t child;

	do
		child = wait(&status);
	while (child < 0 && errno == EINTR);
	if (child < 0)
		die("cannot wait for a child");
	running--;
	if (status) {
		errno = ECHILD;
		die("process %d ended with status 0x%x", (int)child, status);
	}
}

void children_at_most(uint64_t most)
{
	jobs = most ? most : 1;
}

void wait_all(void)
{
	while (running > 0)
		wait_one();
}

/* 0 in the child, as fork(2). */
static pid_t child_of_mine(void)
{
	pid_t child;

	while (running >= jobs)
		wait_one();
	child = fork();
	if (child < 0)
		die("cannot fork");
	if (child) {
		running++;
	} else {
		running = 0;
		jobs = UINT64_MAX;
	}
	return child;
}

/* Another node beside the one that this process carries out. */
static void set_node(const char *node)
{
	char path[4096];
	const char *own = getenv("PAYLOAD_NODE"), *name = strrchr(own, '/');

	if (!strcmp(node, "-"))
		return;
	snprintf(path, sizeof(path), "%.*s/%s", name ? (int)(name - own) : 0, own, node);
	if (setenv("PAYLOAD_NODE", path, 1))
		die("cannot set the node");
}

__attribute__((noreturn)) static void become(const char *node, char **file_and_arguments)
{
	set_node(node);
	execv(file_and_arguments[0], file_and_arguments + 1);
	die("cannot execute %s", file_and_arguments[0]);
}

int fork_node(const char *node)
{
	if (child_of_mine())
		return 0;
	events_forget();
	set_node(node);
	return 1;
}

void fork_many(uint64_t count, uint64_t at_once)
{
	uint64_t before = jobs;

	jobs = at_once;
	while (count--)
		if (!child_of_mine())
			_exit(0);
	jobs = before;
	wait_all();
}

void spawn_node(const char *node, char **file_and_arguments)
{
	if (!child_of_mine())
		become(node, file_and_arguments);
}

void spawn_many(uint64_t count, uint64_t at_once, char **file_and_arguments)
{
	while (count--) {
		pid_t child;

		while (running >= at_once)
			wait_one();
		errno = posix_spawn(&child, file_and_arguments[0], NULL, NULL, file_and_arguments + 1, environ);
		if (errno)
			die("cannot execute %s", file_and_arguments[0]);
		running++;
	}
	wait_all();
}

/* A child whose parent has exited before it does anything, so that no one of ours waits for it. */
void detach_node(const char *node, char **file_and_arguments)
{
	pid_t middle;
	int status;

	wait_all();
	middle = fork();
	if (middle < 0)
		die("cannot fork");
	if (!middle) {
		pid_t self = getpid(), child = fork();

		if (child < 0)
			die("cannot fork");
		if (child)
			_exit(0);
		while (getppid() == self)
			usleep(500);
		become(node, file_and_arguments);
	}
	if (waitpid(middle, &status, 0) != middle || status)
		die("cannot detach");
}

struct crew {
	pthread_barrier_t all_there;
	uint64_t rounds;
};

static void *thread(void *of)
{
	struct crew *crew = of;

	pthread_barrier_wait(&crew->all_there);
	burn(crew->rounds);
	return NULL;
}

void run_threads(uint64_t count, uint64_t at_once, uint64_t rounds)
{
	pthread_t *threads = calloc(at_once ? at_once : 1, sizeof(*threads));
	pthread_attr_t small;

	if (!threads || pthread_attr_init(&small) || pthread_attr_setstacksize(&small, 128 << 10))
		die("cannot allocate threads");
	while (count > 0) {
		uint64_t crew_size = count < at_once ? count : at_once;
		struct crew crew = { .rounds = rounds };

		/* They live at the same time, as those of a real program do. */
		pthread_barrier_init(&crew.all_there, NULL, crew_size);
		for (uint64_t i = 0; i < crew_size; i++) {
			errno = pthread_create(&threads[i], &small, thread, &crew);
			if (errno)
				die("cannot create a thread");
		}
		for (uint64_t i = 0; i < crew_size; i++)
			pthread_join(threads[i], NULL);
		pthread_barrier_destroy(&crew.all_there);
		count -= crew_size;
	}
	pthread_attr_destroy(&small);
	free(threads);
}
