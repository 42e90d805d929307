/** What went wrong, as the server says it: one class for every code, and for what a file or git call can meet. */

export interface ErrorBody {
  code: string;
  message: string;
  remediation?: string;
  request_id?: string;
  reason?: string;
  /** Of a 503, in seconds: what `Retry-After` says. */
  retry_after?: number;
}

/** Its `message` is what went wrong and, in brackets, what to do about it. */
export class BerthError extends Error {
  /** The server's word: `not_found`, `conflict`, ... */
  readonly code: string;
  /** HTTP status; 0 if no answer came. */
  readonly status: number;
  /** What to do about it. */
  readonly remediation: string;
  /** Find it in the server's log with this. */
  readonly requestId: string;
  /** The exact cause, of file and git calls: `no_such_file`, `auth_failed`, ... */
  readonly reason: string;
  /** Of a 503: not before so many seconds; undefined if the server does not say. */
  readonly retryAfter: number | undefined;

  constructor(body: ErrorBody, status = 0, options?: { cause?: unknown }) {
    super(body.remediation ? `${body.message} (${body.remediation})` : body.message, options as ErrorOptions);
    this.name = new.target.name;
    this.code = body.code;
    this.status = status;
    this.remediation = body.remediation ?? '';
    this.requestId = body.request_id ?? '';
    this.reason = body.reason ?? '';
    this.retryAfter = body.retry_after;
  }
}

export class InvalidError extends BerthError {}
export class UnauthenticatedError extends BerthError {}
export class DeniedError extends BerthError {}
export class NotFoundError extends BerthError {}
export class ConflictError extends BerthError {}
export class TooLargeError extends BerthError {}
export class LimitError extends BerthError {}
export class BusyError extends BerthError {}
export class DeadlineError extends BerthError {}
export class UnsupportedError extends BerthError {}
export class InternalError extends BerthError {}

/** No answer, or half of one. What was asked for may or may not have happened. */
export class ConnectionError extends BerthError {}

export class FileError extends BerthError {}
export class FileNotFoundError extends FileError {}
export class FileExistsError extends FileError {}
export class IsDirectoryError extends FileError {}
export class NotDirectoryError extends FileError {}
export class PermissionDeniedError extends FileError {}
export class NoSpaceError extends FileError {}

export class GitError extends BerthError {}
export class GitAuthError extends GitError {}
export class GitRepositoryNotFoundError extends GitError {}
export class GitRefNotFoundError extends GitError {}
export class GitNetworkError extends GitError {}

/** A method that this server has no answer for yet. */
export class NotYetError extends BerthError {
  constructor(what: string) {
    super({ code: 'not_yet', message: `${what} is not there yet`, remediation: 'It comes with previews.' });
  }
}

/** 503s that mean "not yet": what was asked for is being made ready, and nothing was done. */
const NOT_YET = new Set(['not_ready', 'not_reached', 'under_way']);

export function isNotYet(error: unknown): error is BerthError {
  return error instanceof BerthError && error.status === 503 && NOT_YET.has(error.reason);
}

type Maker = new (body: ErrorBody, status?: number, options?: { cause?: unknown }) => BerthError;

const BY_CODE: Record<string, Maker> = {
  invalid: InvalidError,
  unauthenticated: UnauthenticatedError,
  denied: DeniedError,
  not_found: NotFoundError,
  conflict: ConflictError,
  too_large: TooLargeError,
  limit: LimitError,
  busy: BusyError,
  timeout: DeadlineError,
  unsupported: UnsupportedError,
  internal: InternalError,
};

const BY_REASON: Record<string, Maker> = {
  no_such_file: FileNotFoundError,
  exists: FileExistsError,
  is_a_directory: IsDirectoryError,
  not_a_directory: NotDirectoryError,
  permission_denied: PermissionDeniedError,
  no_space: NoSpaceError,
  too_many_links: FileError,
  too_many_files: FileError,
  not_empty: FileError,
  in_use: FileError,
  read_only: FileError,
  not_a_file: FileError,
  name_too_long: FileError,
  auth_failed: GitAuthError,
  no_such_repository: GitRepositoryNotFoundError,
  no_such_ref: GitRefNotFoundError,
  network: GitNetworkError,
  target_exists: GitError,
  no_git: GitError,
  timed_out: GitError,
};

export function errorFrom(body: unknown, status: number): BerthError {
  const given = (typeof body === 'object' && body !== null ? body : {}) as Partial<ErrorBody>;
  const full: ErrorBody = {
    ...given,
    code: given.code ?? 'internal',
    message: given.message ?? `the server answered ${status} without a reason`,
  };
  const make = BY_REASON[full.reason ?? ''] ?? BY_CODE[full.code] ?? BerthError;
  return new make(full, status);
}
