/* Made from docs/openapi.yaml by tools/gen-types: change that, not this. */

export interface Error {
  code: 'invalid' | 'unauthenticated' | 'denied' | 'not_found' | 'conflict' | 'too_large' | 'limit' | 'busy' | 'timeout' | 'unsupported' | 'internal';
  /** What was wrong. */
  message: string;
  /** What to do about it. */
  remediation: string;
  /** Also in the logs. Empty if the request was not even HTTP. */
  request_id: string;
}

export interface Health {
  status: 'ok' | 'degraded';
  version: string;
  database: 'ok' | 'unreachable';
  node: 'ok' | 'unreachable';
}

export interface Host {
  host: string;
  version: string;
  cpus: number;
  /** bytes */
  memory_total: number;
  memory_available: number;
  /** bytes of the pool */
  disk_total: number;
  disk_available: number;
  /** allocations on this host */
  sandboxes: number;
  cgroups: 'v1' | 'hybrid' | 'v2';
  /** Installed engines, with blanks between them. */
  runtimes: string;
}

export interface SandboxSpec {
  image: ImageName;
  runtime?: 'crun' | 'runsc';
  memory_mb?: number;
  /** Thousandths of a CPU. */
  cpu_milli?: number;
  pids?: number;
  disk_mb?: number;
}

export interface Sandbox {
  id: string;
  state: 'creating' | 'ready' | 'deleting' | 'failed';
  image: ImageName;
  runtime: 'crun' | 'runsc';
  host: string;
  generation: number;
  memory_mb: number;
  cpu_milli: number;
  pids: number;
  disk_mb: number;
  created_at: string;
  /** Why it is in this state, if there is more to say. */
  reason: string;
}

export interface Gone {
  id: string;
  state: 'gone';
  receipt: Receipt;
}

export interface Deleting {
  id: string;
  state: 'deleting';
  /** What is not proven yet. */
  reason: string;
  /** Begun so far. */
  attempts: number;
  next_attempt_at: string;
  /** Six attempts have failed. */
  quarantined: boolean;
}

export interface LogEntry {
  /** From 1, without gaps. */
  seq: number;
  at: string;
  event: string;
  /** State before; empty at the first. */
  from: string;
  to: string;
  reason: string;
  /** Whose step it was; 0 is nobody's. */
  attempt: number;
}

export interface Receipt {
  observed_at: string;
  host: string;
  generation: number;
  process: Absent;
  cgroup: Absent;
  disk: Absent;
  runtime: Absent;
}

export type Absent = 'absent';

export interface SandboxEvent {
  id: string;
  state: 'creating' | 'ready' | 'deleting' | 'failed' | 'gone';
  reason: string;
}

export interface ExecRequest {
  /** A program and its arguments. Without a slash it is looked up on PATH. */
  argv?: string[];
  /** Text for /bin/sh -c. */
  command?: string;
  /** Where it starts; where the image says, if not given. */
  cwd?: string;
  /** Over the image's own. */
  env?: Record<string, string>;
  /** What it reads; nothing if not given. */
  stdin?: string;
  /** Then it and everything it started is killed. 0 is never. */
  timeout_ms?: number;
}

export interface ExecExit {
  kind: 'exited' | 'signalled' | 'timed_out' | 'oom' | 'killed' | 'lost';
  /** Only with kind `exited`. Otherwise null, never 0. */
  exit_code: number | null;
  /** What ended it; 0 if none did. */
  signal: number;
  /** All of it, kept or not. */
  stdout_bytes: number;
  stderr_bytes: number;
  wall_ms: number;
  user_ms: number;
  system_ms: number;
  max_rss_kb: number;
}

export interface ExecResult {
  kind: 'exited' | 'signalled' | 'timed_out' | 'oom' | 'killed' | 'lost';
  /** Only with kind `exited`. Otherwise null, never 0. */
  exit_code: number | null;
  /** What ended it; 0 if none did. */
  signal: number;
  /** All of it, kept or not. */
  stdout_bytes: number;
  stderr_bytes: number;
  wall_ms: number;
  user_ms: number;
  system_ms: number;
  max_rss_kb: number;
  stdout?: string;
  stdout_base64?: string;
  /** Only there if true. */
  stdout_truncated?: boolean;
  stderr?: string;
  stderr_base64?: string;
  /** Only there if true. */
  stderr_truncated?: boolean;
}

export interface OutputEvent {
  /** Of the first byte in its stream. */
  offset: number;
  data?: string;
  data_base64?: string;
}

export type ImageName = string;

export interface Image {
  name: ImageName;
  /** sha256: of the manifest, or of the tar. */
  digest: string;
  /** unpacked */
  bytes: number;
  /** The reference it was pulled by, or import. */
  source: string;
  created_at: string;
}

export interface ImageProgress {
  phase: 'pulling' | 'unpacking';
  /** bytes */
  done: number;
  /** bytes; 0 if nobody knows */
  total: number;
}

export interface Key {
  id: string;
  name: string;
  owner: string;
  role: 'user' | 'admin';
  created_at?: string;
  revoked?: boolean;
}
