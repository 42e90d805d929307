#include "proto/files.h"

#include <stdio.h>
#include <string.h>

#include "lib/errno-map.h"
#include "proto/frame.h"
#include "proto/record.h"

#define FIELDS_END \
	{ \
		FIELD_END \
	}

static const struct field request_fields[] = {
	FIELD(FIELD_U32, file_request, verb), FIELD(FIELD_U32, file_request, flags),
	FIELD(FIELD_U32, file_request, mode), FIELD(FIELD_U32, file_request, limit),
	FIELD(FIELD_U64, file_request, offset), FIELD(FIELD_U64, file_request, length),
	FIELD(FIELD_STR, file_request, path), FIELD(FIELD_STR, file_request, to),
	FIELDS_END
};

static const struct field entry_fields[] = {
	FIELD(FIELD_U32, file_entry, type), FIELD(FIELD_U32, file_entry, mode),
	FIELD(FIELD_U32, file_entry, uid), FIELD(FIELD_U32, file_entry, gid),
	FIELD(FIELD_U64, file_entry, size), FIELD(FIELD_U64, file_entry, mtime_ns),
	FIELD(FIELD_U64, file_entry, inode), FIELD(FIELD_STR, file_entry, path),
	FIELD(FIELD_STR, file_entry, target), FIELDS_END
};

static const struct field change_fields[] = {
	FIELD(FIELD_U32, file_change, type),
	FIELD(FIELD_STR, file_change, path),
	FIELD(FIELD_STR, file_change, to),
	FIELDS_END
};

static const struct field done_fields[] = { FIELD(FIELD_U64, file_done, count), FIELDS_END };

static const struct field failed_fields[] = {
	FIELD(FIELD_U32, file_failed, code),
	FIELD(FIELD_STR, file_failed, reason),
	FIELD(FIELD_STR, file_failed, message),
	FIELDS_END
};

static const char *const type_names[FILE_TYPE_COUNT] = {
	[FILE_TYPE_NONE] = "none",
	[FILE_TYPE_FILE] = "file",
	[FILE_TYPE_DIRECTORY] = "directory",
	[FILE_TYPE_SYMLINK] = "symlink",
	[FILE_TYPE_FIFO] = "fifo",
	[FILE_TYPE_SOCKET] = "socket",
	[FILE_TYPE_DEVICE] = "device",
};

static const char *const change_names[FILE_CHANGE_COUNT] = {
	[FILE_CHANGE_NONE] = "none",
	[FILE_CHANGE_WATCHING] = "watching",
	[FILE_CHANGE_CREATED] = "created",
	[FILE_CHANGE_MODIFIED] = "modified",
	[FILE_CHANGE_DELETED] = "deleted",
	[FILE_CHANGE_MOVED] = "moved",
	[FILE_CHANGE_OVERFLOW] = "overflow",
};

const char *file_type_name(uint32_t type)
{
	return type_names[type < FILE_TYPE_COUNT ? type : FILE_TYPE_NONE];
}

const char *file_change_name(uint32_t type)
{
	return change_names[type < FILE_CHANGE_COUNT ? type : FILE_CHANGE_NONE];
}

static int check_path(const char *path, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, ERR_INVALID, "the path is not absolute: \"%.100s\"", path);
	return 0;
}

int file_request_check(const struct file_request *q, struct err *e)
{
	if (q->verb <= FILE_NONE || q->verb >= FILE_VERB_END)
		return err_set(e, ERR_INVALID, "there is no operation %u on files", q->verb);
	if (q->mode > 07777)
		return err_set(e, ERR_INVALID, "the mode is not one of a file: %o", q->mode);
	if (check_path(q->path, e) < 0)
		return -1;
	if (q->verb == FILE_MOVE || q->to[0])
		return check_path(q->to, e);
	return 0;
}

void file_request_encode(struct buf *out, const struct file_request *q)
{
	record_encode(out, request_fields, q);
}

void file_entry_encode(struct buf *out, const struct file_entry *x)
{
	record_encode(out, entry_fields, x);
}

void file_change_encode(struct buf *out, const struct file_change *x)
{
	record_encode(out, change_fields, x);
}

void file_done_encode(struct buf *out, const struct file_done *x)
{
	record_encode(out, done_fields, x);
}

void file_failed_encode(struct buf *out, const struct err *why)
{
	struct file_failed f = { .code = why->code };

	snprintf(f.reason, sizeof(f.reason), "%s", why->reason ? why->reason : "");
	snprintf(f.message, sizeof(f.message), "%s", why->msg);
	record_encode(out, failed_fields, &f);
}

int file_request_decode(struct bytes wire, struct file_request *ret, struct err *e)
{
	if (record_decode(wire, request_fields, ret, e) < 0)
		return -1;
	return file_request_check(ret, e);
}

int file_entry_decode(struct bytes wire, struct file_entry *ret, struct err *e)
{
	if (record_decode(wire, entry_fields, ret, e) < 0)
		return -1;
	if (ret->type <= FILE_TYPE_NONE || ret->type >= FILE_TYPE_COUNT || ret->path[0] != '/')
		return err_set(e, ERR_INVALID, "an entry that is none");
	return 0;
}

int file_change_decode(struct bytes wire, struct file_change *ret, struct err *e)
{
	if (record_decode(wire, change_fields, ret, e) < 0)
		return -1;
	if (ret->type <= FILE_CHANGE_NONE || ret->type >= FILE_CHANGE_COUNT)
		return err_set(e, ERR_INVALID, "a change that is none");
	return 0;
}

int file_done_decode(struct bytes wire, struct file_done *ret, struct err *e)
{
	return record_decode(wire, done_fields, ret, e);
}

void file_failed_decode(struct bytes wire, struct err *ret)
{
	struct file_failed f;
	struct err ignored;

	if (record_decode(wire, failed_fields, &f, &ignored) < 0) {
		err_set(ret, ERR_INTERNAL, "a failure that cannot be read");
		return;
	}
	if (f.code != err_code_by_number(f.code) || !frame_guest_says(f.code)) {
		err_set(ret, ERR_INTERNAL, "the sandbox's init said what it never says");
		return;
	}
	err_set(ret, (enum err_code)f.code, "%s", f.message);
	err_file_reason(ret, f.reason);
}
