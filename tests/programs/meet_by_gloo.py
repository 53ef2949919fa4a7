"""A worker that meets the others as Horovod's Gloo context does: in the scopes global, local and cross, over its HTTP store.

The exchanged values are the ranks' own addresses; like Gloo, each connects to all others, here to learn their ranks.
"""

import http.client
import os
import socket
import threading
import time

LIMIT_S = 60.0
NAMES = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
rank, size, local_rank, local_size, cross_rank, cross_size = (int(os.environ[f"HOROVOD_{name}"]) for name in NAMES)
host = os.environ["HOROVOD_HOSTNAME"]
own_ip = os.environ["SLAUNCH_ADDRESS"]


def ask(method, path, body=None):
    """One request on a connection of its own, tried three times (common/gloo/http_store.cc)."""
    for _ in range(3):
        try:
            store = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
            link = http.client.HTTPConnection(*store, timeout=10)
            link.request(method, path, body)
            answer = link.getresponse()
            value = answer.read()
            link.close()
            if answer.status in (200, 404):
                return answer.status, value
        except OSError:
            pass
        time.sleep(0.5)
    raise SystemExit(f"no answer to {method} {path}")


def get(path):
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        status, value = ask("GET", path)
        if status == 200:
            return value.decode()
        time.sleep(0.01)
    raise SystemExit(f"nobody has put {path}")


def meet(scope, number, count):
    """A full mesh of `count` members; the global ranks of all. The store is left only after all have met."""
    with socket.create_server((own_ip, 0), backlog=count) as listener:
        ask("PUT", f"/{scope}/{number}", f"{own_ip}:{listener.getsockname()[1]}:{rank}".encode())
        waiting = threading.Thread(target=lambda: [listener.accept()[0].close() for _ in range(count)])
        waiting.start()
        found = []
        for other in range(count):
            ip, port, name = get(f"/{scope}/{other}").split(":")
            socket.create_connection((ip, int(port)), timeout=LIMIT_S).close()
            found.append(int(name))
        waiting.join(LIMIT_S)
    ask("DELETE", f"/{scope}/{number}")
    return found


for turn in range(2):  # as with hvd.init() after hvd.shutdown()
    everyone = meet("global", rank, size)
    here = meet(f"local_{host}", local_rank, local_size)
    across = meet(f"cross_{local_rank}", cross_rank, cross_size)
    print(f"turn {turn}: rank {rank} of {size} met {everyone} here {here} across {across}", flush=True)
    time.sleep(1)  # all have left the store
