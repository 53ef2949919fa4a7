"""Record what Paddle's launchers put into the environment of their workers in modes other than the plain collective one.

    .venv-paddle26/bin/python tests/tools/record_mode_env.py ps         > tests/data/worker_env/paddle_ps.json
    .venv-paddle26/bin/python tests/tools/record_mode_env.py ps_static  > tests/data/worker_env/paddle_ps_static.json
    .venv-paddle26/bin/python tests/tools/record_mode_env.py ps_legacy  > tests/data/worker_env/paddle_ps_legacy.json
    .venv-paddle26/bin/python tests/tools/record_mode_env.py ps_heter   > tests/data/worker_env/paddle_ps_heter.json
    .venv-paddle26/bin/python tests/tools/record_mode_env.py rpc        > tests/data/worker_env/paddle_rpc.json
    .venv/bin/python          tests/tools/record_mode_env.py static     > tests/data/worker_env/paddle_static.json
    .venv/bin/python          tests/tools/record_mode_env.py tuning     > tests/data/worker_env/paddle_tuning.json

All launchers run on this machine. Recorded is what a worker has and its launcher had not, in the order of the workers' log files.
"""

import json
import os
import subprocess
import sys
import tempfile

from record_worker_env import free_port

DUMP = """
import json, os, sys, time
env = os.environ.get
number = env("PADDLE_TRAINER_ID", env("PADDLE_PORT", "0")).rjust(5)
name = "-".join([env("PADDLE_AUTO_PARALLEL_STAGE", ""), env("TRAINING_ROLE", "WORKER"), env("STAGE_ID", "0"), number])
with open(os.path.join(sys.argv[1], name + ".part"), "w") as file:
    json.dump(dict(os.environ), file)
os.rename(file.name, file.name[:-5] + ".json")
if os.environ.get("TRAINING_ROLE", "") not in ("", "TRAINER"):
    time.sleep(float(sys.argv[2]))
time.sleep(3)  # the older launcher ends the others when the trainers have ended
"""

NEW, OLD = "paddle.distributed.launch", "paddle.distributed.fleet.launch"


def calls(kind: str, port: int, folder: str) -> list[list[str]]:
    """Module and options of each launcher."""
    log = ["--log_dir", f"{folder}/log"]
    both = [["--master", f"127.0.0.1:{port}", "--nnodes", "2", "--rank", str(node), "--job_id", "job7"] for node in (0, 1)]
    config = os.path.join(folder, "tune.json")
    with open(config, "w") as file:
        json.dump({"tuner_run_mode": "tuner_and_run"}, file)
    ends = [f"127.0.0.1:{port + offset}" for offset in range(1, 8)]
    heter = ["--heter_devices", "cpu;cpu", "--heter_worker_num", "1;1"]
    return {
        "ps": [[NEW, *node, *log, "--run_mode", "ps", "--server_num", "1", "--trainer_num", "2"] for node in both],
        "ps_static": [[NEW, *log, "--servers", ",".join(ends[:2]), "--trainers", ",".join(ends[2:4])]],
        "ps_legacy": [[OLD, *log, "--server_num", "2", "--worker_num", "2", "--coordinator_num", "1"]],
        "ps_heter": [[OLD, *log, "--run_mode", "ps-heter", "--server_num", "1", "--worker_num", "2", *heter]],
        "rpc": [[NEW, *node, *log, "--run_mode", "rpc", "--nproc_per_node", "2"] for node in both],
        "static": [[NEW, *log, "--ips", "127.0.0.1", "--start_port", str(port), "--nproc_per_node", "2"]],
        "tuning": [[NEW, *log, "--nproc_per_node", "2", "--auto_parallel_config", config]],
    }[kind]


def record(kind: str) -> dict[str, object]:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "POD_IP": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as folder:
        script, out = os.path.join(folder, "dump.py"), os.path.join(folder, "out")
        os.mkdir(out)
        with open(script, "w") as file:
            file.write(DUMP)
        commands = [[sys.executable, "-m", *call, script, out, "10"] for call in calls(kind, free_port(), folder)]
        launchers = [subprocess.Popen(call, env=env, cwd=folder, stdout=sys.stderr) for call in commands]
        assert [launcher.wait(150) for launcher in launchers] == [0] * len(launchers)
        workers = []
        for name in sorted(os.listdir(out)):
            with open(os.path.join(out, name)) as file:
                workers.append({key: value for key, value in sorted(json.load(file).items()) if env.get(key) != value})
    version = subprocess.run(
        [sys.executable, "-c", "import paddle; print(paddle.__version__)"], capture_output=True, text=True, check=True
    ).stdout.strip()
    text = json.dumps({"commands": commands, "version": version, "workers": workers})
    return dict(json.loads(text.replace(folder, "FOLDER").replace(sys.executable, "python")))


if __name__ == "__main__":
    json.dump(record(sys.argv[1]), sys.stdout, indent=1, sort_keys=True)
    print()
