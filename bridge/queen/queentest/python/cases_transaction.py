"""Transactions: everything at once, or nothing."""

import base64
import json
from typing import Any, Dict

from kit import MICROS, UUID, Kit, case, item, raises, refused, same, true

G = {"consumer_group": "g"}


async def rolled_back(k: Kit, q: str, m: Dict[str, Any], ns: str) -> None:
    """Require that nothing of a bundle() happened: no ack, push, key, timer."""
    await k.none(q, group="look", partition="out")
    true("no key", not await k.queen.kv.get(ns, "new"))
    same("no timer", await k.queen.timers.peek(q, "t"), {"found": False})
    same("the ack alone", await k.queen.ack(m, True, {"group": "g"}), {"success": True})


def bundle(k: Kit, q: str, m: Dict[str, Any], ns: str, push: str = "out") -> Any:
    """An ack, a push, a key and a timer."""
    tx = k.queen.transaction().ack(m, "completed", G)
    tx = tx.queue(q).partition("out").push(item(push))
    tx = tx.kv.put(ns, "new", {"n": 1}, ttl_seconds=600)
    return tx.timer(q).key("t").payload({"n": 1}).after_ms(600_000).partition("later").txn("t1").schedule()


@case("transaction/Everything")
async def everything(k: Kit) -> None:
    """Ack, push, key and timer in one; results in one flat index."""
    q, ns = await k.queue(), k.name("ns")
    await k.push(q, "a")
    [m] = await k.pop(q, partition="p")
    got = await bundle(k, q, m, ns).commit()
    same("results", got, {"success": True, "transactionId": str, "results": [
        {"index": 0, "type": "ack", "success": True, "transactionId": "a", "error": None, "dlq": False},
        {"index": 1, "type": "push", "success": True, "transactionId": "out", "messageId": UUID, "queueName": q},
        {"index": 2, "type": "kv", "opIndex": 0, "op": "put", "applied": True, "key": "new", "value": {"n": 1}, "version": int},
        {"index": 3, "type": "timer", "opIndex": 0, "ok": True, "status": "scheduled", "queue": q, "timerKey": "t", "txn": "t1",
         "messageId": UUID, "deliverAt": MICROS},
    ]})
    true("its truth is its success", got)
    await k.none(q, partition="p")
    same("pushed", await k.pop(q, ["out"], partition="out"), [{"id": got["results"][1]["messageId"], "data": {"id": "out"}}])
    same("key", await k.queen.kv.get(ns, "new"), {"found": True, "value": {"n": 1}, "version": got["results"][2]["version"]})
    same("timer", await k.queen.timers.peek(q, "t"), {"found": True, "txn": "t1", "partition": "later"})
    same("the ack again", await k.queen.ack(m, True, {"group": "g"}), {"success": False})


@case("transaction/LostGate")
async def lost_gate(k: Kit) -> None:
    """A lost gate is an answer, not an error; nothing else happened."""
    q, ns = await k.queue(), k.name("ns")
    true("first", await k.queen.kv.once(ns, "gate", ttl_seconds=600, value={"by": 1}))
    version = (await k.queen.kv.get(ns, "gate"))["version"]
    await k.push(q, "a")
    [m] = await k.pop(q)
    got = await bundle(k, q, m, ns).once(ns, "gate", ttl_seconds=600).commit()
    same("answer", got, {
        "success": False, "ok": False, "reason": "kv_precondition", "error": "kv_precondition_failed", "failedIndex": 3,
        "kvReason": "exists", "value": {"by": 1}, "version": version, "results": [],
    })
    true("its truth is its success", not got)
    await rolled_back(k, q, m, ns)


@case("transaction/LostVersion")
async def lost_version(k: Kit) -> None:
    """A required expectation that does not hold rolls back as well."""
    q, ns = await k.queue(), k.name("ns")
    version = (await k.queen.kv.put(ns, "k", 1, forever=True))["version"]
    tx = k.queen.transaction().queue(q).push([item("a"), item("b")])
    got = await tx.kv.put(ns, "k", 2, forever=True, expect=version + 1, required=True).commit()
    same("answer", got, {"success": False, "reason": "kv_precondition", "failedIndex": 2, "kvReason": "version", "value": 1})
    await k.none(q)
    tx = k.queen.transaction().queue(q).push([item("a"), item("b")])
    same("answer", await tx.kv.put(ns, "k", 2, forever=True, expect=version, required=True).commit(), {"success": True})
    await k.pop(q, ["a", "b"])


@case("transaction/LostButNotRequired")
async def not_required(k: Kit) -> None:
    q, ns = await k.queue(), k.name("ns")
    await k.queen.kv.put(ns, "k", 1, forever=True)
    got = await k.queen.transaction().queue(q).push(item("a")).kv.put_if_absent(ns, "k", 2, forever=True).commit()
    same("results", got["results"], [{"type": "push"}, {"type": "kv", "applied": False, "reason": "exists", "value": 1}])
    await k.pop(q, ["a"])


@case("transaction/LostLease")
async def lost_lease(k: Kit) -> None:
    """An ack whose lease is gone refuses the bundle; the client raises."""
    q, ns = await k.queue(), k.name("ns")
    await k.push(q, "a")
    [old] = await k.pop(q)
    same("retry", await k.queen.ack(old, "retry", {"group": "g"}), {"success": True})
    [m] = await k.pop(q)
    error = await raises("the old lease", bundle(k, q, old, ns).commit())
    true(f"says why: {error}", "QTXN" in str(error) and "lease" in str(error))
    await rolled_back(k, q, m, ns)


@case("transaction/UnknownMessage")
async def unknown_message(k: Kit) -> None:
    q, ns = await k.queue(), k.name("ns")
    await k.push(q, "a")
    [m] = await k.pop(q)
    error = await raises("an unknown id", bundle(k, q, {**m, "transactionId": "nope"}, ns).commit())
    true(f"says why: {error}", "QTXN" in str(error))
    await rolled_back(k, q, m, ns)


@case("transaction/WrongGroup")
async def wrong_group(k: Kit) -> None:
    """Without its group an ack is of queue mode."""
    q = await k.queue()
    await k.push(q, "a")
    [m] = await k.pop(q)
    await raises("no group", k.queen.transaction().ack(m).queue(q).partition("out").push(item("x")).commit())
    await k.none(q, partition="out", group="look")


@case("transaction/DuplicatePush")
async def duplicate_push(k: Kit) -> None:
    q, ns = await k.queue(), k.name("ns")
    await k.push(q, "there", partition="dup")
    await k.push(q, "a", partition="p")
    [m] = await k.pop(q, partition="p")
    tx = bundle(k, q, m, ns).queue(q).partition("dup").push(item("there"))
    error = await raises("a known id", tx.commit())
    true(f"says why: {error}", "QDUP" in str(error))
    await rolled_back(k, q, m, ns)


@case("transaction/Repeat")
async def repeat(k: Kit) -> None:
    """A settle that ends its batch commits once, however often it is sent."""
    q, ns = await k.queue(), k.name("ns")
    await k.push(q, "a")
    [m] = await k.pop(q)

    def settle() -> Any:
        return k.queen.transaction().ack(m, "completed", G).kv.incr(ns, "n", forever=True)

    same("first", await settle().commit(), {"success": True})
    await raises("again", settle().commit())
    same("counted", await k.queen.kv.get(ns, "n"), {"value": 1})


@case("transaction/Pushes")
async def pushes(k: Kit) -> None:
    """Items keep their order; no partition means the default one."""
    q, other = await k.queue(), await k.queue()
    tx = k.queen.transaction().queue(q).push([{"data": i, "transactionId": f"m{i}"} for i in range(12)])
    got = await tx.queue(other).partition("p").push({"data": None}).commit()
    same("results", got["results"], [{"index": i, "type": "push", "success": True} for i in range(13)])
    popped = await k.pop(q, [f"m{i}" for i in range(12)])
    same("popped", popped, [{"data": i, "partition": "Default"} for i in range(12)])
    same("popped", await k.pop(other), [{"data": None, "partition": "p", "transactionId": UUID}])


@case("transaction/DuplicateWithin")
async def duplicate_within(k: Kit) -> None:
    """The same id twice in one bundle is stored once."""
    q = await k.queue()
    got = await k.queen.transaction().queue(q).push([item("x", n=1), item("x", n=2)]).commit()
    same("results", got["results"], [{"success": True}, {"success": True, "duplicate": True}])
    same("popped", await k.pop(q, ["x"]), [{"data": {"n": 1}}])


@case("transaction/TraceId")
async def trace_id(k: Kit) -> None:
    """Only a transaction's push keeps a traceId."""
    q, trace = await k.queue(), "22622f9a-69e8-4c70-9ff1-4c4d8647cf50"
    await k.queen.transaction().queue(q).push({"data": 1, "traceId": trace}).commit()
    same("popped", await k.pop(q), [{"traceId": trace}])


@case("transaction/Nack")
async def nack(k: Kit) -> None:
    """Failures and retries work inside, with the budget."""
    q = await k.queue(retry_limit=1)
    await k.push(q, "a")
    for status, dlq in [("retry", False), ("failed", False), ("failed", True)]:
        [m] = await k.pop(q, partition="p")
        got = await k.queen.transaction().ack(m, status, G).queue(q).partition("log").push({"data": status}).commit()
        same("results", got["results"], [{"type": "ack", "success": True, "dlq": dlq}, {"type": "push"}])
    await k.none(q, partition="p")
    same("log", [m["data"] for m in await k.pop(q, partition="log")], ["retry", "failed", "failed"])
    same("dead letters", await k.queen.queue(q).dlq().get(), {"total": 1})


@case("transaction/AcksOfABatch")
async def acks_of_a_batch(k: Kit) -> None:
    q = await k.queue()
    for p in ["p1", "p2"]:
        await k.push(q, p + "a", p + "b", partition=p)
    m = await k.pop(q, partitions=2)
    got = await k.queen.transaction().ack(m, "completed", G).queue(q).partition("out").push(item("x")).commit()
    same("results", [r["type"] for r in got["results"]], ["ack"] * 4 + ["push"])
    same("pending", await k.pending(q), 1)


@case("transaction/Keys")
async def keys(k: Kit) -> None:
    """Every verb that may ride, without any operation beside it."""
    ns = k.name("ns")
    await k.queen.kv.put(ns, "old", "x", forever=True)
    await k.queen.kv.put(ns, "there", "y", forever=True)
    tx = k.queen.transaction().kv.get(ns, "nope").kv.get_many(ns, ["there", "none"])
    tx = tx.kv.put(ns, "p", None, ttl_seconds=60).kv.put_if_absent(ns, "once", True, forever=True)
    got = await tx.kv.incr(ns, "n", delta=5, max=10, ttl_seconds=60).kv.delete(ns, "old").commit()
    same("results", got["results"], [
        {"index": 0, "type": "kv", "opIndex": 0, "op": "get", "found": False},
        {"index": 1, "type": "kv", "opIndex": 1, "op": "getMany", "rows": [{"key": "there", "value": "y"}], "missing": ["none"]},
        {"index": 2, "op": "put", "applied": True, "value": None}, {"index": 3, "op": "putIfAbsent", "applied": True},
        {"index": 4, "op": "incr", "applied": True, "value": 5}, {"index": 5, "op": "delete", "applied": True},
    ])
    true("deleted", not await k.queen.kv.get(ns, "old"))


@case("transaction/ManyKeysAreReadAfterTheWrites")
async def read_after(k: Kit) -> None:
    """A read of one key sees what was before it, a read of many what is after
    all writes of the call."""
    ns = k.name("ns")
    await k.queen.kv.put(ns, "gone", 1, forever=True)
    tx = k.queen.transaction().kv.get_many(ns, ["gone", "came"]).kv.get(ns, "gone").kv.delete(ns, "gone").kv.get(ns, "gone")
    got = await tx.kv.put(ns, "came", 2, forever=True).commit()
    same("results", got["results"], [
        {"op": "getMany", "rows": [{"key": "came", "value": 2}], "missing": ["gone"]}, {"op": "get", "found": True},
        {"op": "delete", "applied": True}, {"op": "get", "found": False}, {"op": "put", "applied": True},
    ])


@case("transaction/Timers")
async def timers(k: Kit) -> None:
    """Schedules and cancels ride; what was not there to cancel is no failure."""
    q = await k.queue()
    await k.queen.timers.schedule(q, "old", 1, delay_ms=600_000, txn="old1")
    tx = k.queen.transaction().timer(q).key("a/b").payload({"x": [1]}).after_ms(600_000).schedule()
    tx = tx.timer(q).key("old").cancel().timer(q).key("nope").txn("n1").cancel()
    got = await tx.commit()
    same("results", got["results"], [
        {"index": 0, "type": "timer", "opIndex": 0, "ok": True, "status": "scheduled", "timerKey": "a/b"},
        {"index": 1, "opIndex": 1, "ok": True, "status": "cancelled", "txn": "old1"},
        {"index": 2, "opIndex": 2, "ok": False, "status": "absent", "txn": "n1"},
    ])
    peek = await k.queen.timers.peek(q, "a/b")
    same("payload", json.loads(base64.b64decode(peek["payload"])), {"x": [1]})


@case("transaction/TimerFires")
async def timer_fires(k: Kit) -> None:
    """The retry of a message: its ack and its timer in one."""
    await k.awake()
    q = await k.queue()
    await k.push(q, "a", partition="p")
    [m] = await k.pop(q, partition="p")
    tx = k.queen.transaction().ack(m, "completed", G)
    got = await tx.timer(q).key("retry").payload(m["data"]).after_ms(100).partition("p").txn("a#r2").schedule().commit()
    again = await k.pop(q, ["a#r2"], partition="p")
    same("message", again, [{"id": got["results"][1]["messageId"], "data": {"id": "a"}}])


@case("transaction/Refused")
async def refusals(k: Kit) -> None:
    """A bundle that cannot be: some are refused with 400, some with a verdict."""
    q, ns = await k.queue(), k.name("ns")

    def tx() -> Any:
        return k.queen.transaction().queue(q).push(item("a"))

    error = await raises("a bad namespace", tx().kv.put("Not A Namespace", "k", 1, forever=True).commit())
    same("a bad namespace", str(error), "kv_bad_namespace")
    await raises("a key twice", tx().kv.put(ns, "k", 1, forever=True).kv.put(ns, "k", 2, forever=True).commit())
    await raises("a timer twice", timer(timer(tx(), q), q).commit())
    far = tx().timer(q).key("far").payload(1).after_ms(100 * 86_400_000).schedule()
    await refused("too far away", far.commit(), 403)
    error = await raises("a check, of 2.1", tx().kv.check(ns, "k", expect=0, required=True).commit())
    same("a check, of 2.1", str(error), "kv_unknown_op")
    await raises("nothing at all", k.queen.transaction().commit())
    await k.none(q)
    true("no key", not await k.queen.kv.get(ns, "k"))


def timer(tx: Any, q: str) -> Any:
    return tx.timer(q).key("t").payload(1).after_ms(600_000).schedule()
