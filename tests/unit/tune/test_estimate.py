"""Estimation of many replicas from one."""

import pytest
from support.studies import DEGREES, ONE_NODE, make, setting

from slaunch.tune.rules.history import PARTNERS
from slaunch.tune.space.candidates import estimated
from slaunch.tune.space.estimate import convert, gains, make_estimation, nodes_for, partner, ranking_column
from slaunch.tune.values import Cluster, Conversion

ALGORITHM = {"name": "dp_estimation", "estimated_num_gpus": 32}


@pytest.mark.parametrize(
    ("cards", "cluster", "nodes"),
    [
        (1, ONE_NODE, 1),
        (8, ONE_NODE, 1),
        (16, ONE_NODE, 0),
        (16, Cluster(2, 8), 2),
        (12, Cluster(4, 8), 2),
        (12, Cluster(4, 5), 3),
        (7, Cluster(4, 4), 0),
    ],
)
def test_f275_w29_the_fewest_nodes_that_have_so_many_devices_evenly(cards: int, cluster: Cluster, nodes: int) -> None:
    assert nodes_for(cards, cluster) == nodes


def test_the_large_cluster() -> None:
    assert estimated(make(search_algo=ALGORITHM), ONE_NODE) == Cluster(4, 8)
    assert estimated(make(), ONE_NODE) == ONE_NODE


def test_f188_f276_one_replica_of_each_setting() -> None:
    study = make(**DEGREES, search_algo=ALGORITHM, model={"global_batch_size": 64})
    space = make_estimation(study, ONE_NODE)
    for each in space.settings:
        assert (each["dp_degree"], each["sharding_degree"], each["sharding_stage"], each["nodes"]) == (1, 1, 1, 1)
        replicas = each["estimated_dp_degree"]
        assert isinstance(replicas, int)
        assert each["num_gpus"] == 32 // replicas <= 8
        assert each["global_batch_size"] == 64 // replicas
    assert {each.rule for each in space.dropped} >= {"nodes"}
    assert len({tuple(each.items()) for each in space.settings}) == len(space.settings)


def test_f277_pairs_without_and_with_overlap_come_last() -> None:
    overlap = {"sharding_mp": ["--overlap", "1"]}
    study = make(**DEGREES, search_algo={**ALGORITHM, "sharding_overlap": overlap}, model={"global_batch_size": 64})
    found = make_estimation(study, ONE_NODE).settings
    pairs = [each for each in found if "sharding_overlap" in each]
    assert pairs == list(found[-len(pairs) :])
    assert [each["sharding_overlap"] for each in pairs] == [False, True] * (len(pairs) // 2)
    for each in pairs:
        assert each["num_gpus"] == 8
        assert each["estimated_dp_degree"] is None
    plain = next(each for each in found if each["num_gpus"] == 2)
    spread = next(each for each in pairs if each["mp_degree"] == plain["mp_degree"] and each["pp_degree"] == plain["pp_degree"])
    assert spread["sharding_degree"] == 4
    assert spread["global_batch_size"] == 4 * plain["global_batch_size"]  # type: ignore[operator]


def test_f192_f278_f279_estimates() -> None:
    conversion = Conversion("interval", (100, 200), 10, amp=True, need_unify=True)
    found = convert(conversion, "ips", 1000.0, 0.4, 4)
    assert found == {
        "unified_ips": 250.0,
        "bw_100_ips": 400.0,  # gradients take 10 * 6 / 100 = 0.6 s beside 0.4 s
        "unified_bw_100_ips": 100.0,
        "bw_200_ips": 571.42857,
        "unified_bw_200_ips": 142.86,
    }
    assert convert(Conversion("interval"), "ips", 1000.0, 0.28, 4) == {"bw_100_ips": 500.0}
    assert convert(conversion, "ips", None, 0.4, 4)["bw_100_ips"] is None
    assert convert(conversion, "ips", 1000.0, None, 4)["unified_bw_200_ips"] is None
    assert ranking_column(conversion, "ips") == "unified_bw_100_ips"
    assert ranking_column(Conversion("interval"), "ips") == "bw_100_ips"


def test_f280_the_gain_of_overlap() -> None:
    assert gains(Conversion("interval"), "ips", {"bw_100_ips": 500.0}, 1000.0, 1200.0) == {"overlap_bw_100_ips": 600.0}
    assert gains(Conversion("interval"), "ips", {}, 1000.0, 1200.0) == {"overlap_bw_100_ips": None}


def test_f280_partners() -> None:
    settings = [
        setting(mp_degree=2),
        setting(mp_degree=2, sharding_degree=2, sharding_overlap=False),
        setting(mp_degree=2, sharding_degree=2, sharding_overlap=True),
    ]
    names = (*PARTNERS, "sharding_degree")
    assert partner(settings[2], settings, names, overlap=False) == 1
    assert partner(settings[2], settings, PARTNERS, overlap=None) == 0
    assert partner(setting(mp_degree=4), settings, PARTNERS, overlap=None) == -1
