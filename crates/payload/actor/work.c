/* Work that uses CPU time, memory and I/O: fixed amounts, independent of the machine's speed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "actor.h"

static volatile uint64_t sink;
static unsigned char *heap;
static uint64_t heap_bytes, heap_cursor;

static inline uint64_t xorshift(uint64_t x)
{
	x ^= x << 13;
	x ^= x >> 7;
	return x ^ x << 17;
}

/* Each round depends on the one before, so that neither the compiler nor a superscalar CPU can
 * shorten the loop. */
void burn(uint64_t rounds)
{
	uint64_t x = 88172645463325252u;

	while (rounds--)
		x = xorshift(x);
	sink = x;
}

void burn_kernel(uint64_t reads)
{
	/* Threads may share it: only zeros are ever written to it. */
	static char bytes[BLOCK];
	int zero;

	if (!reads)
		return;
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (zero < 0)
		die("cannot open /dev/zero");
	while (reads--)
		if (read(zero, bytes, sizeof(bytes)) < 0)
			die("cannot read /dev/zero");
	close(zero);
}

void cheap_calls(uint64_t calls)
{
	while (calls--)
		syscall(SYS_getppid);
}

void heap_fill(uint64_t mib)
{
	heap_bytes = mib << 20;
	heap_cursor = 0;
	if (!heap_bytes)
		return;
	heap = mmap(NULL, heap_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (heap == MAP_FAILED)
		die("cannot allocate %llu MiB", (unsigned long long)mib);
	fill(heap, heap_bytes, 1);
}

/* Writes to each page of the next `kib` KiB, which unshares them after a fork. */
void heap_dirty(uint64_t kib)
{
	for (uint64_t pages = kib / 4; heap_bytes && pages > 0; pages--) {
		heap[heap_cursor]++;
		heap_cursor = (heap_cursor + 4096) % heap_bytes;
	}
}

/* Data that compress to about half: physics data are neither noise nor zeros. */
void fill(unsigned char *to, uint64_t bytes, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u | 1;

	for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
		uint64_t value;

		x = xorshift(x);
		value = x & 0x0f070f030f1f0f07u;
		memcpy(to + i, &value, 8);
	}
}

static void write_all(int file, const unsigned char *bytes, size_t left, const char *path)
{
	while (left > 0) {
		ssize_t done = write(file, bytes, left);

		if (done < 0)
			die("cannot write %s", path);
		bytes += done;
		left -= done;
	}
}

static int open_to_append(const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (file < 0)
		die("cannot open %s", path);
	return file;
}

void write_file(const char *path, uint64_t kib)
{
	unsigned char block[4096];
	int file = open_to_append(path);

	fill(block, sizeof(block), kib);
	for (; kib > 0; kib -= kib < 4 ? kib : 4)
		write_all(file, block, (kib < 4 ? kib : 4) << 10, path);
	close(file);
}

void append(const char *path, const char *format, ...)
{
	char text[4096];
	va_list arguments;
	int file = open_to_append(path), bytes;

	va_start(arguments, format);
	bytes = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	write_all(file, (unsigned char *)text, bytes < (int)sizeof(text) ? bytes : (int)sizeof(text) - 1, path);
	close(file);
}

void read_file(const char *path)
{
	static unsigned char bytes[BLOCK];
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (file < 0)
		die("cannot open %s", path);
	while ((got = read(file, bytes, sizeof(bytes))) > 0)
		;
	if (got < 0)
		die("cannot read %s", path);
	close(file);
}

/* Failed opens, cycling through 64 names. */
void miss(const char *directory, uint64_t count)
{
	char path[4096];

	for (uint64_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/libMissing%02u.so", directory, (unsigned)(i % 64));
		if (open(path, O_RDONLY | O_CLOEXEC) >= 0 || errno != ENOENT)
			die("%s exists, but must not", path);
	}
}

/* The loader searches for it in the directories of LD_LIBRARY_PATH. */
void load(const char *library)
{
	if (!dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
		errno = ENOENT;
		die("%s", dlerror());
	}
}
