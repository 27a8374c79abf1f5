"""Dead letters: the list, replay, deletion."""

from typing import Any, Dict, List

from kit import MILLIS, UUID, Kit, case, ids, item, refused, same, true


async def bury(k: Kit, q: str, *names: str, group: str = "g", partition: str = "p") -> List[Dict[str, Any]]:
    """Push messages and file each as a dead letter, one after the other."""
    buried = []
    for n in names:
        await k.queen.queue(q).partition(partition).push(item(n))
        [m] = await k.pop(q, [n], group=group, partition=partition, batch=1)
        same("dlq", await k.queen.ack(m, "dlq", {"group": group, "error": f"no {n}"}), {"success": True, "dlq": True})
        buried.append(m)
    return buried


@case("deadletter/List")
async def listing(k: Kit) -> None:
    """Newest first, with pages; the total is the length of the page."""
    q = await k.queue()
    [m, *_] = await bury(k, q, "a", "b", "c")
    got = await k.queen.queue(q).dlq().get()
    same("list", got, {"total": 3, "pagination": {"limit": 100, "offset": 0}, "messages": [
        {"transactionId": n, "partition": "p", "partitionId": m["partitionId"], "queue": q, "consumerGroup": "g", "id": UUID,
         "errorMessage": f"no {n}", "retryCount": 0, "data": {"id": n}, "producerSub": None, "createdAt": MILLIS, "failedAt": MILLIS}
        for n in "cba"]})
    page = await k.queen.queue(q).dlq().limit(1).offset(1).get()
    same("page", page, {"total": 1, "pagination": {"limit": 1, "offset": 1}, "messages": [{"transactionId": "b"}]})


@case("deadletter/Filters")
async def filters(k: Kit) -> None:
    """By group; 1.3.0 takes a partition and times, and does not use them."""
    q = await k.queue()
    await bury(k, q, "a", group="g1")
    await bury(k, q, "b", group="g2", partition="other")
    same("group", ids((await k.queen.queue(q).dlq("g2").get())["messages"]), ["b"])
    same("no such group", await k.queen.queue(q).dlq("nope").get(), {"messages": [], "total": 0})
    same("no such queue", await k.queen.queue(k.name()).dlq().get(), {"messages": [], "total": 0})
    query = k.queen.queue(q).partition("other").dlq().from_("2020-01-01T00:00:00Z").to("2020-01-02T00:00:00Z")
    same("partition and times", ids((await query.get())["messages"]), ["b", "a"])


@case("deadletter/Replay")
async def replay(k: Kit) -> None:
    """A replay is a new message at the tail, for every group; its row is gone."""
    q = await k.queue()
    [m] = await bury(k, q, "a")
    got = await k.queen.admin.retry_message(m["partitionId"], "a")
    same("replay", got, {"success": True, "dlqRowRemoved": True, "queue": q, "partition": "p", "replayedAs": {
        "index": 0, "message_id": UUID, "transaction_id": UUID, "queueName": q, "status": "queued"}})
    same("list", await k.queen.queue(q).dlq().get(), {"total": 0})
    new = got["replayedAs"]["transaction_id"]
    same("popped", await k.pop(q, [new]), [{"data": {"id": "a"}, "id": got["replayedAs"]["message_id"]}])
    await k.pop(q, ["a", new], group="other")
    await refused("again", k.queen.admin.retry_message(m["partitionId"], "a"), 404, "not found")


@case("deadletter/Delete")
async def delete(k: Kit) -> None:
    q = await k.queue()
    [a, _] = await bury(k, q, "a", "b")
    same("delete", await k.queen.admin.delete_message(a["partitionId"], "a"), {"success": True})
    same("list", ids((await k.queen.queue(q).dlq().get())["messages"]), ["b"])
    await refused("again", k.queen.admin.delete_message(a["partitionId"], "a"), 404, "not found")
    await k.push(q, "live")
    await refused("a live message", k.queen.admin.delete_message(a["partitionId"], "live"), 404, "not found")
    await k.pop(q, ["live"])


@case("deadletter/Names")
async def names(k: Kit) -> None:
    """Addresses with names that need escaping; httpx escapes some."""
    q = await k.queue()
    for n in ["with space", "plus+sign", "größe ☃", "a:b#c"]:
        [m] = await bury(k, q, n)
        path = n.replace("#", "%23")
        same("message", await k.queen.admin.get_message(m["partitionId"], path), {"status": "dead_letter", "transactionId": n})
        same("replay", await k.queen.admin.retry_message(m["partitionId"], path), {"success": True})
        await k.done(await k.pop(q))


@case("deadletter/DeletingTheQueue")
async def deleting_the_queue(k: Kit) -> None:
    q = await k.queue()
    await bury(k, q, "a")
    await k.queen.queue(q).delete()
    same("list", await k.queen.queue(q).dlq().get(), {"messages": [], "total": 0})


@case("deadletter/ErrorIsEmpty")
async def error_is_empty(k: Kit) -> None:
    """The client prints what goes wrong and returns nothing."""
    client = k.client("http://127.0.0.1:9", retry_attempts=1)
    same("list", await client.queue("q").dlq().get(), {"messages": [], "total": 0})
    true("pop", await client.queue("q").batch(1).wait(False).pop() == [])
    await client.close()
