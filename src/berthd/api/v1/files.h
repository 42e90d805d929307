/* /v1/sandboxes/{}/files: see docs/files.md. */
#pragma once

#include "berthd/front/request.h"

void files_stat(struct request *rq);
void files_list(struct request *rq);
void files_mkdir(struct request *rq);
void files_move(struct request *rq);
void files_remove(struct request *rq);
void files_read(struct request *rq);
void files_write(struct request *rq);
void files_watch(struct request *rq);
void files_pack(struct request *rq);
void files_unpack(struct request *rq);
