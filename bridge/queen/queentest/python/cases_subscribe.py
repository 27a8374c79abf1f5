"""Where a group begins: subscription modes and times."""

import asyncio
from datetime import datetime, timedelta, timezone

from kit import Kit, case, same


@case("subscribe/NewSkipsWhatWasThere")
async def new(k: Kit) -> None:
    """The default is new, whatever the client's documents say."""
    for mode in ["new", "new-only", None]:
        q = await k.queue()
        await k.push(q, "old", partition="p1")
        await k.none(q, mode=mode)
        await k.push(q, "new", partition="p1")
        await k.push(q, "first", partition="p2")
        await k.pop(q, ["new"], mode=mode, partition="p1")
        await k.pop(q, ["first"], mode=mode, partition="p2")


@case("subscribe/All")
async def everything(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "old")
    for n, mode in enumerate(["all", "ALL", "anything"]):
        await k.pop(q, ["old"], mode=mode, group=f"g{n}")


@case("subscribe/IsFixedAtFirstContact")
async def fixed(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "old")
    await k.none(q, mode="new")
    await k.none(q, mode="all")
    await k.push(q, "new")
    await k.pop(q, ["new"], mode="all")


@case("subscribe/NewPartitionBeginsAtItsStart")
async def new_partition(k: Kit) -> None:
    """A partition made after the first contact is read from its first message,
    however late the group comes by."""
    q = await k.queue()
    await k.none(q, mode="new")
    await k.push(q, "a", "b", partition="later")
    await k.pop(q, ["a", "b"], mode="new", partition="later")


@case("subscribe/FromTime")
async def from_time(k: Kit) -> None:
    """A time wins over the mode and compares with createdAt."""
    q = await k.queue()
    await k.push(q, "a")
    await asyncio.sleep(0.2)
    await k.push(q, "b")
    created = [m["createdAt"] for m in await k.pop(q, ["a", "b"], group="look")]

    async def pop(group: str, since: str, mode: str = "all") -> list:
        messages = await k.popping(q, group=group, mode=mode).subscription_from(since).pop()
        return [m["transactionId"] for m in messages]

    same("since the second", await pop("second", created[1]), ["b"])
    same("since the first, mode new", await pop("first", created[0], "new"), ["a", "b"])
    long_ago = (datetime.now(timezone.utc) - timedelta(days=1)).isoformat()
    same("since yesterday", await pop("yesterday", long_ago), ["a", "b"])
    same("now", await pop("now", "now"), [])
    same("no time", await pop("garbage", "garbage"), [])
    await k.push(q, "c")
    same("now, later", await pop("now", "now"), ["c"])


@case("subscribe/QueueModeBeginsAtTheOldest")
async def queue_mode(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "old")
    await k.pop(q, ["old"], group=None, mode="new")


@case("subscribe/ConsumeFromNew")
async def consume_new(k: Kit) -> None:
    """A consumer that does not say where to begin misses what was there."""
    q = await k.queue()
    await k.push(q, "old")
    seen = []

    async def handle(m: dict) -> None:
        seen.append(m["transactionId"])

    consumer = k.queen.queue(q).group("g").batch(1).limit(1).timeout_millis(2000)
    running = asyncio.ensure_future(consumer.consume(handle)._execute())
    await k.eventually("first contact", lambda: contacted(k, q))
    await k.push(q, "new")
    await asyncio.wait_for(running, 10)
    same("handled", seen, ["new"])


async def contacted(k: Kit, q: str) -> bool:
    return any(g["queueName"] == q for g in await k.queen.admin.list_consumer_groups())


@case("subscribe/PinnedPopIsAContactWithItsPartition")
async def pinned_contact(k: Kit) -> None:
    """A group that popped partitions only has its first contact with the
    queue still before it."""
    q, g = await k.queue(), k.name("g")
    for p in ["p1", "p2"]:
        await k.push(q, "old " + p, partition=p)
    await k.none(q, group=g, mode="new", partition="p1")
    rows = [r for r in await k.queen.admin.list_consumer_groups() if r["name"] == g]
    same("group", rows, [{"members": 1, "subscriptionMode": None, "subscriptionTimestamp": None}])
    await k.pop(q, ["old p2"], group=g, mode="all", partitions=5)
    await k.push(q, "new p1", partition="p1")
    await k.pop(q, ["new p1"], group=g, mode="all", partitions=5)
