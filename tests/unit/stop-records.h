/*
 * The record of core/stop.h after each event in each state: the new state, the action, and
 * every member that is another then. Times are from RECORDS_TIME; see records.h.
 */
#pragma once

/* clang-format off */
static const char *const stop_records[] = {
	"quarantined request: quarantined>note",
	"quarantined force: needed>try attempts=5 attempt=0 next+0 deadline=0 reason=\"new\"",
	"quarantined begin: conflict",
	"quarantined recheck: quarantined>observe rechecks=4 next+9600000 deadline+45000",
	"quarantined absent: none>done attempts=0 rechecks=0 attempt=0 requested=0 "
		"next=0 deadline=0 reason=\"\" error=\"\"",
	"quarantined present: quarantined>nothing attempt=0 deadline=0 error=\"new\"",
	"quarantined unknown: quarantined>nothing attempt=0 deadline=0 error=\"new\"",
	"quarantined expired: quarantined>nothing",
	"quarantined exhausted: quarantined>nothing",
	"quarantined release: none>done attempts=0 rechecks=0 attempt=0 requested=0 "
		"next=0 deadline=0 reason=\"\" error=\"\"",
	"none request: needed>try attempts=0 rechecks=0 attempt=0 requested+0 next+0 "
		"deadline=0 reason=\"new\" error=\"\"",
	"none force: needed>try attempts=0 rechecks=0 attempt=0 requested+0 next+0 "
		"deadline=0 reason=\"new\" error=\"\"",
	"none begin: conflict",
	"none recheck: conflict",
	"none absent: none>nothing",
	"none present: none>nothing",
	"none unknown: none>nothing",
	"none expired: none>nothing",
	"none exhausted: none>nothing",
	"none release: none>nothing",
	"needed request: needed>note",
	"needed force: needed>note",
	"needed begin: stopping>end attempts=3 deadline+45000",
	"needed recheck: conflict",
	"needed absent: needed>nothing",
	"needed present: needed>nothing",
	"needed unknown: needed>nothing",
	"needed expired: needed>nothing",
	"needed exhausted: quarantined>alert attempt=0 next+4800000 deadline=0 error=\"new\"",
	"needed release: none>done attempts=0 rechecks=0 attempt=0 requested=0 next=0 "
		"deadline=0 reason=\"\" error=\"\"",
	"stopping request: stopping>note",
	"stopping force: stopping>note",
	"stopping begin: conflict",
	"stopping recheck: conflict",
	"stopping absent: none>done attempts=0 rechecks=0 attempt=0 requested=0 next=0 "
		"deadline=0 reason=\"\" error=\"\"",
	"stopping present: needed>nothing attempt=0 next+10000 deadline=0 error=\"new\"",
	"stopping unknown: needed>nothing attempt=0 next+10000 deadline=0 error=\"new\"",
	"stopping expired: needed>nothing attempt=0 next+10000 deadline=0 error=\"the "
		"attempt's deadline passed\"",
	"stopping exhausted: quarantined>alert attempt=0 next+4800000 deadline=0 error=\"new\"",
	"stopping release: none>done attempts=0 rechecks=0 attempt=0 requested=0 next=0 "
		"deadline=0 reason=\"\" error=\"\"",
	"quarantined request: quarantined>note",
	"quarantined force: needed>try attempts=5 attempt=0 next+0 deadline=0 reason=\"new\"",
	"quarantined begin: conflict",
	"quarantined recheck: quarantined>observe rechecks=4 next+9600000 deadline+45000",
	"quarantined absent: none>done attempts=0 rechecks=0 attempt=0 requested=0 "
		"next=0 deadline=0 reason=\"\" error=\"\"",
	"quarantined present: quarantined>nothing attempt=0 deadline=0 error=\"new\"",
	"quarantined unknown: quarantined>nothing attempt=0 deadline=0 error=\"new\"",
	"quarantined expired: quarantined>nothing",
	"quarantined exhausted: quarantined>nothing",
	"quarantined release: none>done attempts=0 rechecks=0 attempt=0 requested=0 "
		"next=0 deadline=0 reason=\"\" error=\"\"",
	"none request: needed>try attempts=0 rechecks=0 attempt=0 requested+0 next+0 "
		"deadline=0 reason=\"new\" error=\"\"",
	"none force: needed>try attempts=0 rechecks=0 attempt=0 requested+0 next+0 "
		"deadline=0 reason=\"new\" error=\"\"",
	"none begin: conflict",
	"none recheck: conflict",
	"none absent: none>nothing",
	"none present: none>nothing",
	"none unknown: none>nothing",
	"none expired: none>nothing",
	"none exhausted: none>nothing",
	"none release: none>nothing",
	"needed request: needed>note",
	"needed force: needed>note",
	"needed begin: stopping>end attempts=7 deadline+45000",
	"needed recheck: conflict",
	"needed absent: needed>nothing",
	"needed present: needed>nothing",
	"needed unknown: needed>nothing",
	"needed expired: needed>nothing",
	"needed exhausted: quarantined>alert attempt=0 next+4800000 deadline=0 error=\"new\"",
	"needed release: none>done attempts=0 rechecks=0 attempt=0 requested=0 next=0 "
		"deadline=0 reason=\"\" error=\"\"",
	"stopping request: stopping>note",
	"stopping force: stopping>note",
	"stopping begin: conflict",
	"stopping recheck: conflict",
	"stopping absent: none>done attempts=0 rechecks=0 attempt=0 requested=0 next=0 "
		"deadline=0 reason=\"\" error=\"\"",
	"stopping present: quarantined>alert attempt=0 next+4800000 deadline=0 error=\"new\"",
	"stopping unknown: quarantined>alert attempt=0 next+4800000 deadline=0 error=\"new\"",
	"stopping expired: quarantined>alert attempt=0 next+4800000 deadline=0 "
		"error=\"the attempt's deadline passed\"",
	"stopping exhausted: quarantined>alert attempt=0 next+4800000 deadline=0 error=\"new\"",
	"stopping release: none>done attempts=0 rechecks=0 attempt=0 requested=0 next=0 "
		"deadline=0 reason=\"\" error=\"\"",
};
/* clang-format on */
