"""What was found once is not looked for again, and a file that cannot be trusted says nothing."""

import pytest

from calida.encoders import Remembered


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIDA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Search:
    """Finds another number each time."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return float(self.times)


NUMBERS = Remembered[float]("numbers.json", lambda value: isinstance(value, float))


def test_each_circumstance_is_looked_at_once(cache):
    search = Search()
    assert [NUMBERS.get((name, 3), search) for name in "abab"] == [1.0, 2.0, 1.0, 2.0]
    assert NUMBERS.get(("a", 4), search) == 3.0
    assert [path.name for path in cache.iterdir()] == ["numbers.json"]


@pytest.mark.parametrize("damaged", ["", "[]", '{"a": "one"}', "[" * 100_000, "\0"])
def test_a_damaged_file_says_nothing(cache, damaged):
    search = Search()
    NUMBERS.get("a", search)
    (cache / "numbers.json").write_text(damaged)
    assert [NUMBERS.get("a", search) for _ in range(2)] == [2.0, 2.0]


def test_where_nothing_can_be_kept_it_is_found_again(cache):
    cache.write_text("a file where the folder should be")
    search = Search()
    assert [NUMBERS.get("a", search) for _ in range(2)] == [1.0, 2.0]
