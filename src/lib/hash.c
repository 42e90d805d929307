#include "lib/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#include "lib/str.h"

void hash_hex(const void *data, size_t len, char out[HASH_HEX_SIZE])
{
	unsigned char digest[32];

	if (EVP_Digest(data, len, digest, NULL, EVP_sha256(), NULL) != 1)
		abort(); /* only for lack of memory */
	str_hex(out, digest, sizeof(digest));
}

void hash_mac_hex(const void *key, size_t key_len, const void *data, size_t len,
		  char out[HASH_HEX_SIZE])
{
	unsigned char digest[32];

	if (!HMAC(EVP_sha256(), key, (int)key_len, data, len, digest, NULL))
		abort(); /* only for lack of memory */
	str_hex(out, digest, sizeof(digest));
}

bool hash_equal(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

void hash_sha1(const void *data, size_t len, uint8_t out[HASH_SHA1_SIZE])
{
	if (EVP_Digest(data, len, out, NULL, EVP_sha1(), NULL) != 1)
		abort(); /* only for lack of memory */
}

/* struct hash is OpenSSL's context under a name of ours, never defined. */
struct hash *hash_new(void)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (!ctx || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		abort(); /* only for lack of memory */
	return (struct hash *)(void *)ctx;
}

void hash_free(struct hash *h)
{
	EVP_MD_CTX_free((EVP_MD_CTX *)(void *)h);
}

void hash_add(struct hash *h, const void *data, size_t len)
{
	if (len > 0 && EVP_DigestUpdate((EVP_MD_CTX *)(void *)h, data, len) != 1)
		abort(); /* only for lack of memory */
}

void hash_end_hex(struct hash *h, char out[HASH_HEX_SIZE])
{
	unsigned char digest[32];

	if (EVP_DigestFinal_ex((EVP_MD_CTX *)(void *)h, digest, NULL) != 1)
		abort(); /* only for lack of memory */
	str_hex(out, digest, sizeof(digest));
}
