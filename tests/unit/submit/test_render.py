"""From templates to scripts."""

import pytest
from tools import render_templates

from slaunch.errors import UsageError
from slaunch.submit.gpus import Site
from slaunch.submit.render import render
from slaunch.submit.script import script_of
from slaunch.submit.values import Request
from slaunch.templates import names


def test_the_golden_files_are_up_to_date() -> None:
    assert render_templates.main(["--check"]) == 0, "python tests/tools/render_templates.py makes them anew"


@pytest.mark.parametrize("name", names())
def test_p79_no_shell_stays_between_slurm_and_slaunch(name: str) -> None:
    lines = render_templates.rendered(name).replace("\\\n", "").splitlines()
    assert "exec " in (lines[-1] if lines[-1] != "esac" else lines[-5])
    assert not any("trap " in line or line.rstrip().endswith("&") for line in lines)


@pytest.mark.parametrize("name", names())
def test_p77_all_directives_come_before_the_first_command(name: str) -> None:
    lines = render_templates.rendered(name).splitlines()
    commands = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    assert max(number for number, line in enumerate(lines) if line.startswith("#SBATCH")) < commands[0]
    assert "{{" not in "\n".join(lines)


def test_lines_with_the_mark_are_comments_until_they_are_filled_in() -> None:
    text = "#!/bin/bash\n#SBATCH --time=5\n#: {{ directives }}\n#: {% if deep %}\n#: deep\n#: {% endif %}\nexec true\n"
    assert render(text, "t", {"directives": "#SBATCH --time=9", "deep": ""}) == "#!/bin/bash\n#SBATCH --time=9\nexec true\n"


def test_an_option_is_overridden_in_its_own_component_only() -> None:
    text = "#SBATCH --nodes=1\n#SBATCH --requeue\n#SBATCH hetjob\n#SBATCH --nodes=2\n#SBATCH --nodes=3\n"
    assert render(text, "t", {}) == "#SBATCH --nodes=1\n#SBATCH --requeue\n#SBATCH hetjob\n#SBATCH --nodes=3\n"


@pytest.mark.parametrize(
    ("text", "seen"), [("image={{ image }}\n", "'image' is undefined"), ("a\n{% if %}\n", "line 2: Expected an expression")]
)
def test_a_template_that_cannot_be_filled_in_is_an_error(text: str, seen: str) -> None:
    with pytest.raises(UsageError) as caught:
        render(text, "mine", {})
    assert seen in caught.value.seen
    assert "mine" in caught.value.wanted


def test_words_reach_the_program_as_they_are() -> None:
    words = ("train.py", "--note", "two words", "$HOME", "it's", "*", "{{ x }}", "")
    made = script_of(Request(({"nodes": "1"},), "collective", words), lambda: Site("", ()), ("slaunch",), "/opt/my tools")
    assert "set -- train.py --note 'two words' '$HOME' 'it'\"'\"'s' '*' '{{ x }}' ''\n" in made
    assert "export PATH='/opt/my tools':$PATH\n" in made


def test_gpus_join_other_generic_resources() -> None:
    request = Request(({"gres": "nvme:1", "gpus-per-node": "2"},), "collective", ("a",), gpu_form="gres")
    assert "#SBATCH --gres=nvme:1,gpu:2\n" in script_of(request, lambda: Site("", ()), (), "/bin")


def test_further_components_have_one_task_on_each_node_too() -> None:
    request = Request(({"nodes": "1"}, {"nodes": "2"}), "collective", ("a",))
    made = script_of(request, lambda: Site("", ()), (), "/bin")
    assert "#SBATCH hetjob\n#SBATCH --ntasks-per-node=1\n#SBATCH --nodes=2\n" in made


def test_a_template_of_two_components_needs_two() -> None:
    with pytest.raises(UsageError) as caught:
        script_of(Request(({"nodes": "1"},), "ps-heter", ("a",)), lambda: Site("", ()), (), "/bin")
    assert "colon" in caught.value.todo
