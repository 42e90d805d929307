export { Berth } from './client.js';
export * from './errors.js';
export { Sandbox, Session, getSandbox } from './sandbox.js';
export { CommandLostError, CommandTimeoutError, ExecResult } from './exec.js';
export { Process, ProcessExitedBeforeReadyError, ProcessReadyTimeoutError } from './process.js';
export { Files, collectFile, streamFile } from './files.js';
export { parseSSEStream } from './sse.js';
