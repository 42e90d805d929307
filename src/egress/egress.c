#include "egress/egress.h"

#include <signal.h>
#include <stdlib.h>

#include "egress/conn.h"
#include "egress/control.h"
#include "egress/listeners.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/time.h"
#include "lib/user.h"

/* clang-format off */
const struct setting egress_settings_table[] = {
	SETTING(CONFIG_STR, egress_settings, socket, "/run/berth-egress/policy.sock",
		"The Unix socket berthd tells policies through."),
	SETTING(CONFIG_STR, egress_settings, socket_user, "berth",
		"The user berthd runs as; only that user and root are answered."),
	SETTING(CONFIG_STR, egress_settings, node_socket, "/run/berth/egress.sock",
		"The Unix socket of berth-node that hands over what sandboxes reach."),
	SETTING(CONFIG_STR, egress_settings, resolver, "",
		"Who is asked for names: addresses with ports, a comma between them; empty: the "
		"host's own resolver."),
	SETTING(CONFIG_STR, egress_settings, trust_file, "",
		"Certificates that are trusted beside the host's own, in one file; empty: none."),
	SETTING(CONFIG_STR, egress_settings, log_level, "info",
		"How much is logged: error, warn or info, each with those before it."),
	SETTING(CONFIG_STR, egress_settings, log_format, "json",
		"How a line of the log looks: json, or pretty for a terminal."),
	SETTING_END
};
/* clang-format on */

void egress_refuse(struct egress *g, struct box *b, const struct refusal *r)
{
	(void)g;
	box_refused(b, r, time_wall_ms());
}

static void on_end_signal(uv_signal_t *handle, int signum)
{
	struct egress *g = handle->data;

	log_event(LOG_INFO, "berth-egress ends; nothing leaves a sandbox until the next start",
		  "signal", signum == SIGTERM ? "TERM" : "INT", NULL);
	uv_stop(&g->loop);
}

static int watch_signals(struct egress *g, struct err *e)
{
	int r;

	(void)uv_signal_init(&g->loop, &g->on_term);
	(void)uv_signal_init(&g->loop, &g->on_int);
	g->on_term.data = g->on_int.data = g;
	r = uv_signal_start(&g->on_term, on_end_signal, SIGTERM);
	if (r == 0)
		r = uv_signal_start(&g->on_int, on_end_signal, SIGINT);
	return r < 0 ? err_uv(e, r, "watch signals") : 0;
}

int egress_open(struct egress *g, struct err *e)
{
	int r = uv_loop_init(&g->loop);

	if (r < 0)
		return err_uv(e, r, "loop");
	g->listen_fd = -1;
	g->read_buffer = xcalloc(1, TLS_STREAM_READ_SIZE);
	if (user_find(g->settings.socket_user, "berthd", &g->peer_uid, e) < 0 ||
	    upstream_tls_open(&g->trust, g->settings.trust_file, e) < 0 ||
	    resolver_open(&g->resolver, &g->loop, g->settings.resolver, e) < 0 ||
	    control_open(g, e) < 0 || watch_signals(g, e) < 0)
		return -1;
	listeners_open(g);
	return 0;
}

void egress_close(struct egress *g)
{
	listeners_close(g);
	control_close(g);
	for (size_t i = 0; i < BOXES_BUCKETS; i++)
		while (g->boxes.by_address[i]) {
			conns_review(g->boxes.by_address[i], true);
			boxes_remove(&g->boxes, g->boxes.by_address[i]);
		}
	resolver_close(&g->resolver);
	uv_close((uv_handle_t *)&g->on_term, NULL);
	uv_close((uv_handle_t *)&g->on_int, NULL);
	uv_run(&g->loop, UV_RUN_DEFAULT);
	uv_loop_close(&g->loop);
	upstream_tls_close(&g->trust);
	host_addresses_done(&g->own);
	free(g->read_buffer);
}
