"""What a dashboard reads: overview, status, analytics, health, metrics."""

from kit import ANY, MILLIS, UUID, Kit, case, one_of, raises, refused, same, true

NUMBER = one_of(int, float)


@case("admin/Health")
async def health(k: Kit) -> None:
    got = await k.queen.admin.health()
    same("health", got, {"status": "healthy", "database": "connected", "engine": str, "version": "1.3.0"})


@case("admin/Metrics")
async def metrics(k: Kit) -> None:
    """The client's word for it is text; it is JSON."""
    got = await k.queen.admin.metrics()
    same("metrics", got, {
        "uptime": NUMBER, "requests": {"total": int, "rate": NUMBER}, "messages": {"total": int, "rate": NUMBER},
        "memory": {"rss": int, "heapTotal": int, "heapUsed": int}, "cpu": {"user": NUMBER, "system": NUMBER},
        "database": {"poolSize": int, "idleConnections": int, "waitingRequests": int},
    })


@case("admin/Overview")
async def overview(k: Kit) -> None:
    """Counts of everything; a real Queen's are as old as its last round."""
    q = await k.queue()
    await k.push(q, "a", "b")
    await k.queen.admin.refresh_consumer_stats()
    got = await k.queen.admin.get_overview()
    span = {"avg": NUMBER, "max": NUMBER, "min": NUMBER, "median": NUMBER}
    same("overview", got, {
        "queues": int, "partitions": int, "namespaces": int, "tasks": int, "timestamp": MILLIS, "statsAge": NUMBER,
        "messages": {"total": int, "pending": int, "processing": int, "completed": int, "deadLetter": int, "failed": int},
        "lag": {"time": span, "offset": span}, "throughput": {"ingestedPerSecond": NUMBER, "processedPerSecond": NUMBER},
    })
    true("a queue", got["queues"] >= 1)


@case("admin/Refresh")
async def refresh(k: Kit) -> None:
    """A POST without a body."""
    await k.queue()
    got = await k.queen.admin.refresh_consumer_stats()
    same("refresh", got, {
        "engine": "segments", "refreshedAt": MILLIS, "queuesUpdated": int, "segPartitions": int,
        "system": {"systemUpdated": int}, "namespaces": {"namespacesUpdated": int}, "tasks": {"tasksUpdated": int},
    })
    true("queues", got["queuesUpdated"] >= 1)


@case("admin/Status")
async def status(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a")
    await k.pop(q)
    await k.queen.admin.refresh_consumer_stats()
    got = await k.queen.admin.get_status()
    same("status", got, {
        "messages": {"total": int, "pending": int, "processing": int, "completed": int, "failed": int, "deadLetter": int,
                     "requests": {"push": int, "pop": int, "ack": int}, "batchEfficiency": {"push": NUMBER, "pop": NUMBER, "ack": NUMBER}},
        "leases": {"active": int, "partitionsWithLeases": int, "totalBatchSize": int, "totalAcked": int},
        "deadLetterQueue": {"totalMessages": int, "currentMessages": int, "affectedPartitions": int, "topErrors": list},
        "errors": {"dbErrors": int, "ackFailed": int, "dlqMessages": int}, "queues": list, "workers": list, "throughput": list,
        "timeRange": {"from": MILLIS, "to": MILLIS}, "bucketMinutes": int, "pointCount": int, "statsAge": NUMBER,
    })
    true("a lease", got["leases"]["active"] >= 1)


@case("admin/QueueStats")
async def queue_stats(k: Kit) -> None:
    """Counts of all queues, in pages, as of the last refresh."""
    q = await k.queue()
    await k.push(q, "a", "b")
    await k.queen.admin.refresh_consumer_stats()
    got = await k.queen.admin.get_queue_stats(limit=10_000, offset=0)
    same("stats", got, {"queues": list, "pagination": {"limit": 10_000, "offset": 0}})
    same("mine", [x for x in got["queues"] if x["name"] == q], [{
        "id": UUID, "namespace": "", "task": "", "createdAt": MILLIS, "partitions": 1,
        "messages": {"total": 2, "pending": 2, "processing": 0, "completed": 0, "deadLetter": 0},
    }])
    same("page", len((await k.queen.admin.get_queue_stats(limit=1))["queues"]), 1)


@case("admin/QueueDetail")
async def queue_detail(k: Kit) -> None:
    q = await k.queue(retry_limit=5)
    await k.push(q, "a", "b", "c")
    await k.pop(q, ["a", "b"], batch=2)
    got = await k.queen.admin.get_queue_detail(q)
    counts = {"total": 3, "pending": 3, "processing": 2, "completed": 0, "deadLetter": 0, "failed": None}
    same("detail", got, {
        "queue": {"id": UUID, "name": q, "namespace": "", "task": "", "priority": 0, "createdAt": MILLIS, "config": {
            "leaseTime": 30, "retryLimit": 5, "retryDelay": 1000, "ttl": 3600, "maxQueueSize": 0, "deadLetterQueue": True}},
        "totals": {"messages": counts},
        "partitions": [{"id": UUID, "name": "p", "createdAt": MILLIS, "stats": counts, "messages": counts, "newestMessage": MILLIS,
                        "oldestMessage": MILLIS, "lastActivity": ANY, "cursor": {"totalConsumed": 0, "batchesConsumed": int}}],
    })
    await refused("no such queue", k.queen.admin.get_queue_detail(k.name()), 404, "Queue not found")


@case("admin/Analytics")
async def analytics(k: Kit) -> None:
    """Messages by the hour of the last day, or by another step."""
    q = await k.queue()
    await k.push(q, "a")
    got = await k.queen.admin.get_analytics()
    same("analytics", got, {"from": MILLIS, "to": MILLIS, "interval": "hour", "dataPoints": list})
    same("points", got["dataPoints"], [{"timestamp": MILLIS, "messages": int}] * 25)
    true("this hour", got["dataPoints"][-1]["messages"] >= 1)
    got = await k.queen.admin.get_analytics(interval="minute")
    same("by the minute", got, {"interval": "minute"})


@case("admin/SystemMetrics")
async def system_metrics(k: Kit) -> None:
    same("metrics", await k.queen.admin.get_system_metrics(), {
        "replicas": list, "replicaCount": int, "timeRange": {"from": MILLIS, "to": MILLIS}, "pointCount": int, "bucketMinutes": int,
    })


@case("admin/WorkerMetrics")
async def worker_metrics(k: Kit) -> None:
    same("metrics", await k.queen.admin.get_worker_metrics(), {
        "workers": list, "timeSeries": list, "timeRange": {"from": MILLIS, "to": MILLIS}, "pointCount": int, "bucketMinutes": int,
        "queues": list, "summary": {n: int for n in [
            "totalPushRequests", "totalPushMessages", "totalPopRequests", "totalPopMessages", "totalAckRequests", "totalAckMessages",
            "totalAckFailed", "totalDlq", "totalDbErrors", "pendingMessages"]},
    })


@case("admin/NotThere")
async def not_there(k: Kit) -> None:
    """Routes of later versions are 404 with a code; the client asks all the same."""
    error = await refused("partitions", k.queen.admin.get_partitions(), 404, "Not Found")
    same("code", error.code, "no_such_route")
    q = await k.queue()
    await refused("fetch", k.queen.queue(q).fetch(["p"]), 404)
    await refused("changed", k.queen.queue(q).changed_since(), 404)
    lock = k.queen.lock(k.name(), ttl_seconds=5)
    await refused("lock", lock.acquire(), 404)
    await raises("clear", k.queen.admin.clear_queue(q), NotImplementedError)
    await raises("dead-letter by address", k.queen.admin.move_message_to_dlq("p", "t"), NotImplementedError)
