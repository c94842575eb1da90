"""`fenced audit`: an independent judge of the promises. It reads rows and chain and shares no statement with what it judges.

It imports no store, stage or transition code: only the reader of signed bytes and the JSON-RPC transport of `chain`.
"""

from executor.audit.rendering import render
from executor.audit.report import AuditReport, Violation
from executor.audit.run import audit

__all__ = ["AuditReport", "Violation", "audit", "render"]
