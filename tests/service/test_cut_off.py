"""A process that is stopped, or cut off, half-way through a transaction does not keep the others waiting."""

from __future__ import annotations

import math
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from pfnts.service.store import Draft, StoreUnavailableError, open_store

PATIENCE = 20.0  # a session that is idle within a transaction is ended after three seconds


class Line:
    """A line to the database's socket; beyond `end` bytes nothing comes through, and nobody hangs up."""

    def __init__(self, database, folder):
        folder.mkdir()
        self.sent, self.end = 0, math.inf
        _, _, self._server = database.partition("?host=")
        self.database = database.replace(self._server, str(folder))
        self._listening = socket.create_server(str(folder / ".s.PGSQL.5432"), family=socket.AF_UNIX)
        self._ends = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listening.close()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(f"{self._server}/.s.PGSQL.5432")
                self._ends += [client, server]
                threading.Thread(target=self._up, args=(client, server), daemon=True).start()
                threading.Thread(target=self._down, args=(server, client), daemon=True).start()

    def _up(self, client, server):
        with suppress(OSError):
            while text := client.recv(65536):
                text = text[: int(min(self.end - self.sent, len(text)))]
                self.sent += len(text)
                server.sendall(text)

    def _down(self, server, client):
        with suppress(OSError):
            while text := server.recv(65536):
                client.sendall(text)


def drafts(name, of):
    return [Draft(name, "decided", f"{of}-{i}", 1.0, {"arm": "a"}, context={"x": "y" * 40}) for i in range(3)]


def cut_off_at(share, line, database):
    """Cut a transaction off after a share of its bytes; how long another process waits for its own."""
    name = f"shop-{share:.3f}"
    other, stopped = open_store("", database), open_store("", line.database)
    other.append([Draft(name, "created", name, 0.0, {}, new=True)])
    for turn in range(8):  # what is sent is always the same then
        before = line.sent
        stopped.append(drafts(name, turn))
    line.end = line.sent + round(share * (line.sent - before))
    victim = threading.Thread(target=lambda: _append(stopped, drafts(name, "cut")))
    victim.start()
    until = time.monotonic() + 5
    while line.sent < line.end and time.monotonic() < until:
        time.sleep(0.01)
    assert line.sent == line.end, "it was on its way"
    begun = time.monotonic()
    while not _append(other, drafts(name, "other")) and time.monotonic() < begun + PATIENCE:
        pass
    waited = time.monotonic() - begun
    line.close()
    victim.join(10)
    records = other.read(name, -1)
    assert [record.position for record in records] == list(range(len(records))), "no gap"
    assert sum(record.id.startswith("cut") for record in records) in (0, 3), "all of it or nothing"
    stopped.close()
    other.close()
    return waited


def _append(store, entries):
    try:
        return store.append(entries)
    except StoreUnavailableError:
        return None


def test_others_append_soon_wherever_a_transaction_is_cut_off(database, tmp_path):
    shares = [*(i / 16 for i in range(1, 16)), 0.999]  # the last one within the word that commits
    lines = [Line(database, tmp_path / str(i)) for i in range(len(shares))]
    with ThreadPoolExecutor(len(shares)) as pool:
        waited = list(pool.map(cut_off_at, shares, lines, [database] * len(shares)))
    assert max(waited) < PATIENCE, dict(zip(shares, waited, strict=True))
    assert waited[-1] > 1, "that one held the lock"
