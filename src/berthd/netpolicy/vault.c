#include "berthd/netpolicy/vault.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/hash.h"
#include "lib/str.h"

#define ABOUT_SIZE (sizeof(((struct secret *)0)->owner) + NETWORK_SECRET_NAME + NETWORK_HOST_SIZE)

/* Never over one that is there: the process that was first has sealed with it. */
static int make(const char *path, struct err *e)
{
	uint8_t fresh[AEAD_KEY_SIZE];
	char hex[2 * AEAD_KEY_SIZE + 1];
	cleanup(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST ? 0 : err_sys(e, errno, "create %s", path);
	if (getrandom(fresh, sizeof(fresh), 0) != sizeof(fresh))
		return err_sys(e, errno, "random bytes");
	str_hex(hex, fresh, sizeof(fresh));
	if (write_all(fd, hex, strlen(hex)) < 0 || write_all(fd, "\n", 1) < 0 || fsync(fd) < 0)
		return err_sys(e, errno, "write %s", path);
	return 0;
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = strchr(digits, tolower((unsigned char)c));

	return c && at ? (int)(at - digits) : -1;
}

static bool read_hex(const char *text, uint8_t out[AEAD_KEY_SIZE])
{
	for (size_t i = 0; i < AEAD_KEY_SIZE; i++) {
		int high = digit(text[2 * i]);
		int low = high < 0 ? -1 : digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return digit(text[2 * AEAD_KEY_SIZE]) < 0;
}

int vault_load(struct vault *v, const char *path, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(4096);

	if (make(path, e) < 0 || file_read(AT_FDCWD, path, &text, e) < 0)
		return -1;
	if (!read_hex(buf_str(&text), v->key)) {
		err_set(e, ERR_INVALID, "%s must hold 64 hex digits", path);
		return err_fix(e, "Every host of a cell needs the same file; keep a copy of it.");
	}
	explicit_bzero(text.data, text.len);
	return 0;
}

/* Owner, name and host: a sealed value put under another row does not open. */
static void about(const struct secret *k, char out[ABOUT_SIZE])
{
	snprintf(out, ABOUT_SIZE, "%s/%s/%s", k->owner, k->name, k->host);
}

int vault_seal(const struct vault *v, const char *value, struct secret *k, struct err *e)
{
	cleanup(buf_done) struct buf sealed = buf_make(sizeof(k->sealed) - 1);
	char what[ABOUT_SIZE];

	about(k, what);
	if (aead_seal(v->key, what, value, &sealed, e) < 0)
		return -1;
	if (buf_overflowed(&sealed) || !str_copy(k->sealed, sizeof(k->sealed), buf_str(&sealed)))
		return err_set(e, ERR_INVALID, "the value is too long");
	return 0;
}

int vault_open(const struct vault *v, const struct secret *k, struct buf *value, struct err *e)
{
	char what[ABOUT_SIZE];

	about(k, what);
	return aead_open(v->key, what, k->sealed, value, e) < 0
		       ? err_wrap(e, "secret %s", k->name)
		       : 0;
}

void vault_seed(const struct vault *v, const char *sandbox, char out[CA_SEED_SIZE])
{
	char text[128];

	snprintf(text, sizeof(text), "ca %s", sandbox);
	hash_mac_hex(v->key, sizeof(v->key), text, strlen(text), out);
}

int vault_trust(const struct vault *v, const char *sandbox, struct buf *out, struct err *e)
{
	char seed[CA_SEED_SIZE], hash[CA_HASH_SIZE];
	struct ca ca = { 0 };
	int rc;

	vault_seed(v, sandbox, seed);
	if (ca_make(seed, sandbox, &ca, e) < 0)
		return -1;
	ca_hash(&ca, hash);
	buf_addf(out, "%s\n", hash);
	rc = ca_pem(&ca, out, e);
	ca_done(&ca);
	return rc;
}
