"""Made from docs/openapi.yaml by tools/gen-types: change that, not this."""
from typing import Any, Dict, List, Literal, Optional, TypedDict, Union  # noqa: F401

Check = TypedDict('Check', {
    'checked_at': str,
    'host': str,
    'ok': bool,
    'records': int,
    'facts': int,
    'invariants': List[Dict[str, Any]],
    'findings': List['CheckFinding'],
    'before': List['CheckFinding'],
}, total=False)

Abandoned = TypedDict('Abandoned', {
    'host': str,
    'found': str,
    'sandbox': Dict[str, Any],
}, total=False)

CheckFinding = TypedDict('CheckFinding', {
    'what': str,
    'kind': str,
    'invariant': int,
    'record': str,
    'fact': str,
    'sentence': str,
    'repair': Literal['', 'look', 'delete', 'forget'],
}, total=False)

Error = TypedDict('Error', {
    'code': Literal['invalid', 'unauthenticated', 'denied', 'not_found', 'conflict', 'too_large', 'limit', 'busy', 'timeout', 'unsupported', 'internal'],
    'reason': Literal['no_such_file', 'exists', 'is_a_directory', 'not_a_directory', 'permission_denied', 'no_space', 'too_many_links', 'too_many_files', 'not_empty', 'read_only', 'in_use', 'not_a_file', 'name_too_long', 'auth_failed', 'no_such_repository', 'no_such_ref', 'target_exists', 'network', 'no_git', 'timed_out', 'cleanup_pending', 'another_command', 'another_instance', 'node_unanswered', 'options_differ', 'another_identity', 'input_not_taken', 'not_reached', 'not_ready', 'under_way', 'host_draining', 'engine_missing', 'leftovers_unknown', 'store_unwritable', 'too_many_idempotency_keys', 'no_such_command', 'cannot_run', 'method_not_allowed', 'bad_key', 'role_denied', 'forged_pass', 'replayed_pass', 'path_escape', 'invalid_port'],
    'message': str,
    'remediation': str,
    'retry_at': str,
    'request_id': str,
}, total=False)

Health = TypedDict('Health', {
    'status': Literal['ok', 'degraded', 'critical'],
    'version': str,
    'database': Literal['ok', 'unreachable', 'unwritable'],
    'node': Literal['ok', 'unreachable'],
    'lease': Literal['off', 'unregistered', 'live', 'late', 'frozen', 'lost', 'draining', 'gone'],
    'state_disk': Literal['ok', 'low', 'full', 'unknown'],
    'clock': Literal['ok', 'skewed', 'unknown'],
    'reason': str,
    'state_disk_free': int,
    'loop_lag_ms': int,
    'clock_skew_ms': int,
    'overdue': int,
    'engines': List[str],
}, total=False)

ThisHost = TypedDict('ThisHost', {
    'host': str,
    'version': str,
    'cpus': int,
    'memory_total': int,
    'memory_available': int,
    'disk_total': int,
    'disk_available': int,
    'disk_keep': int,
    'pool': Literal['ok', 'low', 'unknown'],
    'sandboxes': int,
    'cgroups': Literal['v1', 'hybrid', 'v2'],
    'runtimes': str,
}, total=False)

NetworkRule = TypedDict('NetworkRule', {
    'host': str,
    'ports': List[int],
    'methods': List[str],
    'paths': List[str],
}, total=False)

NetworkPolicy = TypedDict('NetworkPolicy', {
    'mode': Literal['none', 'allow', 'open'],
    'rules': List['NetworkRule'],
    'bootstrap': List['NetworkRule'],
    'secrets': List[str],
    'max_connections': int,
    'max_requests': int,
    'max_bytes_out': int,
}, total=False)

Network = TypedDict('Network', {
    'mode': Literal['none', 'allow', 'open'],
    'rules': List['NetworkRule'],
    'bootstrap': List['NetworkRule'],
    'secrets': List[str],
    'max_connections': int,
    'max_requests': int,
    'max_bytes_out': int,
    'phase': Literal['bootstrap', 'locked'],
    'version': int,
    'in_force': bool,
    'reason': str,
    'usage': 'NetworkUsage',
}, total=False)

NetworkUsage = TypedDict('NetworkUsage', {
    'connections': int,
    'requests': int,
    'bytes_out': int,
    'bytes_in': int,
}, total=False)

SecurityEvent = TypedDict('SecurityEvent', {
    'at': str,
    'sandbox': str,
    'kind': str,
    'name': str,
    'port': int,
    'rule': str,
    'count': int,
    'seq': int,
}, total=False)

Incident = TypedDict('Incident', {
    'id': int,
    'kind': Literal['bad_key', 'role_denied', 'forged_pass', 'replayed_pass', 'path_escape', 'invalid_port'],
    'source': str,
    'sandbox': str,
    'detail': str,
    'count': int,
    'first_at': str,
    'last_at': str,
}, total=False)

SecretSpec = TypedDict('SecretSpec', {
    'host': str,
    'header': str,
    'value': str,
    'methods': List[str],
    'paths': List[str],
}, total=False)

Secret = TypedDict('Secret', {
    'name': str,
    'host': str,
    'header': str,
    'methods': List[str],
    'paths': List[str],
    'changed_at': str,
}, total=False)

SandboxSpec = TypedDict('SandboxSpec', {
    'image': 'ImageName',
    'runtime': Literal['crun', 'runsc'],
    'memory_mb': int,
    'cpu_milli': int,
    'pids': int,
    'disk_mb': int,
    'open_files': int,
    'cpu_ms': int,
    'wall_ms': int,
    'grace_ms': int,
    'connections': int,
    'requests': int,
    'bytes_out': int,
    'artifact_mb': int,
    'host': str,
    'identity': Dict[str, Any],
    'name': str,
    'labels': 'Labels',
    'env': 'Env',
    'sleep_after_ms': int,
    'network': 'NetworkPolicy',
    'keep_alive': bool,
    'lifetime_ms': int,
    'profile': str,
}, total=False)

SandboxPatch = TypedDict('SandboxPatch', {
    'labels': 'Labels',
    'env': 'Env',
    'set_env': Dict[str, str],
    'unset_env': List[str],
    'sleep_after_ms': int,
    'keep_alive': bool,
    'lifetime_ms': int,
    'profile': str,
    'memory_mb': int,
    'cpu_milli': int,
    'pids': int,
    'disk_mb': int,
    'open_files': int,
    'cpu_ms': int,
    'wall_ms': int,
    'grace_ms': int,
    'connections': int,
    'requests': int,
    'bytes_out': int,
    'artifact_mb': int,
}, total=False)

Labels = Dict[str, str]

Env = Dict[str, str]

Policy = TypedDict('Policy', {
    'id': int,
    'scope': Literal['global', 'org', 'user', 'session'],
    'subject': str,
    'isolation': Literal['', 'per_session', 'shared'],
    'profile': str,
    'runtime': Literal['', 'crun', 'runsc'],
}, total=False)

Profile = TypedDict('Profile', {
    'name': str,
    'built_in': bool,
    'memory_mb': int,
    'cpu_milli': int,
    'pids': int,
    'disk_mb': int,
    'open_files': int,
    'cpu_ms': int,
    'wall_ms': int,
    'grace_ms': int,
    'connections': int,
    'requests': int,
    'bytes_out': int,
    'artifact_mb': int,
}, total=False)

Usage = TypedDict('Usage', {
    'sandbox': str,
    'owner': str,
    'host': str,
    'profile': str,
    'gone': bool,
    'since_at': str,
    'seen_at': str,
    'cpu_ms': int,
    'memory_average_bytes': int,
    'memory_peak_bytes': int,
    'disk_peak_bytes': int,
    'pids_peak': int,
    'oom_kills': int,
    'connections': int,
    'requests': int,
    'bytes_out': int,
    'disk_bytes': int,
    'disk_at': str,
}, total=False)

ExecUsage = TypedDict('ExecUsage', {
    'cpu_ms': int,
    'memory_bytes': int,
    'memory_peak_bytes': int,
    'disk_bytes': int,
    'disk_at': Optional[str],
    'pids_peak': int,
    'requests': Optional[int],
    'alone': bool,
}, total=False)

LimitMet = TypedDict('LimitMet', {
    'name': Literal['memory_mb', 'cpu_ms', 'wall_ms', 'pids', 'disk_mb'],
    'value': int,
    'peak': int,
}, total=False)

Host = TypedDict('Host', {
    'id': str,
    'state': Literal['live', 'late', 'frozen', 'lost', 'draining', 'gone'],
    'draining': bool,
    'epoch': int,
    'address': str,
    'lease_until': str,
    'seen_at': str,
    'sandboxes': int,
    'capacity': Dict[str, Any],
    'promised': Dict[str, Any],
    'version': str,
}, total=False)

Sandbox = TypedDict('Sandbox', {
    'id': str,
    'state': Literal['creating', 'ready', 'falling_asleep', 'asleep', 'waking', 'deleting', 'failed'],
    'image': 'ImageName',
    'runtime': Literal['crun', 'runsc'],
    'host': str,
    'generation': int,
    'memory_mb': int,
    'cpu_milli': int,
    'pids': int,
    'disk_mb': int,
    'open_files': int,
    'cpu_ms': int,
    'wall_ms': int,
    'grace_ms': int,
    'connections': int,
    'requests': int,
    'bytes_out': int,
    'artifact_mb': int,
    'limits_in_force': bool,
    'created_at': str,
    'reason': str,
    'last_failure': 'Failure',
    'name': str,
    'identity_key': str,
    'isolation': Literal['', 'per_session', 'shared'],
    'profile': str,
    'labels': 'Labels',
    'env': 'Env',
    'sleep_after_ms': int,
    'keep_alive': bool,
    'expires_at': str,
    'last_used_at': str,
    'network': 'NetworkMode',
    'guest': 'GuestVersion',
}, total=False)

GuestVersion = TypedDict('GuestVersion', {
    'protocol': str,
    'status': Literal['unknown', 'current', 'differs', 'incompatible'],
}, total=False)

NetworkMode = TypedDict('NetworkMode', {
    'mode': Literal['none', 'allow', 'open'],
}, total=False)

Failure = TypedDict('Failure', {
    'at': str,
    'why': str,
    'lost': Literal['processes and memory', 'everything'],
    'files_kept': bool,
}, total=False)

Gone = TypedDict('Gone', {
    'id': str,
    'state': Literal['gone'],
    'receipt': 'Receipt',
}, total=False)

Deleting = TypedDict('Deleting', {
    'id': str,
    'state': Literal['deleting'],
    'reason': str,
    'attempts': int,
    'next_attempt_at': str,
    'quarantined': bool,
}, total=False)

LogEntry = TypedDict('LogEntry', {
    'seq': int,
    'at': str,
    'event': str,
    'from': str,
    'to': str,
    'reason': str,
    'attempt': int,
}, total=False)

Receipt = TypedDict('Receipt', {
    'observed_at': str,
    'host': str,
    'generation': int,
    'process': 'Absent',
    'cgroup': 'Absent',
    'disk': 'Absent',
    'runtime': 'Absent',
    'link': 'Absent',
}, total=False)

Absent = Literal['absent']

Alert = TypedDict('Alert', {
    'id': int,
    'level': Literal['critical'],
    'kind': str,
    'sandbox': str,
    'subject': str,
    'host': str,
    'message': str,
    'raised_at': str,
    'ended_at': str,
}, total=False)

AlertEvent = TypedDict('AlertEvent', {
    'at': str,
    'level': Literal['critical'],
    'kind': str,
    'sandbox': str,
    'subject': str,
    'message': str,
}, total=False)

SandboxEvent = TypedDict('SandboxEvent', {
    'at': str,
    'id': str,
    'state': Literal['creating', 'ready', 'deleting', 'failed', 'gone'],
    'reason': str,
}, total=False)

EventGap = TypedDict('EventGap', {
    'at': str,
    'events': int,
}, total=False)

TerminalSize = TypedDict('TerminalSize', {
    'cols': int,
    'rows': int,
}, total=False)

TerminalRequest = TypedDict('TerminalRequest', {
    'argv': List[str],
    'cwd': str,
    'env': Dict[str, str],
    'cols': int,
    'rows': int,
    'id': 'ExecId',
    'timeout_ms': int,
}, total=False)

Terminal = TypedDict('Terminal', {
    'id': 'ExecId',
    'kind': Literal['exited', 'signalled', 'timed_out', 'oom', 'killed', 'lost'],
    'host_rebooted': Optional[bool],
    'exit_code': Optional[int],
    'signal': int,
    'stdout_bytes': int,
    'stderr_bytes': int,
    'wall_ms': int,
    'user_ms': int,
    'system_ms': int,
    'max_rss_kb': int,
    'usage': 'ExecUsage',
    'limit': 'LimitMet',
    'cwd': str,
    'cwd_base64': str,
    'restarted': bool,
    'sandbox': str,
    'state': Literal['running', 'ended'],
    'cols': int,
    'rows': int,
    'viewers': int,
    'pid': int,
    'started_at': str,
    'output_bytes': int,
    'gap_bytes': int,
}, total=False)

ShellName = str

ShellRequest = TypedDict('ShellRequest', {
    'name': 'ShellName',
    'cwd': str,
    'env': Dict[str, str],
}, total=False)

Shell = TypedDict('Shell', {
    'name': 'ShellName',
    'state': Literal['idle', 'busy', 'gone'],
    'cwd': str,
    'cwd_base64': str,
    'pid': int,
    'waiting': int,
    'restarts': int,
    'created_at': str,
}, total=False)

ExecRequest = TypedDict('ExecRequest', {
    'argv': List[str],
    'command': str,
    'shell': 'ShellName',
    'cwd': str,
    'env': Dict[str, str],
    'stdin': str,
    'stdin_open': bool,
    'id': 'ExecId',
    'group': 'ExecId',
    'background': bool,
    'keep': bool,
    'timeout_ms': int,
}, total=False)

ExecExit = TypedDict('ExecExit', {
    'id': 'ExecId',
    'kind': Literal['exited', 'signalled', 'timed_out', 'oom', 'killed', 'lost'],
    'host_rebooted': Optional[bool],
    'exit_code': Optional[int],
    'signal': int,
    'stdout_bytes': int,
    'stderr_bytes': int,
    'wall_ms': int,
    'user_ms': int,
    'system_ms': int,
    'max_rss_kb': int,
    'usage': 'ExecUsage',
    'limit': 'LimitMet',
    'cwd': str,
    'cwd_base64': str,
    'restarted': bool,
}, total=False)

ExecResult = TypedDict('ExecResult', {
    'id': 'ExecId',
    'kind': Literal['exited', 'signalled', 'timed_out', 'oom', 'killed', 'lost'],
    'host_rebooted': Optional[bool],
    'exit_code': Optional[int],
    'signal': int,
    'stdout_bytes': int,
    'stderr_bytes': int,
    'wall_ms': int,
    'user_ms': int,
    'system_ms': int,
    'max_rss_kb': int,
    'usage': 'ExecUsage',
    'limit': 'LimitMet',
    'cwd': str,
    'cwd_base64': str,
    'restarted': bool,
    'stdout': str,
    'stdout_base64': str,
    'stdout_truncated': bool,
    'stderr': str,
    'stderr_base64': str,
    'stderr_truncated': bool,
}, total=False)

ExecId = str

Exec = TypedDict('Exec', {
    'id': 'ExecId',
    'kind': Literal['exited', 'signalled', 'timed_out', 'oom', 'killed', 'lost'],
    'host_rebooted': Optional[bool],
    'exit_code': Optional[int],
    'signal': int,
    'stdout_bytes': int,
    'stderr_bytes': int,
    'wall_ms': int,
    'user_ms': int,
    'system_ms': int,
    'max_rss_kb': int,
    'usage': 'ExecUsage',
    'limit': 'LimitMet',
    'cwd': str,
    'cwd_base64': str,
    'restarted': bool,
    'sandbox': str,
    'argv': List[str],
    'shell': 'ShellName',
    'group': 'ExecId',
    'background': bool,
    'state': Literal['running', 'ended'],
    'pid': int,
    'started_at': str,
    'ended_at': Optional[str],
    'output_bytes': int,
    'gap_bytes': int,
}, total=False)

OutputEvent = TypedDict('OutputEvent', {
    'position': int,
    'offset': int,
    'data': str,
    'data_base64': str,
}, total=False)

ContextRequest = TypedDict('ContextRequest', {
    'language': Literal['python', 'javascript', 'typescript', 'python3', 'js', 'node', 'ts'],
    'name': str,
    'cwd': str,
    'env': Dict[str, str],
    'timeout_ms': int,
}, total=False)

Context = TypedDict('Context', {
    'id': str,
    'name': str,
    'language': Literal['python', 'javascript', 'typescript'],
    'state': Literal['idle', 'busy'],
    'cwd': str,
    'timeout_ms': int,
    'runs': int,
    'restarts': int,
    'created_at': str,
    'last_used_at': str,
}, total=False)

WrapperRequest = TypedDict('WrapperRequest', {
    'argv': List[str],
    'command': str,
    'cwd': str,
    'env': Dict[str, str],
}, total=False)

WrapperFact = TypedDict('WrapperFact', {
    'instance': str,
}, total=False)

WrapperSettled = TypedDict('WrapperSettled', {
    'instance': str,
    'ok': bool,
}, total=False)

WrapperStop = TypedDict('WrapperStop', {
    'instance': str,
    'reason': Literal['readiness-failed', 'startup-failed', 'unhealthy-wrapper', 'terminal-failed', 'terminal-completed', 'terminal-ended', 'terminal-interrupted', 'idle-timeout', 'keep-warm-expired', 'user-interrupt', 'session-delete', 'unexpected-wrapper', 'observation-failed'],
}, total=False)

WrapperProcesses = TypedDict('WrapperProcesses', {
    'exec': str,
    'evidence': Literal['host', 'engine'],
    'truncated': bool,
    'processes': List['WrapperProcess'],
}, total=False)

WrapperProcess = TypedDict('WrapperProcess', {
    'pid': int,
    'parent': int,
    'state': Literal['running', 'sleeping', 'waiting', 'stopped', 'traced', 'ended', 'unknown'],
    'memory_bytes': Optional[int],
    'command': str,
}, total=False)

Wrapper = TypedDict('Wrapper', {
    'sandbox': str,
    'name': str,
    'state': Literal['none', 'starting', 'ready', 'busy', 'warm', 'stop_needed', 'stopping', 'quarantined'],
    'alive': Literal['present', 'absent', 'unknown'],
    'evidence': Literal['host', 'init'],
    'instance': str,
    'generation': int,
    'exec': str,
    'deadline_at': Optional[str],
    'reason': str,
    'attempts': int,
    'last_error': str,
    'created_at': str,
    'receipt': Optional[Dict[str, Any]],
}, total=False)

CodeRequest = TypedDict('CodeRequest', {
    'code': str,
    'context': str,
    'language': Literal['python', 'javascript', 'typescript', 'python3', 'js', 'node', 'ts'],
    'env': Dict[str, str],
    'timeout_ms': int,
}, total=False)

CodeOutput = TypedDict('CodeOutput', {
    'text': str,
    'html': str,
    'markdown': str,
    'latex': str,
    'svg': str,
    'png': str,
    'jpeg': str,
    'javascript': str,
    'json': Any,
    'chart': Any,
    'data': Any,
    'truncated': bool,
    'main': bool,
}, total=False)

CodeError = TypedDict('CodeError', {
    'name': str,
    'message': str,
    'traceback': List[str],
    'line_number': int,
}, total=False)

CodeEnd = TypedDict('CodeEnd', {
    'kind': Literal['ok', 'error', 'timed_out', 'killed', 'lost'],
    'context': str,
    'language': str,
    'run': int,
    'restarted': bool,
    'context_lost': bool,
    'exit_code': Optional[int],
    'signal': int,
    'stdout_bytes': int,
    'stderr_bytes': int,
    'results_dropped': int,
    'wall_ms': int,
    'error': 'CodeError',
}, total=False)

CodeResult = TypedDict('CodeResult', {
    'kind': Literal['ok', 'error', 'timed_out', 'killed', 'lost'],
    'context': str,
    'language': str,
    'run': int,
    'restarted': bool,
    'context_lost': bool,
    'exit_code': Optional[int],
    'signal': int,
    'stdout_bytes': int,
    'stderr_bytes': int,
    'results_dropped': int,
    'wall_ms': int,
    'error': 'CodeError',
    'stdout': str,
    'stdout_base64': str,
    'stdout_truncated': bool,
    'stderr': str,
    'stderr_base64': str,
    'stderr_truncated': bool,
    'results': List['CodeOutput'],
}, total=False)

Kill = TypedDict('Kill', {
    'signal': Union[str, int],
    'grace_ms': int,
}, total=False)

ExecOutput = TypedDict('ExecOutput', {
    'stdout': str,
    'stdout_base64': str,
    'stderr': str,
    'stderr_base64': str,
    'from': int,
    'next': int,
    'gap_bytes': int,
    'ended': bool,
}, total=False)

Removed = TypedDict('Removed', {
    'removed': int,
}, total=False)

ImageName = str

Image = TypedDict('Image', {
    'name': 'ImageName',
    'digest': str,
    'bytes': int,
    'source': str,
    'created_at': str,
}, total=False)

ImageProgress = TypedDict('ImageProgress', {
    'phase': Literal['pulling', 'unpacking'],
    'done': int,
    'total': int,
}, total=False)

FileEntry = TypedDict('FileEntry', {
    'name': str,
    'name_base64': str,
    'path': str,
    'path_base64': str,
    'type': Literal['file', 'directory', 'symlink', 'fifo', 'socket', 'device'],
    'size': int,
    'mode': str,
    'uid': int,
    'gid': int,
    'modified_at': str,
    'target': str,
    'target_base64': str,
}, total=False)

FileChange = TypedDict('FileChange', {
    'type': Literal['created', 'modified', 'deleted', 'moved'],
    'path': str,
    'path_base64': str,
    'to': str,
    'to_base64': str,
}, total=False)

Key = TypedDict('Key', {
    'id': str,
    'name': str,
    'owner': str,
    'role': Literal['user', 'admin'],
    'created_at': str,
    'revoked': bool,
}, total=False)
