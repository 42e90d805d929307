/* Every path of the API, who may use it and who answers. A test holds openapi.yaml equal. */
#include "berthd/api/v1/alerts.h"
#include "berthd/api/v1/check.h"
#include "berthd/api/v1/code.h"
#include "berthd/api/v1/contexts.h"
#include "berthd/api/v1/events.h"
#include "berthd/api/v1/execs.h"
#include "berthd/api/v1/files.h"
#include "berthd/api/v1/git-checkout.h"
#include "berthd/api/v1/history.h"
#include "berthd/api/v1/host.h"
#include "berthd/api/v1/hosts.h"
#include "berthd/api/v1/images.h"
#include "berthd/api/v1/incidents.h"
#include "berthd/api/v1/keys.h"
#include "berthd/api/v1/network.h"
#include "berthd/api/v1/policies.h"
#include "berthd/api/v1/profiles.h"
#include "berthd/api/v1/route-usage.h"
#include "berthd/api/v1/sandboxes.h"
#include "berthd/api/v1/secrets.h"
#include "berthd/api/v1/security.h"
#include "berthd/api/v1/shells.h"
#include "berthd/api/v1/sleep.h"
#include "berthd/api/v1/terminals.h"
#include "berthd/api/v1/wrappers.h"
#include "berthd/exec/exec.h"
#include "berthd/front/request.h"

#define HOST ROUTE_SANDBOX                   /* a sandbox's host answers */
#define RECS (ROUTE_SANDBOX | ROUTE_RECORDS) /* any host does, from the records */

/* clang-format off */
static const struct route routes[] = {
	/* method   path                       role         sandbox body store, loop, query */
	{ "GET",    "/v1/health",              ROLE_ANYONE, 0,    false, NULL, host_health },
	{ "GET",    "/v1/host",                ROLE_USER,   0,    false, NULL, host_facts },
	{ "GET",    "/v1/hosts",               ROLE_USER,   0,    false, hosts_list, NULL },
	{ "GET",    "/v1/hosts/{}",            ROLE_USER,   0,    false, hosts_get, NULL },
	{ "DELETE", "/v1/hosts/{}",            ROLE_ADMIN,  0,    false, hosts_remove, NULL,
	  "confirm" },
	{ "POST",   "/v1/hosts/{}/drain",      ROLE_ADMIN,  0,    false, hosts_drain, NULL },
	{ "POST",   "/v1/hosts/{}/undrain",    ROLE_ADMIN,  0,    false, hosts_undrain, NULL },
	{ "GET",    "/v1/events",              ROLE_USER,   0,    false, NULL, events_follow,
	  "after" },
	{ "GET",    "/v1/alerts",              ROLE_USER,   0,    false, alerts_list, NULL,
	  "before ended" },
	{ "GET",    "/v1/check",               ROLE_ADMIN,  0,    false, NULL, check_show },
	{ "POST",   "/v1/check/repair",        ROLE_ADMIN,  0,    false, NULL, check_repair },
	{ "POST",   "/v1/check/abandon/{}",    ROLE_ADMIN,  0,    false, NULL, check_abandon },
	{ "POST",   "/v1/sandboxes",           ROLE_USER,   0,    true,  NULL, sandboxes_create },
	{ "GET",    "/v1/sandboxes",           ROLE_USER,   0,    false, sandboxes_list, NULL,
	  "after limit selector state" },
	{ "GET",    "/v1/sandboxes/{}", ROLE_USER, RECS | ROUTE_ANEW, false, sandboxes_get, NULL },
	{ "PATCH",  "/v1/sandboxes/{}", ROLE_USER, HOST | ROUTE_ANEW, true, NULL, sandboxes_patch },
	{ "POST",   "/v1/sandboxes/{}/sleep",  ROLE_USER,   HOST, false, NULL, sleep_route },
	{ "POST",   "/v1/sandboxes/{}/wake",   ROLE_USER,   HOST, false, NULL, wake_route },
	{ "DELETE", "/v1/sandboxes/{}", ROLE_USER, HOST | ROUTE_ANEW | ROUTE_DELETES, false,
	  NULL, sandboxes_delete },
	{ "POST",   "/v1/sandboxes/{}/exec",   ROLE_USER,   HOST, true,  NULL, exec_route },
	{ "GET",    "/v1/sandboxes/{}/execs",  ROLE_USER,   HOST, false, execs_list, NULL,
	  "after background limit state" },
	{ "DELETE", "/v1/sandboxes/{}/execs",  ROLE_USER,   HOST, false, NULL, execs_forget },
	{ "GET",    "/v1/sandboxes/{}/execs/{}", ROLE_USER,   HOST, false, execs_get, NULL },
	{ "DELETE", "/v1/sandboxes/{}/execs/{}", ROLE_USER,   HOST, false, execs_forget_one, NULL },
	{ "POST",   "/v1/sandboxes/{}/execs/kill", ROLE_USER, HOST, true, NULL, execs_kill_scope },
	{ "GET",    "/v1/sandboxes/{}/execs/{}/output", ROLE_USER, HOST, false, NULL,
	  execs_output, "follow from stream" },
	{ "POST",   "/v1/sandboxes/{}/execs/{}/kill", ROLE_USER,   HOST, true,  NULL, execs_kill },
	{ "POST",   "/v1/sandboxes/{}/execs/{}/stdin", ROLE_USER, HOST, true, NULL, execs_stdin,
	  "end" },
	{ "GET",    "/v1/sandboxes/{}/execs/{}/wait", ROLE_USER,   HOST, false, NULL, execs_wait,
	  "for pattern port timeout_ms" },
	{ "GET",    "/v1/sandboxes/{}/files",  ROLE_USER,   HOST, false, NULL, files_read, "path" },
	{ "PUT",    "/v1/sandboxes/{}/files",  ROLE_USER,   HOST, false, NULL, files_write,
	  "mode parents path" },
	{ "DELETE", "/v1/sandboxes/{}/files",  ROLE_USER,   HOST, false, NULL, files_remove,
	  "path recursive" },
	{ "GET",    "/v1/sandboxes/{}/files/stat", ROLE_USER,   HOST, false, NULL, files_stat,
	  "path" },
	{ "GET",    "/v1/sandboxes/{}/files/list", ROLE_USER,   HOST, false, NULL, files_list,
	  "after limit path recursive" },
	{ "GET",    "/v1/sandboxes/{}/files/watch", ROLE_USER,   HOST, false, NULL, files_watch,
	  "path recursive" },
	{ "GET",    "/v1/sandboxes/{}/files/tar", ROLE_USER,   HOST, false, NULL, files_pack,
	  "path" },
	{ "PUT",    "/v1/sandboxes/{}/files/tar", ROLE_USER,   HOST, false, NULL, files_unpack,
	  "path" },
	{ "POST",   "/v1/sandboxes/{}/files/mkdir", ROLE_USER,   HOST, true,  NULL, files_mkdir },
	{ "POST",   "/v1/sandboxes/{}/files/move", ROLE_USER,   HOST, true,  NULL, files_move },
	{ "POST",   "/v1/sandboxes/{}/shells", ROLE_USER,   HOST, true,  NULL, shells_create },
	{ "GET",    "/v1/sandboxes/{}/shells", ROLE_USER,   HOST, false, NULL, shells_list },
	{ "GET",    "/v1/sandboxes/{}/shells/{}", ROLE_USER,   HOST, false, NULL, shells_get },
	{ "DELETE", "/v1/sandboxes/{}/shells/{}", ROLE_USER,   HOST, false, NULL, shells_delete },
	{ "POST",   "/v1/sandboxes/{}/git/checkout", ROLE_USER,   HOST, true,  NULL, git_checkout },
	{ "POST",   "/v1/sandboxes/{}/terminals", ROLE_USER, HOST, true, NULL, terminals_create },
	{ "GET",    "/v1/sandboxes/{}/terminals", ROLE_USER,   HOST, false, terminals_list, NULL },
	{ "GET",    "/v1/sandboxes/{}/terminals/{}", ROLE_USER, HOST, false, terminals_get, NULL },
	{ "DELETE", "/v1/sandboxes/{}/terminals/{}", ROLE_USER, HOST, false, NULL,
	  terminals_delete },
	{ "POST",   "/v1/sandboxes/{}/terminals/{}/resize", ROLE_USER, HOST, true, NULL,
	  terminals_resize },
	{ "GET",    "/v1/sandboxes/{}/terminals/{}/attach", ROLE_USER, HOST, false, NULL,
	  terminals_attach, "from" },
	{ "GET",    "/v1/sandboxes/{}/usage",  ROLE_USER,   HOST, false, NULL, usages_get,
	  "fresh" },
	{ "GET",    "/v1/sandboxes/{}/wrappers", ROLE_USER,   HOST, false, wrappers_list, NULL },
	{ "GET",    "/v1/sandboxes/{}/wrappers/{}", ROLE_USER,   HOST, false, NULL, wrappers_get },
	{ "GET",    "/v1/sandboxes/{}/wrappers/{}/processes", ROLE_USER, HOST, false, NULL,
	  wrappers_processes },
	{ "PUT",    "/v1/sandboxes/{}/wrappers/{}", ROLE_USER, HOST, true, NULL, wrappers_launch },
	{ "DELETE", "/v1/sandboxes/{}/wrappers/{}", ROLE_USER, HOST, false, NULL, wrappers_delete,
	  "instance" },
	{ "POST",   "/v1/sandboxes/{}/wrappers/{}/ready", ROLE_USER, HOST, true, NULL,
	  wrappers_ready },
	{ "POST",   "/v1/sandboxes/{}/wrappers/{}/accepted", ROLE_USER, HOST, true, NULL,
	  wrappers_accepted },
	{ "POST",   "/v1/sandboxes/{}/wrappers/{}/settled", ROLE_USER, HOST, true, NULL,
	  wrappers_settled },
	{ "POST",   "/v1/sandboxes/{}/wrappers/{}/stop", ROLE_USER, HOST, true, NULL,
	  wrappers_stop },
	{ "GET",    "/v1/sandboxes/{}/receipt", ROLE_USER,   RECS, false, history_receipt, NULL },
	{ "GET",    "/v1/sandboxes/{}/events", ROLE_USER,   RECS, false, history_events, NULL,
	  "after" },
	{ "GET",    "/v1/sandboxes/{}/network", ROLE_USER,   HOST, false, network_get, NULL },
	{ "PUT",    "/v1/sandboxes/{}/network", ROLE_USER,   HOST, true,  NULL, network_put },
	{ "POST",   "/v1/sandboxes/{}/network/lock", ROLE_USER,   HOST, false, NULL, network_lock },
	{ "GET",    "/v1/sandboxes/{}/security", ROLE_USER,   HOST, false, security_list, NULL,
	  "after" },
	{ "GET",    "/v1/security",            ROLE_ADMIN,  0,    false, incidents_list, NULL,
	  "before" },
	{ "POST",   "/v1/sandboxes/{}/contexts", ROLE_USER,   HOST, true,  NULL, contexts_create },
	{ "GET",    "/v1/sandboxes/{}/contexts", ROLE_USER,   HOST, false, contexts_list, NULL },
	{ "GET",    "/v1/sandboxes/{}/contexts/{}", ROLE_USER,   HOST, false, contexts_get, NULL },
	{ "DELETE", "/v1/sandboxes/{}/contexts/{}", ROLE_USER, HOST, false, NULL, contexts_delete },
	{ "POST",   "/v1/sandboxes/{}/code",   ROLE_USER,   HOST, true,  NULL, code_route },
	{ "GET",    "/v1/images",              ROLE_USER,   0,    false, images_list, NULL },
	{ "POST",   "/v1/images",              ROLE_ADMIN,  0,    true,  NULL, images_pull },
	{ "PUT",    "/v1/images/{}",           ROLE_ADMIN,  0,    false, NULL, images_import },
	{ "DELETE", "/v1/images/{}",           ROLE_ADMIN,  0,    false, NULL, images_remove },
	{ "GET",    "/v1/policies",            ROLE_ADMIN,  0,    false, policies_list, NULL },
	{ "POST",   "/v1/policies",            ROLE_ADMIN,  0,    true,  policies_add, NULL },
	{ "DELETE", "/v1/policies/{}",         ROLE_ADMIN,  0,    false, policies_remove, NULL },
	{ "GET",    "/v1/secrets",             ROLE_USER,   0,    false, secrets_list, NULL },
	{ "PUT",    "/v1/secrets/{}",          ROLE_USER,   0,    true,  secrets_put, NULL },
	{ "DELETE", "/v1/secrets/{}",          ROLE_USER,   0,    false, secrets_remove, NULL },
	{ "GET",    "/v1/profiles",            ROLE_USER,   0,    false, profiles_list, NULL },
	{ "GET",    "/v1/profiles/{}",         ROLE_USER,   0,    false, profiles_get, NULL },
	{ "POST",   "/v1/profiles",            ROLE_ADMIN,  0,    true,  profiles_put, NULL },
	{ "DELETE", "/v1/profiles/{}",         ROLE_ADMIN,  0,    false, profiles_remove, NULL },
	{ "GET",    "/v1/usage",               ROLE_USER,   0,    false, usages_list, NULL,
	  "after limit" },
	{ "POST",   "/v1/keys",                ROLE_ADMIN,  0,    true,  keys_create, NULL },
	{ "GET",    "/v1/keys",                ROLE_ADMIN,  0,    false, keys_list, NULL },
	{ "DELETE", "/v1/keys/{}",             ROLE_ADMIN,  0,    false, keys_revoke, NULL },
};
/* clang-format on */

const struct route *routes_table(size_t *count)
{
	*count = array_len(routes);
	return routes;
}
