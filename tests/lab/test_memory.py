"""Freed memory stays with a process: the next tensor of the same size costs no new pages."""

import subprocess
import sys
import textwrap

import pytest


def count_page_faults(prepare: str) -> int:
    """Pages that the system had to provide for thirty tensors of 40 MB, one after the other."""
    code = f"""
        import resource, torch
        {prepare}
        for _ in range(30):  # the heap grows until every gap is large enough
            torch.ones(10_000_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(30):
            torch.ones(10_000_000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    return int(ran.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems manage memory in their own way")
def test_tensors_of_the_same_size_need_no_new_pages():
    kept = count_page_faults("from arml.lab.memory import keep_freed_memory; assert keep_freed_memory()")
    assert kept < count_page_faults("") / 20


def test_other_systems_are_left_alone(monkeypatch):
    from arml.lab.memory import keep_freed_memory

    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False
