/* How a step fails: with a message that names program, node and line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actor.h"

struct place place = { .program = "actor" };

void die(const char *format, ...)
{
	char text[1024];
	int error = errno;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	dprintf(2, "%s: %s: %s (step %d of %s)\n", place.program, text, strerror(error), place.line,
		place.node);
	_exit(1);
}

uint64_t number(const char *text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end)
		die("not a number: %s", text);
	return value;
}
