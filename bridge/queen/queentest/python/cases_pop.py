"""Pop: what comes, how much of it, from where, and when."""

import asyncio
import time
from typing import List

from queen.utils.autopilot import AutopilotDecision

from kit import MICROS, UUID, Kit, case, ids, item, refused, same, true


@case("pop/Message")
async def message(k: Kit) -> None:
    """The fields of a message."""
    q = await k.queue()
    pushed = await k.queen.queue(q).partition("p").push([item("a"), item("b")])
    got = await k.pop(q, ["a", "b"])
    for i, m in enumerate(got):
        same("message", m, {
            "id": pushed[i]["message_id"], "transactionId": "ab"[i], "traceId": None, "data": {"id": "ab"[i]}, "producerSub": None,
            "createdAt": MICROS, "partitionId": UUID, "partition": "p", "leaseId": UUID, "consumerGroup": "g",
        })
    true("one lease", got[0]["leaseId"] == got[1]["leaseId"])
    true("one partition", got[0]["partitionId"] == got[1]["partitionId"])


@case("pop/Empty")
async def empty(k: Kit) -> None:
    """Nothing is an empty list, from every route, also after a long poll."""
    q = await k.queue()
    await k.none(q)
    await k.none(q, partition="nope")
    await k.none(k.name())
    same("discovery", await k.queen.queue().namespace(k.name()).wait(False).batch(1).pop(), [])
    began = time.monotonic()
    await k.none(q, wait=0.6)
    await k.none(q, wait=0.6, partition="p")
    true("the long polls waited", time.monotonic() - began > 1.1)


@case("pop/Batch")
async def batch(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, *(f"m{i}" for i in range(10)))
    first = await k.pop(q, ["m0"], batch=1)
    await k.done(first)
    rest = await k.pop(q, ["m1", "m2", "m3"], batch=3)
    await k.done(rest)
    same("pending", await k.pending(q), 6)


@case("pop/Autopilot")
async def autopilot(k: Kit) -> None:
    """A pop with no sizes of its own gets more than one message, and is told
    what was chosen."""
    q = await k.queue()
    await k.push(q, *(f"m{i}" for i in range(20)))
    result = await k.queen.queue(q).group("g").subscription_mode("all").wait(False).pop_result()
    true("more than one message", len(result.messages) > 1)
    true("a decision", isinstance(result.autopilot, AutopilotDecision))
    true("partitions and batch", result.autopilot.partitions >= 1 and result.autopilot.batch > 1)
    true("a pause", 0 <= result.autopilot.wait_millis <= 60_000)
    both = await k.popping(q, group="h", batch=5, partitions=1).pop_result()
    same("with both sizes", (len(both.messages), both.autopilot), (5, None))


@case("pop/AutopilotFills")
async def autopilot_fills(k: Kit) -> None:
    """Autopilot chooses only the size that was not sent."""
    q = await k.queue()
    for p in ["p1", "p2", "p3"]:
        await k.push(q, *(p + x for x in "abcd"), partition=p)
    pop = k.queen.queue(q).group("g").subscription_mode("all").wait(False)
    result = await pop.batch(2).pop_result()
    same("batch 2", (len(result.messages), result.autopilot.batch), (2, 2))
    result = await k.queen.queue(q).group("h").subscription_mode("all").wait(False).partitions(1).pop_result()
    same("one partition", len({m["partition"] for m in result.messages}), 1)
    same("told so", result.autopilot.partitions, 1)
    same("all of it", len(result.messages), 4)


@case("pop/WithoutAutopilot")
async def without_autopilot(k: Kit) -> None:
    """Switched off, the client asks for one message."""
    q = await k.queue()
    await k.push(q, "a", "b")
    result = await k.queen.queue(q).group("g").subscription_mode("all").autopilot(False).wait(False).pop_result()
    same("pop", (ids(result.messages), result.autopilot), (["a"], None))


@case("pop/Partitions")
async def partitions(k: Kit) -> None:
    """Many partitions under one lease, and no more of them than asked for."""
    q = await k.queue()
    names = [f"p{i}" for i in range(6)]
    for p in names:
        await k.push(q, p + "a", p + "b", partition=p)
    some = await k.pop(q, group="some", partitions=2)
    same("partitions", len({m["partition"] for m in some}), 2)
    got = await k.pop(q, batch=100, partitions=6)
    same("messages", len(got), 12)
    same("leases", len({m["leaseId"] for m in got}), 1)
    for p in names:
        same("order in " + p, ids([m for m in got if m["partition"] == p]), [p + "a", p + "b"])


@case("pop/BudgetIsShared")
async def budget(k: Kit) -> None:
    """The batch is the budget of all partitions together."""
    q = await k.queue()
    for p in ["p1", "p2", "p3"]:
        await k.push(q, p + "a", p + "b", partition=p)
    got = await k.pop(q, batch=3, partitions=3)
    same("messages", len(got), 3)


@case("pop/Pinned")
async def pinned(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a", partition="p1")
    await k.push(q, "b", partition="p2")
    await k.pop(q, ["b"], partition="p2")
    await k.none(q, partition="p2")
    await k.pop(q, ["a"])


@case("pop/Discovery")
async def discovery(k: Kit) -> None:
    """By namespace, by task, by both; other queues stay out of it."""
    ns, task = k.name("ns"), k.name("task")
    for name, scope in [(k.name(), (ns, task)), (k.name(), (ns, "other")), (k.name(), ("other", task))]:
        await k.queen.queue(name).namespace(scope[0]).task(scope[1]).create()
        await k.push(name, f"{scope[0]}/{scope[1]}")

    async def pop(group: str, *scope: str) -> List[str]:
        pop = k.queen.queue().group(group).subscription_mode("all").batch(10).partitions(10).wait(True).timeout_millis(5000)
        pop = pop.namespace(scope[0]) if scope[0] else pop
        pop = pop.task(scope[1]) if scope[1] else pop
        got = await pop.pop()
        return sorted(ids(got))

    same("by both", await pop("both", ns, task), [f"{ns}/{task}"])
    same("by namespace", await pop("ns", ns, ""), sorted([f"{ns}/{task}", f"{ns}/other"]))
    same("by task", await pop("task", "", task), sorted([f"{ns}/{task}", f"other/{task}"]))


@case("pop/DottedName")
async def dotted(k: Kit) -> None:
    """A queue nobody configured is filed under the parts of its name."""
    ns = k.name("ns")
    await k.push(f"{ns}.task.rest", "a")
    got = await k.queen.queue().namespace(ns).task("task").group("g").subscription_mode("all").batch(1).timeout_millis(5000).pop()
    same("popped", ids(got), ["a"])


@case("pop/CommitOnDelivery")
async def commit_on_delivery(k: Kit) -> None:
    """Delivered is done: no lease, nothing to ack, no second delivery."""
    q = await k.queue()
    await k.push(q, "a", "b", "c")
    got = await k.popping(q, batch=2).commit_on_delivery().pop()
    same("popped", got, [{"transactionId": "a", "leaseId": ""}, {"transactionId": "b", "leaseId": ""}])
    await k.pop(q, ["c"])


@case("pop/Exclusive")
async def exclusive(k: Kit) -> None:
    """A leased partition is given to nobody else of its group."""
    q = await k.queue()
    await k.push(q, "a", "b")
    await k.pop(q, ["a"], batch=1)
    await k.none(q)
    await k.none(q, partition="p")
    await k.pop(q, ["a", "b"], group="other")
    await k.pop(q, ["a", "b"], group=None, mode=None)


@case("pop/Race")
async def race(k: Kit) -> None:
    """Of eight pops of one partition, one wins."""
    q = await k.queue()
    await k.push(q, "a")
    got = await asyncio.gather(*(k.popping(q).pop() for _ in range(8)))
    same("winners", sorted(len(g) for g in got), [0] * 7 + [1])


@case("pop/WakesOnPush")
async def wakes_on_push(k: Kit) -> None:
    q = await k.queue()
    for how in [{"partition": "p"}, {}]:
        parked = asyncio.create_task(k.pop(q, ["a" + str(how)], **how))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        await k.push(q, "a" + str(how))
        await k.done(await parked)
        true("woken at once", time.monotonic() - began < 5)


@case("pop/AbandonedLongPoll")
async def abandoned(k: Kit) -> None:
    """A long poll whose client has gone takes nothing."""
    q = await k.queue()
    client = k.client()
    parked = asyncio.create_task(client.queue(q).group("g").subscription_mode("all").batch(1).partitions(1).wait(True).pop())
    await asyncio.sleep(0.3)
    parked.cancel()
    await asyncio.gather(parked, return_exceptions=True)
    await asyncio.sleep(0.1)
    await k.push(q, "a")
    await k.pop(q, ["a"], wait=2.0)
    await client.close()


@case("pop/ConflationNeedsAGroup")
async def conflation(k: Kit) -> None:
    q = await k.queue()
    pop = k.queen.queue(q).conflation().wait(False)
    await refused("conflation without a group", pop.pop(), 400, "conflation")
    pop = k.queen.queue(q).group("g").conflation().commit_on_delivery().wait(False)
    await refused("conflation with commit on delivery", pop.pop(), 400, "conflation")


@case("pop/QueueMode")
async def queue_mode(k: Kit) -> None:
    """Consumers that name no group share one, which begins at the oldest."""
    q = await k.queue()
    await k.push(q, "a", "b")
    got = await k.pop(q, ["a", "b"], group=None, mode=None)
    same("group", {m["consumerGroup"] for m in got}, {"__QUEUE_MODE__"})
    same("ack", await k.queen.ack(got), {"success": True})
    await k.none(q, group=None, mode=None)
