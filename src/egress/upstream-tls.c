#include "egress/upstream-tls.h"

#include <openssl/x509v3.h>

int upstream_tls_open(struct upstream_tls *t, const char *file, struct err *e)
{
	t->ctx = SSL_CTX_new(TLS_client_method());
	if (!t->ctx || SSL_CTX_set_default_verify_paths(t->ctx) != 1)
		return err_set(e, ERR_INTERNAL, "the host's certificates cannot be read");
	if (file[0] && SSL_CTX_load_verify_locations(t->ctx, file, NULL) != 1)
		return err_set(e, ERR_INVALID, "trust_file %s cannot be read", file);
	SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
	SSL_CTX_set_mode(t->ctx, SSL_MODE_RELEASE_BUFFERS);
	return 0;
}

void upstream_tls_close(struct upstream_tls *t)
{
	SSL_CTX_free(t->ctx);
	t->ctx = NULL;
}

int upstream_tls_dial(const struct upstream_tls *t, const char *name, SSL **ret, struct err *e)
{
	static const unsigned char protocols[] = "\x08http/1.1";
	SSL *ssl = SSL_new(t->ctx);

	if (!ssl || SSL_set_tlsext_host_name(ssl, name) != 1 || SSL_set1_host(ssl, name) != 1 ||
	    SSL_set_alpn_protos(ssl, protocols, sizeof(protocols) - 1) != 0) {
		SSL_free(ssl);
		return err_set(e, ERR_INTERNAL, "OpenSSL cannot dial %s", name);
	}
	SSL_set_connect_state(ssl);
	*ret = ssl;
	return 0;
}
