#include "http/server.h"
#include "test.h"
