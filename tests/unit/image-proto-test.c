#include "proto/image.h"

#include "test.h"

TEST(a_config_comes_out_as_it_went_in)
{
	cleanup(image_config_done) struct image_config c = { .cwd = "/srv",
							     .user = "1000:50:27,100" };
	cleanup(image_config_done) struct image_config back = { 0 };
	cleanup(buf_done) struct buf b = buf_make(4096);
	struct err e;

	strv_add(&c.env, "A=b");
	strv_add(&c.entrypoint, "/bin/sh");
	strv_add(&c.cmd, "-c");
	image_config_encode(&b, &c);
	CHECK_OK(image_config_decode((struct bytes){ (void *)b.data, b.len }, &back, &e), &e);
	CHECK_STR(back.cwd, "/srv");
	CHECK_STR(back.user, "1000:50:27,100");
	CHECK_STR(back.env.items[0], "A=b");
	CHECK_STR(back.entrypoint.items[0], "/bin/sh");
	CHECK_STR(back.cmd.items[0], "-c");
	for (size_t len = 0; len < b.len; len++) {
		struct image_config cut = { 0 };

		CHECK_ERR(image_config_decode((struct bytes){ (void *)b.data, len }, &cut, &e), &e,
			  ERR_INVALID);
	}
}

TEST(a_config_nobody_could_use_is_refused)
{
	cleanup(image_config_done) struct image_config c = { .cwd = "srv" };
	struct err e;

	CHECK_ERR(image_config_check(&c, &e), &e, ERR_INVALID);
	c.cwd[0] = '/';
	CHECK_OK(image_config_check(&c, &e), &e);
	memcpy(c.user, "web", 4); /* a name means nothing outside of its image */
	CHECK_ERR(image_config_check(&c, &e), &e, ERR_INVALID);
	memcpy(c.user, "0:0", 4);
	CHECK_OK(image_config_check(&c, &e), &e);
	strv_add(&c.env, "=b");
	CHECK_ERR(image_config_check(&c, &e), &e, ERR_INVALID);
}
