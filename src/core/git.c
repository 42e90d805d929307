#include "core/git.h"

#include <stdio.h>
#include <string.h>

#define DEPTH_MAX   1000000
#define TIMEOUT_MS  300000
#define TIMEOUT_MAX 3600000

static const char *const schemes[] = { "https://", "http://", "file://", "git://" };

/* ---- what is asked ---- */

static const char *scheme_of(const char *url)
{
	for (size_t i = 0; i < array_len(schemes); i++)
		if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
			return schemes[i];
	return NULL;
}

static bool is_plain(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* A part of the URL's credentials, percent-decoded. */
static int decode(const char *from, size_t len, char *to, size_t size, struct err *e)
{
	size_t out = 0;

	for (size_t i = 0; i < len; i++) {
		char c = from[i];

		if (c == '%' && len - i > 2 && hex(from[i + 1]) >= 0 && hex(from[i + 2]) >= 0) {
			c = (char)(hex(from[i + 1]) * 16 + hex(from[i + 2]));
			i += 2;
		}
		if (out + 1 >= size || !c)
			return err_set(e, ERR_INVALID, "the URL's credentials cannot be used");
		to[out++] = c;
	}
	to[out] = '\0';
	return 0;
}

/* "https://user:secret@host/x" becomes "https://host/x"; nothing keeps the rest but us. */
static int take_credentials(struct git_checkout *c, const char *scheme, struct err *e)
{
	char *host = c->url + strlen(scheme);
	size_t len = strcspn(host, "/?#");
	char *at = NULL, *colon;

	for (size_t i = 0; i < len; i++)
		if (host[i] == '@')
			at = host + i;
	if (!at)
		return 0;
	colon = memchr(host, ':', (size_t)(at - host));
	if (c->password[0] || (c->username[0] && colon))
		return err_set(e, ERR_INVALID, "credentials in the URL and beside it");
	if (decode(host, (size_t)((colon ? colon : at) - host), c->username, sizeof(c->username),
		   e) < 0)
		return -1;
	if (colon && decode(colon + 1, (size_t)(at - colon - 1), c->password,
			    sizeof(c->password), e) < 0)
		return -1;
	memmove(host, at + 1, strlen(at + 1) + 1);
	return 0;
}

static bool is_local(const char *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
	size_t len = host[0] == '[' ? strcspn(host, "]/") + 1 : strcspn(host, ":/?#");

	for (size_t i = 0; i < array_len(names); i++)
		if (strlen(names[i]) == len && strncmp(host, names[i], len) == 0)
			return true;
	return false;
}

static int check_url(struct git_checkout *c, struct err *e)
{
	const char *scheme = scheme_of(c->url);

	if (!scheme || !is_plain(c->url) || !c->url[strlen(scheme)]) {
		err_set(e, ERR_INVALID, "not a URL a checkout can be made from");
		return err_fix(e, "It begins with https://, http://, git:// or file://.");
	}
	if (take_credentials(c, scheme, e) < 0)
		return -1;
	if (!c->password[0])
		return 0;
	if (strcmp(scheme, "https://") != 0 &&
	    !(strcmp(scheme, "http://") == 0 && is_local(c->url + strlen(scheme)))) {
		err_set(e, ERR_INVALID, "a password or token is only sent over https");
		return err_fix(e, "Use the repository's https:// URL.");
	}
	return 0;
}

/* Nothing that git could take for an option, or a second thing. */
static int check_ref(const char *name, const char *ref, struct err *e)
{
	if (ref[0] == '-' || !is_plain(ref) || strpbrk(ref, "~^:?*[\\") || strstr(ref, ".."))
		return err_set(e, ERR_INVALID, "%s is not a name git knows: \"%.60s\"", name, ref);
	return 0;
}

static int default_path(struct git_checkout *c, struct err *e)
{
	size_t end = strlen(c->url), start, host = strlen(scheme_of(c->url));

	host += strcspn(c->url + host, "/");
	while (end > 0 && c->url[end - 1] == '/')
		end--;
	if (end > 4 && strncmp(c->url + end - 4, ".git", 4) == 0)
		end -= 4;
	while (end > 0 && c->url[end - 1] == '/') /* a bare directory called .git */
		end--;
	for (start = end; start > 0 && c->url[start - 1] != '/';)
		start--;
	if (start <= host || start == end || end - start > 200 || c->url[start] == '.')
		return err_set(e, ERR_INVALID, "the URL does not end in a repository's name");
	snprintf(c->path, sizeof(c->path), "/workspace/%.*s", (int)(end - start), c->url + start);
	return 0;
}

static int check_secret(const char *name, const char *s, struct err *e)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return err_set(e, ERR_INVALID, "the %s has a line break or worse in it",
				       name);
	return 0;
}

int git_checkout_check(struct git_checkout *c, struct err *e)
{
	size_t len;

	if (check_url(c, e) < 0 || check_ref("branch", c->branch, e) < 0 ||
	    check_ref("ref", c->ref, e) < 0 ||
	    check_ref("session_branch", c->session_branch, e) < 0 ||
	    check_secret("username", c->username, e) < 0 ||
	    check_secret("password", c->password, e) < 0)
		return -1;
	if (c->branch[0] && c->ref[0])
		return err_set(e, ERR_INVALID, "give a branch or a ref, and not both");
	if (c->depth < 0 || c->depth > DEPTH_MAX)
		return err_set(e, ERR_INVALID, "depth is 0 (everything) to %d", DEPTH_MAX);
	if (c->timeout_ms == 0)
		c->timeout_ms = TIMEOUT_MS;
	if (c->timeout_ms < 0 || c->timeout_ms > TIMEOUT_MAX)
		return err_set(e, ERR_INVALID, "timeout_ms is 1 to %d", TIMEOUT_MAX);
	if (!c->path[0] && default_path(c, e) < 0)
		return -1;
	len = strlen(c->path);
	while (len > 1 && c->path[len - 1] == '/')
		c->path[--len] = '\0';
	if (c->path[0] != '/' || len < 2 || len + 64 > sizeof(c->path))
		return err_set(e, ERR_INVALID, "the path is not absolute, or too long");
	if (c->password[0] && !c->username[0])
		memcpy(c->username, "x-access-token", 15); /* what hosts of tokens expect */
	return 0;
}

void git_origin(const struct git_checkout *c, char out[GIT_URL_SIZE])
{
	const char *scheme = scheme_of(c->url);
	size_t len = scheme ? strlen(scheme) : 0;

	len += strcspn(c->url + len, "/?#");
	memcpy(out, c->url, len);
	out[len] = '\0';
}

/* ---- what git says ---- */

/* clang-format off */
/* The first row whose words are there decides: what is more certain stands first. */
static const struct saying {
	const char *words;
	const char *reason;
	enum err_code code;
	int status;
	const char *fix;
} sayings[] = {
#define ROW(words, reason, code, status, fix) { words, reason, code, status, fix }
#define AUTH "Check username, token and whether it may read this repository."
#define REPOSITORY "Check the URL; a private repository may look absent without a token."
#define REF "Check the name of the branch or ref."
#define NETWORK "Check that the sandbox may reach that host, then try again."
	ROW("Authentication failed", "auth_failed", ERR_DENIED, 0, AUTH),
	ROW("could not read Username", "auth_failed", ERR_DENIED, 0, AUTH),
	ROW("could not read Password", "auth_failed", ERR_DENIED, 0, AUTH),
	ROW("returned error: 401", "auth_failed", ERR_DENIED, 0, AUTH),
	ROW("returned error: 403", "auth_failed", ERR_DENIED, 0, AUTH),
	ROW("Access denied", "auth_failed", ERR_DENIED, 0, AUTH),
	ROW("Remote branch", "no_such_ref", ERR_NOT_FOUND, 0, REF),
	ROW("couldn't find remote ref", "no_such_ref", ERR_NOT_FOUND, 0, REF),
	ROW("not our ref", "no_such_ref", ERR_NOT_FOUND, 0, REF),
	ROW("did not match any file(s) known", "no_such_ref", ERR_NOT_FOUND, 0, REF),
	ROW("reference is not a tree", "no_such_ref", ERR_NOT_FOUND, 0, REF),
	ROW("unable to read tree", "no_such_ref", ERR_NOT_FOUND, 0, REF),
	ROW("does not appear to be a git", "no_such_repository", ERR_NOT_FOUND, 0, REPOSITORY),
	ROW("returned error: 404", "no_such_repository", ERR_NOT_FOUND, 0, REPOSITORY),
	ROW("repository not exported", "no_such_repository", ERR_NOT_FOUND, 0, REPOSITORY),
	ROW("not valid: is this a git", "no_such_repository", ERR_NOT_FOUND, 0, REPOSITORY),
	ROW("not found", "no_such_repository", ERR_NOT_FOUND, 0, REPOSITORY),
	ROW("does not exist", "no_such_repository", ERR_NOT_FOUND, 0, REPOSITORY),
	ROW("already exists", "target_exists", ERR_CONFLICT, 0,
	    "Remove it, or give another path."),
	ROW("No space left on device", "no_space", ERR_LIMIT, 507,
	    "Remove something in the sandbox, or create one with a larger disk."),
	ROW("Disk quota exceeded", "no_space", ERR_LIMIT, 507,
	    "Remove something in the sandbox, or create one with a larger disk."),
	ROW("Could not resolve host", "network", ERR_BUSY, 502, NETWORK),
	ROW("Failed to connect", "network", ERR_BUSY, 502, NETWORK),
	ROW("Connection refused", "network", ERR_BUSY, 502, NETWORK),
	ROW("Connection timed out", "network", ERR_BUSY, 502, NETWORK),
	ROW("Connection reset", "network", ERR_BUSY, 502, NETWORK),
	ROW("Network is unreachable", "network", ERR_BUSY, 502, NETWORK),
	ROW("No route to host", "network", ERR_BUSY, 502, NETWORK),
	ROW("remote end hung up", "network", ERR_BUSY, 502, NETWORK),
	ROW("RPC failed", "network", ERR_BUSY, 502, NETWORK),
	ROW("early EOF", "network", ERR_BUSY, 502, NETWORK),
	ROW("unable to connect", "network", ERR_BUSY, 502, NETWORK),
	ROW("unable to access", "network", ERR_BUSY, 502, NETWORK),
	ROW("unable to look up", "network", ERR_BUSY, 502, NETWORK),
};
/* clang-format on */

/* The line that says most: the last "fatal:" or "error:", else the last one there is. */
static void last_line(const char *said, char out[200])
{
	size_t found = 0;

	out[0] = '\0';
	for (const char *at = said; *at;) {
		size_t len = strcspn(at, "\r\n");
		bool loud = strncmp(at, "fatal:", 6) == 0 || strncmp(at, "error:", 6) == 0;

		if (len > 0 && (loud || !found)) {
			snprintf(out, 200, "%.*s", (int)(len < 199 ? len : 199), at);
			found |= loud;
		}
		at += len + (at[len] != '\0');
	}
}

int git_failure(int exit_code, const char *said, struct err *e)
{
	char line[200];

	if (exit_code == GIT_EXIT_NO_GIT) {
		err_set(e, ERR_UNSUPPORTED, "there is no git in this sandbox's image");
		err_fix(e, "Use an image that has git, or install it in the sandbox.");
		return err_reason(e, "no_git", 0);
	}
	if (exit_code == GIT_EXIT_TARGET_EXISTS) {
		err_set(e, ERR_CONFLICT, "there is something at the path already");
		err_fix(e, "Remove it, or give another path.");
		return err_reason(e, "target_exists", 0);
	}
	last_line(said, line);
	for (size_t i = 0; i < array_len(sayings); i++) {
		const struct saying *s = &sayings[i];

		if (!strstr(said, s->words))
			continue;
		err_set(e, s->code, "git: %s", line);
		err_fix(e, "%s", s->fix);
		return err_reason(e, s->reason, s->status);
	}
	err_set(e, ERR_CONFLICT, "git ended with %d: %s", exit_code, line);
	return err_fix(e, "The exec of this checkout has all that git said.");
}

int git_timed_out(const struct git_checkout *c, struct err *e)
{
	err_set(e, ERR_TIMEOUT, "the checkout took longer than %lld ms and was ended",
		(long long)c->timeout_ms);
	err_fix(e, "Give it a longer timeout_ms, or a depth.");
	return err_reason(e, "timed_out", 0);
}
