"""Tells its role, its number and the size of its world. Services serve on; the others end when all of the job are there."""

import os
import sys
import time

env = os.environ
LISTS = ("PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST")
role = env.get("TRAINING_ROLE", "WORKER")
number = env.get("PADDLE_TRAINER_ID", "-")
print("is", role, number, "of", env["PADDLE_TRAINERS_NUM"], *sys.argv[1:], flush=True)
if role != "WORKER":
    open(f"at-{env['POD_IP']}-{env['PADDLE_PORT']}", "w").close()
    everyone = {f"at-{entry.replace(':', '-')}" for name in LISTS for entry in env.get(name, "").split(",") if entry}
    deadline = time.monotonic() + 60
    while not everyone <= set(os.listdir(".")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert everyone <= set(os.listdir(".")), everyone
    time.sleep(0 if role == "TRAINER" else 300)
