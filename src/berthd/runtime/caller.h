/* On whose behalf something is done: any protocol's request, or berthd's own. */
#pragma once

struct reactor;

struct caller {
	struct reactor *reactor; /* answers come on this loop */
	const char *request;     /* its id, for the logs of both daemons */
	const char *owner;       /* whose things it may see; NULL: all */
};
