/* Idempotency keys in SQL, for this room only. */
#pragma once

#include "store/idempotency.h"

/* clang-format off */
#define SQL_NUMBER_(n) #n
#define SQL_NUMBER(n)  SQL_NUMBER_(n)

/* May this owner have one more? By the counts that triggers of the table keep. */
#define IDEMPOTENCY_ROOM(owner_) \
	"(SELECT coalesce(sum(c.n), 0) < " SQL_NUMBER(STORE_IDEMPOTENCY_MAX) \
	" FROM idempotency_count c WHERE c.owner = " owner_ ")"
/* clang-format on */
