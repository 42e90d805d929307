#include "node/udp-segments.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/str.h"

#define FEATURE      "tx-udp-segmentation"
#define FEATURES_MAX 256 /* of a link; kernels have about 60 */
#define BLOCKS_MAX   (FEATURES_MAX / 32)

static int call(int fd, const char *link, void *request)
{
	struct ifreq r = { .ifr_data = request };

	if (!str_copy(r.ifr_name, sizeof(r.ifr_name), link)) {
		errno = ENODEV;
		return -1;
	}
	return ioctl(fd, SIOCETHTOOL, &r);
}

/* How many features the kernel knows; 0: more than we have room for, or none. -1 is an error. */
static int count_features(int fd, const char *link)
{
	union {
		struct ethtool_sset_info info;
		char room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
	} ask = { .info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_FEATURES } };
	uint32_t count;

	if (call(fd, link, &ask) < 0)
		return -1;
	memcpy(&count, ask.info.data, sizeof(count));
	return ask.info.sset_mask == 0 || count > FEATURES_MAX ? 0 : (int)count;
}

/* Which of them it is: the kernel numbers them as it likes. -1: an error, `count`: none. */
static int find_feature(int fd, const char *link, int count)
{
	cleanup(free_ptr) struct ethtool_gstrings *names =
		xcalloc(1, sizeof(*names) + FEATURES_MAX * ETH_GSTRING_LEN);
	int i = 0;

	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_FEATURES;
	names->len = (uint32_t)count;
	if (call(fd, link, names) < 0)
		return -1;
	while (i < count && strncmp((char *)names->data + (size_t)i * ETH_GSTRING_LEN, FEATURE,
				    ETH_GSTRING_LEN) != 0)
		i++;
	return i;
}

static int turn_off(int fd, const char *link, int count, int feature)
{
	cleanup(free_ptr) struct ethtool_sfeatures *set =
		xcalloc(1, sizeof(*set) + BLOCKS_MAX * sizeof(set->features[0]));

	set->cmd = ETHTOOL_SFEATURES;
	set->size = ((uint32_t)count + 31) / 32;
	set->features[feature / 32].valid = 1U << (feature % 32);
	return call(fd, link, set);
}

int udp_segments_turn_off(const char *link, struct err *e)
{
	cleanup(close_fd) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int count = fd < 0 ? -1 : count_features(fd, link);
	int feature = count <= 0 ? count : find_feature(fd, link, count);

	if (feature < 0 || (feature < count && turn_off(fd, link, count, feature) < 0))
		return err_sys(e, errno, "turn off segments of UDP on %s", link);
	return 0;
}
