"""Queues: configuration, reads, depth, deletion."""

import asyncio

from kit import MILLIS, UUID, Kit, case, ids, refused, same, true

DEFAULTS = {
    "leaseTime": 300, "retryLimit": 3, "retryDelay": 1000, "priority": 0, "delayedProcessing": 0, "windowBuffer": 0, "maxSize": 0,
    "retentionEnabled": False, "retentionSeconds": 0, "completedRetentionSeconds": 0, "maxWaitTimeSeconds": 0, "ttl": 3600,
    "encryptionEnabled": False, "deadLetterQueue": True, "dlqAfterMaxRetries": True, "dedupWindowSeconds": 3600, "minPopWaitTime": 0,
}


@case("queue/Create")
async def create(k: Kit) -> None:
    """The answer shows what is in force; the client sends nulls for what is unset."""
    q = k.name()
    got = await k.queen.queue(q).create()
    same("create", got, {
        "configured": True, "queue": q, "queueId": UUID, "partitionId": None, "namespace": "", "task": "", "storage": "segments",
        "options": DEFAULTS,
    })
    again = await k.queen.queue(q).namespace("n").task("t").create()
    same("again", again, {"queueId": got["queueId"], "namespace": "n", "task": "t"})


@case("queue/Options")
async def options(k: Kit) -> None:
    """Both spellings; unknown options pass; every call replaces all."""
    q = k.name()
    config = {"lease_time": 7, "retryLimit": 9, "dedup_window_seconds": 5, "retentionEnabled": True, "window_buffer": 3, "bogus": 1}
    got = await k.queen.queue(q).config(config).create()
    want = {"leaseTime": 7, "retryLimit": 9, "dedupWindowSeconds": 5, "retentionEnabled": True, "windowBuffer": 3}
    same("options", got["options"], {**DEFAULTS, **want})
    again = await k.queen.queue(q).config({"retry_limit": 1}).create()
    same("again", again["options"], {**DEFAULTS, "retryLimit": 1})


@case("queue/Callbacks")
async def callbacks(k: Kit) -> None:
    told = []

    async def success(result: dict) -> None:
        told.append(result["configured"])

    async def failure(error: Exception) -> None:
        told.append(str(error))

    await k.queen.queue(k.name()).create().on_success(success)
    got = await k.queen.queue(None).create().on_error(failure)
    same("no name", got, {"success": False})
    same("told", told, [True, str])


@case("queue/DelayedProcessing")
async def delayed(k: Kit) -> None:
    q = await k.queue(delayed_processing=4)
    await k.push(q, "a")
    await k.none(q)
    await k.pop(q, ["a"], wait=20.0)


@case("queue/DedupWindow")
async def dedup_window(k: Kit) -> None:
    q = await k.queue(dedup_window_seconds=4)
    await k.push(q, "a")
    same("at once", await k.queen.queue(q).partition("p").push({"transactionId": "a", "data": 1}), [{"status": "duplicate"}])
    await asyncio.sleep(5.2)
    await k.push(q, "a")


@case("queue/Read")
async def read(k: Kit) -> None:
    q = k.name("ns") + ".task.x"
    await k.push(q, "a", "b", "c")
    await k.push(q, "d", partition="other")
    await k.pop(q, ["a", "b"], batch=2, partition="p")
    got = await k.queen.admin.get_queue(q)
    got["partitions"].sort(key=lambda p: p["name"])
    same("queue", got, {
        "id": UUID, "name": q, "namespace": q.split(".")[0], "task": "task", "createdAt": MILLIS, "retainedBytes": int,
        "segments": {"messages": 4, "segments": int},
        "totals": {"total": 4, "pending": 4, "processing": 2, "completed": 0, "deadLetter": 0, "failed": None},
        "partitions": [
            {"name": "other", "id": UUID, "createdAt": MILLIS, "stats": {"total": 1}},
            {"name": "p", "oldestMessage": MILLIS, "newestMessage": MILLIS, "stats": {"total": 3, "pending": 3, "processing": 2}},
        ],
    })
    await refused("no such queue", k.queen.admin.get_queue(k.name()), 404, "Queue not found")


@case("queue/List")
async def listing(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a", "b")
    got = await k.queen.admin.list_queues()
    mine = [x for x in got["queues"] if x["name"] == q]
    same("mine", mine, [{
        "id": UUID, "namespace": "", "task": "", "createdAt": MILLIS, "partitions": 1, "retainedBytes": int,
        "segments": {"messages": 2, "segments": int}, "messages": {"total": 2, "pending": int, "processing": 0},
    }])


@case("queue/Depth")
async def depth(k: Kit) -> None:
    """What a group still has to do; what is leased counts as pending."""
    q = await k.queue()
    await k.push(q, "a", "b", partition="p1")
    await k.push(q, "c", partition="p2")
    m = await k.pop(q, ["a", "b"], partition="p1")
    want = {"queue": q, "group": "g", "pending": 3, "partitionsPending": 2, "conflation": False, "effectivePending": 3}
    got = await k.queen.admin.get_queue_depth(q, "g")
    got["partitions"].sort(key=lambda p: p["partition"])
    same("depth", got, {**want, "partitions": [{"partition": "p1", "pending": 2}, {"partition": "p2", "pending": 1}]})
    await k.done(m)
    same("after the ack", await k.queen.admin.get_queue_depth(q, "g"), {"pending": 1, "partitionsPending": 1})
    same("another group", await k.queen.admin.get_queue_depth(q, "never came"), {"pending": 3})
    same("no group", await k.queen.admin.get_queue_depth(q), {"group": None, "pending": 1})
    await refused("no such queue", k.queen.admin.get_queue_depth(k.name(), "g"), 404, "Queue not found")


@case("queue/Delete")
async def delete(k: Kit) -> None:
    """Its messages and groups go with it; a push makes another of that name."""
    q = await k.queue()
    await k.push(q, "a")
    await k.pop(q, ["a"])
    same("delete", await k.queen.queue(q).delete(), {"queue": q, "deleted": True, "existed": True})
    same("again", await k.queen.queue(q).delete(), {"queue": q, "deleted": False, "existed": False, "message": str})
    await refused("read", k.queen.admin.get_queue(q), 404)
    await k.push(q, "a")
    await k.pop(q, ["a"])


@case("queue/Namespaces")
async def namespaces(k: Kit) -> None:
    """What queues are filed under, with counts as of the last refresh."""
    ns, task = k.name("ns"), k.name("task")
    for _ in range(2):
        q = k.name()
        await k.queen.queue(q).namespace(ns).task(task).create()
        await k.push(q, "a", "b")
    await k.queen.admin.refresh_consumer_stats()
    want = {"queues": 2, "partitions": 2, "messages": {"total": 4, "pending": 4}}
    got = await k.queen.admin.get_namespaces()
    same("namespaces", [n for n in got["namespaces"] if n["namespace"] == ns], [want])
    got = await k.queen.admin.get_tasks()
    same("tasks", [t for t in got["tasks"] if t["task"] == task], [want])
    true("no empty name", all(n["namespace"] for n in (await k.queen.admin.get_namespaces())["namespaces"]))


@case("queue/Messages")
async def messages(k: Kit) -> None:
    """The list of messages with its filters, newest first. Where a group holds
    a lease, all it has not completed is being processed."""
    q = await k.queue()
    await k.push(q, "a", "b", "c", partition="p1")
    await k.push(q, "d", partition="p2")
    m = await k.pop(q, ["a", "b"], batch=2, partition="p1")
    await k.queen.ack(m[0], True, {"group": "g"})
    listing = k.queen.admin.list_messages
    got = await listing(queue=q)
    same("all", got, {"total": 4, "mode": {"type": "bus", "busGroupsCount": 1, "hasQueueMode": False}, "messages": [
        {"transactionId": "d", "partition": "p2", "status": "pending"}, {"transactionId": "c", "status": "processing"},
        {"transactionId": "b", "status": "processing", "queueStatus": "processing"},
        {"id": m[0]["id"], "transactionId": "a", "partitionId": m[0]["partitionId"], "partition": "p1", "queue": q,
         "queuePath": f"{q}/p1", "namespace": "", "task": "", "createdAt": MILLIS, "data": {"id": "a"}, "payload": {"id": "a"},
         "payloadAvailable": True, "status": "completed", "queueStatus": "completed", "queuePriority": 0, "isEncrypted": False,
         "busStatus": {"consumedBy": 1, "totalGroups": 1}, "traceId": None, "producerSub": None, "leaseExpiresAt": None},
    ]})
    for filters, want in [
        ({"partition": "p2"}, ["d"]), ({"status": "pending"}, ["d"]), ({"status": "processing"}, ["c", "b"]),
        ({"status": "completed"}, ["a"]), ({"status": "dead_letter"}, []), ({"limit": 2}, ["d", "c"]),
        ({"limit": 2, "offset": 3}, ["a"]), ({"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}, []),
        ({"from": "2020-01-01T00:00:00Z"}, ["d", "c", "b", "a"]),
    ]:
        same(f"{filters}", ids((await listing(queue=q, **filters))["messages"]), want)
    same("no such queue", await listing(queue=k.name()), {"messages": [], "total": 0, "mode": {"type": "none"}})


@case("queue/MessagesByScope")
async def messages_by_scope(k: Kit) -> None:
    ns = k.name("ns")
    for task in ["t1", "t2"]:
        await k.push(f"{ns}.{task}", task)
    listing = k.queen.admin.list_messages
    same("namespace", sorted(ids((await listing(namespace=ns))["messages"])), ["t1", "t2"])
    same("both", ids((await listing(namespace=ns, task="t2"))["messages"]), ["t2"])


@case("queue/Message")
async def message(k: Kit) -> None:
    """One message through its life."""
    q = await k.queue(retry_limit=0)
    await k.push(q, "a")
    [m] = await k.pop(q, group="done")
    await k.queen.ack(m, True, {"group": "done"})

    async def status() -> str:
        got = await k.queen.admin.get_message(m["partitionId"], "a")
        same("message", got, {
            "id": m["id"], "transactionId": "a", "partitionId": m["partitionId"], "partition": "p", "queue": q, "queuePath": f"{q}/p",
            "data": {"id": "a"}, "payload": {"id": "a"}, "createdAt": MILLIS, "consumerGroups": list, "retryCount": 0,
            "queueConfig": {"leaseTime": 30, "retryLimit": 0, "retryDelay": 1000, "priority": 0, "ttl": 3600},
        })
        return got["status"]

    same("one group is done", await status(), "completed")
    [m] = await k.pop(q)
    same("leased by another", await status(), "processing")
    await k.queen.ack(m, "retry", {"group": "g"})
    same("given back", await status(), "pending")
    [m] = await k.pop(q)
    await k.queen.ack(m, False, {"group": "g", "error": "boom"})
    same("dead", await status(), "dead_letter")
    same("why", await k.queen.admin.get_message(m["partitionId"], "a"), {"errorMessage": "boom"})
    await refused("unknown", k.queen.admin.get_message(m["partitionId"], "nope"), 404, "not found")
