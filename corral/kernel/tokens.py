"""Signed tokens of jobs, which control makes and front verifies without asking control.

A job token is `cjt_JOB_EXPIRY_SIGNATURE`; the signature is HMAC-SHA256 by a key derived from the server's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from corral.kernel.ids import JobId

JOB_TOKEN_PREFIX: Final = "cjt_"
JOB_TOKEN_SECONDS: Final = 90 * 86_400.0
"""Default lifetime of a job's token, in seconds."""
_PURPOSE: Final = "job-token"


def derive_key(key: bytes, purpose: str) -> bytes:
    """Derive a 32-byte key for one purpose from the server's key (HMAC-SHA256 as a pseudo-random function)."""
    return hmac.new(key, b"corral:" + purpose.encode(), hashlib.sha256).digest()


def job_secret(key: bytes, job: JobId) -> str:
    """A secret of the job's tasks and the server, equal in every task and attempt; other job secrets derive from it."""
    return hmac.new(derive_key(key, "job-secret"), job.encode(), hashlib.sha256).hexdigest()


def derived_secret(secret: str, purpose: str) -> str:
    """The value of `$(secret:PURPOSE)` in a task of the job with this `job_secret`."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def mint_job_token(key: bytes, job: JobId, expires_at: float) -> str:
    """Make a job's token, valid until `expires_at` (seconds since 1970); `key` is the server's key."""
    body = f"{job}_{int(expires_at)}"
    return f"{JOB_TOKEN_PREFIX}{body}_{_signature(key, body)}"


def verify_job_token(key: bytes, token: str, now: float) -> JobId | None:
    """The job that a token belongs to; None if the token is not this server's, or has expired."""
    if not token.startswith(JOB_TOKEN_PREFIX) or len(token) > 200 or not token.isascii():
        return None
    parts = token.removeprefix(JOB_TOKEN_PREFIX).split("_", 2)
    if len(parts) != 3 or not parts[1].isdigit() or len(parts[1]) > 15:
        return None
    job, expiry, signature = parts
    if not hmac.compare_digest(signature, _signature(key, f"{job}_{expiry}")) or int(expiry) <= now:
        return None
    return JobId(job)


def _signature(key: bytes, body: str) -> str:
    digest = hmac.new(derive_key(key, _PURPOSE), body.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
