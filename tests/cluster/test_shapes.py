"""Jobs of unusual shape train a real model: parts of different kinds, arrays, and an allocation that has shrunk."""

import os
import re

from support.cluster import Cluster
from support.jobs import EXAMPLES, WORLD, assert_world, folder_in, logs

TRAINING = os.path.join(EXAMPLES, "paddle", "train.py")


def assert_trained(text: str, world: int) -> None:
    """Every rank ended with the same loss."""
    found = dict(re.findall(r"rank (\d+) of \d+: final loss ([\d.]+)", text))
    assert sorted(map(int, found)) == list(range(world)), text
    assert len(set(found.values())) == 1, text


def test_p10_a_heterogeneous_step_of_srun_trains(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    part = ("--ntasks-per-node=1", "slaunch", "--log_dir", folder, TRAINING, "--epochs", "1")
    done = cluster.srun("-N1", *part, ":", "-N2", *part, timeout=150)
    assert done.returncode == 0, done.stderr
    assert_trained(logs(folder), 3)


def test_p10_p11_a_heterogeneous_allocation_trains(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    inner = ("slaunch", "--log_dir", folder, TRAINING, "--epochs", "1")
    done = cluster.run(["salloc", "-Q", "-N1", "--cpus-per-task=2", ":", "-N2", *inner], timeout=150)
    assert done.returncode == 0, done.stderr
    assert_trained(logs(folder), 3)


def test_roles_have_components_devices_and_cores(cluster: Cluster) -> None:
    """A role on each component of one job: from its shell, and by srun's own --het-group, where one component takes part."""
    folder = folder_in(cluster.scratch)
    show = "import os; print('is', os.environ['RANK'], os.environ['ROLE_NAME'], os.environ.get('CUDA_VISIBLE_DEVICES'), "
    reader = "os.environ['OMP_NUM_THREADS'] if 'r' in os.environ['ROLE_NAME'][:1] else '', "
    with open(f"{folder}/show.py", "w") as file:
        file.write(f"{show}{reader}*__import__('sys').argv[1:], flush=True)\n")
    with open(f"{folder}/roles.toml", "w") as file:
        file.write(
            '[[role]]\nname = "reader"\ncomponent = 0\ndevice = "cpu"\ncores = 1\nargs = ["--read"]\n'
            '[[role]]\nname = "trainer"\ncomponent = 1\nworkers = 2\ndevice = "gpu"\n'
        )
    launch = f"slaunch --tee all --log-dir {folder}/logs --roles {folder}/roles.toml {folder}/show.py x"
    inner = f"{launch}; srun --het-group=1 --ntasks-per-node=1 {launch}"
    shape = ("-N1", "--gpus-per-node=1", "-c4", ":", "-N2", "--gpus-per-node=2", "-c4")
    done = cluster.run(["salloc", "-Q", *shape, "bash", "-c", inner])
    assert done.returncode == 0, done.stderr
    found = sorted(re.findall(r"is (.*)$", done.stdout, re.MULTILINE))
    trainers = [f"{rank} trainer {rank % 2}  x" for rank in range(4)]  # of the step on component 1 alone
    whole = ["0 reader  1 x --read", *(f"{rank} trainer {(rank + 1) % 2}  x" for rank in range(1, 5))]
    assert found == sorted([*trainers, *whole]), (found, done.stderr)


def test_p84_tasks_of_an_array_are_jobs_of_their_own(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    script = f"#!/bin/bash\nexec slaunch --log_dir {folder}/$SLURM_ARRAY_TASK_ID {WORLD}\n"
    job = cluster.sbatch(script, "-N2", "--ntasks-per-node=1", "--array=0-1")
    assert job.code == 0, job.output
    for index in (0, 1):
        assert_world(logs(f"{folder}/{index}"), 2, [1, 1])
        with open(f"{folder}/{index}/report.json") as file:
            assert re.search(rf'"job": "\d+_{index}\.0"', file.read())


def test_a_job_that_has_shrunk_uses_the_nodes_it_still_has(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    script = (
        "#!/bin/bash\nscontrol update JobId=$SLURM_JOB_ID NumNodes=2\n"
        f"exec slaunch --nproc_per_node 2 --log_dir {folder} {WORLD}\n"
    )
    job = cluster.sbatch(script, "-N4", "--ntasks-per-node=1")
    assert job.code == 0, job.output
    assert_world(logs(folder), 4, [2, 2])


def test_a_job_that_has_shrunk_and_read_its_new_shape(cluster: Cluster) -> None:
    folder = folder_in(cluster.scratch)
    script = (
        "#!/bin/bash\nscontrol update JobId=$SLURM_JOB_ID NumNodes=3\n"
        ". ./slurm_job_${SLURM_JOB_ID}_resize.sh\n"
        f"exec slaunch --log_dir {folder} {WORLD}\n"
    )
    job = cluster.sbatch(script, "-N4", "--ntasks-per-node=1")
    assert job.code == 0, job.output
    assert_world(logs(folder), 3, [1, 1, 1])
