#include "core/guest.h"

#include "test.h"

#define VERSION(major, minor) ((uint32_t)(minor) << 16 | (major))

TEST(another_minor_differs_and_another_major_is_incompatible)
{
	/* clang-format off */
	static const struct {
		uint32_t guest, host;
		enum guest_status status;
	} rows[] = {
		{ VERSION(2, 1),	VERSION(2, 1),		GUEST_CURRENT },
		{ VERSION(2, 0),	VERSION(2, 1),		GUEST_DIFFERS }, /* older */
		{ VERSION(2, 2),	VERSION(2, 1),		GUEST_DIFFERS }, /* newer */
		{ VERSION(2, 0xffff),	VERSION(2, 1),		GUEST_DIFFERS },
		{ VERSION(1, 1),	VERSION(2, 1),		GUEST_INCOMPATIBLE },
		{ VERSION(3, 1),	VERSION(2, 1),		GUEST_INCOMPATIBLE },
		{ VERSION(0xffff, 1),	VERSION(2, 1),		GUEST_INCOMPATIBLE },
		{ 0,			VERSION(2, 1),		GUEST_UNKNOWN },
		{ VERSION(2, 1),	0,			GUEST_UNKNOWN },
		{ 0,			0,			GUEST_UNKNOWN },
	};
	/* clang-format on */

	for (size_t i = 0; i < array_len(rows); i++)
		CHECK_STR(guest_status_name(guest_compare(rows[i].guest, rows[i].host)),
			  guest_status_name(rows[i].status));
}

TEST(a_version_reads_major_before_minor)
{
	char text[GUEST_VERSION_SIZE];

	CHECK_STR(guest_version_text(VERSION(2, 1), text), "2.1");
	CHECK_STR(guest_version_text(VERSION(0xffff, 0xffff), text), "65535.65535");
	CHECK_STR(guest_version_text(0, text), "unknown");
	CHECK_STR(guest_status_name(GUEST_STATUS_COUNT), "unknown");
}

/* So that each is told once, and again when the other side of it changed. */
TEST(only_a_pair_that_is_not_recorded_is_news)
{
	const struct guest_versions recorded = { VERSION(2, 0), VERSION(2, 1) };
	const struct guest_versions none = { 0 };

	CHECK(!guest_is_news(recorded, recorded));
	CHECK(guest_is_news(none, recorded));
	CHECK(guest_is_news(recorded, (struct guest_versions){ VERSION(2, 1), VERSION(2, 1) }));
	CHECK(guest_is_news(recorded, (struct guest_versions){ VERSION(2, 0), VERSION(2, 2) }));
	CHECK(!guest_is_news(recorded, (struct guest_versions){ 0, VERSION(2, 1) }));
	CHECK(!guest_is_news(none, (struct guest_versions){ 0, VERSION(2, 1) }));
}
