import base64
import hashlib
import hmac
import re
import time


def verify(secret: str, headers: dict[str, str], body: bytes, now: float | None = None) -> None:
    """Raises ValueError unless one of a delivery's signatures was made with the secret and the delivery is at most five
    minutes old. body is the body as it arrived. Header names are in lower case."""
    text = secret.removeprefix("whsec_")
    key = base64.b64decode(text, validate=True)
    if len(key) < 24 or base64.b64encode(key).decode() != text:
        raise ValueError("the secret is not whsec_ and the base64 encoding of 24 bytes or more")
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "")
    if not id or not timestamp or not signatures:
        raise ValueError("the signature headers are missing")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise ValueError("the timestamp is not a number of seconds")
    if abs((time.time() if now is None else now) - int(timestamp)) > 300:
        raise ValueError("the delivery is too old, or the clock is wrong")
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    want = base64.b64encode(digest).decode()
    for one in signatures.split(" "):
        version, _, got = one.partition(",")
        if version == "v1" and hmac.compare_digest(got.encode(), want.encode()):
            return
    raise ValueError("no signature was made with the secret")
