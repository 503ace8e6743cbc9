/* The process that writes for all others, and the channel to it: a socket that preserves message
 * boundaries. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zstd.h>

#include "actor.h"

static int receiver = -1, sender = -1;

/* `packed` points to a static buffer; not reentrant. */
uint64_t pack(const unsigned char *data, uint64_t bytes, int level, unsigned char **packed)
{
	static ZSTD_CCtx *context;
	static unsigned char *room;
	size_t bound = ZSTD_compressBound(BLOCK), size;

	if (!context) {
		context = ZSTD_createCCtx();
		room = malloc(bound);
	}
	if (!context || !room)
		die("cannot allocate a compressor");
	size = ZSTD_compressCCtx(context, room, bound, data, bytes, level);
	if (ZSTD_isError(size)) {
		errno = EIO;
		die("cannot compress: %s", ZSTD_getErrorName(size));
	}
	*packed = room;
	return size;
}

void channel_make(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		die("cannot create a socket");
	receiver = ends[0];
	sender = ends[1];
}

void channel_hang_up(void)
{
	close(receiver);
	close(sender);
}

void channel_send(const unsigned char *data, uint64_t bytes, int level)
{
	unsigned char *message = (unsigned char *)data;

	if (level)
		bytes = pack(data, bytes, level, &message);
	if (send(sender, message, bytes, 0) != (ssize_t)bytes)
		die("cannot send an event to the writer");
}

/* Runs until every other process has closed the channel. */
void channel_drain(const char *path, int level)
{
	unsigned char *raw = malloc(2 * BLOCK);
	int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	ssize_t got;

	close(sender);
	if (!raw || file < 0)
		die("cannot open %s", path);
	while ((got = recv(receiver, raw, 2 * BLOCK, 0)) > 0) {
		unsigned char *packed = raw;
		uint64_t size = got;

		if (level)
			size = pack(raw, size, level, &packed);
		if (write(file, packed, size) != (ssize_t)size)
			die("cannot write %s", path);
	}
	if (got < 0)
		die("cannot receive events");
	free(raw);
	close(file);
}
