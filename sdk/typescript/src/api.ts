/* Made from docs/openapi.yaml by tools/gen-types: change that, not this. */

export interface Check {
  checked_at?: string;
  host?: string;
  /** There are no findings. */
  ok?: boolean;
  /** How many rows of this host were compared. */
  records?: number;
  /** Of how many sandboxes something is on this host. */
  facts?: number;
  invariants?: (Record<string, unknown>)[];
  findings?: CheckFinding[];
  before?: CheckFinding[];
}

export interface Abandoned {
  host?: string;
  /** What was here before. */
  found?: string;
  /** As a deletion answers: gone with its receipt, or deleting. */
  sandbox?: Record<string, unknown>;
}

export interface CheckFinding {
  /** A sandbox's id or an image. */
  what?: string;
  kind?: string;
  invariant?: number;
  /** What the record says. */
  record?: string;
  /** What was seen. */
  fact?: string;
  /** What it means, and what happens by itself or is to be done. */
  sentence?: string;
  /** What /v1/check/repair does about it. */
  repair?: '' | 'look' | 'delete' | 'forget';
}

export interface Error {
  code: 'invalid' | 'unauthenticated' | 'denied' | 'not_found' | 'conflict' | 'too_large' | 'limit' | 'busy' | 'timeout' | 'unsupported' | 'internal';
  reason?: 'no_such_file' | 'exists' | 'is_a_directory' | 'not_a_directory' | 'permission_denied' | 'no_space' | 'too_many_links' | 'too_many_files' | 'not_empty' | 'read_only' | 'in_use' | 'not_a_file' | 'name_too_long' | 'auth_failed' | 'no_such_repository' | 'no_such_ref' | 'target_exists' | 'network' | 'no_git' | 'timed_out' | 'cleanup_pending' | 'another_command' | 'another_instance' | 'node_unanswered' | 'options_differ' | 'another_identity' | 'input_not_taken' | 'not_reached' | 'not_ready' | 'under_way' | 'host_draining' | 'engine_missing' | 'leftovers_unknown' | 'store_unwritable' | 'too_many_idempotency_keys' | 'no_such_command' | 'cannot_run' | 'method_not_allowed' | 'bad_key' | 'role_denied' | 'forged_pass' | 'replayed_pass' | 'path_escape' | 'invalid_port';
  /** What was wrong. */
  message: string;
  /** What to do about it. */
  remediation: string;
  /** Of cleanup_pending: not before. */
  retry_at?: string;
  /** Also in the logs. Empty if the request was not even HTTP. */
  request_id: string;
}

export interface Health {
  status: 'ok' | 'degraded' | 'critical';
  version: string;
  database: 'ok' | 'unreachable' | 'unwritable';
  node: 'ok' | 'unreachable';
  /** What became of the host's lease; `off` where it needs none. */
  lease: 'off' | 'unregistered' | 'live' | 'late' | 'frozen' | 'lost' | 'draining' | 'gone';
  /** The disk below `state_dir`, where output of commands is kept. `full` (less than 64 KiB) is degraded. */
  state_disk: 'ok' | 'low' | 'full' | 'unknown';
  clock: 'ok' | 'skewed' | 'unknown';
  /** What is wrong, the worst of it; not there if nothing is. */
  reason?: string;
  /** Bytes. Told to a request with a key. */
  state_disk_free?: number;
  /** How long the slowest loop took (or takes) to come to something new. Told to a request with a key. */
  loop_lag_ms?: number;
  /** So much is this host's clock ahead of the database's. Told to a request with a key. */
  clock_skew_ms?: number;
  overdue?: number;
  engines?: string[];
}

export interface ThisHost {
  host: string;
  version: string;
  cpus: number;
  /** bytes */
  memory_total: number;
  memory_available: number;
  /** bytes of the pool */
  disk_total: number;
  disk_available: number;
  /** Below so much of it the host takes no new sandbox (`disk_keep_mb`). */
  disk_keep: number;
  /** `low`: less is free than it keeps, which is also an alert. */
  pool: 'ok' | 'low' | 'unknown';
  /** allocations on this host */
  sandboxes: number;
  cgroups: 'v1' | 'hybrid' | 'v2';
  /** Installed engines, with blanks between them. */
  runtimes: string;
}

export interface NetworkRule {
  /** A name, `*.name` for all names below it, or an IPv4 address. */
  host: string;
  /** 443 and 80 unless said. */
  ports?: number[];
  /** Only these; then requests are read. */
  methods?: string[];
  /** Only these; a `*` at the end: all below. */
  paths?: string[];
}

export interface NetworkPolicy {
  /** Nothing; what the rules name; or, without rules, every public address and no inner one. */
  mode: 'none' | 'allow' | 'open';
  rules?: NetworkRule[];
  /** Allowed, too, until it is locked. */
  bootstrap?: NetworkRule[];
  /** Names of secrets that are added outside. */
  secrets?: string[];
  max_connections?: number;
  max_requests?: number;
  max_bytes_out?: number;
}

export interface Network {
  mode: 'none' | 'allow' | 'open';
  rules?: NetworkRule[];
  bootstrap?: NetworkRule[];
  secrets?: string[];
  max_connections?: number;
  max_requests?: number;
  max_bytes_out?: number;
  phase: 'bootstrap' | 'locked';
  version: number;
  in_force: boolean;
  /** Why it is not in force. */
  reason: string;
  usage: NetworkUsage;
}

export interface NetworkUsage {
  connections: number;
  /** Those that were read. */
  requests: number;
  bytes_out: number;
  bytes_in: number;
}

export interface SecurityEvent {
  at: string;
  sandbox: string;
  /** What was refused: name, port, address, sni, host, ... See network.md. */
  kind: string;
  /** The name or address that was meant. */
  name: string;
  port: number;
  /** What said no. */
  rule: string;
  /** The same */
  count: number;
  seq?: number;
}

export interface Incident {
  id: number;
  kind: 'bad_key' | 'role_denied' | 'forged_pass' | 'replayed_pass' | 'path_escape' | 'invalid_port';
  /** The address it came from, or `others`. */
  source: string;
  /** The sandbox that the path named, or "". */
  sandbox: string;
  /** What the last one was told. */
  detail: string;
  count: number;
  first_at: string;
  last_at: string;
}

export interface SecretSpec {
  /** Where it goes to: a name, or `*.name`. */
  host: string;
  header: string;
  value: string;
  methods?: string[];
  paths?: string[];
}

export interface Secret {
  name: string;
  host: string;
  header: string;
  methods: string[];
  paths: string[];
  changed_at: string;
}

export interface SandboxSpec {
  image: ImageName;
  runtime?: 'crun' | 'runsc';
  memory_mb?: number;
  /** Thousandths of a CPU. */
  cpu_milli?: number;
  pids?: number;
  disk_mb?: number;
  /** Of one process. */
  open_files?: number;
  /** CPU time of the whole sandbox while one command runs; 0 is none, as in all that follow. */
  cpu_ms?: number;
  /** How long one command may run; its own timeout_ms may be shorter. */
  wall_ms?: number;
  /** So much longer than wall_ms, and the sandbox is taken for stuck and put to sleep. */
  grace_ms?: number;
  /** New connections to the outside. */
  connections?: number;
  /** Requests to the outside. */
  requests?: number;
  /** Bytes sent to the outside. */
  bytes_out?: number;
  /** Artifacts kept of it. */
  artifact_mb?: number;
  host?: string;
  identity?: Record<string, unknown>;
  name?: string;
  labels?: Labels;
  env?: Env;
  sleep_after_ms?: number;
  network?: NetworkPolicy;
  /** Not put to sleep by itself, and without an end unless lifetime_ms says so. */
  keep_alive?: boolean;
  lifetime_ms?: number;
  /** Where limits that are not given come from; see /v1/profiles. */
  profile?: string;
}

export interface SandboxPatch {
  labels?: Labels;
  env?: Env;
  /** These variables besides those that are there; not together with env. */
  set_env?: Record<string, string>;
  unset_env?: string[];
  sleep_after_ms?: number;
  keep_alive?: boolean;
  /** From now on, in place of what was left; 0 takes the end back. */
  lifetime_ms?: number;
  /** All of its limits. */
  profile?: string;
  memory_mb?: number;
  cpu_milli?: number;
  pids?: number;
  disk_mb?: number;
  open_files?: number;
  cpu_ms?: number;
  wall_ms?: number;
  grace_ms?: number;
  connections?: number;
  requests?: number;
  bytes_out?: number;
  artifact_mb?: number;
}

export type Labels = Record<string, string>;

export type Env = Record<string, string>;

export interface Policy {
  id: number;
  scope: 'global' | 'org' | 'user' | 'session';
  /** Whom it is about; `*` is everyone. */
  subject: string;
  isolation: '' | 'per_session' | 'shared';
  profile: string;
  runtime: '' | 'crun' | 'runsc';
}

export interface Profile {
  name: string;
  /** It can neither be changed nor removed. */
  built_in: boolean;
  memory_mb: number;
  cpu_milli: number;
  pids: number;
  disk_mb: number;
  open_files: number;
  cpu_ms: number;
  wall_ms: number;
  grace_ms: number;
  connections: number;
  requests: number;
  bytes_out: number;
  artifact_mb: number;
}

export interface Usage {
  sandbox: string;
  owner: string;
  host: string;
  profile: string;
  gone: boolean;
  since_at: string;
  seen_at: string;
  cpu_ms: number;
  memory_average_bytes: number;
  memory_peak_bytes: number;
  /** The most that was seen; what came and went between two looks is not in it. */
  disk_peak_bytes: number;
  pids_peak: number;
  oom_kills: number;
  connections: number;
  requests: number;
  bytes_out: number;
  /** Now; only of one sandbox that is there. */
  disk_bytes?: number;
  /** What was written before is counted; only with fresh=1. */
  disk_at?: string;
}

export interface ExecUsage {
  cpu_ms: number;
  memory_bytes: number;
  memory_peak_bytes: number;
  disk_bytes: number;
  disk_at: string | null;
  pids_peak: number;
  requests: number | null;
  alone: boolean;
}

export interface LimitMet {
  name: 'memory_mb' | 'cpu_ms' | 'wall_ms' | 'pids' | 'disk_mb';
  value: number;
  peak: number;
}

export interface Host {
  id: string;
  state: 'live' | 'late' | 'frozen' | 'lost' | 'draining' | 'gone';
  draining: boolean;
  /** 0 if it never had a lease. */
  epoch: number;
  /** Where its peers reach it; empty if they do not. */
  address: string;
  /** Empty if it needs no lease. */
  lease_until: string;
  seen_at: string;
  /** Records that name it. */
  sandboxes: number;
  /** What it has, as it said last; 0 if it has not said. */
  capacity: Record<string, unknown>;
  /** What its sandboxes may use, whether they do or not. */
  promised: Record<string, unknown>;
  version: string;
}

export interface Sandbox {
  id: string;
  state: 'creating' | 'ready' | 'falling_asleep' | 'asleep' | 'waking' | 'deleting' | 'failed';
  image: ImageName;
  runtime: 'crun' | 'runsc';
  host: string;
  generation: number;
  memory_mb: number;
  cpu_milli: number;
  pids: number;
  disk_mb: number;
  open_files: number;
  cpu_ms: number;
  wall_ms: number;
  grace_ms: number;
  connections: number;
  requests: number;
  bytes_out: number;
  artifact_mb: number;
  /** False: they were changed, and the host has not said yet that it did so. */
  limits_in_force: boolean;
  created_at: string;
  /** Why it is in this state, if there is more to say. */
  reason: string;
  last_failure?: Failure;
  /** Empty if it has none. */
  name: string;
  /** Empty if it has no identity. */
  identity_key: string;
  isolation: '' | 'per_session' | 'shared';
  profile: string;
  labels: Labels;
  env: Env;
  sleep_after_ms: number;
  keep_alive: boolean;
  /** When it is deleted; empty: never. */
  expires_at: string;
  /** Written down every two seconds. */
  last_used_at: string;
  network: NetworkMode;
  guest: GuestVersion;
}

export interface GuestVersion {
  protocol: string;
  status: 'unknown' | 'current' | 'differs' | 'incompatible';
}

export interface NetworkMode {
  mode: 'none' | 'allow' | 'open';
}

export interface Failure {
  at: string;
  why: string;
  lost: 'processes and memory' | 'everything';
  /** True: wake it, and go on with its files. */
  files_kept: boolean;
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
  /** The attempt whose step it was; 0: of none. */
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
  link: Absent;
}

export type Absent = 'absent';

export interface Alert {
  id: number;
  level: 'critical';
  /** What was given up. */
  kind: string;
  sandbox: string;
  /** What of the sandbox, if it is not the whole: a name. */
  subject: string;
  host: string;
  /** What went wrong last. */
  message: string;
  raised_at: string;
  /** Empty: it lasts. */
  ended_at: string;
}

export interface AlertEvent {
  at: string;
  level: 'critical';
  kind: string;
  sandbox: string;
  subject: string;
  message: string;
}

export interface SandboxEvent {
  /** When it was told. */
  at: string;
  id: string;
  state: 'creating' | 'ready' | 'deleting' | 'failed' | 'gone';
  reason: string;
}

export interface EventGap {
  /** When it was told. */
  at: string;
  /** How many were left out; absent: that is not known. */
  events?: number;
}

export interface TerminalSize {
  cols: number;
  rows: number;
}

export interface TerminalRequest {
  /** If not given: bash as at a login, or sh if there is no bash. */
  argv?: string[];
  /** Where it starts; where the image says, if not given. */
  cwd?: string;
  /** Over the image's own and TERM=xterm-256color. */
  env?: Record<string, string>;
  cols?: number;
  rows?: number;
  /** The caller's choice; 409 if there is one of that name. */
  id?: ExecId;
  /** Then it and everything it started is killed. 0 is never. */
  timeout_ms?: number;
}

export interface Terminal {
  id: ExecId;
  kind: 'exited' | 'signalled' | 'timed_out' | 'oom' | 'killed' | 'lost';
  host_rebooted?: boolean | null;
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
  /** 0 for a command in a shell. */
  max_rss_kb: number;
  /** Null while it runs, and if the host could not look. */
  usage: ExecUsage;
  /** Null if none was met. */
  limit: LimitMet;
  /** Of the shell it ran in, afterwards. */
  cwd?: string;
  /** Instead */
  cwd_base64?: string;
  restarted?: boolean;
  sandbox: string;
  state: 'running' | 'ended';
  cols: number;
  rows: number;
  /** Who is attached now. */
  viewers: number;
  pid: number;
  started_at: string;
  output_bytes: number;
  /** Of these, what was beyond the cap and is not kept. */
  gap_bytes: number;
}

export type ShellName = string;

export interface ShellRequest {
  name?: ShellName;
  /** Where it starts; where the image says, if not given. */
  cwd?: string;
  /** Over the image's own. Names are those a shell can have. */
  env?: Record<string, string>;
}

export interface Shell {
  name: ShellName;
  state: 'idle' | 'busy' | 'gone';
  /** As the kernel sees it. */
  cwd?: string;
  /** Instead */
  cwd_base64?: string;
  pid: number;
  /** Commands, with the one that runs. */
  waiting: number;
  /** How often it had to be begun again. */
  restarts: number;
  created_at: string;
}

export interface ExecRequest {
  /** A program and its arguments. Without a slash it is looked up on PATH. */
  argv?: string[];
  /** Text for /bin/sh -c, or for the shell that is named. */
  command?: string;
  shell?: ShellName;
  /** Where it starts; where the image says, if not given. */
  cwd?: string;
  /** Over the image's own. */
  env?: Record<string, string>;
  /** What it reads; nothing if not given. */
  stdin?: string;
  /** More will come at `/execs/{exec}/stdin`; until then it waits for it. */
  stdin_open?: boolean;
  /** The caller's choice; 409 if there is one of that name. */
  id?: ExecId;
  /** Whose it is, in the caller's words; all of a group can be killed at once. */
  group?: ExecId;
  background?: boolean;
  /** It goes on when the client is gone. `background` implies it. */
  keep?: boolean;
  /** Then it and everything it started is killed. 0 is never. */
  timeout_ms?: number;
}

export interface ExecExit {
  id: ExecId;
  kind: 'exited' | 'signalled' | 'timed_out' | 'oom' | 'killed' | 'lost';
  host_rebooted?: boolean | null;
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
  /** 0 for a command in a shell. */
  max_rss_kb: number;
  /** Null while it runs, and if the host could not look. */
  usage: ExecUsage;
  /** Null if none was met. */
  limit: LimitMet;
  /** Of the shell it ran in, afterwards. */
  cwd?: string;
  /** Instead */
  cwd_base64?: string;
  restarted?: boolean;
}

export interface ExecResult {
  id: ExecId;
  kind: 'exited' | 'signalled' | 'timed_out' | 'oom' | 'killed' | 'lost';
  host_rebooted?: boolean | null;
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
  /** 0 for a command in a shell. */
  max_rss_kb: number;
  /** Null while it runs, and if the host could not look. */
  usage: ExecUsage;
  /** Null if none was met. */
  limit: LimitMet;
  /** Of the shell it ran in, afterwards. */
  cwd?: string;
  /** Instead */
  cwd_base64?: string;
  restarted?: boolean;
  stdout?: string;
  stdout_base64?: string;
  /** Only there if true. */
  stdout_truncated?: boolean;
  stderr?: string;
  stderr_base64?: string;
  /** Only there if true. */
  stderr_truncated?: boolean;
}

export type ExecId = string;

export interface Exec {
  id: ExecId;
  kind: 'exited' | 'signalled' | 'timed_out' | 'oom' | 'killed' | 'lost';
  host_rebooted?: boolean | null;
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
  /** 0 for a command in a shell. */
  max_rss_kb: number;
  /** Null while it runs, and if the host could not look. */
  usage: ExecUsage;
  /** Null if none was met. */
  limit: LimitMet;
  cwd: string;
  /** Instead */
  cwd_base64?: string;
  restarted?: boolean;
  sandbox: string;
  argv: string[];
  shell?: ShellName;
  group?: ExecId;
  background: boolean;
  state: 'running' | 'ended';
  /** Inside the sandbox. */
  pid: number;
  started_at: string;
  ended_at: string | null;
  /** Of both streams. */
  output_bytes: number;
  /** Of these, what was beyond the cap and is not kept. */
  gap_bytes: number;
}

export interface OutputEvent {
  /** Of the first byte among all of both streams, as they were heard. */
  position?: number;
  /** Of the first byte in its stream. */
  offset: number;
  data?: string;
  data_base64?: string;
}

export interface ContextRequest {
  language?: 'python' | 'javascript' | 'typescript' | 'python3' | 'js' | 'node' | 'ts';
  name?: string;
  /** Absolute; by default the directory of the image. */
  cwd?: string;
  env?: Record<string, string>;
  /** Of its runs that name none. 0 is none. */
  timeout_ms?: number;
}

export interface Context {
  id: string;
  /** The id if it was given none. */
  name: string;
  language: 'python' | 'javascript' | 'typescript';
  state: 'idle' | 'busy';
  cwd: string;
  timeout_ms: number;
  runs: number;
  /** How often a new interpreter had to take the place of one that was gone. */
  restarts: number;
  created_at: string;
  last_used_at: string;
}

export interface WrapperRequest {
  argv?: string[];
  /** For /bin/sh -c. */
  command?: string;
  cwd?: string;
  env?: Record<string, string>;
}

export interface WrapperFact {
  /** Of which this is true; of another it is 409 `another_instance`. */
  instance: string;
}

export interface WrapperSettled {
  instance: string;
  ok: boolean;
}

export interface WrapperStop {
  /** Only this one; another is 409 `another_instance`. */
  instance?: string;
  reason?: 'readiness-failed' | 'startup-failed' | 'unhealthy-wrapper' | 'terminal-failed' | 'terminal-completed' | 'terminal-ended' | 'terminal-interrupted' | 'idle-timeout' | 'keep-warm-expired' | 'user-interrupt' | 'session-delete' | 'unexpected-wrapper' | 'observation-failed';
}

export interface WrapperProcesses {
  /** The exec of the instance; empty: there is none. */
  exec: string;
  /** Who saw them. */
  evidence: 'host' | 'engine';
  /** There are more, or more than the engine told. */
  truncated: boolean;
  processes: WrapperProcess[];
}

export interface WrapperProcess {
  /** As the sandbox counts. */
  pid: number;
  /** 0: none of this list, with crun. */
  parent: number;
  /** The kernel's; `waiting`: for a disk, and cannot be killed; `unknown` with gVisor. */
  state: 'running' | 'sleeping' | 'waiting' | 'stopped' | 'traced' | 'ended' | 'unknown';
  /** That it holds now; null with gVisor, which does not tell. */
  memory_bytes: number | null;
  command: string;
}

export interface Wrapper {
  sandbox: string;
  name: string;
  state: 'none' | 'starting' | 'ready' | 'busy' | 'warm' | 'stop_needed' | 'stopping' | 'quarantined';
  /** What the host saw just now. Not in lists. */
  alive?: 'present' | 'absent' | 'unknown';
  evidence?: 'host' | 'init';
  /** Empty: none. */
  instance: string;
  /** Only grows. */
  generation: number;
  /** The exec it runs as: its output, its exit. */
  exec: string;
  /** When something is done about it unasked. */
  deadline_at: string | null;
  /** Of the stop. */
  reason: string;
  /** To stop it. */
  attempts: number;
  /** Which step took too long, and its limit; then what the last attempt to stop it saw. */
  last_error: string;
  created_at: string;
  /** Of the last instance that was seen gone. */
  receipt: Record<string, unknown> | null;
}

export interface CodeRequest {
  code: string;
  /** Id or name. Without it the default one. */
  context?: string;
  /** Without a context, python by default; with one, it must be the context's own. */
  language?: 'python' | 'javascript' | 'typescript' | 'python3' | 'js' | 'node' | 'ts';
  /** For this run only. */
  env?: Record<string, string>;
  timeout_ms?: number;
}

export interface CodeOutput {
  text?: string;
  html?: string;
  markdown?: string;
  latex?: string;
  svg?: string;
  png?: string;
  jpeg?: string;
  javascript?: string;
  /** Any value. */
  json?: unknown;
  /** A Plotly or Vega-Lite chart, as JSON. */
  chart?: unknown;
  /** A table as its columns, `{name: [values]}`, or what the value says its data are. */
  data?: unknown;
  /** Its text was longer than 256 KiB. */
  truncated?: boolean;
  /** It is the value of the last line. */
  main: boolean;
}

export interface CodeError {
  name: string;
  message: string;
  traceback: string[];
  /** The line of the code of this run that it was in, from 1, if that is known. */
  line_number?: number;
}

export interface CodeEnd {
  kind: 'ok' | 'error' | 'timed_out' | 'killed' | 'lost';
  context: string;
  language: string;
  /** Its number in this interpreter, from 1. */
  run: number;
  /** The interpreter was started for this run, and what earlier runs had left is gone. */
  restarted: boolean;
  /** The interpreter is gone; the next run begins anew. */
  context_lost: boolean;
  /** Only if the interpreter itself exited during the run. */
  exit_code: number | null;
  signal: number;
  stdout_bytes: number;
  stderr_bytes: number;
  /** Over 256 results or 32 MiB of one run, or unreadable. */
  results_dropped: number;
  wall_ms: number;
  error: CodeError;
}

export interface CodeResult {
  kind: 'ok' | 'error' | 'timed_out' | 'killed' | 'lost';
  context: string;
  language: string;
  /** Its number in this interpreter, from 1. */
  run: number;
  /** The interpreter was started for this run, and what earlier runs had left is gone. */
  restarted: boolean;
  /** The interpreter is gone; the next run begins anew. */
  context_lost: boolean;
  /** Only if the interpreter itself exited during the run. */
  exit_code: number | null;
  signal: number;
  stdout_bytes: number;
  stderr_bytes: number;
  /** Over 256 results or 32 MiB of one run, or unreadable. */
  results_dropped: number;
  wall_ms: number;
  error: CodeError;
  stdout?: string;
  stdout_base64?: string;
  stdout_truncated?: boolean;
  stderr?: string;
  stderr_base64?: string;
  stderr_truncated?: boolean;
  results: CodeOutput[];
}

export interface Kill {
  /** A name or a number. */
  signal?: string | number;
  /** If it has not ended after this, KILL. 0 is no second blow. */
  grace_ms?: number;
}

export interface ExecOutput {
  stdout?: string;
  stdout_base64?: string;
  stderr?: string;
  stderr_base64?: string;
  from: number;
  /** The position to go on from. */
  next: number;
  gap_bytes: number;
  /** There is no more. */
  ended: boolean;
}

export interface Removed {
  removed: number;
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
  /** bytes; 0 if not known */
  total: number;
}

export interface FileEntry {
  name?: string;
  /** Instead of `name`, if that is not UTF-8. */
  name_base64?: string;
  path?: string;
  /** Instead of `path`, if that is not UTF-8. */
  path_base64?: string;
  type: 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'device';
  size: number;
  /** Octal, four digits. */
  mode: string;
  uid: number;
  gid: number;
  modified_at: string;
  /** What a symlink says. */
  target?: string;
  target_base64?: string;
}

export interface FileChange {
  type: 'created' | 'modified' | 'deleted' | 'moved';
  path?: string;
  path_base64?: string;
  /** Of `moved`: where it is now. */
  to?: string;
  to_base64?: string;
}

export interface Key {
  id: string;
  name: string;
  owner: string;
  role: 'user' | 'admin';
  created_at?: string;
  revoked?: boolean;
}
