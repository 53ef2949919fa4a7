"""Long lists reach workers through memory: another process reads them while their maker lives, and so does what that becomes."""

import json
import os
import subprocess
import sys

from slaunch.agent.memory import Memory
from slaunch.plan.values import EnvFile

TEXT = json.dumps({"PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:20000," * 100_000})

MAKER = """
import os, sys
from slaunch.agent.memory import Memory
from slaunch.plan.values import EnvFile
file = EnvFile("LIST", "list.json", sys.stdin.read())
memory = Memory(across_exec=sys.argv[1] == "exec")
path, again = memory.variables((file,))["LIST"], memory.variables((file,))["LIST"]
assert path == again
reader = [sys.executable, "-c", "import sys; sys.stdout.write(open(sys.argv[1]).read() + open(sys.argv[1]).read())", path]
if sys.argv[1] == "exec":
    os.execv(reader[0], reader)
import subprocess
subprocess.run(reader, check=True)
"""


def read_back(how):
    command = [sys.executable, "-c", MAKER, how]
    return subprocess.run(command, input=TEXT, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout


def test_f93_another_process_reads_them_as_often_as_it_likes():
    assert read_back("run") == TEXT * 2


def test_f93_what_the_process_becomes_reads_them_too():
    assert read_back("exec") == TEXT * 2


def test_f93_workers_do_not_inherit_the_descriptor():
    path = Memory().variables((EnvFile("LIST", "list.json", "x"),))["LIST"]
    descriptor = int(path.rpartition("/")[2])
    try:
        assert not os.get_inheritable(descriptor)
        with open(path) as file:
            assert file.read() == "x"
    finally:
        os.close(descriptor)
