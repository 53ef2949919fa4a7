"""Which processes serve the others, and where these others are."""

import os
import sys

import pytest
from support import plans

from slaunch.plan.prelude import crew, lone
from slaunch.plan.services import PROGRAM, clients_of


def specs(made, node=0, **chosen):
    return crew(made, node, {}, plans.options(**chosen))


def test_a_job_without_services_has_no_clients():
    assert clients_of(plans.plan(plans.two_by_two())) == frozenset()


def test_nodes_with_servers_only_are_no_clients():
    ends = {"servers": ("10.0.0.2:1",), "trainers": ("10.0.0.1:2",)}
    made = plans.plan([plans.facts(0, workers=1), plans.facts(1, workers=1)], mode="ps", **ends)
    assert clients_of(made) == {0}


def test_tensorflow_s_workers_end_with_the_chief():
    chosen = {"mode": "ps", "trainer_num": 2, "server_num": 1, "contracts": ("tensorflow",)}
    made = plans.plan([plans.facts(index, workers=3) for index in range(2)], **chosen)
    assert [(spec.rank, spec.service) for spec in specs(made, 0, **chosen)] == [(1, True), (2, True), (0, False)]
    assert [(spec.rank, spec.service) for spec in specs(made, 1, **chosen)] == [(3, True), (4, True), (5, True)]
    assert clients_of(made) == {0}


def test_paddle_s_trainers_all_train():
    chosen = {"mode": "ps", "trainer_num": 2, "server_num": 1}
    made = plans.plan([plans.facts(index, workers=3) for index in range(2)], **chosen)
    assert clients_of(made) == {0, 1}


def test_horovod_s_store_starts_first_on_the_first_node_only():
    chosen = {"contracts": ("horovod",)}
    made = plans.plan(plans.two_by_two(), **chosen)
    store, *workers = specs(made, 0, **chosen)
    assert store.argv == (sys.executable, "-I", "-S", PROGRAM, "10.0.0.1", "20005", "4")
    assert os.path.exists(PROGRAM)
    assert (store.rank, store.role, store.service, store.log_name) == (6, "gloo-store", True, "gloo-store.log")
    env = workers[0].set_env
    assert (env["HOROVOD_GLOO_RENDEZVOUS_ADDR"], env["HOROVOD_GLOO_RENDEZVOUS_PORT"]) == store.argv[-3:-1]
    assert [spec.rank for spec in workers] == [0, 1]
    assert [spec.rank for spec in specs(made, 1, **chosen)] == [2, 3]
    assert clients_of(made) == {0, 1}


@pytest.mark.parametrize(("tuning", "roles"), [("first", ["worker", "gloo-store", "worker", "worker"]), ("only", ["worker"])])
def test_the_store_waits_for_the_tuning_step(tuning, roles):
    chosen = {"contracts": ("paddle", "horovod"), "auto_parallel_config": "/t.json", "tuning": tuning}
    made = plans.plan([plans.facts(0)], **chosen)
    found = specs(made, **chosen)
    assert [spec.role for spec in found] == roles
    assert len({spec.rank for spec in found}) == len(found)


def test_tasks_that_meet_by_mpi_have_no_store():
    chosen = {"contracts": ("horovod",)}
    made = plans.plan(plans.tasks([0, 0]), **chosen)
    assert clients_of(made) == frozenset()
    assert lone(made, 0, {}, plans.options(**chosen)).set_env["HOROVOD_CONTROLLER"] == "mpi"
