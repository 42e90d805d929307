#include "image/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/hash.h"
#include "lib/json.h"
#include "lib/str.h"

#define JSON_MAX (8UL << 20)

void layout_close(struct layout *l)
{
	for (size_t i = 0; i < l->count; i++)
		close_fd(&l->layers[i]);
	l->count = 0;
	image_config_done(&l->config);
}

/* The path of a blob, from a digest that is one. */
static int blob_path(const char *digest, char *to, size_t size, struct err *e)
{
	const char *hex = digest + 7;

	if (!str_starts(digest, "sha256:") || strlen(hex) != 64 ||
	    strspn(hex, "0123456789abcdef") != 64)
		return err_set(e, ERR_INVALID, "not a digest: \"%.80s\"", digest);
	snprintf(to, size, "blobs/sha256/%s", hex);
	return 0;
}

static int read_json(int dir, const char *name, struct buf *text, struct json **ret, struct err *e)
{
	if (file_read(dir, name, text, e) < 0 || json_parse(text->data, text->len, ret, e) < 0)
		return err_wrap(e, "the image's %s", name);
	return 0;
}

static int read_blob(int dir, const char *digest, struct json **ret, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(JSON_MAX);
	char path[100], hex[HASH_HEX_SIZE];

	if (blob_path(digest, path, sizeof(path), e) < 0 || read_json(dir, path, &text, ret, e) < 0)
		return -1;
	hash_hex(text.data, text.len, hex);
	if (strcmp(hex, digest + 7) == 0)
		return 0;
	json_free(ret);
	*ret = NULL;
	return err_set(e, ERR_INVALID, "%s does not have the digest it is named by", digest);
}

static void add_all(struct strv *to, const struct json *list, size_t max)
{
	for (size_t i = 0; i < json_len(list) && i < max; i++)
		strv_add(to, json_text(json_at(list, i)));
}

static bool has_path(const struct strv *env)
{
	for (size_t i = 0; i < env->len; i++)
		if (str_starts(env->items[i], "PATH="))
			return true;
	return false;
}

static int read_config(int dir, const struct json *manifest, struct image_config *c, struct err *e)
{
	cleanup(json_free) struct json *blob = NULL;
	const struct json *inner;
	const char *cwd;

	if (read_blob(dir, json_get_str(json_get(manifest, "config"), "digest"), &blob, e) < 0)
		return -1;
	inner = json_get(blob, "config");
	cwd = json_get_str(inner, "WorkingDir");
	if (!str_copy(c->cwd, sizeof(c->cwd), cwd[0] ? cwd : "/") ||
	    !str_copy(c->user, sizeof(c->user), json_get_str(inner, "User")))
		return err_set(e, ERR_INVALID, "the image's user or directory is too long");
	add_all(&c->env, json_get(inner, "Env"), IMAGE_ENV_MAX - 1);
	if (!has_path(&c->env))
		strv_add(&c->env, "PATH=" IMAGE_PATH);
	add_all(&c->entrypoint, json_get(inner, "Entrypoint"), IMAGE_ARGS_MAX);
	add_all(&c->cmd, json_get(inner, "Cmd"), IMAGE_ARGS_MAX);
	return 0; /* checked when its user is known in numbers, too */
}

static int open_layer(int dir, const char *digest, struct layout *l, struct err *e)
{
	char path[100];
	struct stat st;
	int fd;

	if (blob_path(digest, path, sizeof(path), e) < 0)
		return -1;
	fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open layer %s", digest);
	l->layers[l->count] = fd;
	snprintf(l->digests[l->count++], sizeof(l->digests[0]), "%s", digest);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "layer %s is no file", digest);
	l->bytes += (uint64_t)st.st_size;
	return 0;
}

static int open_layers(int dir, const struct json *list, struct layout *l, struct err *e)
{
	if (json_len(list) > LAYOUT_LAYERS_MAX)
		return err_set(e, ERR_TOO_LARGE, "the image has more than %d layers",
			       LAYOUT_LAYERS_MAX);
	for (size_t i = 0; i < json_len(list); i++)
		if (open_layer(dir, json_get_str(json_at(list, i), "digest"), l, e) < 0)
			return -1;
	return 0;
}

int layout_open(const char *name, struct layout *ret, struct err *e)
{
	cleanup(close_fd) int dir = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup(json_free) struct json *index = NULL, *manifest = NULL;
	cleanup(buf_done) struct buf text = buf_make(JSON_MAX);
	const char *digest;

	if (dir < 0)
		return err_sys(e, errno, "open the image's layout");
	if (read_json(dir, "index.json", &text, &index, e) < 0)
		return -1;
	digest = json_get_str(json_at(json_get(index, "manifests"), 0), "digest");
	if (!str_copy(ret->digest, sizeof(ret->digest), digest))
		return err_set(e, ERR_INVALID, "not a digest: \"%.80s\"", digest);
	if (read_blob(dir, digest, &manifest, e) < 0 ||
	    read_config(dir, manifest, &ret->config, e) < 0)
		return -1;
	return open_layers(dir, json_get(manifest, "layers"), ret, e);
}
