"""Consumers: handlers, nacks, dead letters, limits, workers."""

import asyncio
from collections import Counter
from typing import Any, List

import httpx

from kit import Kit, case, ids, raises, same, true


def consuming(k: Kit, q: str, group: str = "g") -> Any:
    """A consumer from the oldest message, whose long polls are short."""
    return k.queen.queue(q).group(group).subscription_mode("all").timeout_millis(2000)


@case("consume/Single")
async def single(k: Kit) -> None:
    """batch(1) gives the handler one message, acked when it returns."""
    q = await k.queue()
    await k.push(q, "a", "b", "c")
    seen: List[Any] = []

    async def handle(m: Any) -> None:
        seen.append((m["transactionId"], m["data"], m["consumerGroup"]))

    await consuming(k, q).batch(1).limit(3).consume(handle)
    same("handled", seen, [(n, {"id": n}, "g") for n in "abc"])
    same("pending", await k.pending(q), 0)


@case("consume/Batch")
async def batch(k: Kit) -> None:
    """Otherwise it gets a list, also where no batch was asked for."""
    for size in [10, 0]:
        await handles_lists(k, size)


async def handles_lists(k: Kit, size: int) -> None:
    q = await k.queue()
    await k.push(q, *(f"m{i}" for i in range(10)))
    seen: List[str] = []

    async def handle(messages: Any) -> None:
        true("a list", isinstance(messages, list))
        seen.extend(ids(messages))

    await consuming(k, q).batch(size).limit(10).consume(handle)
    same("handled", seen, [f"m{i}" for i in range(10)])
    same("pending", await k.pending(q), 0)


@case("consume/Each")
async def each(k: Kit) -> None:
    """each() acks one by one; a failure gives up the rest of its partition,
    which comes again."""
    q = await k.queue()
    await k.push(q, "a", "b", "c")
    seen: List[str] = []

    async def handle(m: Any) -> None:
        seen.append(m["transactionId"])
        if seen.count("b") == 1 and m["transactionId"] == "b":
            raise ValueError("not yet")

    await consuming(k, q).batch(10).each().limit(4).consume(handle)
    same("handled", seen, ["a", "b", "b", "c"])
    same("pending", await k.pending(q), 0)


@case("consume/EachOverPartitions")
async def each_over_partitions(k: Kit) -> None:
    """A failure in one partition does not touch the others of the pop."""
    q = await k.queue()
    for p in ["p1", "p2"]:
        await k.push(q, p + "a", p + "b", partition=p)
    seen: List[str] = []

    async def handle(m: Any) -> None:
        seen.append(m["transactionId"])
        if seen.count("p1a") == 1 and m["transactionId"] == "p1a":
            raise ValueError("not yet")

    await consuming(k, q).batch(10).partitions(5).each().limit(5).consume(handle)
    same("handled", sorted(seen), ["p1a", "p1a", "p1b", "p2a", "p2b"])
    same("order", [s for s in seen if s.startswith("p1")], ["p1a", "p1a", "p1b"])
    same("pending", await k.pending(q), 0)


@case("consume/BatchFails")
async def batch_fails(k: Kit) -> None:
    """A failing batch comes again whole."""
    q = await k.queue()
    await k.push(q, "a", "b")
    seen: List[List[str]] = []

    async def handle(messages: Any) -> None:
        seen.append(ids(messages))
        if len(seen) == 1:
            raise ValueError("not yet")

    await consuming(k, q).batch(10).limit(4).consume(handle)
    same("handled", seen, [["a", "b"], ["a", "b"]])


@case("consume/DeadLetters")
async def dead_letters(k: Kit) -> None:
    """A message that fails too often is filed with the handler's words, and
    the next ones go on."""
    q = await k.queue(retry_limit=2)
    await k.push(q, "bad", "good")
    seen: List[str] = []

    async def handle(m: Any) -> None:
        seen.append(m["transactionId"])
        if m["transactionId"] == "bad":
            raise ValueError("cannot do that: “é”")

    await consuming(k, q).batch(1).limit(4).consume(handle)
    same("handled", seen, ["bad", "bad", "bad", "good"])
    dead = await k.queen.queue(q).dlq("g").get()
    same("dead letters", dead["messages"], [{"transactionId": "bad", "errorMessage": "cannot do that: “é”", "retryCount": int}])


@case("consume/Workers")
async def workers(k: Kit) -> None:
    """Several workers share the partitions: each message once, in order."""
    q = await k.queue()
    names = [f"p{i}" for i in range(8)]
    for p in names:
        await k.push(q, *(f"{p}-{n}" for n in range(5)), partition=p)
    seen: List[str] = []
    stop = asyncio.Event()

    async def handle(m: Any) -> None:
        seen.append(m["transactionId"])
        await asyncio.sleep(0.001)
        if len(seen) == 40:
            stop.set()

    await consuming(k, q).concurrency(4).batch(5).partitions(2).each().consume(handle, signal=stop)
    same("each once", max(Counter(seen).values()), 1)
    for p in names:
        same("order", [s for s in seen if s.startswith(p + "-")], [f"{p}-{n}" for n in range(5)])
    same("pending", await k.pending(q), 0)


@case("consume/IdleWithoutWait")
async def idle(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a")
    seen: List[str] = []

    async def handle(m: Any) -> None:
        seen.append(m["transactionId"])

    await asyncio.wait_for(consuming(k, q).batch(1).wait(False).idle_millis(400).consume(handle), 10)
    same("handled", seen, ["a"])


@case("consume/IdleWithAutopilot")
async def idle_with_autopilot(k: Kit) -> None:
    """Between empty pops the client pauses as the broker advised."""
    q = await k.queue()
    seen: List[str] = []

    async def handle(messages: Any) -> None:
        seen.extend(ids(messages))

    await k.push(q, "a")
    await asyncio.wait_for(consuming(k, q).wait(False).idle_millis(400).consume(handle), 10)
    same("handled", seen, ["a"])


@case("consume/LongPoll")
async def long_poll(k: Kit) -> None:
    """A consumer outlives empty long polls."""
    q = await k.queue()
    stop = asyncio.Event()

    async def handle(m: Any) -> None:
        stop.set()

    running = asyncio.ensure_future(consuming(k, q).timeout_millis(200).batch(1).consume(handle, signal=stop)._execute())
    await asyncio.sleep(1)
    await k.push(q, "a")
    await asyncio.wait_for(running, 10)
    same("pending", await k.pending(q), 0)


@case("consume/ByHand")
async def by_hand(k: Kit) -> None:
    """Without auto ack the handler settles, and its error ends the consumer."""
    q = await k.queue()
    await k.push(q, "a", "b")

    async def handle(m: Any) -> None:
        if m["transactionId"] == "b":
            raise ValueError("mine")
        same("ack", await k.queen.ack(m, True, {"group": "g"}), {"success": True})

    async def consume() -> None:
        await consuming(k, q).batch(1).auto_ack(False).consume(handle)

    error = await raises("the handler's error", consume(), ValueError)
    same("error", str(error), "mine")
    same("pending", await k.pending(q), 1)


@case("consume/Callbacks")
async def callbacks(k: Kit) -> None:
    """With callbacks the client does not ack by itself."""
    q = await k.queue()
    await k.push(q, "a")
    told: List[str] = []

    async def handle(m: Any) -> str:
        return "handled " + m["transactionId"]

    async def success(m: Any, result: Any) -> None:
        told.append(result)
        same("ack", await k.queen.ack(m, True, {"group": "g"}), {"success": True})

    await consuming(k, q).batch(1).limit(1).consume(handle).on_success(success)
    same("told", told, ["handled a"])
    same("pending", await k.pending(q), 0)


@case("consume/QueueMode")
async def queue_mode(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a")
    seen: List[str] = []

    async def handle(m: Any) -> None:
        seen.append(m["consumerGroup"])

    await k.queen.queue(q).batch(1).limit(1).timeout_millis(2000).consume(handle)
    same("handled", seen, ["__QUEUE_MODE__"])
    await k.none(q, group=None)


@case("consume/Pinned")
async def pinned(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a", partition="p1")
    await k.push(q, "b", partition="p2")
    seen: List[str] = []

    async def handle(m: Any) -> None:
        seen.append(m["transactionId"])

    await consuming(k, q).partition("p2").batch(1).limit(1).consume(handle)
    same("handled", seen, ["b"])


@case("consume/Discovery")
async def discovery(k: Kit) -> None:
    ns = k.name("ns")
    queues = [k.name(), k.name()]
    for q in queues:
        await k.queen.queue(q).namespace(ns).task("t").create()
        await k.push(q, q)
    seen: List[str] = []

    async def handle(m: Any) -> None:
        seen.append(m["transactionId"])

    consumer = k.queen.queue().namespace(ns).task("t").group("g").subscription_mode("all").timeout_millis(2000)
    await asyncio.wait_for(consumer.batch(1).limit(2).consume(handle), 15)
    same("handled", sorted(seen), sorted(queues))


@case("consume/EndsOnRefusal")
async def ends_on_refusal(k: Kit) -> None:
    """What the broker refuses for good ends the consumer."""
    q = await k.queue()

    async def consume() -> None:
        await k.queen.queue(q).conflation().timeout_millis(1000).consume(lambda m: None)

    error = await raises("conflation without a group", consume(), httpx.HTTPStatusError)
    same("status", error.response.status_code, 400)


@case("consume/OtherGroups")
async def other_groups(k: Kit) -> None:
    """Each group gets everything."""
    q = await k.queue()
    await k.push(q, "a", "b")
    seen: List[str] = []

    async def handle(m: Any) -> None:
        seen.append(m["consumerGroup"] + " " + m["transactionId"])

    for group in ["g1", "g2"]:
        await consuming(k, q, group).batch(1).limit(2).consume(handle)
    same("handled", seen, ["g1 a", "g1 b", "g2 a", "g2 b"])
