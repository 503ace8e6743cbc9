/* The event loop: in a single process, in processes that share a queue, or in threads with
 * serialized input and output. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "actor.h"

/* What an event does besides its rounds of computing. */
static struct {
	uint64_t kernel_reads, dirty_kib, input_kib, output_kib, send_kib;
	int level;
	const char *input, *output;
} body;

static struct queue {
	uint64_t next, count, rounds[];
} *queue;

static uint64_t processed;
static double loop_s;
static pthread_mutex_t input_lock = PTHREAD_MUTEX_INITIALIZER, output_lock = PTHREAD_MUTEX_INITIALIZER;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

void event_body(char **settings, int count)
{
	for (int i = 0; i < count; i++) {
		char *equals = strchr(settings[i], '='), *value = equals ? equals + 1 : "";
		size_t bytes = equals ? equals - settings[i] : 0;

#define IS(name) (bytes == strlen(name) && !memcmp(settings[i], name, bytes))
		if (IS("kernel"))
			body.kernel_reads = number(value);
		else if (IS("dirty"))
			body.dirty_kib = number(value);
		else if (IS("input_kib"))
			body.input_kib = number(value);
		else if (IS("output_kib"))
			body.output_kib = number(value);
		else if (IS("send_kib"))
			body.send_kib = number(value);
		else if (IS("level"))
			body.level = (int)number(value);
		else if (IS("input"))
			body.input = strdup(value);
		else if (IS("output"))
			body.output = strdup(value);
		else
			die("unknown setting: %s", settings[i]);
#undef IS
	}
}

static void take_input(uint64_t index)
{
	static unsigned char *bytes;
	uint64_t want = body.input_kib << 10, have = 0;
	int file;

	pthread_mutex_lock(&input_lock);
	file = open(body.input, O_RDONLY | O_CLOEXEC);
	if (!bytes)
		bytes = malloc(BLOCK);
	if (file < 0 || !bytes)
		die("cannot open %s", body.input);
	lseek(file, 0, SEEK_SET);
	while (have < want) {
		ssize_t got = read(file, bytes, want - have < BLOCK ? want - have : BLOCK);

		if (got < 0)
			die("cannot read %s", body.input);
		if (!got)
			lseek(file, 0, SEEK_SET);
		have += got;
	}
	close(file);
	pthread_mutex_unlock(&input_lock);
	(void)index;
}

static void give_output(uint64_t index)
{
	static unsigned char *raw;
	uint64_t left = body.output_kib << 10;
	int file;

	pthread_mutex_lock(&output_lock);
	file = open(body.output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (!raw)
		raw = malloc(BLOCK);
	if (file < 0 || !raw)
		die("cannot open %s", body.output);
	for (; left > 0; left -= left < BLOCK ? left : BLOCK) {
		uint64_t size = left < BLOCK ? left : BLOCK;
		unsigned char *packed = raw;

		fill(raw, size, index + left);
		if (body.level)
			size = pack(raw, size, body.level, &packed);
		if (write(file, packed, size) != (ssize_t)size)
			die("cannot write %s", body.output);
	}
	close(file);
	pthread_mutex_unlock(&output_lock);
}

static void send_event(uint64_t index)
{
	static unsigned char raw[BLOCK];

	for (uint64_t left = body.send_kib << 10; left > 0; left -= left < BLOCK ? left : BLOCK) {
		uint64_t size = left < BLOCK ? left : BLOCK;

		fill(raw, size, index + left);
		channel_send(raw, size, body.level);
	}
}

static void event(uint64_t index, uint64_t rounds)
{
	if (body.input_kib)
		take_input(index);
	burn(rounds);
	burn_kernel(body.kernel_reads);
	heap_dirty(body.dirty_kib);
	if (body.output_kib)
		give_output(index);
	if (body.send_kib)
		send_event(index);
	__atomic_fetch_add(&processed, 1, __ATOMIC_RELAXED);
}

/* Creates the queue in memory shared with all later children. */
void queue_make(char **rounds, int count)
{
	size_t bytes = sizeof(*queue) + count * sizeof(queue->rounds[0]);

	queue = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (queue == MAP_FAILED)
		die("cannot allocate a queue");
	queue->count = count;
	for (int i = 0; i < count; i++)
		queue->rounds[i] = number(rounds[i]);
}

static void take_until_empty(void)
{
	uint64_t index;

	if (!queue)
		die("no queue was created");
	while ((index = __atomic_fetch_add(&queue->next, 1, __ATOMIC_RELAXED)) < queue->count)
		event(index, queue->rounds[index]);
}

void events_own(char **rounds, int count)
{
	double start = now_s();

	for (int i = 0; i < count; i++)
		event(i, number(rounds[i]));
	loop_s += now_s() - start;
}

void events_taken(void)
{
	double start = now_s();

	take_until_empty();
	loop_s += now_s() - start;
}

static void *taker(void *unused)
{
	take_until_empty();
	return unused;
}

void events_in_threads(uint64_t count)
{
	pthread_t *threads = calloc(count, sizeof(*threads));
	double start = now_s();

	for (uint64_t i = 0; i < count; i++)
		if (!threads || pthread_create(&threads[i], NULL, taker, NULL))
			die("cannot create a thread");
	for (uint64_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	loop_s += now_s() - start;
}

void events_finish(const char *log)
{
	append(log, "PID %d: Number of events processed: %llu, Event Loop Time: %.3fsec.\n", (int)getpid(),
	       (unsigned long long)processed, loop_s);
}

/* A forked child starts its own count. */
void events_forget(void)
{
	processed = 0;
	loop_s = 0;
}
