"""A text and its lines."""

from tocsin.causes.text import parse_text


def test_lines_are_found_by_number_and_by_position() -> None:
    text = parse_text("One\nTwo\r3\n")
    assert [text.line(number) for number in range(3)] == ["one", "two", ""]
    assert text.line_of(text.lower.index("two")) == 1
    assert text.start_of(9) == len(text.lower)


def test_colours_are_left_out_and_evidence_keeps_its_case() -> None:
    text = parse_text("\x1b[31mOut Of Memory\x1b[0m\n")
    assert text.evidence(*text.part(0)) == "Out Of Memory"


def test_last_lines_skip_stacks_banners_and_empty_lines() -> None:
    text = parse_text("start\n  at x\n\n------\nend\n")
    assert text.last_lines(2) == [0, 4]
    assert text.last_lines(1) == [4]


def test_occurrences_come_from_the_end() -> None:
    text = parse_text("a b a b a")
    assert list(text.occurrences("a")) == [8, 4, 0]
    assert list(text.occurrences("a", 4)) == [8, 4]
