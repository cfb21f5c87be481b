"""Memory that is freed and asked for again costs no new pages."""

import os
import platform
import subprocess
import sys

import pytest

# Pages that the system hands out while four tensors of 24 MB, 6,144 pages each, are made and freed twenty times.
_FAULTS = """
import resource, torch
from calida.allocator import keep_freed_memory
{first}
def turn():
    [torch.ones(6 << 20) for _ in range(4)]
for _ in range(3):  # until small blocks have found their places between large ones
    turn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    turn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


# Every large block goes back when it is freed, whatever the process did before: glibc's own rule depends on that.
_FREEING = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def faults(first):
    words = [sys.executable, "-c", _FAULTS.format(first=first)]
    done = subprocess.run(words, env={**os.environ, **_FREEING}, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library frees in its own way")
def test_freed_memory_is_used_again():
    kept = faults("assert keep_freed_memory()")
    assert kept < 2 * 4 * 6144  # two turns', at the most
    assert faults("") > 5 * kept  # what it is there for
