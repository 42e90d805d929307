"""Made from docs/openapi.yaml by tools/gen-types: change that, not this."""
from typing import Any, Dict, List, Literal, Optional, TypedDict, Union  # noqa: F401

Error = TypedDict('Error', {
    'code': Literal['invalid', 'unauthenticated', 'denied', 'not_found', 'conflict', 'too_large', 'limit', 'busy', 'timeout', 'unsupported', 'internal'],
    'message': str,
    'remediation': str,
    'request_id': str,
}, total=False)

Health = TypedDict('Health', {
    'status': Literal['ok', 'degraded'],
    'version': str,
    'database': Literal['ok', 'unreachable'],
    'node': Literal['ok', 'unreachable'],
}, total=False)

Host = TypedDict('Host', {
    'host': str,
    'version': str,
    'cpus': int,
    'memory_total': int,
    'memory_available': int,
    'disk_total': int,
    'disk_available': int,
    'sandboxes': int,
    'cgroups': Literal['v1', 'hybrid', 'v2'],
    'runtimes': str,
}, total=False)

SandboxSpec = TypedDict('SandboxSpec', {
    'image': 'ImageName',
    'runtime': Literal['crun', 'runsc'],
    'memory_mb': int,
    'cpu_milli': int,
    'pids': int,
    'disk_mb': int,
}, total=False)

Sandbox = TypedDict('Sandbox', {
    'id': str,
    'state': Literal['creating', 'ready', 'deleting', 'failed'],
    'image': 'ImageName',
    'runtime': Literal['crun', 'runsc'],
    'host': str,
    'generation': int,
    'memory_mb': int,
    'cpu_milli': int,
    'pids': int,
    'disk_mb': int,
    'created_at': str,
    'reason': str,
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
}, total=False)

Absent = Literal['absent']

SandboxEvent = TypedDict('SandboxEvent', {
    'id': str,
    'state': Literal['creating', 'ready', 'deleting', 'failed', 'gone'],
    'reason': str,
}, total=False)

ExecRequest = TypedDict('ExecRequest', {
    'argv': List[str],
    'command': str,
    'cwd': str,
    'env': Dict[str, str],
    'stdin': str,
    'timeout_ms': int,
}, total=False)

ExecExit = TypedDict('ExecExit', {
    'kind': Literal['exited', 'signalled', 'timed_out', 'oom', 'killed', 'lost'],
    'exit_code': Optional[int],
    'signal': int,
    'stdout_bytes': int,
    'stderr_bytes': int,
    'wall_ms': int,
    'user_ms': int,
    'system_ms': int,
    'max_rss_kb': int,
}, total=False)

ExecResult = TypedDict('ExecResult', {
    'kind': Literal['exited', 'signalled', 'timed_out', 'oom', 'killed', 'lost'],
    'exit_code': Optional[int],
    'signal': int,
    'stdout_bytes': int,
    'stderr_bytes': int,
    'wall_ms': int,
    'user_ms': int,
    'system_ms': int,
    'max_rss_kb': int,
    'stdout': str,
    'stdout_base64': str,
    'stdout_truncated': bool,
    'stderr': str,
    'stderr_base64': str,
    'stderr_truncated': bool,
}, total=False)

OutputEvent = TypedDict('OutputEvent', {
    'offset': int,
    'data': str,
    'data_base64': str,
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

Key = TypedDict('Key', {
    'id': str,
    'name': str,
    'owner': str,
    'role': Literal['user', 'admin'],
    'created_at': str,
    'revoked': bool,
}, total=False)
