"""One suite for every store."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from pfnts.service.store import Draft, FencedError, StoreUnavailableError, open_store, sql
from pfnts.service.store.base import FORMAT, Key


def created(name="shop"):
    return Draft(name, "created", name, 0.0, {"a": 1}, new=True)


def decided(id, name="shop", **kwargs):
    return Draft(name, "decided", id, 1.0, {"arm": "a"}, **kwargs)


def reward(id, name="shop"):
    return Draft(name, "settled", id, 2.0, {"value": 1.0}, needs=id)


def positions(records):
    return [None if record is None else record.position for record in records]


def test_positions_count_up_from_nought_in_each_experiment(store):
    assert positions(store.append([created(), created("other"), decided("1"), decided("2")])) == [0, 0, 1, 2]
    assert positions(store.append([decided("1", "other"), decided("3")])) == [1, 3]
    assert store.append([]) == []
    assert store.experiments() == {"other": 1, "shop": 3}


def test_what_is_read_is_what_was_appended(store):
    draft = Draft(
        "shop",
        "decided",
        "ä/1",
        1.5,
        {"p": 0.1, "t": "ü"},
        unit="anna",
        context={"x": None, "é": 1},
        candidates=[{"price": 1.5}, {"price": None}],
    )
    store.append([created()])
    [appended] = store.append([draft])
    assert store.read("shop", 0) == [appended] == [store.find("shop", "decided", "ä/1")]
    assert appended.data == store.find("shop", "decided", "ä/1").data
    assert store.last("shop", "decided", limit=5) == [appended]
    assert store.read("shop", 0, limit=0) == [] == store.read("shop", 1) == store.read("none", -1)


def test_an_id_is_taken_once_even_within_one_call(store):
    store.append([created()])
    assert positions(store.append([decided("1"), decided("1"), decided("2")])) == [1, None, 2]
    assert positions(store.append([decided("2"), decided("3")])) == [None, 3]
    assert [record.position for record in store.read("shop", -1)] == [0, 1, 2, 3]


def test_conditions_keep_entries_out_of_the_log(store):
    assert positions(store.append([decided("1")])) == [None], "no log to append to"
    assert positions(store.append([created(), created()])) == [0, None]
    assert positions(store.append([reward("1"), decided("1"), reward("1"), reward("1")])) == [
        None,
        1,
        2,
        None,
    ]
    change = Draft("shop", "arm_added", "b", 1.0, {}, revision=0)
    assert positions(store.append([change])) == [3]
    crossed = Draft("shop", "arm_removed", "a", 1.0, {}, revision=0)
    assert positions(store.append([crossed])) == [None]
    assert positions(store.append([Draft("shop", "arm_removed", "a", 1.0, {}, revision=1)])) == [4]


def test_concurrent_writers_leave_no_gap_and_readers_see_prefixes_only(address, store):
    store.append([created()])
    others = [open_store(**address) for _ in range(3)] if store.many else [store] * 3
    seen: list[list[int]] = []
    done = threading.Event()

    def write(number):
        for i in range(40):
            others[number].append([decided(f"{number}-{i}"), decided(f"{number}-{i}b")])

    def follow():
        at, found = -1, []
        while not done.is_set() or store.read("shop", at):
            found += [record.position for record in store.read("shop", at)]
            at = found[-1] if found else -1
        seen.append(found)

    writers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    reader = threading.Thread(target=follow)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert seen == [list(range(241))]
    for other in others:
        if other is not store:
            other.close()


def test_erasing_forgets_contexts_and_name_and_nothing_else(store):
    store.append([created(), decided("1", unit="anna", context=[1]), decided("2", unit="bo", context=[2])])
    record, count = store.erase(Draft("shop", "erased", "e1", 3.0, {}), "anna")
    assert (record.position, count) == (3, 1)
    first, second = store.read("shop", 0)[:2]
    assert (first.unit, first.context, first.data) == (None, None, {"arm": "a"})
    assert (second.unit, second.context) == ("bo", [2])


def test_erased_texts_are_not_left_in_the_sqlite_file(tmp_path):
    store = open_store(tmp_path)
    store.append([created(), decided("1", unit="anna-of-somewhere", context={"x": "secret-of-anna"})])
    reader = sqlite3.connect(store.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM events").fetchall()
    store.erase(Draft("shop", "erased", "e1", 3.0, {}), "anna-of-somewhere")
    store._connection().execute("PRAGMA busy_timeout = 10")
    with pytest.raises(StoreUnavailableError, match="which somebody reads; erase again"):
        store.scrub()
    reader.close()
    store.scrub()
    for file in tmp_path.iterdir():
        assert b"of-anna" not in file.read_bytes(), file
        assert b"anna-of" not in file.read_bytes(), file
    store.close()


def test_facts_are_stored_once(store):
    assert store.meta("secret") is None
    assert store.meta("secret", "s") == "s" == store.meta("secret", "other")
    store.probe()


def test_keys_come_back_and_are_revoked_once(store):
    key = Key("k1", "web", "writer", None, "digest", 1.0)
    store.add_key(key)
    assert store.keys() == [key]
    assert store.revoke_key("k1", 2.0)
    assert not store.revoke_key("k1", 3.0)
    assert not store.revoke_key("nobody", 3.0)
    assert store.keys()[0].revoked == 2.0


def test_a_store_reopens_with_everything_in_it(address, store):
    store.append([created(), decided("1")])
    secret = store.meta("secret", "s")
    store.close()
    again = open_store(**address)
    assert positions(again.append([decided("1"), decided("2")])) == [None, 2]
    assert again.meta("secret", "x") == secret
    again.close()


def test_a_sqlite_file_has_one_service_at_a_time(tmp_path):
    store = open_store(tmp_path)
    with pytest.raises(ValueError, match=r"data must be a folder that no other service has open.*held by"):
        open_store(tmp_path)
    open_store(tmp_path, serving=False).close()
    store.close()
    open_store(tmp_path).close()


def test_a_failed_write_leaves_nothing_and_the_next_one_succeeds(tmp_path):
    store = open_store(tmp_path)
    store.append([created()])
    store._connection().execute("PRAGMA query_only = 1")
    with pytest.raises(StoreUnavailableError, match="readonly"):
        store.append([decided("1")])
    assert positions(store.append([decided("1")])) == [1], "a fresh connection writes again"
    store.close()


def test_a_store_of_a_later_format_is_refused(tmp_path):
    store = open_store(tmp_path)
    store.close()
    with sqlite3.connect(tmp_path / "pfnts.sqlite") as connection:
        connection.execute("UPDATE meta SET value = '999' WHERE name = 'format'")
    with pytest.raises(ValueError, match=r"format 2 or earlier.*has 999"):
        open_store(tmp_path)


def test_a_store_of_an_earlier_format_is_brought_up_to_this_one_in_one_step(address):
    """By two processes at once, too: the second finds the work done."""
    store = open_store(**address)
    store.append([created(), decided("1", context={"x": 1})])
    # What format 1 had not; its number is the last thing that an upgrade writes.
    store._write(_downgrade) if address["database"] else _downgrade(store._connection())
    store.close()
    opened = [open_store(**address)]
    if address["database"]:
        opened.append(open_store(**address))
    for store in opened:
        assert store.meta("format") == str(FORMAT)
        assert [record.candidates for record in store.read("shop", -1)] == [None, None]
    assert positions(opened[0].append([decided("2", candidates=[[1.0]])])) == [2]
    assert opened[-1].find("shop", "decided", "2").candidates == [[1.0]]
    for store in opened:
        store.close()


def _downgrade(connection):
    connection.execute("ALTER TABLE events DROP COLUMN candidates")
    connection.execute("UPDATE meta SET value = '1' WHERE name = 'format'")


def test_one_process_leads_and_an_old_leader_is_fenced(database):
    first, second = open_store("", database), open_store("", database)
    epoch = first.lead("first", seconds=60)
    assert first.lead("first", seconds=0.0) == epoch, "goes on leading"
    first.append([created()], epoch=epoch)
    later = second.lead("second", seconds=60)
    assert later == epoch + 1
    assert first.lead("first", seconds=60) is None
    with pytest.raises(FencedError, match="another leads"):
        first.append([decided("1")], epoch=epoch)
    assert positions(second.append([decided("1")], epoch=later)) == [1]
    first.close()
    second.close()


def test_threads_that_come_and_go_leave_no_connection_behind(address, store):
    """An export is read by threads that end; a database has a hundred connections to give."""
    store.append([created()])
    for _ in range(40):
        thread = threading.Thread(target=store.read, args=("shop", -1))
        thread.start()
        thread.join()
    assert _connections(store, address) <= 4


def _connections(store, address):
    if not store.many:
        files = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.exists()]
        return sum(file == str(store.path) for file in files)
    import psycopg

    with psycopg.connect(address["database"]) as own:
        [row] = own.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    return row[0]


def test_many_readers_at_once_take_turns(store):
    store.append([created(), *(decided(str(i)) for i in range(50))])
    found = []
    threads = [threading.Thread(target=lambda: found.append(len(store.read("shop", -1)))) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [51] * 40


def test_neither_names_nor_positions_are_found_by_reading_every_entry(store):
    """Followers ask for names ten times a second, every append for a position, however long the logs are."""
    store.append([created(name) for name in ("a", "b", "c")])
    for block in range(10):
        store.append([decided(f"{block}-{i}", "bca"[i % 3]) for i in range(300)])
    assert store.experiments() == {"a": 1000, "b": 1000, "c": 1000}
    assert _rows_read(store, sql.EXPERIMENTS, ()) < 100
    for draft in (decided("one more", "a"), reward("9-2", "a")):
        values, _ = sql.append_values(draft)
        assert _rows_read(store, sql.APPEND, values) < 100
    assert store.experiments()["a"] == 1002, "these were appended"


def _rows_read(store, statement, values):
    if not store.many:
        with store._transaction() as connection:
            steps = []
            connection.set_progress_handler(lambda: steps.append(1) and None, 10)
            connection.execute(statement, values).fetchall()
            connection.set_progress_handler(None, 0)
        return len(steps)
    [(plan,)] = store._query(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
    return sum(node["Actual Rows"] * node["Actual Loops"] for node in _nodes(plan[0]["Plan"]))


def _nodes(plan):
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)
