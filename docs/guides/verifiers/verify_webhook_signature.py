# Written by `npm run generate` from docs/webhooks.md.
import hashlib
import hmac
import re
import time
from typing import Optional

TOLERANCE_SECONDS = 300


def verify_webhook_signature(
    header: Optional[str], raw_body: bytes, secret: str, now_seconds: Optional[int] = None
) -> bool:
    """Pass secret as shown, with its prefix, and raw_body as received, before any parsing."""
    parts = [part.strip() for part in (header or "").split(",")]
    timestamps = [part[2:] for part in parts if part.startswith("t=")]
    signatures = [part[3:] for part in parts if part.startswith("v1=")]
    if not secret or len(timestamps) != 1 or not re.fullmatch("[0-9]{1,15}", timestamps[0]):
        return False
    now = int(time.time()) if now_seconds is None else now_seconds
    if abs(now - int(timestamps[0])) > TOLERANCE_SECONDS:
        return False

    signed = timestamps[0].encode() + b"." + raw_body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    # compare_digest accepts non-ASCII text only as bytes.
    return any(hmac.compare_digest(expected, value.encode("utf-8", "replace")) for value in signatures)
