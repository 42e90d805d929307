#include "egress/leaf-cert.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ca.h"

struct authority {
	struct ca ca;
	EVP_PKEY *key; /* of its servers */
	SSL_CTX *ctx;
};

/* HTTP/1.1 is what we read; a client that speaks only HTTP/2 is told so. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
			   const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";

	(void)ssl, (void)arg;
	if (SSL_select_next_proto((unsigned char **)out, out_len, ours, sizeof(ours) - 1, in,
				  in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

static int make(const struct box *b, struct authority **ret, struct err *e)
{
	struct authority *a;

	if (!b->ca_seed[0]) {
		err_set(e, ERR_INTERNAL, "%s has no CA", b->sandbox);
		return -1;
	}
	a = xcalloc(1, sizeof(*a));
	if (ca_make(b->ca_seed, b->sandbox, &a->ca, e) < 0) {
		leaf_cert_free(a);
		return -1;
	}
	a->key = EVP_EC_gen("prime256v1");
	a->ctx = SSL_CTX_new(TLS_server_method());
	if (!a->key || !a->ctx) {
		leaf_cert_free(a);
		err_set(e, ERR_INTERNAL, "OpenSSL cannot make a TLS server");
		return -1;
	}
	SSL_CTX_set_min_proto_version(a->ctx, TLS1_2_VERSION);
	SSL_CTX_set_alpn_select_cb(a->ctx, choose_protocol, NULL);
	SSL_CTX_set_session_cache_mode(a->ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(a->ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_mode(a->ctx, SSL_MODE_RELEASE_BUFFERS);
	*ret = a;
	return 0;
}

void leaf_cert_free(struct authority *a)
{
	if (!a)
		return;
	ca_done(&a->ca);
	EVP_PKEY_free(a->key);
	SSL_CTX_free(a->ctx);
	free(a);
}

int leaf_cert_serve(struct box *b, const char *name, SSL **ret, struct err *e)
{
	X509 *cert = NULL;
	SSL *ssl;

	if (!b->authority && make(b, &b->authority, e) < 0)
		return -1;
	if (ca_sign(&b->authority->ca, name, b->authority->key, &cert, e) < 0)
		return -1;
	ssl = SSL_new(b->authority->ctx);
	if (!ssl || SSL_use_certificate(ssl, cert) != 1 ||
	    SSL_use_PrivateKey(ssl, b->authority->key) != 1) {
		SSL_free(ssl);
		X509_free(cert);
		return err_set(e, ERR_INTERNAL, "OpenSSL cannot serve %s", name);
	}
	X509_free(cert);
	SSL_set_accept_state(ssl);
	*ret = ssl;
	return 0;
}
