"""Ack: verdicts, prefixes, nacks, budgets, leases."""

from typing import Any, Dict, List

from kit import UUID, Kit, case, ids, same, true

G = {"group": "g"}


def marked(m: Dict[str, Any], status: Any, error: str = "") -> Dict[str, Any]:
    """A message with a status of its own for a mixed batch."""
    return {**m, "_status": status, **({"_error": error} if error else {})}


@case("ack/Verdict")
async def verdict(k: Kit) -> None:
    """What the caller of one ack is told; its repeat is refused."""
    q = await k.queue()
    await k.push(q, "a")
    [m] = await k.pop(q)
    got = await k.queen.ack(m, True, G)
    same("ack", got, {
        "success": True, "index": 0, "transactionId": "a", "error": None, "leaseReleased": True, "dlq": False, "noop": False,
    })
    same("the repeat", await k.queen.ack(m, True, G), {"success": False, "error": "invalid or expired lease"})
    same("pending", await k.pending(q), 0)


@case("ack/Batch")
async def batch(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a", "b", "c")
    got = await k.queen.ack(await k.pop(q, ["a", "b", "c"]), True, G)
    same("ack", got, {"success": True, "results": [
        {"index": i, "transactionId": n, "success": True, "error": None, "dlq": False} for i, n in enumerate("abc")]})
    await k.none(q)


@case("ack/ListOfOne")
async def list_of_one(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a")
    got = await k.queen.ack(await k.pop(q, ["a"]), True, G)
    same("ack", got, {"success": True, "results": [{"transactionId": "a", "success": True, "error": None}]})
    same("no messages", await k.queen.ack([], True, G), {"processed": 0, "results": []})


@case("ack/LaterSettlesEarlier")
async def later_settles_earlier(k: Kit) -> None:
    """An ack of a later message completes those before it and keeps the lease
    for those after it; a nack never moves the cursor back."""
    q = await k.queue()
    await k.push(q, "a", "b", "c", "d", "e")
    m = await k.pop(q)
    same("ack of c", await k.queen.ack(m[2], True, G), {"success": True})
    same("pending", await k.pending(q), 2)
    same("ack of a", await k.queen.ack(m[0], True, G), {"success": True, "noop": True})
    got = await k.queen.ack(m[1], False, G)
    same("nack of b", got, {"success": False})
    true("says why", got["error"].startswith("already committed"))
    await k.none(q)
    same("ack of e", await k.queen.ack(m[4], True, G), {"success": True})
    same("pending", await k.pending(q), 0)


@case("ack/NackAlone")
async def nack_alone(k: Kit) -> None:
    """A nack brings back everything that no completed ack covers, at once."""
    q = await k.queue()
    await k.push(q, "a", "b", "c")
    m = await k.pop(q)
    same("nack", await k.queen.ack(m[1], False, {**G, "error": "no"}), {"success": True, "error": None, "dlq": False})
    same("ack after it", await k.queen.ack(m[2], True, G), {"success": False, "error": "invalid or expired lease"})
    await k.pop(q, ["a", "b", "c"], wait=2.0)


@case("ack/Mixed")
async def mixed(k: Kit) -> None:
    """Mixed statuses in one call: the cursor stops below the first failure."""
    q = await k.queue()
    await k.push(q, "a", "b", "c", "d")
    m = await k.pop(q)
    acks = [marked(m[0], True), marked(m[1], False, "no"), marked(m[2], True), marked(m[3], True)]
    got = await k.queen.ack(acks, True, G)
    same("ack", got, {"success": True, "results": [{"success": True, "error": None}] * 4})
    await k.pop(q, ["b", "c", "d"])


@case("ack/MixedBackwards")
async def mixed_backwards(k: Kit) -> None:
    """The order within a call does not matter."""
    q = await k.queue()
    await k.push(q, "a", "b", "c")
    m = await k.pop(q)
    await k.queen.ack([marked(m[2], "completed"), marked(m[1], "failed"), marked(m[0], "completed")], True, G)
    await k.pop(q, ["b", "c"])


@case("ack/RetryIsFree")
async def retry_is_free(k: Kit) -> None:
    q = await k.queue(retry_limit=0)
    await k.push(q, "a", "b")
    for _ in range(4):
        m = await k.pop(q, ["a", "b"])
        same("retry", await k.queen.ack(m[0], "retry", G), {"success": True, "dlq": False})
    same("dead letters", await k.queen.queue(q).dlq().get(), {"messages": [], "total": 0})


@case("ack/Budget")
async def budget(k: Kit) -> None:
    """A limit of N means N+1 deliveries; 0 means the first failure."""
    for limit in [0, 1, 3]:
        q = await k.queue(retry_limit=limit)
        await k.push(q, "bad", "good")
        for n in range(limit + 1):
            m = await k.pop(q, ["bad", "good"])
            same("nack", await k.queen.ack(m[0], False, {**G, "error": "boom"}), {"success": True, "dlq": n == limit})
        await k.pop(q, ["good"])
        dead = await k.queen.queue(q).dlq("g").get()
        same("dead letters", dead["messages"], [{"transactionId": "bad", "errorMessage": "boom", "data": {"id": "bad"}}])


@case("ack/NoDeadLetterQueue")
async def no_dead_letter_queue(k: Kit) -> None:
    """With both flags off a message that spent its budget is dropped."""
    q = await k.queue(retry_limit=0, dead_letter_queue=False, dlq_after_max_retries=False)
    await k.push(q, "bad", "good")
    m = await k.pop(q, ["bad", "good"])
    same("nack", await k.queen.ack(m[0], False, G), {"success": True, "dlq": False})
    await k.pop(q, ["good"])
    same("dead letters", await k.queen.queue(q).dlq().get(), {"messages": [], "total": 0})


@case("ack/DeadLetter")
async def dead_letter(k: Kit) -> None:
    """Status dlq files at once."""
    q = await k.queue()
    await k.push(q, "a")
    [m] = await k.pop(q)
    same("ack", await k.queen.ack(m, "dlq", {**G, "error": "poison"}), {"success": True, "dlq": True})
    await k.none(q)
    dead = await k.queen.queue(q).dlq().get()
    same("dead letters", dead["messages"], [{"transactionId": "a", "errorMessage": "poison", "consumerGroup": "g"}])


@case("ack/UnknownWordFails")
async def unknown_word(k: Kit) -> None:
    """1.x takes any word it does not know for a failure."""
    for status, again in [("success", []), ("acked", []), ("ok", []), ("FAILED", ["a"]), ("done", ["a"])]:
        q = await k.queue()
        await k.push(q, "a")
        [m] = await k.pop(q)
        same(status, await k.queen.ack(m, status, G), {"success": True})
        same(status + ": comes again", ids(await k.popping(q).pop()), again)


@case("ack/ForeignLease")
async def foreign_lease(k: Kit) -> None:
    """A lease that is not the holder's is refused item by item."""
    q = await k.queue()
    await k.push(q, "a", partition="p1")
    await k.push(q, "b", partition="p2")
    [a] = await k.pop(q, partition="p1")
    [b] = await k.pop(q, partition="p2")
    got = await k.queen.ack([{**a, "leaseId": b["leaseId"]}, b], True, G)
    same("ack", got, {"success": False, "error": "invalid or expired lease",
                      "results": [{"success": False}, {"success": True, "error": None}]})
    same("ack", await k.queen.ack(a, True, G), {"success": True})


@case("ack/WrongGroup")
async def wrong_group(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a")
    [m] = await k.pop(q)
    same("no such group", await k.queen.ack(m, True, {"group": "h"}), {"success": False, "error": "consumer not found"})
    same("no group", await k.queen.ack(m), {"success": False, "error": "consumer not found"})
    same("its group", await k.queen.ack(m, True, G), {"success": True})


@case("ack/UnknownMessage")
async def unknown_message(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a")
    [m] = await k.pop(q)
    got = await k.queen.ack({**m, "transactionId": "nope"}, True, G)
    same("an unknown id", got, {"success": False})
    true("says why", got["error"].startswith("unresolvable"))
    nowhere = {**m, "partitionId": "22622f9a-69e8-4c70-9ff1-4c4d8647cf50"}
    same("an unknown partition", await k.queen.ack(nowhere, True, G), {"success": False, "error": "consumer not found"})
    garbage = {**m, "partitionId": "garbage"}
    same("no partition id", await k.queen.ack(garbage, True, G), {"success": False, "error": "db error"})
    same("without one", await k.queen.ack("a", True, G), {"success": False})


@case("ack/WithoutLease")
async def without_lease(k: Kit) -> None:
    """An ack that names no lease is not fenced."""
    q = await k.queue()
    await k.push(q, "a", "b")
    m = await k.pop(q)
    same("nack", await k.queen.ack(m[0], False, G), {"success": True})
    bare = {"transactionId": "b", "partitionId": m[1]["partitionId"]}
    same("ack without a lease", await k.queen.ack(bare, True, G), {"success": True})
    await k.none(q)


@case("ack/Partitions")
async def partitions(k: Kit) -> None:
    """One lease over several partitions: each is given back on its own."""
    q = await k.queue()
    for p in ["p1", "p2", "p3"]:
        await k.push(q, p + "a", p + "b", partition=p)
    got = await k.pop(q, partitions=3)
    of = {p: [m for m in got if m["partition"] == p] for p in ["p1", "p2", "p3"]}
    same("renewed", await k.queen.renew(got[0]), {"success": True, "renewed": 3})
    await k.done(of["p1"])
    same("nack", await k.queen.ack(of["p2"][0], False, G), {"success": True})
    same("renewed", await k.queen.renew(got[0]), {"success": True, "renewed": 1})
    await k.pop(q, ["p2a", "p2b"], partitions=3)
    await k.done(of["p3"])
    same("pending", await k.pending(q), 2)


@case("ack/AcrossPartitions")
async def across_partitions(k: Kit) -> None:
    """One call for several partitions; a failure in one keeps the others."""
    q = await k.queue()
    for p in ["p1", "p2"]:
        await k.push(q, p + "a", p + "b", partition=p)
    got = await k.pop(q, partitions=2)
    acks: List[Dict[str, Any]] = [marked(m, m["transactionId"] != "p1a", "no") for m in got]
    same("ack", await k.queen.ack(acks, True, G), {"success": True, "results": [{"success": True}] * 4})
    again = await k.pop(q, partitions=2)
    same("again", ids(again), ["p1a", "p1b"])
    same("lease", again[0]["leaseId"], UUID)
