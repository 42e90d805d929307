/** What went wrong, as the server says it: one class for every code, and for what a file or git call can meet. */
export interface ErrorBody {
    code: string;
    message: string;
    remediation?: string;
    request_id?: string;
    reason?: string;
}
export declare class BerthError extends Error {
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
    constructor(body: ErrorBody, status?: number, options?: {
        cause?: unknown;
    });
}
export declare class InvalidError extends BerthError {
}
export declare class UnauthenticatedError extends BerthError {
}
export declare class DeniedError extends BerthError {
}
export declare class NotFoundError extends BerthError {
}
export declare class ConflictError extends BerthError {
}
export declare class TooLargeError extends BerthError {
}
export declare class LimitError extends BerthError {
}
export declare class BusyError extends BerthError {
}
export declare class DeadlineError extends BerthError {
}
export declare class UnsupportedError extends BerthError {
}
export declare class InternalError extends BerthError {
}
/** No answer, or half of one. What was asked for may or may not have happened. */
export declare class ConnectionError extends BerthError {
}
export declare class FileError extends BerthError {
}
export declare class FileNotFoundError extends FileError {
}
export declare class FileExistsError extends FileError {
}
export declare class IsDirectoryError extends FileError {
}
export declare class NotDirectoryError extends FileError {
}
export declare class PermissionDeniedError extends FileError {
}
export declare class NoSpaceError extends FileError {
}
export declare class GitError extends BerthError {
}
export declare class GitAuthError extends GitError {
}
export declare class GitRepositoryNotFoundError extends GitError {
}
export declare class GitRefNotFoundError extends GitError {
}
export declare class GitNetworkError extends GitError {
}
/** A method that this server has no answer for yet. */
export declare class NotYetError extends BerthError {
    constructor(what: string);
}
export declare function errorFrom(body: unknown, status: number): BerthError;
