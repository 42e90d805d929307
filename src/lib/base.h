/* The few words every file speaks: attributes, cleanup, ownership. */
#pragma once

#ifdef NDEBUG
#error "asserts guard writes into arrays: they are part of every build"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define must_check             __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))
#define no_return              __attribute__((noreturn))

/* Run fn(&var) when var leaves its scope. fn must accept the empty value. */
#define cleanup(fn)            __attribute__((cleanup(fn)))

#define array_len(a)           (sizeof(a) / sizeof((a)[0]))

/* The struct that holds this member. */
#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Hand a pointer or descriptor over: yields the value, leaves the empty one. */
#define take_ptr(p) \
	({ __typeof__(p) taken_ = (p); (p) = NULL; taken_; })
#define take_fd(fd) \
	({ int taken_ = (fd); (fd) = -1; taken_; })

void close_fd(const int *fd); /* for cleanup(): closes unless -1, keeps errno */
void free_ptr(void *pointer); /* for cleanup(): frees *(void **)pointer */

/* Allocation cannot fail: out of memory ends the process (docs/STYLE.md). */
void *xcalloc(size_t n, size_t size) __attribute__((returns_nonnull));
void *xrealloc(void *p, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((returns_nonnull));
