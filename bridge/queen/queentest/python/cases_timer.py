"""Timers: schedule, cancel, look, and what comes when they fire."""

import asyncio
import base64
import json
import time
from datetime import datetime, timedelta, timezone
from typing import Any

from queen.errors import TimerError
from queen.timers import ops

from kit import MICROS, UUID, Kit, case, one_of, raises, same, true

LATER = 600_000


@case("timer/Schedule")
async def schedule(k: Kit) -> None:
    t, q = k.queen.timers, k.name()
    got = await t.schedule(q, "key", {"n": 1}, delay_ms=LATER, partition="p", txn="t1")
    same("schedule", got, {
        "ok": True, "status": "scheduled", "queue": q, "timerKey": "key", "txn": "t1", "messageId": UUID, "deliverAt": MICROS,
    })
    in_seconds = (at(got["deliverAt"]) - datetime.now(timezone.utc)).total_seconds()
    true(f"due in {in_seconds} s", abs(in_seconds - LATER / 1000) < 5)
    true("its truth is ok", got)


def at(stamp: str) -> datetime:
    return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)


@case("timer/Reschedule")
async def reschedule(k: Kit) -> None:
    """The same key again replaces it, under either name."""
    t, q = k.queen.timers, k.name()
    first = await t.schedule(q, "key", 1, delay_ms=LATER, txn="t1")
    same("schedule again", await t.schedule(q, "key", 2, delay_ms=2 * LATER, txn="t2"), {"ok": True, "status": "rescheduled", "txn": "t2"})
    last = await t.reschedule(q, "key", 3, delay=timedelta(minutes=1), partition="other", txn="t3")
    same("reschedule", last, {"ok": True, "status": "rescheduled", "txn": "t3"})
    true("a new message", first["messageId"] != last["messageId"])
    got = await t.peek(q, "key")
    same("peek", got, {"txn": "t3", "partition": "other", "messageId": last["messageId"], "payload": base64.b64encode(b"3").decode()})
    same("reschedule of nothing", await t.reschedule(q, "new", 1, delay_ms=LATER), {"ok": True, "status": "scheduled"})


@case("timer/Cancel")
async def cancel(k: Kit) -> None:
    """A cancel tells what it took; nothing to take is a verdict."""
    t, q = k.queen.timers, k.name()
    await t.schedule(q, "key", 1, delay_ms=LATER, txn="t1")
    same("cancel", await t.cancel(q, "key", txn="t1"), {"ok": True, "status": "cancelled", "queue": q, "timerKey": "key", "txn": "t1"})
    again = await t.cancel(q, "key", txn="t1")
    same("again", again, {"ok": False, "status": "absent", "queue": q, "timerKey": "key", "txn": "t1"})
    true("its truth is ok", not again)
    same("without a txn", await t.cancel(q, "key"), {"ok": False, "status": "absent", "txn": None})
    same("peek", await t.peek(q, "key"), {"found": False})


@case("timer/Peek")
async def peek(k: Kit) -> None:
    t, q = k.queen.timers, k.name()
    made = await t.schedule(q, "key", {"text": "é"}, delay_ms=LATER, txn="t1")
    got = await t.peek(q, "key")
    same("peek", got, {
        "found": True, "queue": q, "timerKey": "key", "partition": "Default", "deliverAt": made["deliverAt"], "txn": "t1",
        "messageId": made["messageId"], "payloadZstd": False, "encrypted": False, "producerSub": None, "attempts": 0,
        "lastError": None, "claimed": False, "createdAt": str, "updatedAt": str,
    })
    same("payload", json.loads(base64.b64decode(got["payload"])), {"text": "é"})
    true("truths", got and not await t.peek(q, "nope"))


@case("timer/Keys")
async def keys(k: Kit) -> None:
    """A key is any text, slashes too; a queue name as well."""
    t, q = k.queen.timers, k.name("a b+c/ü")
    for key in ["a/b/c", "with space", "plus+sign", "größe ☃", "50%", "q?x=1&y#z", "a//b"]:
        await t.schedule(q, key, key, delay_ms=LATER, txn="x")
        same("peek " + key, await t.peek(q, key), {"found": True, "timerKey": key, "queue": q})
        same("cancel " + key, await t.cancel(q, key), {"ok": True, "status": "cancelled", "timerKey": key})


@case("timer/List")
async def listing(k: Kit) -> None:
    """Pages in byte order, without payloads."""
    t, q = k.queen.timers, k.name()
    await t.batch([ops.schedule(q, f"k{n}", n, delay_ms=LATER + n) for n in range(5)])
    page = await t.list(q, limit=2)
    rows = [{"timerKey": "k0", "deliverAt": MICROS, "txn": UUID}, {"timerKey": "k1"}]
    same("page", page, {"rows": rows, "truncated": True, "nextAfter": "k1"})
    true("no payload", "payload" not in page["rows"][0])
    same("last page", await t.list(q, after="k3", limit=2), {"rows": [{"timerKey": "k4"}], "truncated": False, "nextAfter": None})
    same("all", [r["timerKey"] for r in await t.list_all(q, limit=2)], [f"k{n}" for n in range(5)])
    same("none", await t.list(k.name()), {"rows": [], "truncated": False, "nextAfter": None})


@case("timer/Batch")
async def batch(k: Kit) -> None:
    """Several in one call, cancels too, in the order sent."""
    t, q = k.queen.timers, k.name()
    await t.schedule(q, "old", 1, delay_ms=LATER, txn="o1")
    got = await t.batch([ops.schedule(q, "new", 1, delay_ms=LATER), ops.cancel(q, "old"), ops.cancel(q, "nope", txn="n1")])
    same("results", got, [
        {"ok": True, "status": "scheduled", "timerKey": "new"}, {"ok": True, "status": "cancelled", "txn": "o1"},
        {"ok": False, "status": "absent", "txn": "n1"},
    ])
    same("no operations", await t.batch([]), [])


@case("timer/Fire")
async def fire(k: Kit) -> None:
    """The promised message: id, txn, payload, tail of its partition."""
    await k.awake()
    t, q = k.queen.timers, k.name()
    await k.push(q, "before", partition="p")
    made = await t.schedule(q, "key", {"n": [1, None, "é"]}, delay_ms=2000, partition="p", txn="t1")
    await k.push(q, "after", partition="p")
    got = await k.eventually("both", lambda: all_of(k, q, 3))
    same("messages", got, [{"transactionId": "before"}, {"transactionId": "after"}, {
        "id": made["messageId"], "transactionId": "t1", "data": {"n": [1, None, "é"]}, "traceId": None, "producerSub": None,
    }])
    true("not before its time", got[2]["createdAt"] >= made["deliverAt"])
    same("peek", await t.peek(q, "key"), {"found": False})
    same("cancel", await t.cancel(q, "key", txn="t1"), {"ok": False, "status": "absent", "txn": "t1"})


async def all_of(k: Kit, q: str, n: int) -> Any:
    """All messages of a partition, once there are so many."""
    got = await k.popping(q, group=k.name("look"), partition="p").pop()
    return got if len(got) >= n else None


@case("timer/FireWakesAParkedPop")
async def fire_wakes(k: Kit) -> None:
    await k.awake()
    q = k.name()
    parked = asyncio.create_task(k.pop(q, ["t1"], partition="p", wait=15.0))
    await asyncio.sleep(0.2)
    await k.queen.timers.schedule(q, "key", 1, delay_ms=300, partition="p", txn="t1")
    began = time.monotonic()
    await k.done(await parked)
    true("soon", time.monotonic() - began < 5)


@case("timer/Past")
async def past(k: Kit) -> None:
    """A time that has passed fires at once; the queue and partition are made."""
    await k.awake()
    q = k.name("ns") + ".task"
    await k.queen.timers.schedule(q, "key", "text", delay_ms=-5000, partition="p", txn="t1")
    same("popped", await k.pop(q, ["t1"], partition="p"), [{"data": "text"}])
    same("queue", await k.queen.admin.get_queue(q), {"name": q, "task": "task"})


@case("timer/Order")
async def order(k: Kit) -> None:
    """Due order within a partition."""
    await k.awake()
    t, q = k.queen.timers, k.name()
    await t.batch([ops.schedule(q, f"k{n}", n, delay_ms=600 - 100 * n, partition="p", txn=f"t{n}") for n in range(5)])
    got = await k.eventually("all", lambda: all_of(k, q, 5))
    same("order", [m["transactionId"] for m in got], ["t4", "t3", "t2", "t1", "t0"])


@case("timer/FireIgnoresDedup")
async def fire_ignores_dedup(k: Kit) -> None:
    """A fire is delivered although its id is known; a push of it then is not."""
    await k.awake()
    q = await k.queue()
    await k.push(q, "same", partition="p")
    await k.queen.timers.schedule(q, "key", 2, delay_ms=0, partition="p", txn="same")
    got = await k.eventually("both", lambda: all_of(k, q, 2))
    same("messages", [m["transactionId"] for m in got], ["same", "same"])
    same("push", await k.queen.queue(q).partition("p").push({"transactionId": "same", "data": 3}), [{"status": "duplicate"}])


@case("timer/Builder")
async def builder(k: Kit) -> None:
    q = k.name()
    made = await k.queen.timer(q).key("key").payload({"n": 1}).after(timedelta(minutes=9)).partition("p").schedule()
    same("schedule", made, {"ok": True, "status": "scheduled", "txn": UUID})
    same("peek", await k.queen.timers.peek(q, "key"), {"partition": "p", "txn": made["txn"]})
    same("reschedule", await k.queen.timer(q).key("key").payload(b"[1]").after_ms(LATER).reschedule(), {"status": "rescheduled"})
    same("raw bytes", await k.queen.timers.peek(q, "key"), {"payload": base64.b64encode(b"[1]").decode()})
    same("cancel", await k.queen.timer(q).key("key").cancel(), {"ok": True, "status": "cancelled"})


@case("timer/Refused")
async def refusals(k: Kit) -> None:
    """What cannot be is refused with a code and a reason, all or nothing."""
    t, q = k.queen.timers, k.name()
    bare = {"op": "schedule", "queue": q, "timerKey": "x", "txn": "t", "payload": "MQ==", "delayMs": LATER}

    def less(name: str) -> Any:
        return {n: v for n, v in bare.items() if n != name}

    for what, op, status, code, reason in [
        ("no delay", less("delayMs"), 400, "timers_bad_request", "timers_delay_required"),
        ("no payload", less("payload"), 400, "timers_bad_request", "timers_payload_required"),
        ("no base64", {**bare, "payload": "not base64"}, 400, "timers_bad_request", "timers_payload_not_base64"),
        ("no padding", {**bare, "payload": "MQ"}, 400, "timers_bad_request", "timers_payload_not_base64"),
        ("no queue", less("queue"), 400, "timers_bad_request", str),
        ("no txn", less("txn"), 400, "timers_bad_request", str),
        ("an empty partition", {**bare, "partition": ""}, 400, "timers_bad_request", str),
        ("an unknown verb", {**bare, "op": "snooze"}, 400, "timers_bad_request", str),
        ("too far away", {**bare, "delayMs": 91 * 86_400_000}, 403, "timer_horizon_exceeded", one_of(str, None)),
        ("too large", {**bare, "payload": base64.b64encode(b"1" * (1 << 20) + b"1").decode()}, 413, "payload_too_large", one_of(str, None)),
    ]:
        error = await raises(what, t.batch([ops.schedule(q, "good", 1, delay_ms=LATER), op]), TimerError)
        same(what, [error.status, error.code, error.reason], [status, code, reason])
    twice = [ops.schedule(q, "x", 1, delay_ms=LATER), ops.cancel(q, "x")]
    error = await raises("a key twice", t.batch(twice), TimerError)
    same("a key twice", [error.status, error.code], [400, "timers_bad_request"])
    same("nothing scheduled", await t.list(q), {"rows": []})


@case("timer/ServerOwned")
async def server_owned(k: Kit) -> None:
    """The client itself refuses fields that are the broker's."""
    op = {**ops.schedule(k.name(), "x", 1, delay_ms=LATER), "deliverAt": "2030-01-01T00:00:00Z"}
    await raises("deliverAt", k.queen.timers.batch([op]), ValueError)
