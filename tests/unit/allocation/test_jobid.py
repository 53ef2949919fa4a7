"""Job ids."""

import pytest
from support.recorded import vectors

from slaunch.allocation.jobid import flux_job, listed, lsf_job, pbs_job, slurm_job, submitted
from slaunch.errors import AllocationError

CASES = vectors("job_ids")


@pytest.mark.parametrize("case", CASES[:-1], ids=lambda case: case["in"])
def test_ids_as_squeue_prints_them(case):
    assert [list(job) for job in listed(case["in"])] == case["out"]


def test_sbatchs_answer():
    case = CASES[-1]
    assert submitted(case["in"]) == case["out"]
    assert submitted("5610208;cluster\n") == "5610208"


@pytest.mark.parametrize("text", ["", "sbatch: error: invalid partition", "12;id more"])
def test_no_id_in_sbatchs_answer(text):
    with pytest.raises(AllocationError):
        submitted(text)


@pytest.mark.parametrize("text", ["", "x", "12_[", "12_[a]", "12;id", "$(id)"])
def test_no_job_id(text):
    with pytest.raises(AllocationError):
        listed(text)


@pytest.mark.parametrize("value", ["12;id", "$(id)", "12 13", "12\n", "../1", "١٢"])
def test_an_id_with_anything_but_digits_is_refused_before_a_command_is_built(value):
    with pytest.raises(AllocationError, match="SLURM_JOB_ID"):
        slurm_job({"SLURM_JOB_ID": value})
    with pytest.raises(AllocationError):
        pbs_job({"PBS_JOBID": value.replace("12\n", "12;x")})


def test_old_spelling_is_read_the_new_one_first():
    assert slurm_job({"SLURM_JOBID": "88888"}) == "88888"
    assert slurm_job({"SLURM_JOBID": "88888", "SLURM_JOB_ID": "5"}) == "5"
    assert slurm_job({}) == ""


def test_p84_a_task_of_an_array_is_named_by_array_and_index():
    env = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_JOB_ID": "41", "SLURM_JOB_ID": "48"}
    assert slurm_job(env) == "41_7"


def test_p11_the_leaders_id_names_a_heterogeneous_job():
    assert slurm_job({"SLURM_JOB_ID": "11741", "SLURM_JOB_ID_HET_GROUP_1": "11742"}) == "11741"


def test_ids_of_other_schedulers():
    assert pbs_job({"PBS_JOBID": "123[4].pbs-01.example.org"}) == "123[4].pbs-01.example.org"
    assert lsf_job({"LSB_JOBID": "5", "LSB_JOBINDEX": "0"}) == "5"
    assert lsf_job({"LSB_JOBID": "5", "LSB_JOBINDEX": "12"}) == "5[12]"
    assert flux_job({"FLUX_JOB_ID": "ƒ2WAB3zqH"}) == "ƒ2WAB3zqH"
    with pytest.raises(AllocationError):
        flux_job({"FLUX_JOB_ID": "../x"})
