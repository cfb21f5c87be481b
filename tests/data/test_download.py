import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from loopback import Loopback, Served

from calida.data.named.download import Patience, Remote, download
from calida.errors import CalidaError, DownloadError, InputError
from calida.files import locked

CONTENT = random.Random(0).randbytes(1_000_000)
SHA = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
QUICK = Patience(attempts=3, pause=0.001, timeout=5)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def web():
    with Loopback({"file.bin": CONTENT}) as server:
        yield server


def fetch(remote, folder, patience=QUICK):
    return download(remote, folder, lambda done, total: None, patience)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def failure(remote, folder, patience=QUICK):
    """The one sentence of the error."""
    with pytest.raises(DownloadError) as caught:
        fetch(remote, folder, patience)
    assert isinstance(caught.value, CalidaError)
    assert isinstance(caught.value, OSError)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("digest", [SHA, "md5:" + hashlib.md5(CONTENT).hexdigest().upper(), ""])
def test_a_whole_file(web, tmp_path, digest):
    heard = []
    remote = Remote(web.url("file.bin"), digest, len(CONTENT))
    path = download(remote, tmp_path / "new" / "folder", lambda *news: heard.append(news))
    assert path == tmp_path / "new" / "folder" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["file.bin"]
    assert heard[0] == (0, len(CONTENT))
    assert heard[-1] == (len(CONTENT), len(CONTENT))
    assert heard == sorted(heard)


def test_an_empty_file(web, tmp_path):
    web.files["none"] = b""
    assert fetch(Remote(web.url("none"), size=0), tmp_path).read_bytes() == b""


def test_the_second_time_nothing_is_asked_for(web, tmp_path):
    remote = Remote(web.url("file.bin"), SHA)
    fetch(remote, tmp_path)
    fetch(remote, tmp_path)
    assert len(web.log) == 1
    (tmp_path / "file.bin").write_bytes(CONTENT[:-1])  # no longer what it should be
    assert fetch(remote, tmp_path).read_bytes() == CONTENT
    assert len(web.log) == 2


def test_cut_off_and_taken_up_where_it_was(web, tmp_path):
    web.cuts = [300_000, 200_000]
    assert fetch(Remote(web.url("file.bin"), SHA), tmp_path).read_bytes() == CONTENT
    assert web.log == [
        Served("file.bin", None, 300_000),
        Served("file.bin", "bytes=300000-", 200_000),
        Served("file.bin", "bytes=500000-", 500_000),
    ]
    assert names(tmp_path) == ["file.bin"]


def test_cut_off_too_often_and_resumed_by_the_next_call(web, tmp_path):
    web.cuts = [100_000] * QUICK.attempts
    remote = Remote(web.url("file.bin"), SHA)
    message = failure(remote, tmp_path)
    assert remote.url in message
    assert "broke off after 300000 of 1000000 bytes" in message
    assert "300000 bytes received so far are kept" in message
    assert names(tmp_path) == ["file.bin.part"]
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:300_000]
    web.log.clear()
    assert fetch(remote, tmp_path).read_bytes() == CONTENT
    assert web.log == [Served("file.bin", "bytes=300000-", 700_000)]


def test_a_connection_closed_without_an_answer_is_tried_again(web, tmp_path):
    web.cuts = [-1, 0]
    assert fetch(Remote(web.url("file.bin"), SHA), tmp_path).read_bytes() == CONTENT
    assert [served.sent for served in web.log] == [0, 0, len(CONTENT)]


def test_pauses_double(web, tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    web.cuts = [1] * 4
    failure(Remote(web.url("file.bin"), SHA), tmp_path, Patience(attempts=4, pause=1))
    assert pauses == [1, 2, 4]


def test_a_server_without_ranges_sends_it_all_again(web, tmp_path):
    web.knows_ranges = False
    web.cuts = [400_000]
    assert fetch(Remote(web.url("file.bin"), SHA), tmp_path).read_bytes() == CONTENT
    assert [served.sent for served in web.log] == [400_000, 1_000_000]


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)], ids=len)
def test_a_wrong_part_file_is_started_over(web, tmp_path, left):
    (tmp_path / "file.bin.part").write_bytes(left)
    assert fetch(Remote(web.url("file.bin"), SHA), tmp_path).read_bytes() == CONTENT
    assert web.log[-1] == Served("file.bin", None, len(CONTENT))
    assert len(web.log) == 2


@pytest.mark.parametrize("digest", [SHA, ""])
def test_a_whole_part_file_needs_no_more_than_a_question(web, tmp_path, digest):
    """The process before was killed between the last byte and the renaming."""
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert fetch(Remote(web.url("file.bin"), digest), tmp_path).read_bytes() == CONTENT
    assert [served.sent for served in web.log] == [0]


@pytest.mark.parametrize("left", [0, 1000])
def test_a_wrong_checksum_leaves_nothing(web, tmp_path, left):
    web.files["file.bin"] = CONTENT[:-1] + b"?"
    if left:
        (tmp_path / "file.bin.part").write_bytes(CONTENT[:left])
    remote = Remote(web.url("file.bin"), SHA)
    message = failure(remote, tmp_path)
    assert remote.url in message
    assert f"where {SHA.removeprefix('sha256:')} was expected" in message
    assert "removed" in message
    assert names(tmp_path) == []
    assert len(web.log) == 1 + bool(left)  # started over once, if there was something to start over from


def test_a_wrong_size_is_seen_before_it_is_received(web, tmp_path):
    message = failure(Remote(web.url("file.bin"), size=5), tmp_path)
    assert "has 1000000 bytes where 5 were expected" in message
    assert names(tmp_path) == []


def test_not_found(web, tmp_path):
    message = failure(Remote(web.url("other.bin"), SHA), tmp_path)
    assert web.url("other.bin") in message
    assert "404" in message
    assert f"put the file into {tmp_path}" in message
    assert len(web.log) == 1  # no second try: it will not appear in a moment
    assert names(tmp_path) == []


def test_refused(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/file.bin"
    message = failure(Remote(url, SHA), tmp_path)
    assert url in message
    assert "refused" in message


def test_a_host_that_has_no_address(tmp_path, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert "cannot be resolved" in failure(Remote("http://nowhere.example/file.bin", SHA), tmp_path)


def test_silence_is_not_waited_for(web, tmp_path):
    web.stall_after = 100_000
    message = failure(Remote(web.url("file.bin"), SHA), tmp_path, Patience(attempts=1, timeout=0.3))
    assert "no answer within 0.3 seconds" in message
    received = (tmp_path / "file.bin.part").read_bytes()
    assert received == CONTENT[: len(received)]
    assert f"the {len(received)} bytes received so far are kept" in message


def test_other_addresses(web, tmp_path):
    remote = Remote(web.url("gone/file.bin"), SHA, mirrors=(web.url("file.bin"),))
    assert fetch(remote, tmp_path).read_bytes() == CONTENT
    (tmp_path / "file.bin").unlink()
    web.files["wrong/file.bin"] = b"a page that asks for a password"
    remote = Remote(web.url("gone/file.bin"), SHA, mirrors=(web.url("wrong/file.bin"),))
    message = failure(remote, tmp_path)
    for part in (remote.url, "404", remote.mirrors[0], "checksum"):
        assert part in message
    assert names(tmp_path) == []


def test_another_address_goes_on_from_what_the_first_gave(web, tmp_path):
    web.files["slow/file.bin"] = CONTENT
    web.cuts = [1000] * QUICK.attempts
    remote = Remote(web.url("slow/file.bin"), SHA, mirrors=(web.url("file.bin"),))
    assert fetch(remote, tmp_path).read_bytes() == CONTENT
    assert web.log[-1] == Served("file.bin", "bytes=3000-", len(CONTENT) - 3000)


def test_a_folder_that_cannot_be_written(web, tmp_path):
    (tmp_path / "taken").write_text("not a folder")
    message = failure(Remote(web.url("file.bin"), SHA), tmp_path / "taken")
    assert web.url("file.bin") in message
    assert "choose another folder" in message


def test_a_full_disk(web, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device; free some space" in failure(Remote(web.url("file.bin"), SHA), tmp_path)
    assert names(tmp_path) == ["file.bin.part"]


def test_addresses_and_checksums_that_are_none(tmp_path):
    assert "only http" in failure(Remote("file:///etc/hostname"), tmp_path)
    assert "names no file" in failure(Remote("http://127.0.0.1/"), tmp_path)
    with pytest.raises(InputError, match="'crc:12' is no checksum"):
        Remote("http://127.0.0.1/file", "crc:12")


def test_two_at_once(web, tmp_path):
    """The second is told so; the first is not disturbed."""
    web.stall_after = 400_000
    remote = Remote(web.url("file.bin"), SHA)
    first = threading.Thread(target=fetch, args=(remote, tmp_path))
    first.start()
    wait_for(tmp_path / "file.bin.part", 300_000)
    assert "another process is downloading" in failure(remote, tmp_path)
    web.awake.set()
    first.join(10)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == ["file.bin"]
    assert len(web.log) == 1


def test_a_lock_is_free_again_after_use(tmp_path):
    for _ in range(2):
        with locked(tmp_path / "lock"):
            with pytest.raises(BlockingIOError), locked(tmp_path / "lock"):
                pass
            assert (tmp_path / "lock").exists()  # whoever did not get it has not removed it
    assert names(tmp_path) == []


def wait_for(path, size):
    for _ in range(2000):
        if path.exists() and path.stat().st_size >= size:
            return
        time.sleep(0.005)
    raise AssertionError(f"{path} never had {size} bytes")


CHILD = """
import sys
from pathlib import Path
from calida.data.named.download import Remote, download
download(Remote(sys.argv[1], sys.argv[2]), Path(sys.argv[3]), lambda done, total: None)
"""


def test_a_killed_process_leaves_no_file_and_the_next_call_completes_it(web, tmp_path):
    web.stall_after = 600_000
    remote = Remote(web.url("file.bin"), SHA)
    child = subprocess.Popen([sys.executable, "-c", CHILD, remote.url, SHA, str(tmp_path)])
    wait_for(tmp_path / "file.bin.part", 500_000)
    child.send_signal(signal.SIGKILL)
    assert child.wait(10) == -signal.SIGKILL
    assert not (tmp_path / "file.bin").exists()
    received = (tmp_path / "file.bin.part").read_bytes()
    assert received == CONTENT[: len(received)]
    web.awake.set()
    assert fetch(remote, tmp_path).read_bytes() == CONTENT
    assert web.log[-1] == Served("file.bin", f"bytes={len(received)}-", len(CONTENT) - len(received))
    assert names(tmp_path) == ["file.bin"]
