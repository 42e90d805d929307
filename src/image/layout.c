#include "image/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "image/unpack.h"
#include "lib/file.h"
#include "lib/hash.h"
#include "lib/json.h"
#include "lib/str.h"

#define JSON_MAX  (8UL << 20)
#define INDEX_MAX 1000 /* images in one index */

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

/* A link is followed as long as it stays below: some archives name a layer twice that way. */
static int open_below(int dir, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* All of a file that must be one. */
static int read_fd(int fd, struct buf *out, struct err *e)
{
	char chunk[4096];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "not a file");
	while ((n = read(fd, chunk, sizeof(chunk))) > 0 && !buf_overflowed(out))
		buf_add(out, chunk, (size_t)n);
	if (n < 0)
		return err_sys(e, errno, "read");
	return buf_overflowed(out) ? err_set(e, ERR_INVALID, "more than %lu bytes", JSON_MAX) : 0;
}

static int read_json(int dir, const char *name, struct buf *text, struct json **ret, struct err *e)
{
	cleanup(close_fd) int fd = open_below(dir, name);

	if (fd < 0)
		return err_sys(e, errno, "open the image's %.100s", name);
	if (read_fd(fd, text, e) < 0 || json_parse(buf_str(text), text->len, ret, e) < 0)
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

/* This machine's word for itself in an image's platform. */
static const char *own_architecture(const struct utsname *u)
{
	static const char *const words[][2] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };

	for (size_t i = 0; i < array_len(words); i++)
		if (strcmp(u->machine, words[i][0]) == 0)
			return words[i][1];
	return u->machine;
}

/* Its programs could not be run here, and only a command would tell. */
static int check_platform(const struct json *blob, struct err *e)
{
	const char *has = json_get_str(blob, "architecture");
	struct utsname u = { 0 };

	(void)uname(&u);
	if (!has[0] || strcmp(has, own_architecture(&u)) == 0)
		return 0;
	return err_set(e, ERR_INVALID, "the image is for %.40s, and this host is %.40s", has,
		       own_architecture(&u));
}

static int take_config(const struct json *blob, struct image_config *c, struct err *e)
{
	const struct json *inner = json_get(blob, "config");
	const char *cwd = json_get_str(inner, "WorkingDir");

	if (check_platform(blob, e) < 0)
		return -1;
	if (!str_copy(c->cwd, sizeof(c->cwd), cwd[0] ? cwd : "/") ||
	    !str_copy(c->user, sizeof(c->user), json_get_str(inner, "User")))
		return err_set(e, ERR_INVALID, "the image's user or directory is too long");
	add_all(&c->env, json_get(inner, "Env"), IMAGE_ENV_MAX - 2); /* PATH, HOME */
	;
	if (!has_path(&c->env))
		strv_add(&c->env, "PATH=" IMAGE_PATH);
	add_all(&c->entrypoint, json_get(inner, "Entrypoint"), IMAGE_ARGS_MAX);
	add_all(&c->cmd, json_get(inner, "Cmd"), IMAGE_ARGS_MAX);
	return 0; /* checked when its user is known in numbers, too */
}

static int read_config(int dir, const struct json *manifest, struct image_config *c, struct err *e)
{
	cleanup(json_free) struct json *blob = NULL;

	if (read_blob(dir, json_get_str(json_get(manifest, "config"), "digest"), &blob, e) < 0)
		return -1;
	return take_config(blob, c, e);
}

/* `digest` may be empty: then the layer is taken as it is. */
static int open_layer(int dir, const char *path, const char *digest, struct layout *l,
		      struct err *e)
{
	struct stat st;
	int fd = open_below(dir, path);

	if (fd < 0)
		return err_sys(e, errno, "open layer %.100s", path);
	l->layers[l->count] = fd;
	snprintf(l->digests[l->count++], sizeof(l->digests[0]), "%s", digest);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "layer %.100s is no file", path);
	l->bytes += (uint64_t)st.st_size;
	return 0;
}

static int check_count(const struct json *layers, struct err *e)
{
	if (json_len(layers) > LAYOUT_LAYERS_MAX)
		return err_set(e, ERR_INVALID, "the image has more than %d layers",
			       LAYOUT_LAYERS_MAX);
	return 0;
}

static int open_layers(int dir, const struct json *list, struct layout *l, struct err *e)
{
	char path[100];

	if (check_count(list, e) < 0)
		return -1;
	for (size_t i = 0; i < json_len(list); i++) {
		const char *digest = json_get_str(json_at(list, i), "digest");

		if (blob_path(digest, path, sizeof(path), e) < 0 ||
		    open_layer(dir, path, digest, l, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- which of several ---- */

/* One image under several names is one. */
static bool all_same(const struct json *list)
{
	const char *first = json_get_str(json_at(list, 0), "digest");

	for (size_t i = 1; i < json_len(list); i++)
		if (strcmp(json_get_str(json_at(list, i), "digest"), first) != 0)
			return false;
	return true;
}

static const struct json *for_here(const struct json *list, const char *architecture)
{
	for (size_t i = 0; i < json_len(list); i++) {
		const struct json *platform = json_get(json_at(list, i), "platform");

		if (strcmp(json_get_str(platform, "architecture"), architecture) == 0 &&
		    strcmp(json_get_str(platform, "os"), "linux") == 0)
			return json_at(list, i);
	}
	return NULL;
}

static int choose(const struct json *index, char digest[80], struct err *e)
{
	const struct json *list = json_get(index, "manifests"), *chosen;
	struct utsname u = { 0 };

	(void)uname(&u);
	if (json_len(list) > INDEX_MAX)
		return err_set(e, ERR_INVALID, "the image's index has more than %d entries",
			       INDEX_MAX);
	chosen = all_same(list) ? json_at(list, 0) : for_here(list, own_architecture(&u));
	if (!chosen)
		return err_set(e, ERR_INVALID, "there are %zu images in it and none for linux/%s: "
					       "bring one that has only that one",
			       json_len(list),
			       own_architecture(&u));
	if (!str_copy(digest, 80, json_get_str(chosen, "digest")))
		return err_set(e, ERR_INVALID, "the image's index names no digest");
	return 0;
}

/* The manifest that an index leads to, perhaps through one more index: one for each platform. */
static int read_manifest(int dir, const struct json *index, struct layout *l, struct json **ret,
			 struct err *e)
{
	cleanup(json_free) struct json *inner = NULL;

	if (choose(index, l->digest, e) < 0 || read_blob(dir, l->digest, ret, e) < 0)
		return -1;
	if (!json_get(*ret, "manifests"))
		return 0;
	inner = take_ptr(*ret);
	return choose(inner, l->digest, e) < 0 ? -1 : read_blob(dir, l->digest, ret, e);
}

int layout_open(const char *name, struct layout *ret, struct err *e)
{
	cleanup(close_fd) int dir = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup(json_free) struct json *index = NULL, *manifest = NULL;
	cleanup(buf_done) struct buf text = buf_make(JSON_MAX);

	if (dir < 0)
		return err_sys(e, errno, "open the image's layout");
	if (read_json(dir, "index.json", &text, &index, e) < 0 ||
	    read_manifest(dir, index, ret, &manifest, e) < 0 ||
	    read_config(dir, manifest, &ret->config, e) < 0)
		return -1;
	return open_layers(dir, json_get(manifest, "layers"), ret, e);
}

/* ---- an archive as `docker save` writes it ---- */

/* [{"Config": "PATH", "Layers": ["PATH", ...]}], of which one must be all there is. */
static int open_saved(int dir, const struct json *manifest, struct layout *l, struct err *e)
{
	const struct json *image = json_at(manifest, 0), *layers = json_get(image, "Layers");
	cleanup(json_free) struct json *config = NULL;
	cleanup(buf_done) struct buf text = buf_make(JSON_MAX);
	cleanup(close_fd) int fd = -1;

	if (json_len(manifest) != 1)
		return err_set(e, ERR_INVALID,
			       "the archive holds %zu images: save the one that is wanted",
			       json_len(manifest));
	fd = open_below(dir, json_get_str(image, "Config"));
	if (fd < 0)
		return err_sys(e, errno, "open the image's config \"%.100s\"",
			       json_get_str(image, "Config"));
	if (read_fd(fd, &text, e) < 0 || json_parse(buf_str(&text), text.len, &config, e) < 0)
		return err_wrap(e, "the image's config");
	if (take_config(config, &l->config, e) < 0 || check_count(layers, e) < 0)
		return -1;
	for (size_t i = 0; i < json_len(layers); i++)
		if (open_layer(dir, json_text(json_at(layers, i)), "", l, e) < 0)
			return -1;
	return 0;
}

int layout_open_archive(const char *name, struct layout *ret, struct err *e)
{
	cleanup(close_fd) int dir = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup(close_fd) int fd = dir < 0 ? -1 : open_below(dir, ARCHIVE_MANIFEST);
	cleanup(json_free) struct json *manifest = NULL;
	cleanup(buf_done) struct buf text = buf_make(JSON_MAX);

	if (fd < 0 && errno == ENOENT)
		return layout_open(name, ret, e);
	if (fd < 0)
		return err_sys(e, errno, "open the archive's " ARCHIVE_MANIFEST);
	if (read_fd(fd, &text, e) < 0 || json_parse(buf_str(&text), text.len, &manifest, e) < 0)
		return err_wrap(e, "the archive's " ARCHIVE_MANIFEST);
	return open_saved(dir, manifest, ret, e);
}
