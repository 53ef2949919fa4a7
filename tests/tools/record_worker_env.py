"""Record what other launchers put into the environment of their workers, for two nodes with two workers each.

    python tests/tools/record_worker_env.py paddle   > tests/data/worker_env/paddle.json
    python tests/tools/record_worker_env.py torchrun > tests/data/worker_env/torchrun.json

Both nodes are launchers on this machine. Recorded is what a worker has and its launcher had not, by rank.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile

DUMP = """
import json, os, sys
rank = os.environ.get("RANK") or os.environ["PADDLE_TRAINER_ID"]
with open(os.path.join(sys.argv[1], rank), "w") as file:
    json.dump(dict(os.environ), file)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(kind: str, node: int, port: int, folder: str) -> list[str]:
    script = [os.path.join(folder, "dump.py"), folder]
    if kind == "paddle":
        shape = ["--master", f"127.0.0.1:{port}", "--nnodes", "2", "--rank", str(node), "--nproc_per_node", "2"]
        launcher = ["-m", "paddle.distributed.launch", *shape, "--log_dir", f"{folder}/log{node}", "--job_id", "job7"]
        return [sys.executable, *launcher, *script]
    shape = ["--nnodes", "2", "--node-rank", str(node), "--nproc-per-node", "2", "--rdzv-id", "job7"]
    meeting = ["--rdzv-backend", "static", "--master-addr", "127.0.0.1", "--master-port", str(port)]
    return [sys.executable, "-m", "torch.distributed.run", *shape, *meeting, *script]


def record(kind: str) -> dict[str, object]:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "POD_IP": "127.0.0.1"}
    if kind != "paddle":
        del env["POD_IP"]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "dump.py"), "w") as file:
            file.write(DUMP)
        port = free_port()
        calls = [command(kind, node, port, folder) for node in (0, 1)]
        launchers = [subprocess.Popen(call, env=env, cwd=folder, stdout=subprocess.DEVNULL) for call in calls]
        assert [launcher.wait(120) for launcher in launchers] == [0, 0]
        workers = []
        for rank in range(4):
            with open(os.path.join(folder, str(rank))) as file:
                workers.append({name: value for name, value in sorted(json.load(file).items()) if env.get(name) != value})
    version = subprocess.run(
        [sys.executable, "-c", f"import {VERSIONED[kind]} as m; print(m.__version__)"], capture_output=True, text=True, check=True
    ).stdout.strip()
    recorded = json.dumps({"commands": calls, "version": version, "workers": workers})
    return dict(json.loads(recorded.replace(folder, "FOLDER").replace(sys.executable, "python")))


VERSIONED = {"paddle": "paddle", "torchrun": "torch"}

if __name__ == "__main__":
    json.dump(record(sys.argv[1]), sys.stdout, indent=1, sort_keys=True)
    print()
