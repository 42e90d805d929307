#include "lib/ca.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "lib/hash.h"

#define CURVE      "prime256v1"
#define POINT_SIZE 65
#define DAY        (24L * 3600)
#define NAME_MAX_  64 /* of a common name */

static void free_bn(BIGNUM **n)
{
	BN_clear_free(*n);
}

static void free_group(EC_GROUP **g)
{
	EC_GROUP_free(*g);
}

static void free_point(EC_POINT **p)
{
	EC_POINT_free(*p);
}

static void free_build(OSSL_PARAM_BLD **b)
{
	OSSL_PARAM_BLD_free(*b);
}

static void free_params(OSSL_PARAM **p)
{
	OSSL_PARAM_free(*p);
}

static void free_key_ctx(EVP_PKEY_CTX **c)
{
	EVP_PKEY_CTX_free(*c);
}

static void free_cert(X509 **c)
{
	X509_free(*c);
}

static int failed(struct err *e, const char *what)
{
	return err_set(e, ERR_INTERNAL, "%s: OpenSSL cannot", what);
}

/* The seed as a number below the curve's order; the public point follows from it. */
static int make_key(const char *seed, EVP_PKEY **ret, struct err *e)
{
	cleanup(free_group) EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
	cleanup(free_point) EC_POINT *point = group ? EC_POINT_new(group) : NULL;
	cleanup(free_bn) BIGNUM *secret = NULL;
	cleanup(free_build) OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	cleanup(free_params) OSSL_PARAM *params = NULL;
	cleanup(free_key_ctx) EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	char hex[HASH_HEX_SIZE];
	unsigned char wire[POINT_SIZE];

	hash_mac_hex(seed, strlen(seed), "berth sandbox CA", 16, hex);
	/* Half the order is as good: no number of 256 bits less its first is above it. */
	hex[0] = '0';
	if (!point || !build || !ctx || !BN_hex2bn(&secret, hex) || BN_is_zero(secret) ||
	    !EC_POINT_mul(group, point, secret, NULL, NULL, NULL) ||
	    EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, wire, sizeof(wire),
			       NULL) != sizeof(wire))
		return failed(e, "a key");
	if (!OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, CURVE, 0) ||
	    !OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, wire,
					      sizeof(wire)) ||
	    !OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, secret))
		return failed(e, "a key");
	params = OSSL_PARAM_BLD_to_param(build);
	if (!params || EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, ret, EVP_PKEY_KEYPAIR, params) != 1)
		return failed(e, "a key");
	return 0;
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *x;
	bool ok;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = x && X509_add_ext(cert, x, -1) == 1;
	X509_EXTENSION_free(x);
	return ok;
}

static bool begin_cert(X509 *cert, const char *name, X509_NAME *issuer, EVP_PKEY *key, long days)
{
	unsigned char number[8];
	cleanup(free_bn) BIGNUM *serial = NULL;
	X509_NAME *subject = X509_get_subject_name(cert);

	if (RAND_bytes(number, sizeof(number)) != 1)
		return false;
	number[0] &= 0x7f;
	serial = BN_bin2bn(number, sizeof(number), NULL);
	return serial && BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert)) &&
	       X509_set_version(cert, X509_VERSION_3) == 1 &&
	       X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
					  (const unsigned char *)name,
					  (int)strnlen(name, NAME_MAX_), -1, 0) == 1 &&
	       X509_set_issuer_name(cert, issuer ? issuer : subject) == 1 &&
	       X509_gmtime_adj(X509_getm_notBefore(cert), -DAY) &&
	       X509_gmtime_adj(X509_getm_notAfter(cert), days * DAY) &&
	       X509_set_pubkey(cert, key) == 1;
}

int ca_make(const char *seed, const char *sandbox, struct ca *ret, struct err *e)
{
	struct ca ca = { 0 };
	char name[96];

	snprintf(name, sizeof(name), "Berth %s", sandbox);
	if (make_key(seed, &ca.key, e) < 0)
		return -1;
	ca.cert = X509_new();
	if (!ca.cert || !begin_cert(ca.cert, name, NULL, ca.key, 3650) ||
	    !add_extension(ca.cert, ca.cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
	    !add_extension(ca.cert, ca.cert, NID_key_usage, "critical,keyCertSign") ||
	    !add_extension(ca.cert, ca.cert, NID_subject_key_identifier, "hash") ||
	    X509_sign(ca.cert, ca.key, EVP_sha256()) == 0) {
		ca_done(&ca);
		return failed(e, "a CA");
	}
	*ret = ca;
	return 0;
}

void ca_done(struct ca *ca)
{
	EVP_PKEY_free(ca->key);
	X509_free(ca->cert);
	*ca = (struct ca){ 0 };
}

void ca_hash(const struct ca *ca, char out[CA_HASH_SIZE])
{
	snprintf(out, CA_HASH_SIZE, "%08lx", X509_subject_name_hash(ca->cert) & 0xffffffffUL);
}

int ca_pem(const struct ca *ca, struct buf *out, struct err *e)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long len;

	if (!bio || PEM_write_bio_X509(bio, ca->cert) != 1) {
		BIO_free(bio);
		return failed(e, "a certificate as text");
	}
	len = BIO_get_mem_data(bio, &text);
	buf_add(out, text, (size_t)len);
	BIO_free(bio);
	return 0;
}

int ca_sign(const struct ca *ca, const char *name, EVP_PKEY *key, X509 **ret, struct err *e)
{
	cleanup(free_cert) X509 *cert = X509_new();
	char names[300];

	snprintf(names, sizeof(names), "DNS:%s", name);
	if (!cert ||
	    !begin_cert(cert, name, X509_get_subject_name(ca->cert), key, 30) ||
	    !add_extension(cert, ca->cert, NID_subject_alt_name, names) ||
	    !add_extension(cert, ca->cert, NID_ext_key_usage, "serverAuth") ||
	    !add_extension(cert, ca->cert, NID_authority_key_identifier, "keyid:always") ||
	    X509_sign(cert, ca->key, EVP_sha256()) == 0)
		return failed(e, "a certificate");
	*ret = take_ptr(cert);
	return 0;
}
