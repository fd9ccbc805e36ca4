"""What is remembered of files, and what a second survey does not read again."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.state.file_cache import open_file_cache
from holdfast.organiser.model import Evidence, Example, Excerpt, ScannedFile, Verdict
from holdfast.organiser.ports import CachedFile
from tests.helpers.messy import Messy

VERDICT = Verdict("Invoices", 0.93, True, "looks like one", Evidence(("a.pdf", "b.pdf"), ("total",), ""), "tfidf:1")


def found(number: int = 1, size: int = 0, mtime_ns: int = 0) -> ScannedFile:
    return ScannedFile(f"/r/{number}.txt", f"{number}.txt", size, mtime_ns, inode=number, device=7)


def test_a_hash_is_found_again_by_device_inode_size_and_time(messy: Messy) -> None:
    one = found(size=10, mtime_ns=20)
    messy.cache.save([CachedFile(one, "h1")])
    others = [one._replace(size=11), one._replace(mtime_ns=21), one._replace(inode=2), one._replace(device=8)]
    assert messy.cache.find_hashes([one, *others]) == ["h1", None, None, None, None]
    assert messy.cache.find_hashes([one._replace(path="/r/moved.txt", ctime_ns=99)]) == ["h1"]
    assert messy.cache.find_hashes([]) == []


def test_numbers_of_64_bits_are_kept(messy: Messy) -> None:
    one = found()._replace(inode=2**64 - 3, device=2**63 + 5)
    messy.cache.save([CachedFile(one, "h1")])
    assert messy.cache.find_hashes([one]) == ["h1"]


@pytest.mark.parametrize("mtime_ns", [15_032_385_535 * 10**9, 2**60 * 10**9, -(2**31) * 10**9])
def test_a_time_far_away_is_kept(messy: Messy, mtime_ns: int) -> None:
    one = found(mtime_ns=mtime_ns)
    messy.cache.save([CachedFile(one, "h1")])
    assert messy.cache.find_hashes([one, one._replace(mtime_ns=mtime_ns + 1)]) == ["h1", None]


def test_excerpts_and_verdicts_come_back_as_they_were(messy: Messy) -> None:
    excerpt = Excerpt("Größe \U0001f600", 2, 100, "application/pdf", "a note")
    messy.cache.save([CachedFile(found(), "h1", excerpt, VERDICT), CachedFile(found(2), "h2")])
    assert messy.cache.load_excerpts(["h1", "h2", "h3"]) == {"h1": excerpt}
    assert messy.cache.load_verdicts(["h1", "h2"], "tfidf:1") == {"h1": VERDICT}


def test_another_decider_has_said_nothing(messy: Messy) -> None:
    messy.cache.save([CachedFile(found(), "h1", None, VERDICT)])
    assert messy.cache.load_verdicts(["h1"], "tfidf:2") == {}


def test_newer_takes_the_place_of_older_and_nothing_leaves_what_is_there(messy: Messy) -> None:
    messy.cache.save([CachedFile(found(), "h1", Excerpt("one"))])
    messy.cache.save([CachedFile(found(), "h1")])
    assert messy.cache.load_excerpts(["h1"])["h1"].text == "one"
    messy.cache.save([CachedFile(found(), "h1", Excerpt("two", 2))])
    assert messy.cache.load_excerpts(["h1"])["h1"] == Excerpt("two", 2)


def test_two_copies_with_the_same_hash_are_both_known(messy: Messy) -> None:
    first = messy.write("a.txt")
    shutil.copy2(first, messy.root / "b.txt")
    assert messy.survey().opened_count == 2
    assert messy.survey().opened_count == 0


def test_the_oldest_go_when_there_are_too_many(messy: Messy) -> None:
    messy.cache.save([CachedFile(found(n), f"h{n}", Excerpt("x"), VERDICT) for n in range(10)])
    assert messy.cache.trim(4) == 6
    assert messy.cache.trim(4) == 0
    assert messy.cache.find_hashes([found(n) for n in (0, 5, 6, 9)]) == [None, None, "h6", "h9"]
    assert sorted(messy.cache.load_verdicts([f"h{n}" for n in range(10)], "tfidf:1")) == ["h6", "h7", "h8", "h9"]


def test_names_that_are_no_unicode_are_remembered(messy: Messy) -> None:
    with open(os.fsencode(messy.root) + b"/caf\xe9.txt", "wb") as file:
        file.write(b"x")
    messy.survey()
    assert messy.survey().opened_count == 0


def test_a_second_survey_opens_no_known_file(messy: Messy) -> None:
    path = messy.write("a.txt", "hello")
    messy.write("b.txt")
    first = messy.survey()
    assert (first.opened_count, first.bytes_read) == (2, 11)
    status = path.stat()
    path.write_text("jello")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.chmod(0)
    second = messy.survey()
    assert (second.opened_count, second.bytes_read) == (0, 0)


def test_a_changed_file_is_looked_at_again_and_a_moved_one_is_not(messy: Messy) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        messy.write(name)
    messy.survey()
    messy.write("a.txt", "other words")
    (messy.root / "Sub").mkdir()
    os.rename(messy.root / "b.txt", messy.root / "Sub" / "renamed.txt")
    assert messy.survey().opened_count == 1


def test_what_a_person_taught_is_kept_for_each_folder(messy: Messy) -> None:
    first, second = Example("h1", "a.txt", "Notes", "text"), Example("h2", "b.txt", "Bills")
    messy.cache.save_corrections("/r", [first, second])
    messy.cache.save_corrections("/other", [Example("h1", "a.txt", "Elsewhere")])
    messy.cache.save_corrections("/r", [Example("h1", "a.txt", "Bills", "text", "text/plain")])
    assert messy.cache.load_corrections("/r") == [Example("h1", "a.txt", "Bills", "text", "text/plain"), second]
    assert messy.cache.load_corrections("/none") == []


def test_what_is_remembered_outlives_the_process(tmp_path: Path) -> None:
    cache = open_file_cache(str(tmp_path))
    cache.save([CachedFile(found(), "h1")])
    cache.close()
    again = open_file_cache(str(tmp_path))
    assert again.find_hashes([found()]) == ["h1"]
    again.close()


def test_many_threads_remember_at_once(messy: Messy) -> None:
    def work(start: int) -> None:
        messy.cache.save([CachedFile(found(n), f"h{n}") for n in range(start, start + 100)])

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 800, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert messy.cache.find_hashes([found(n) for n in range(800)]) == [f"h{n}" for n in range(800)]


def test_a_failed_batch_leaves_nothing(messy: Messy) -> None:
    with pytest.raises(OverflowError):
        messy.cache.save([CachedFile(found(1), "h1"), CachedFile(found(2, size=2**70), "h2")])
    assert messy.cache.find_hashes([found(1)]) == [None]
