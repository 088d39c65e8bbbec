"""Word-level diffs: exact, and quick on whatever people paste."""

from hypothesis import given
from hypothesis import strategies as st

from common.diff import word_diff

TEXTS = st.text(alphabet="ab \n.", max_size=200)


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_out_of_a_diff(old: str, new: str) -> None:
    parts = word_diff(old, new)
    assert "".join(part.text for part in parts if part.kind != "added") == old
    assert "".join(part.text for part in parts if part.kind != "removed") == new
    assert all(part.text for part in parts)


def test_a_changed_word_is_shown_alone() -> None:
    parts = word_diff("One line.\nIt was kind to me.\n", "One line.\nIt was rude to me.\n")
    assert [(part.kind, part.text) for part in parts] == [
        ("same", "One line.\nIt was "),
        ("removed", "kind"),
        ("added", "rude"),
        ("same", " to me.\n"),
    ]


def test_the_same_text_has_no_difference() -> None:
    assert [part.kind for part in word_diff("Same.\n", "Same.\n")] == ["same"]
    assert word_diff("", "") == ()
