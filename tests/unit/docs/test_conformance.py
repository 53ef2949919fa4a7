"""The conformance table agrees with the tests there are."""

import pytest
from tools import conformance
from tools.conformance import Entry


def test_page_reasons_and_tests_agree() -> None:
    assert conformance.main(["--check"]) == 0


ALL = [Entry(f"{kind}{n}", "title", "reason") for kind, last in conformance.LAST.items() for n in range(1, last + 1)]


@pytest.mark.parametrize(
    ("listed", "tested", "said"),
    [
        (ALL, {}, []),
        (ALL[1:], {}, ["F1: listed 0 times"]),
        ([*ALL, ALL[0]], {}, ["F1: listed 2 times"]),
        (ALL, {"P105": ["a::test_p105"]}, ["P105: no such entry, but tested by a::test_p105"]),
        ([Entry("F1", "entry", ""), *ALL[1:]], {}, ["F1 (entry): neither a test nor a reason"]),
        ([Entry("F1", "entry", ""), *ALL[1:]], {"F1": ["a::test_f1"]}, []),
        (
            [Entry("F1", "entry", "later: x"), *ALL[1:]],
            {"F1": ["a::test_f1"]},
            ["F1 (entry): 'later: x', but tested by a::test_f1"],
        ),
    ],
)
def test_disagreements_are_named(listed: list[Entry], tested: dict[str, list[str]], said: list[str]) -> None:
    assert conformance.problems(listed, tested) == said


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("def test_f14_f15_workers() -> None:", ["F14", "F15"]),
        ("    def test_p06(self):", ["P6"]),
        ("async def test_w3_p74_code():", ["W3", "P74"]),
        ("def test_f73_f75_to_f78_paddle():", ["F73", "F75", "F76", "F77", "F78"]),
        ("def test_form():", None),
        ("def test_the_f9_option():", None),
    ],
)
def test_numbers_are_read_from_test_names(line: str, found: list[str] | None) -> None:
    match = conformance.NAME.match(line)
    assert (conformance.numbers(match[2]) if match else None) == found


def test_reasons_are_read_with_their_titles() -> None:
    assert conformance.entries("# note\nF1 | a title |\nP2 | other | a reason\n") == [
        Entry("F1", "a title", ""),
        Entry("P2", "other", "a reason"),
    ]
