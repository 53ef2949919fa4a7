"""A job is not steered by the job it was submitted from."""

from slaunch.submit.env import for_job

SHELL = {"PATH": "/bin", "HOME": "/home/me", "VIRTUAL_ENV": "/venv", "SLURM_CONF": "/etc/slurm.conf", "NCCL_DEBUG": "INFO"}


def test_p35_variables_of_an_outer_job_do_not_reach_sbatch() -> None:
    outer = {
        **{"SLURM_JOB_ID": "7", "SLURM_CPU_BIND": "quiet,mask_cpu:0xF", "SLURM_CPU_BIND_LIST": "0xF", "SLURM_NTASKS": "4"},
        **{"SLURM_MEM_PER_NODE": "100", "SRUN_CPUS_PER_TASK": "2", "SBATCH_CPU_BIND": "none", "SLURMD_NODENAME": "n1"},
        **{"PMI_RANK": "0", "PMIX_RANK": "0", "OMPI_COMM_WORLD_RANK": "0", "RANK": "3", "MASTER_ADDR": "n1"},
        **{"SLAUNCH_MARK": "1.a", "SLAUNCH_RANK": "0", "CUDA_VISIBLE_DEVICES": "2"},
    }
    assert for_job({**SHELL, **outer}) == SHELL


def test_outside_a_job_settings_of_slaunch_and_chosen_devices_hold() -> None:
    own = {"SLAUNCH_LOG_DIR": "/scratch/logs", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert for_job({**SHELL, **own, "SBATCH_PARTITION": "gpu"}) == {**SHELL, **own}
