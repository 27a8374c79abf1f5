"""Push: verdicts, ids, payloads, names, refusals."""

import asyncio
import json
from typing import Any, List

from kit import UUID, Kit, case, ids, item, raises, refused, same, true


@case("push/Verdicts")
async def verdicts(k: Kit) -> None:
    """One verdict an item, in order; a known id is a duplicate of the first."""
    q = await k.queue()
    first = await k.queen.queue(q).partition("p").push([item("a"), item("b")])
    same("first", first, [
        {"index": 0, "message_id": UUID, "transaction_id": "a", "queueName": q, "status": "queued"},
        {"index": 1, "message_id": UUID, "transaction_id": "b", "queueName": q, "status": "queued"},
    ])
    again = await k.queen.queue(q).partition("p").push([item("b"), item("c")])
    same("again", again, [
        {"index": 0, "message_id": first[1]["message_id"], "transaction_id": "b", "status": "duplicate"},
        {"index": 1, "transaction_id": "c", "status": "queued"},
    ])
    other = await k.queen.queue(q).partition("other").push(item("b"))
    same("the id in another partition", other, [{"status": "queued"}])
    await k.pop(q, ["a", "b", "c"], partition="p")


@case("push/DuplicateInOneRequest")
async def duplicate_in_one_request(k: Kit) -> None:
    q = await k.queue(dedup_window_seconds=0)
    got = await k.queen.queue(q).push([item("x", n=1), item("x", n=2)])
    same("verdicts", got, [{"status": "queued"}, {"status": "duplicate", "message_id": got[0]["message_id"]}])
    popped = await k.pop(q, ["x"])
    same("what is stored", popped[0]["data"]["n"], 1)


@case("push/Callbacks")
async def callbacks(k: Kit) -> None:
    """The client sorts the items by their verdicts."""
    q = await k.queue()
    await k.push(q, "old", partition="Default")
    told: List[Any] = []

    async def success(items: Any) -> None:
        told.append(("success", ids(items), items[0]["result"]["status"]))

    async def duplicate(items: Any, error: Exception) -> None:
        told.append(("duplicate", ids(items), str(error)))

    await k.queen.queue(q).push([item("new"), item("old")]).on_success(success).on_duplicate(duplicate)
    same("callbacks", sorted(told), [
        ("duplicate", ["old"], "Duplicate transaction IDs detected"),
        ("success", ["new"], "queued"),
    ])


@case("push/MintedIds")
async def minted_ids(k: Kit) -> None:
    """The client mints an id where the caller gives none, and a default partition."""
    q = await k.queue()
    got = await k.queen.queue(q).push([{"data": 1}, {"payload": 2}, {"three": 3}])
    same("ids", [v["transaction_id"] for v in got], [UUID, UUID, UUID])
    popped = await k.pop(q, [v["transaction_id"] for v in got])
    same("messages", popped, [
        {"data": 1, "partition": "Default"}, {"data": 2, "partition": "Default"}, {"data": {"three": 3}, "partition": "Default"},
    ])


PAYLOADS = [
    None, True, False, 0, 1, 1.5, -0.25, 1e300, 9007199254740993, 18446744073709551615, 12345678901234567890,
    "", "text", "a\u0000b", "snowman ☃, face 😀", "\"quoted\" \\ / \n", [], {}, [None, [1, [2]]],
    {"z": 1, "a": {"ключ": "значение", "": None}}, {"data": {"data": 1}, "payload": 2},
]


@case("push/Payloads")
async def payloads(k: Kit) -> None:
    """Any JSON value comes back as it was."""
    q = await k.queue()
    await k.queen.queue(q).partition("p").push([{"data": p} for p in PAYLOADS])
    popped = await k.pop(q)
    same("payloads", [json.dumps(m["data"]) for m in popped], [json.dumps(p) for p in PAYLOADS])


@case("push/LargePayload")
async def large_payload(k: Kit) -> None:
    q = await k.queue()
    text = "Ünïcode " * (1 << 17)
    await k.queen.queue(q).push({"data": {"text": text}})
    popped = await k.pop(q)
    true("the text is the same", popped[0]["data"] == {"text": text})


@case("push/TraceIdIsNotKept")
async def trace_id(k: Kit) -> None:
    """A push takes a traceId and forgets it; only a transaction keeps one."""
    q = await k.queue()
    await k.queen.queue(q).push({"data": 1, "traceId": "22622f9a-69e8-4c70-9ff1-4c4d8647cf50"})
    same("popped", await k.pop(q), [{"traceId": None}])


@case("push/Names")
async def names(k: Kit) -> None:
    """The client writes names into paths as they are; httpx escapes some."""
    q = k.name("a b+c&d=é")
    for p in ["a space", "plus+sign", "größe ☃", "semi;colon", "dot.ted", "q&a=b"]:
        await k.push(q, p, partition=p)
        popped = await k.pop(q, [p], partition=p)
        same("partition", popped, [{"partition": p, "data": {"id": p}}])
        await k.done(popped)


@case("push/Refused")
async def refusals(k: Kit) -> None:
    """A request that cannot be read is refused whole, and not tried again."""
    q = await k.queue()
    told: List[Any] = []

    async def failed(items: Any, error: Exception) -> None:
        told.append((ids(items), type(error).__name__))

    bad = k.queen.queue(q).partition("a\u0001b")
    await refused("a control character", bad.push(item("x")), 400, "control characters")
    same("with a callback", await bad.push(item("x")).on_error(failed), None)
    same("the callback", told, [(["x"], "HTTPStatusError")])
    await refused("a long id", k.queen.queue(q).push([item("x"), item("y" * 65536)]), 400, "65535")
    await k.none(q)


@case("push/Many")
async def many(k: Kit) -> None:
    """A thousand in one request keep their order."""
    q = await k.queue()
    names = [f"m{i}" for i in range(1000)]
    await k.push(q, *names)
    await k.pop(q, names, batch=2000)


@case("push/Concurrent")
async def concurrent(k: Kit) -> None:
    """Of eight pushes of one id, one is stored."""
    q = await k.queue()
    got = await asyncio.gather(*(k.queen.queue(q).push(item("same", n=n)) for n in range(8)))
    same("verdicts", sorted(v[0]["status"] for v in got), ["duplicate"] * 7 + ["queued"])
    same("ids", len({v[0]["message_id"] for v in got}), 1)
    await k.pop(q, ["same"])


@case("push/NoQueue")
async def no_queue(k: Kit) -> None:
    """The client itself refuses a push to nowhere."""

    async def push() -> None:
        await k.queen.queue().push(item("x"))

    await raises("push without a queue", push(), ValueError)
