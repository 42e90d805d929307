/*
 * The record of core/lease.h after each event in each state: the new state, the action, and
 * every member that is another then. Times are from RECORDS_TIME; see records.h.
 */
#pragma once

/* clang-format off */
static const char *const lease_records[] = {
	"quarantined allocate: conflict",
	"quarantined reuse: conflict",
	"quarantined stop: quarantined>note next_generation=6 deadline=0",
	"quarantined force: stop_needed>try next_generation=6 deadline=0 attempts=5 "
		"attempt=0 next+0 stop_deadline=0 reason=\"user-interrupt\"",
	"quarantined begin: conflict",
	"quarantined recheck: quarantined>observe deadline=0 rechecks=4 next+9600000 "
		"stop_deadline+45000",
	"quarantined verified: quarantined>nothing",
	"quarantined accepted: quarantined>nothing",
	"quarantined settled: quarantined>nothing",
	"quarantined owned_absent: quarantined>nothing",
	"quarantined timeout: quarantined>nothing deadline=0",
	"quarantined absent: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\" attempts=0 attempt=0 rechecks=0 requested=0 next=0 "
		"stop_deadline=0 reason=\"\" error=\"\"",
	"quarantined present: quarantined>nothing deadline=0 attempt=0 stop_deadline=0 "
		"error=\"new\"",
	"quarantined unknown: quarantined>nothing deadline=0 attempt=0 stop_deadline=0 "
		"error=\"new\"",
	"quarantined exhausted: quarantined>nothing deadline=0",
	"quarantined proven: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\" attempts=0 attempt=0 rechecks=0 requested=0 next=0 "
		"stop_deadline=0 reason=\"\" error=\"\"",
	"none allocate: starting>spawn wide=0 next_generation=6 deadline+600000 "
		"keep_warm=0 for=\"none\" generation=5",
	"none reuse: conflict",
	"none stop: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"none force: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"none begin: conflict",
	"none recheck: conflict",
	"none verified: none>nothing",
	"none accepted: none>nothing",
	"none settled: none>nothing",
	"none owned_absent: none>nothing",
	"none timeout: none>nothing",
	"none absent: none>nothing",
	"none present: none>nothing",
	"none unknown: none>nothing",
	"none exhausted: none>nothing",
	"none proven: none>nothing",
	"starting allocate: conflict",
	"starting reuse: starting>use",
	"starting stop: stop_needed>try next_generation=6 deadline=0 "
		"for=\"user-interrupt\" attempts=0 attempt=0 rechecks=0 requested+0 next+0 "
		"stop_deadline=0 reason=\"user-interrupt\" error=\"\"",
	"starting force: stop_needed>try next_generation=6 deadline=0 "
		"for=\"user-interrupt\" attempts=0 attempt=0 rechecks=0 requested+0 next+0 "
		"stop_deadline=0 reason=\"user-interrupt\" error=\"\"",
	"starting begin: conflict",
	"starting recheck: conflict",
	"starting verified: ready>nothing deadline+60000 keep_warm=0",
	"starting accepted: busy>supervise deadline+90000 keep_warm=0",
	"starting settled: warm>nothing deadline+300000 keep_warm=0",
	"starting owned_absent: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\"",
	"starting timeout: stop_needed>try deadline=0 for=\"startup-failed\" attempts=0 "
		"attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"startup-failed\" "
		"error=\"it was not ready after 600000 ms\"",
	"starting absent: starting>nothing",
	"starting present: starting>nothing",
	"starting unknown: starting>nothing",
	"starting exhausted: starting>nothing",
	"starting proven: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\"",
	"ready allocate: conflict",
	"ready reuse: ready>use",
	"ready stop: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"ready force: stop_needed>try next_generation=6 deadline=0 "
		"for=\"user-interrupt\" attempts=0 attempt=0 rechecks=0 requested+0 next+0 "
		"stop_deadline=0 reason=\"user-interrupt\" error=\"\"",
	"ready begin: conflict",
	"ready recheck: conflict",
	"ready verified: ready>nothing",
	"ready accepted: busy>supervise deadline+90000 keep_warm=0",
	"ready settled: warm>nothing deadline+300000 keep_warm=0",
	"ready owned_absent: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\"",
	"ready timeout: stop_needed>try deadline=0 for=\"idle-timeout\" attempts=0 "
		"attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 reason=\"idle-timeout\" "
		"error=\"it was ready without work for 60000 ms\"",
	"ready absent: ready>nothing",
	"ready present: ready>nothing",
	"ready unknown: ready>nothing",
	"ready exhausted: ready>nothing",
	"ready proven: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\"",
	"busy allocate: conflict",
	"busy reuse: busy>use",
	"busy stop: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"busy force: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"busy begin: conflict",
	"busy recheck: conflict",
	"busy verified: busy>nothing",
	"busy accepted: busy>nothing",
	"busy settled: warm>nothing deadline+300000 keep_warm=0",
	"busy owned_absent: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\"",
	"busy timeout: warm>nothing deadline+300000",
	"busy absent: busy>nothing",
	"busy present: busy>nothing",
	"busy unknown: busy>nothing",
	"busy exhausted: busy>nothing",
	"busy proven: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" generation=0 "
		"id=\"\"",
	"warm allocate: conflict",
	"warm reuse: starting>use deadline+600000 keep_warm-1",
	"warm stop: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"warm force: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"warm begin: conflict",
	"warm recheck: conflict",
	"warm verified: warm>nothing",
	"warm accepted: busy>supervise deadline+90000 keep_warm=0",
	"warm settled: warm>nothing",
	"warm owned_absent: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\"",
	"warm timeout: stop_needed>try deadline=0 for=\"keep-warm-expired\" attempts=0 "
		"attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"keep-warm-expired\" error=\"\"",
	"warm absent: warm>nothing",
	"warm present: warm>nothing",
	"warm unknown: warm>nothing",
	"warm exhausted: warm>nothing",
	"warm proven: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" generation=0 "
		"id=\"\"",
	"stop_needed allocate: conflict",
	"stop_needed reuse: conflict",
	"stop_needed stop: stop_needed>note next_generation=6 deadline=0",
	"stop_needed force: stop_needed>note next_generation=6 deadline=0",
	"stop_needed begin: stopping>end deadline=0 attempts=3 stop_deadline+45000",
	"stop_needed recheck: conflict",
	"stop_needed verified: stop_needed>nothing",
	"stop_needed accepted: stop_needed>nothing",
	"stop_needed settled: stop_needed>nothing",
	"stop_needed owned_absent: stop_needed>nothing",
	"stop_needed timeout: stop_needed>nothing deadline=0",
	"stop_needed absent: stop_needed>nothing deadline=0",
	"stop_needed present: stop_needed>nothing deadline=0",
	"stop_needed unknown: stop_needed>nothing deadline=0",
	"stop_needed exhausted: quarantined>alert deadline=0 attempt=0 next+4800000 "
		"stop_deadline=0 error=\"new\"",
	"stop_needed proven: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\" attempts=0 attempt=0 rechecks=0 requested=0 next=0 "
		"stop_deadline=0 reason=\"\" error=\"\"",
	"stopping allocate: conflict",
	"stopping reuse: conflict",
	"stopping stop: stopping>note next_generation=6 deadline=0",
	"stopping force: stopping>note next_generation=6 deadline=0",
	"stopping begin: conflict",
	"stopping recheck: conflict",
	"stopping verified: stopping>nothing",
	"stopping accepted: stopping>nothing",
	"stopping settled: stopping>nothing",
	"stopping owned_absent: stopping>nothing",
	"stopping timeout: stop_needed>nothing deadline=0 attempt=0 next+10000 "
		"stop_deadline=0 error=\"the attempt's deadline passed\"",
	"stopping absent: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\" attempts=0 attempt=0 rechecks=0 requested=0 next=0 "
		"stop_deadline=0 reason=\"\" error=\"\"",
	"stopping present: stop_needed>nothing deadline=0 attempt=0 next+10000 "
		"stop_deadline=0 error=\"new\"",
	"stopping unknown: stop_needed>nothing deadline=0 attempt=0 next+10000 "
		"stop_deadline=0 error=\"new\"",
	"stopping exhausted: quarantined>alert deadline=0 attempt=0 next+4800000 "
		"stop_deadline=0 error=\"new\"",
	"stopping proven: none>drain wide=0 deadline=0 keep_warm=0 for=\"none\" "
		"generation=0 id=\"\" attempts=0 attempt=0 rechecks=0 requested=0 next=0 "
		"stop_deadline=0 reason=\"\" error=\"\"",
	"quarantined stop: quarantined>note next_generation=6 deadline=0",
	"quarantined timeout: quarantined>nothing deadline=0",
	"none stop: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"none timeout: none>nothing",
	"starting stop: stop_needed>try next_generation=6 deadline=0 "
		"for=\"user-interrupt\" attempts=0 attempt=0 rechecks=0 requested+0 next+0 "
		"stop_deadline=0 reason=\"user-interrupt\" error=\"\"",
	"starting timeout: busy>supervise deadline+90000",
	"ready stop: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"ready timeout: busy>supervise deadline+90000",
	"busy stop: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"busy timeout: busy>supervise deadline+90000",
	"warm stop: stop_needed>try next_generation=6 deadline=0 for=\"user-interrupt\" "
		"attempts=0 attempt=0 rechecks=0 requested+0 next+0 stop_deadline=0 "
		"reason=\"user-interrupt\" error=\"\"",
	"warm timeout: busy>supervise deadline+90000",
	"stop_needed stop: stop_needed>note next_generation=6 deadline=0",
	"stop_needed timeout: stop_needed>nothing deadline=0",
	"stopping stop: stopping>note next_generation=6 deadline=0",
	"stopping timeout: stop_needed>nothing deadline=0 attempt=0 next+10000 "
		"stop_deadline=0 error=\"the attempt's deadline passed\"",
};
/* clang-format on */
