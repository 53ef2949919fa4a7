"""The few calls to etcd that a meeting needs, through the JSON gateway of its servers (since 3.4; manual: "gRPC gateway")."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CALL_S = 2.0
"""A server that takes longer counts as not answering; the next one is asked."""


class EtcdError(Exception):
    """No server answers, or not as expected. The text says which and why."""


class Etcd:
    """A cluster of etcd servers.

    Args:
        endpoints: host and port of each; the first that answers is used.
    """

    def __init__(self, endpoints: Sequence[tuple[str, int]]) -> None:
        self._endpoints = list(endpoints)

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
        """Put a value where there is none; returns the value that is there now."""
        answer = self._call(
            "kv/txn",
            {
                "compare": [{"key": coded(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"}],
                "success": [{"request_put": {"key": coded(key), "value": coded(value), "lease": lease}}],
                "failure": [{"request_range": {"key": coded(key)}}],
            },
        )
        return value if answer.get("succeeded") else first_value(answer["responses"][0]["response_range"])

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
                return post(endpoint, f"/v3/{path}", body)
            except (OSError, ValueError) as error:
                failures.append(f"{endpoint[0]}:{endpoint[1]}: {error}")
                self._endpoints.append(self._endpoints.pop(0))  # ask another one first from now on
        raise EtcdError("; ".join(failures))


def post(endpoint: tuple[str, int], path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """One request.

    Raises:
        OSError: no answer.
        ValueError: the answer is an error, or not etcd's.
    """
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(*endpoint, timeout=CALL_S)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read(1 << 20)
    except HTTPException as error:
        raise ValueError(f"not etcd's answer ({error!r})") from None
    finally:
        connection.close()
    if reply.status != 200:
        raise ValueError(f"status {reply.status}: {text[:200].decode('utf-8', 'replace')}")
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
