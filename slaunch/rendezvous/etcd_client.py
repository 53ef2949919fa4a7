"""The few calls to etcd that a meeting needs, through the JSON gateway of its servers (since 3.4; manual: "gRPC gateway")."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

from slaunch.rendezvous.etcd_access import OPEN, Access

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from typing import Any

CALL_S = 2.0
"""A server that takes longer counts as not answering; the next one is asked."""


UNAUTHORIZED = 401
DENIALS = ("authentication failed", "user name is empty", "permission denied", "CommonName of client")
"""etcd's words. The last are on certificates with a common name, which its gateway does not take where users have passwords."""


class EtcdError(Exception):
    """No server answers, or not as expected. The text says which and why."""


class DeniedError(EtcdError):
    """A server answers, but does not let us in, or is not the one that it should be. It will not change its mind."""


class TokenError(ValueError):
    """The proof of an earlier password check is not accepted (any more)."""


class Etcd:
    """A cluster of etcd servers.

    Args:
        endpoints: host and port of each; the first that answers is used.
        access: what they want to see.
    """

    def __init__(self, endpoints: Sequence[tuple[str, int]], access: Access = OPEN) -> None:
        self._endpoints = list(endpoints)
        self._access = access
        self._token = ""

    def grant(self, seconds: int) -> str:
        """A lease; all that is put under it vanishes when it ends."""
        return str(self._call("lease/grant", {"TTL": seconds})["ID"])

    def keep_alive(self, lease: str) -> bool:
        """Let the lease begin anew; False if it has ended."""
        return int(self._call("lease/keepalive", {"ID": lease}).get("result", {}).get("TTL", 0)) > 0

    def revoke(self, lease: str) -> None:
        """End a lease. One that has ended already is no error."""
        try:
            self._call("lease/revoke", {"ID": lease})
        except EtcdError:
            pass

    def create(self, key: str, value: str, lease: str) -> str:
        """Put a value where there is none; returns the value that keeps it from that, "" if none does."""
        answer = self._call(
            "kv/txn",
            {
                "compare": [{"key": coded(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"}],
                "success": [{"request_put": {"key": coded(key), "value": coded(value), "lease": lease}}],
                "failure": [{"request_range": {"key": coded(key)}}],
            },
        )
        return "" if answer.get("succeeded") else first_value(answer["responses"][0]["response_range"])

    def replace(self, key: str, old: str, new: str, lease: str) -> bool:
        """Put another value in place of `old`, "" to remove it; False if something else is there."""
        put = {"request_put": {"key": coded(key), "value": coded(new), "lease": lease}}
        remove = {"request_delete_range": {"key": coded(key)}}
        answer = self._call(
            "kv/txn",
            {
                "compare": [{"key": coded(key), "target": "VALUE", "result": "EQUAL", "value": coded(old)}],
                "success": [put if new else remove],
            },
        )
        return bool(answer.get("succeeded"))

    def get(self, key: str) -> str:
        """The value; "" if there is none."""
        return first_value(self._call("kv/range", {"key": coded(key)}))

    def _call(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        failures = []
        for endpoint in list(self._endpoints):
            try:
                return self._ask(endpoint, f"/v3/{path}", body)
            except (OSError, ValueError) as error:
                failures.append(f"{endpoint[0]}:{endpoint[1]}: {error}")
                self._endpoints.append(self._endpoints.pop(0))  # ask another one first from now on
        raise EtcdError("; ".join(failures))

    def _ask(self, endpoint: tuple[str, int], path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            self._token = self._token or self._log_in(endpoint)
            try:
                return post(endpoint, path, body, self._access.tls, self._token)
            except TokenError:  # it has ended, as that of an idle user does
                self._token = self._log_in(endpoint)
                return post(endpoint, path, body, self._access.tls, self._token)
        except (OSError, ValueError) as error:
            if is_denial(error):
                raise DeniedError(f"{endpoint[0]}:{endpoint[1]}: {error}") from None
            raise

    def _log_in(self, endpoint: tuple[str, int]) -> str:
        """Have the password checked; gives the proof of it, "" where etcd checks none."""
        if not self._access.user:
            return ""
        body = {"name": self._access.user, "password": self._access.password}
        try:
            return str(post(endpoint, "/v3/auth/authenticate", body, self._access.tls).get("token", ""))
        except ValueError as error:
            if "authentication is not enabled" in str(error):
                return ""
            raise


def is_denial(error: Exception) -> bool:
    """Whether asking again is of no use: certificates that do not fit (their names in OpenSSL), or etcd's words on users."""
    if "CERTIFICATE" in str(getattr(error, "reason", "")) or isinstance(error, TokenError):
        return True
    said = str(error)
    return any(word in said for word in DENIALS)


def post(
    endpoint: tuple[str, int], path: str, body: Mapping[str, Any], tls: ssl.SSLContext | None = None, token: str = ""
) -> Mapping[str, Any]:
    """One request.

    Raises:
        OSError: no answer.
        TokenError: the token is not accepted.
        ValueError: the answer is another error, or not etcd's.
    """
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    connection = HTTPSConnection(*endpoint, timeout=CALL_S, context=tls) if tls else HTTPConnection(*endpoint, timeout=CALL_S)
    try:
        headers = {"Content-Type": "application/json", **({"Authorization": token} if token else {})}
        connection.request("POST", path, json.dumps(body), headers)
        reply = connection.getresponse()
        text = reply.read(1 << 20)
    except HTTPException as error:
        raise ValueError(f"not etcd's answer ({error!r})") from None
    finally:
        connection.close()
    if reply.status != 200:
        kind = TokenError if reply.status == UNAUTHORIZED else ValueError
        raise kind(f"status {reply.status}: {text[:200].decode('utf-8', 'replace')}")
    answer = json.loads(text)
    if not isinstance(answer, dict):
        raise ValueError("not etcd's answer")
    return answer


def coded(text: str) -> str:
    """Keys and values travel in base64."""
    return base64.b64encode(text.encode()).decode()


def first_value(answer: Mapping[str, Any]) -> str:
    """The value of the first key of a range; "" if there is none."""
    found = answer.get("kvs")
    return base64.b64decode(found[0].get("value", "")).decode() if found else ""
