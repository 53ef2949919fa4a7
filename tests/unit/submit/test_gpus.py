"""GPUs are asked for in the form that the site takes. The answers of sinfo and scontrol have the shape of the real ones."""

import pytest

from slaunch.errors import DeviceError, UsageError
from slaunch.submit.gpus import Offer, Site, gpu_option, hint, read_site

TRES = "Configuration data as of now\nSelectType              = select/cons_tres\nSelectTypeParameters    = CR_CORE\n"
RES = TRES.replace("cons_tres", "cons_res")
PLAIN = "main*|gpu:4\nurgent|gpu:4\nfat|(null)\n"
TYPED = "cpu*|(null)\ngpu|gpu:a100:4(S:0-1),nvme:1\ngpu|gpu:h100:8(S:0,1)\nold|gpu:v100:2\n"


def test_the_answers_of_slurm_are_read() -> None:
    site = read_site(TRES, TYPED)
    assert site.select == "select/cons_tres"
    assert site.offers == (Offer("gpu", False, "a100", 4), Offer("gpu", False, "h100", 8), Offer("old", False, "v100", 2))
    assert read_site("", PLAIN).offers == (Offer("main", True, "", 4), Offer("urgent", False, "", 4))


@pytest.mark.parametrize(
    ("config", "nodes", "wanted", "partition", "form", "kind", "option"),
    [
        (TRES, PLAIN, "4", "", "auto", "", ("gpus-per-node", "4")),
        (RES, PLAIN, "4", "", "auto", "", ("gres", "gpu:4")),
        (TRES, PLAIN, "2", "urgent", "gres", "", ("gres", "gpu:2")),
        (TRES, TYPED, "a100:4", "gpu", "auto", "", ("gpus-per-node", "a100:4")),
        (RES, TYPED, "4", "gpu", "auto", "a100", ("gres", "gpu:a100:4")),
        (TRES, TYPED, "h100:8", "old,gpu", "auto", "a100", ("gpus-per-node", "h100:8")),
        ("", "", "8", "gpu", "auto", "", ("gpus-per-node", "8")),
    ],
)
def test_the_form_is_the_sites(
    config: str, nodes: str, wanted: str, partition: str, form: str, kind: str, option: tuple[str, str]
) -> None:
    assert gpu_option(wanted, partition, read_site(config, nodes), form, kind) == option


@pytest.mark.parametrize(
    ("nodes", "wanted", "partition", "seen", "todo"),
    [
        (PLAIN, "8", "", "nodes of the default partition have 4 GPUs", "fewer"),
        (PLAIN, "1", "fat", "nodes of partition fat have none", "choose a partition: main, urgent"),
        (PLAIN, "a100:1", "", "have 4 GPUs", "sinfo"),
        (TYPED, "v100:1", "gpu", "4 of type a100, 8 of type h100", "choose a partition: old"),
        (TYPED, "a100:8", "gpu", "4 of type a100, 8 of type h100", "fewer"),
        (TYPED, "1", "", "nodes of the default partition have none", "choose a partition: gpu, old"),
    ],
)
def test_what_no_node_has_is_refused_before_it_waits_in_the_queue(
    nodes: str, wanted: str, partition: str, seen: str, todo: str
) -> None:
    with pytest.raises(DeviceError) as caught:
        gpu_option(wanted, partition, read_site(TRES, nodes))
    assert seen in caught.value.seen
    assert todo in caught.value.todo


@pytest.mark.parametrize("wanted", ["all", "a100", "4:a100", "", "-1"])
def test_what_is_no_number_of_gpus_is_refused(wanted: str) -> None:
    with pytest.raises(UsageError):
        gpu_option(wanted, "", Site("", ()))


def test_types_are_told_where_several_would_do() -> None:
    assert "--gpus-per-node=a100:2 would choose one" in hint("2", "gpu", read_site(TRES, TYPED))
    assert hint("a100:2", "gpu", read_site(TRES, TYPED)) == hint("2", "", read_site(TRES, PLAIN)) == ""
