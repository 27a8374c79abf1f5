package devbroker

import (
	"net/http"
	"sync/atomic"
)

// table lists the routes.
func (b *Broker) table() []route {
	const (
		get, post     = http.MethodGet, http.MethodPost
		put, del      = http.MethodPut, http.MethodDelete
		api           = "/api/v1"
		groupsOfQueue = api + "/consumer-groups/:/queues/:"
	)
	return []route{
		{get, "/health", b.handleHealth},
		{get, "/status", b.handleStatus},
		{get, api + "/status", b.handleSystemStatus},
		{get, api + "/status/queues", b.handleQueueStats},
		{get, api + "/status/queues/:", b.handleQueueDetail},
		{get, api + "/status/analytics", b.handleAnalytics},
		{get, api + "/analytics/system-metrics", b.handleSystemMetrics},
		{get, api + "/analytics/worker-metrics", b.handleWorkerMetrics},
		{post, api + "/stats/refresh", b.handleRefresh},
		{get, "/metrics", b.handleMetrics},
		{get, "/metrics/prometheus", b.handlePrometheus},

		{post, api + "/push", counted(&b.served.push, b.handlePush)},
		{get, api + "/pop", counted(&b.served.pop, b.handlePopDiscovery)},
		{get, api + "/pop/queue/:", counted(&b.served.pop, b.handlePopQueue)},
		{get, api + "/pop/queue/:/partition/:", counted(&b.served.pop, b.handlePopPinned)},
		{post, api + "/ack", counted(&b.served.ack, b.handleAck)},
		{post, api + "/ack/batch", counted(&b.served.ack, b.handleAckBatch)},
		{post, api + "/lease/:/extend", b.handleExtend},
		{post, api + "/transaction", b.handleTransaction},

		{post, api + "/timers", b.handleTimers},
		{get, api + "/timers/:", b.handleListTimers},
		{get, api + "/timers/:/*", b.handlePeekTimer},
		{del, api + "/timers/:/*", b.handleCancelTimer},
		{post, api + "/kv", b.handleKV},
		{get, api + "/kv/:/*", b.handleKVGet},
		{put, api + "/kv/:/*", b.handleKVPut},
		{del, api + "/kv/:/*", b.handleKVDelete},

		{get, api + "/dlq", b.handleDeadLetters},
		{get, api + "/messages", b.handleMessages},
		{get, api + "/messages/:/:", b.handleMessage},
		{del, api + "/messages/:/:", b.handleDeleteMessage},
		{post, api + "/messages/:/:/retry", b.handleReplay},

		{post, api + "/configure", b.handleConfigure},
		{get, api + "/resources/queues", b.handleQueues},
		{get, api + "/resources/queues/:", b.handleQueue},
		{get, api + "/resources/queues/:/depth", b.handleDepth},
		{del, api + "/resources/queues/:", b.handleDeleteQueue},
		{get, api + "/resources/overview", b.handleOverview},
		{get, api + "/resources/namespaces", b.handleNamespaces},
		{get, api + "/resources/tasks", b.handleTasks},

		{get, api + "/consumer-groups", b.handleGroups},
		{get, api + "/consumer-groups/:", b.handleGroup},
		{del, api + "/consumer-groups/:", b.handleDeleteGroup},
		{post, api + "/consumer-groups/:/subscription", b.handleSubscription},
		{del, groupsOfQueue, b.handleDeleteGroup},
		{post, groupsOfQueue + "/seek", b.handleSeek},
		{post, groupsOfQueue + "/partitions/:/seek", b.handleSeek},

		{post, api + "/traces", b.handleTrace},
		{get, api + "/traces/names", b.handleTraceNames},
		{get, api + "/traces/by-name/:", b.handleTracesByName},
		{get, api + "/traces/:/:", b.handleTraces},
	}
}

// served counts requests by what they do.
type served struct{ push, pop, ack atomic.Uint64 }

func counted(n *atomic.Uint64, serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, p params) {
		n.Add(1)
		serve(w, r, p)
	}
}
