#include "lib/aead.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

#include "lib/str.h"

#define NONCE_SIZE 12
#define TAG_SIZE   16

static void free_cipher(EVP_CIPHER_CTX **c)
{
	EVP_CIPHER_CTX_free(*c);
}

int aead_seal(const uint8_t key[AEAD_KEY_SIZE], const char *about, const char *text,
	      struct buf *out,
	      struct err *e)
{
	cleanup(free_cipher) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	cleanup(buf_done) struct buf raw = buf_make(out->max);
	size_t len = strlen(text);
	uint8_t nonce[NONCE_SIZE], tag[TAG_SIZE];
	cleanup(free_ptr) uint8_t *hidden = xcalloc(1, len + 1);
	int n;

	if (!c || RAND_bytes(nonce, sizeof(nonce)) != 1 ||
	    EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) != 1 ||
	    EVP_EncryptUpdate(c, NULL, &n, (const uint8_t *)about, (int)strlen(about)) != 1 ||
	    EVP_EncryptUpdate(c, hidden, &n, (const uint8_t *)text, (int)len) != 1 ||
	    EVP_EncryptFinal_ex(c, hidden + n, &n) != 1 ||
	    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, tag) != 1)
		return err_set(e, ERR_INTERNAL, "OpenSSL cannot seal");
	buf_add(&raw, nonce, sizeof(nonce));
	buf_add(&raw, tag, sizeof(tag));
	buf_add(&raw, hidden, len);
	base64_add(out, raw.data, raw.len);
	return 0;
}

int aead_open(const uint8_t key[AEAD_KEY_SIZE], const char *about, const char *sealed,
	      struct buf *out, struct err *e)
{
	cleanup(free_cipher) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	cleanup(buf_done) struct buf raw = buf_make(strlen(sealed) + 4);
	cleanup(free_ptr) uint8_t *text = NULL;
	size_t len;
	int n;

	if (base64_decode(sealed, &raw, e) < 0 || raw.len < NONCE_SIZE + TAG_SIZE)
		return err_set(e, ERR_INTERNAL, "this was not sealed");
	len = raw.len - NONCE_SIZE - TAG_SIZE;
	text = xcalloc(1, len + 1);
	if (!c || EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, (uint8_t *)raw.data) != 1 ||
	    EVP_DecryptUpdate(c, NULL, &n, (const uint8_t *)about, (int)strlen(about)) != 1 ||
	    EVP_DecryptUpdate(c, text, &n, (uint8_t *)raw.data + NONCE_SIZE + TAG_SIZE, (int)len) !=
		    1 ||
	    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, raw.data + NONCE_SIZE) != 1 ||
	    EVP_DecryptFinal_ex(c, text + n, &n) != 1)
		return err_set(e, ERR_INTERNAL, "this was sealed with another key");
	buf_add(out, text, len);
	explicit_bzero(text, len);
	return 0;
}
