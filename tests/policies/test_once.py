from dataclasses import dataclass, field

from policies.once import Once


@dataclass(frozen=True)
class Word:
    text: str
    asked: list[str] = field(default_factory=list)

    @Once
    def length(self) -> int:
        """How long it is."""
        self.asked.append(self.text)
        return len(self.text)

    @Once
    def nothing(self) -> None:
        self.asked.append("nothing")


def test_it_is_worked_out_when_it_is_asked_for_and_once() -> None:
    word = Word("clique")
    assert word.asked == []
    assert [word.length, word.length] == [6, 6]
    assert word.asked == ["clique"]


def test_that_there_is_nothing_is_kept_too() -> None:
    word = Word("clique")
    assert [word.nothing, word.nothing] == [None, None]
    assert word.asked == ["nothing"]


def test_each_object_has_its_own() -> None:
    one, other = Word("set"), Word("group")
    assert [one.length, other.length, one.length] == [3, 5, 3]


def test_of_the_class_it_is_what_makes_it() -> None:
    assert isinstance(Word.length, Once)
    assert Word.length.__doc__ == "How long it is."
