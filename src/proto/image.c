#include "proto/image.h"

#include <string.h>

#include "proto/user-ids.h"
#include "proto/writer.h"

void image_config_done(struct image_config *c)
{
	strv_done(&c->env);
	strv_done(&c->entrypoint);
	strv_done(&c->cmd);
}

void image_config_encode(struct buf *out, const struct image_config *c)
{
	writer_str(out, c->cwd);
	writer_str(out, c->user);
	writer_strv(out, &c->env);
	writer_strv(out, &c->entrypoint);
	writer_strv(out, &c->cmd);
}

int image_config_check(const struct image_config *c, struct err *e)
{
	struct user_ids ids;

	if (c->cwd[0] != '/')
		return err_set(e, ERR_INVALID, "the working directory is not absolute: \"%.60s\"",
			       c->cwd);
	for (size_t i = 0; i < c->env.len; i++)
		if (c->env.items[i][0] == '=' || !strchr(c->env.items[i], '='))
			return err_set(e, ERR_INVALID, "not an environment variable: \"%.40s\"",
				       c->env.items[i]);
	return c->user[0] ? user_ids_parse(c->user, &ids, e) : 0;
}

int image_config_decode(struct bytes wire, struct image_config *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	int n;

	reader_str(&r, ret->cwd, sizeof(ret->cwd));
	reader_str(&r, ret->user, sizeof(ret->user));
	reader_strv(&r, IMAGE_ENV_MAX, &ret->env);
	reader_strv(&r, IMAGE_ARGS_MAX, &ret->entrypoint);
	reader_strv(&r, IMAGE_ARGS_MAX, &ret->cmd);
	if (!reader_done(&r) || wire.len > IMAGE_CONFIG_MAX)
		n = err_set(e, ERR_INVALID, "an image's config that cannot be read");
	else
		n = image_config_check(ret, e);
	if (n < 0)
		image_config_done(ret);
	return n;
}
