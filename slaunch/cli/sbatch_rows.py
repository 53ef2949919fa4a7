"""The options of sbatch, as far as they ask for a job (its manual, Slurm 22.05). sbatch itself checks their values."""

from __future__ import annotations

from slaunch.cli.table import Row

FIELD = "sbatch:"
"""In front of the fields of these options."""

VARIABLES = {
    "array": "SBATCH_ARRAY_INX",
    "mem": "SBATCH_MEM_PER_NODE",
    "switches": "SBATCH_REQ_SWITCH",
    "time": "SBATCH_TIMELIMIT",
}
"""Input variables of sbatch that are not named as their options."""

BY_VARIABLE = """
account array clusters constraint core-spec cpus-per-gpu delay-boot distribution error exclusive export gpu-bind gpu-freq gpus
gpus-per-node gpus-per-task gres gres-flags hint ignore-pbs input job-name mem mem-per-cpu mem-per-gpu no-kill no-requeue
open-mode output overcommit partition qos requeue reservation signal spread-job switches thread-spec threads-per-core time
use-min-nodes wait-all-nodes wckey
"""
"""Options that a variable of sbatch sets, too (its manual, input environment variables)."""

VALUES = """
array a INDICES: run the job once for each index, e.g. 0-9%2
account A NAME: account to charge
batch - LIST: features of the node that runs the script
bb - SPEC: burst buffer
bbf - FILE: burst buffer, by a file
begin b TIME: start no sooner
chdir D DIR: working directory of the job
clusters M NAMES: clusters to choose from
comment - TEXT: a note to the job
constraint C LIST: features of the nodes
core-spec S N: cores for the system
cores-per-socket - N: least cores of a socket
cpu-freq - FREQ: frequency of the CPUs
cpus-per-gpu - N: CPUs for each GPU
cpus-per-task c N: CPUs of each node, where one task runs there
deadline - TIME: remove the job if it cannot end before
delay-boot - MINUTES: wait for nodes with the features before some are booted
dependency d LIST: start after other jobs, e.g. afterok:4711
distribution - TYPE: order of tasks on nodes
error e FILE: file of the script's errors (default: with the output)
exclude x HOSTS: nodes not to use
export - NAMES: variables that the job gets (default: ALL)
export-file - FILE: variables that the job gets, by a file
gpus G N: GPUs in total, N or TYPE:N
gpus-per-node - N: GPUs of each node, N or TYPE:N; asked for in the form that the site takes
gpus-per-socket - N: GPUs of each socket
gpus-per-task - N: GPUs of each task
gpu-bind - HOW: binding of tasks to GPUs
gpu-freq - FREQ: frequency of the GPUs
gres - LIST: generic resources of each node
gres-flags - FLAGS: how they are chosen
hint - TYPE: kind of program, for the choice of CPUs
input i FILE: the script's input
job-name J NAME: name of the job (default: the program's)
kill-on-invalid-dep - YES|NO: remove the job if its dependency can no longer be satisfied
licenses L NAMES: licences
mail-type - TYPES: when to write a mail
mail-user - USER: to whom
mcs-label - NAME: security label
mem - SIZE: memory of each node; 0 = all
mem-per-cpu - SIZE: memory for each CPU
mem-per-gpu - SIZE: memory for each GPU
mincpus - N: least CPUs of a node
nodefile F FILE: file with the nodes to use
nodelist w HOSTS: nodes to use
nodes N N: number of nodes, N or MIN-MAX
ntasks n N: number of tasks
ntasks-per-core - N: tasks on each core
ntasks-per-gpu - N: tasks for each GPU
ntasks-per-node - N: tasks on each node (default: one, slaunch itself)
ntasks-per-socket - N: tasks on each socket
open-mode - MODE: append or truncate, for the output of a job that starts again
output o FILE: file of the script's output (default: %x-%j.out)
partition p NAMES: partition, or several
prefer - LIST: features of nodes that are preferred
priority - N: priority
qos q NAME: quality of service
reservation - NAME: reservation to use
signal - WHAT: signal before the time limit, e.g. USR2@120
sockets-per-node - N: least sockets of a node
switches - N: switches at most, N or N@TIME
thread-spec - N: threads for the system
threads-per-core - N: threads of each core to use
time t TIME: time limit, e.g. 2:00:00
time-min - TIME: least time limit
tmp - SIZE: disk space of each node
tres-per-task - LIST: resources of each task
wait-all-nodes - 0|1: start when all nodes are up
wckey - KEY: key for accounting
"""

OPTIONAL = """
exclusive - USER: whole nodes
nice - N: lower priority
propagate - LIMITS: limits that the job inherits
no-kill k off: go on when a node is lost
requeue - WHEN: let Slurm put the job back into the queue; with =WHEN slaunch does so, too (see `slaunch --help`)
"""

FLAGS = """
contiguous -: neighbouring nodes only
hold H: submit it held
ignore-pbs -: heed no #PBS lines
no-requeue -: never put the job back into the queue
overcommit O: several tasks on a CPU
oversubscribe s: share nodes with other jobs
reboot -: boot the nodes first
spread-job -: over as many nodes as possible
use-min-nodes -: of a range of numbers of nodes the least
"""


def rows() -> tuple[Row, ...]:
    """One row for each option."""
    found = [row(line, optional=False) for line in VALUES.strip().splitlines()]
    found += [row(line, optional=True) for line in OPTIONAL.strip().splitlines()]
    return (*found, *(flag(line) for line in FLAGS.strip().splitlines()))


def row(line: str, optional: bool) -> Row:
    """The option of one line: its name, its letter or a dash, how its value is called, and what it means."""
    head, _, text = line.partition(": ")
    name, letter, metavar = head.split(maxsplit=2)
    return Row(spellings(name, letter), FIELD + name, perhaps if optional else str, metavar, text, variable(name), optional)


def flag(line: str) -> Row:
    """The option without a value of one line."""
    head, _, text = line.partition(": ")
    name, letter = head.split()
    return Row(spellings(name, letter), FIELD + name, perhaps, "", text, variable(name))


def perhaps(text: str) -> str | bool:
    """The value of an option that needs none; False where a file or variable says that it is not wanted, True where it is."""
    return {"": True, "true": True, "yes": True, "false": False, "no": False}.get(text.lower(), text)


def spellings(name: str, letter: str) -> tuple[str, ...]:
    """As written on the command line."""
    return (f"--{name}",) if letter == "-" else (f"--{name}", f"-{letter}")


def variable(name: str) -> tuple[str, ...]:
    """The variable of sbatch that sets this option."""
    return ("",) if name not in BY_VARIABLE.split() else (VARIABLES.get(name, f"SBATCH_{name.upper().replace('-', '_')}"),)
