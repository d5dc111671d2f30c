import base64
import hashlib
import hmac
import time


def verify(secret: str, headers: dict[str, str], body: bytes, now: float | None = None) -> None:
    """Raises ValueError unless one of the signatures of a delivery is by the secret and the delivery is at most five
    minutes old. body is the body as it arrived, the names of headers are in lower case."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if abs((time.time() if now is None else now) - int(timestamp)) > 300:
        raise ValueError("the delivery is too old")
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    want = base64.b64encode(digest).decode()
    for one in headers.get("webhook-signature", "").split(" "):
        version, _, got = one.partition(",")
        if version == "v1" and hmac.compare_digest(got.encode(), want.encode()):
            return
    raise ValueError("no signature is by the secret")
