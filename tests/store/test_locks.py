"""Locks of a store: one holder at a time, and none is left behind by a process that was killed."""

import subprocess
import sys

from tocsin.store.database import Store, open_store
from tocsin.store.locks import locked

HOLD = """
import sys, time
from tocsin.store.database import open_store
from tocsin.store.locks import locked
with open_store(sys.argv[1]) as store, locked(store, "watch-lab") as held:
    print(held, flush=True)
    time.sleep(600)
"""


def test_a_lock_has_one_holder_and_is_free_when_that_one_is_killed(store: Store, url: str) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, url], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with locked(store, "watch-lab") as mine, locked(store, "watch-other") as other:
            assert (mine, other) == (False, True)
    finally:
        holder.kill()
        holder.communicate()
    with locked(store, "watch-lab", wait=True) as mine:
        assert mine


def test_a_lock_ends_with_its_block(url: str) -> None:
    with open_store(url) as one, open_store(url) as two:
        with locked(one, "a") as first, locked(two, "a") as second:
            assert (first, second) == (True, False)
        with locked(two, "a") as second:
            assert second
