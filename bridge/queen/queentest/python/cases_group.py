"""Consumer groups: lists, lag, seeks, deletion."""

import asyncio
from typing import Any, Dict, Optional

from kit import UUID, Kit, case, one_of, refused, same, true


async def row(k: Kit, group: str, q: str) -> Optional[Dict[str, Any]]:
    """How the list shows a group on a queue."""
    rows = [g for g in await k.queen.admin.list_consumer_groups() if g["name"] == group and g["queueName"] == q]
    return rows[0] if rows else None


@case("group/List")
async def listing(k: Kit) -> None:
    q, g = await k.queue(), k.name("g")
    await k.push(q, "a", "b", partition="p1")
    await k.push(q, "c", partition="p2")
    got = await k.pop(q, group=g)
    same("row", await row(k, g, q), {
        "name": g, "queueName": q, "topics": [q], "members": 2, "partitionCursors": 2, "totalLag": 3, "partitionsWithLag": 2,
        "maxTimeLag": int, "state": str, "storage": "segments", "conflation": False, "subscriptionMode": "all",
        "subscriptionCreatedAt": str, "subscriptionTimestamp": "1970-01-01T00:00:00+00:00",
    })
    await k.done(got, g)
    same("row", await row(k, g, q), {"totalLag": 3 - len(got), "partitionsWithLag": 1, "state": "Stable"})


@case("group/One")
async def one(k: Kit) -> None:
    """One group by queue, partition by partition."""
    q, other, g = await k.queue(), await k.queue(), k.name("g h")
    await k.push(q, "a", "b", partition="p1")
    await k.push(q, "c", partition="p2")
    await k.push(other, "d")
    got = await k.pop(q, group=g, partitions=1)
    while got[0]["partition"] != "p1":
        await k.queen.ack(got, "retry", {"group": g})
        got = await k.pop(q, group=g, partitions=1)
    await k.pop(other, ["d"], group=g)
    seen = await k.queen.admin.get_consumer_group(g)
    same("queues", sorted(seen), sorted([q, other]))
    lanes = sorted(seen[q]["partitions"], key=lambda p: p["partition"])
    same("partitions", lanes, [
        {"partition": "p1", "offsetLag": 2, "leaseActive": True, "workerId": got[0]["leaseId"], "totalConsumed": 0,
         "timeLagSeconds": int, "lastConsumedAt": None},
        {"partition": "p2", "offsetLag": 1, "leaseActive": False, "workerId": one_of(None, str)},
    ])
    await k.done(got, g)
    seen = await k.queen.admin.get_consumer_group(g)
    lanes = sorted(seen[q]["partitions"], key=lambda p: p["partition"])
    same("partitions", lanes[0], {"partition": "p1", "offsetLag": 0, "leaseActive": False, "workerId": None, "totalConsumed": 2})
    same("no such group", await k.queen.admin.get_consumer_group(k.name()), {})


@case("group/Lagging")
async def lagging(k: Kit) -> None:
    """Who is behind, partition by partition; a minute by default."""
    q, g = await k.queue(), k.name("g")
    await k.push(q, "a", "b")
    await k.pop(q, group=g)
    await asyncio.sleep(1.7)

    async def mine(seconds: int) -> Any:
        rows = await k.queen.admin.get_lagging_consumers(seconds)
        true("a list", isinstance(rows, list))
        return [r for r in rows if r["consumer_group"] == g]

    same("more than a second", await mine(1), [{
        "consumer_group": g, "queue_name": q, "partition_name": "p", "partition_id": UUID, "worker_id": UUID, "offset_lag": 2,
        "time_lag_seconds": int, "lag_hours": one_of(int, float), "oldest_unconsumed_at": str, "last_consumed_at": None,
    }])
    same("an hour", await mine(3600), [])


@case("group/SeekToEnd")
async def seek_to_end(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a", "b", partition="p1")
    await k.push(q, "c", partition="p2")
    await k.pop(q, ["a"], batch=1, partition="p1")
    got = await k.queen.admin.seek_consumer_group("g", q, {"toEnd": True})
    same("seek", got, {
        "success": True, "queueName": q, "consumerGroup": "g", "seekToEnd": True, "targetTimestamp": None, "partitionsUpdated": 2,
    })
    await k.none(q, partitions=5)
    await k.push(q, "d", partition="p1")
    await k.pop(q, ["d"])


@case("group/SeekToTime")
async def seek_to_time(k: Kit) -> None:
    """Back to a time; a parked pop gets what comes again."""
    q = await k.queue()
    await k.push(q, "a")
    await asyncio.sleep(0.2)
    await k.push(q, "b")
    got = await k.pop(q, ["a", "b"])
    await k.done(got)
    parked = asyncio.create_task(k.pop(q, ["b"]))
    await asyncio.sleep(0.2)
    at = got[1]["createdAt"]
    seek = await k.queen.admin.seek_consumer_group("g", q, {"timestamp": at})
    same("seek", seek, {"success": True, "seekToEnd": False, "targetTimestamp": at[:23] + "Z", "partitionsUpdated": 1})
    await k.done(await parked)
    await k.queen.admin.seek_consumer_group("g", q, {"timestamp": "2020-01-01T00:00:00Z"})
    await k.pop(q, ["a", "b"])


@case("group/SeekRefused")
async def seek_refused(k: Kit) -> None:
    q, seek = await k.queue(), k.queen.admin.seek_consumer_group
    end = {"toEnd": True}
    await refused("a queue without partitions", seek("g", q, end), 404, "not found or has no partitions")
    await refused("no such queue", seek("g", k.name(), end), 404, "not found or has no partitions")
    await k.push(q, "a")
    await refused("no target", seek("g", q, {}), 400)
    await refused("no target", seek("g", q, {"toEnd": False}), 400, "timestamp")
    same("a group that never came", await seek("g", q, end), {"success": True, "partitionsUpdated": 1})
    await k.none(q)


@case("group/Delete")
async def delete(k: Kit) -> None:
    """A group that is deleted comes as a new one, on every queue."""
    q, other, g = await k.queue(), await k.queue(), k.name("g")
    for name in [q, other]:
        await k.push(name, "a")
        await k.done(await k.pop(name, ["a"], group=g), g)
    got = await k.queen.delete_consumer_group(g)
    same("delete", got, {"success": True, "consumerGroup": g, "deletedPartitions": 2, "metadataDeleted": True})
    same("gone", await row(k, g, q), None)
    for name in [q, other]:
        await k.pop(name, ["a"], group=g)
    nobody = await k.queen.delete_consumer_group(k.name())
    same("nobody", nobody, {"success": True, "deletedPartitions": 0, "metadataDeleted": True})


@case("group/DeleteOnOneQueue")
async def delete_on_one(k: Kit) -> None:
    q, other, g = await k.queue(), await k.queue(), k.name("g")
    for name in [q, other]:
        await k.push(name, "a")
        await k.done(await k.pop(name, ["a"], group=g), g)
    got = await k.queen.admin.delete_consumer_group_for_queue(g, q)
    same("delete", got, {"success": True, "consumerGroup": g, "queueName": q, "deletedPartitions": 1, "metadataDeleted": True})
    await k.pop(q, ["a"], group=g)
    await k.none(other, group=g)


@case("group/DeleteKeepsTheSubscription")
async def delete_keeps(k: Kit) -> None:
    """Without its metadata the group begins where its subscription says."""
    q, g = await k.queue(), k.name("g")
    await k.push(q, "old")
    await k.none(q, group=g, mode="new")
    await k.push(q, "new")
    await k.done(await k.pop(q, ["new"], group=g), g)
    got = await k.queen.delete_consumer_group(g, delete_metadata=False)
    same("delete", got, {"success": True, "deletedPartitions": 1, "metadataDeleted": False})
    await k.pop(q, ["new"], group=g)


@case("group/Subscription")
async def subscription(k: Kit) -> None:
    """A new subscription time moves nothing there is; it counts for
    partitions that come."""
    q, g = await k.queue(), k.name("g")
    await k.push(q, "a", partition="p1")
    await k.done(await k.pop(q, ["a"], group=g), g)
    later = "2035-01-01T00:00:00Z"
    got = await k.queen.update_consumer_group_timestamp(g, later)
    same("update", got, {"success": True, "consumerGroup": g, "newTimestamp": later, "rowsUpdated": 1})
    same("row", await row(k, g, q), {"subscriptionTimestamp": "2035-01-01T00:00:00+00:00", "subscriptionMode": "all"})
    await k.push(q, "b", partition="p1")
    await k.push(q, "c", partition="p2")
    await k.pop(q, ["b"], group=g, partitions=5)
    await k.none(q, group=g, partition="p2")
    nobody = await k.queen.update_consumer_group_timestamp(k.name(), later)
    same("nobody", nobody, {"success": True, "rowsUpdated": 0})
    await refused("no time", k.queen.update_consumer_group_timestamp(g, ""), 400, "subscriptionTimestamp is required")
