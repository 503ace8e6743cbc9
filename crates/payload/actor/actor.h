/* What the parts of the actor share. One actor plays one process of a plan: it carries out a node, which is
 * a file with one step per line, its fields separated by tabs. crates/payload/src/step.rs lists the steps. */
#ifndef ACTOR_H
#define ACTOR_H

#include <stdarg.h>
#include <stdint.h>

/* fail.c: where this process is in its plan, and how it ends when a step fails. */
struct place {
	const char *program;
	char node[4096];
	int line;
};

extern struct place place;

/* Ends this process with a message that names program, node and line. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
uint64_t number(const char *text);

/* work.c: what costs CPU time, memory and input or output. Amounts are fixed: no clock is read. */
void burn(uint64_t rounds);
void burn_kernel(uint64_t reads);
void cheap_calls(uint64_t calls);
void heap_fill(uint64_t mib);
void heap_dirty(uint64_t kib);
void write_file(const char *path, uint64_t kib);
void read_file(const char *path);
void miss(const char *directory, uint64_t count);
void load(const char *library);
void append(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fill(unsigned char *to, uint64_t bytes, uint64_t seed);

/* tasks.c: children and threads. */
void children_at_most(uint64_t jobs);
/* Forks. Returns 1 in the child, whose environment then names the node that it carries out. */
int fork_node(const char *node);
void fork_many(uint64_t count, uint64_t jobs);
void spawn_node(const char *node, char **file_and_arguments);
void spawn_many(uint64_t count, uint64_t jobs, char **file_and_arguments);
void detach_node(const char *node, char **file_and_arguments);
void wait_all(void);
void run_threads(uint64_t count, uint64_t at_once, uint64_t rounds);

/* events.c: the event loop, alone, from a queue that processes share, or in threads. */
void event_body(char **settings, int count);
void queue_make(char **rounds, int count);
void events_own(char **rounds, int count);
void events_taken(void);
void events_in_threads(uint64_t threads);
void events_finish(const char *log);
void events_forget(void);

/* writer.c: the process that writes for all. */
void channel_make(void);
void channel_hang_up(void);
void channel_send(const unsigned char *data, uint64_t bytes, int level);
void channel_drain(const char *path, int level);
uint64_t pack(const unsigned char *data, uint64_t bytes, int level, unsigned char **packed);

#define BLOCK 65536

#endif
