package devbroker

import "net/http"

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
		{get, api + "/status", b.handleStatus},
		{get, "/metrics", b.handleMetrics},
		{get, "/metrics/prometheus", b.handlePrometheus},

		{post, api + "/push", b.handlePush},
		{get, api + "/pop", b.handlePopDiscovery},
		{get, api + "/pop/queue/:", b.handlePopQueue},
		{get, api + "/pop/queue/:/partition/:", b.handlePopPinned},
		{post, api + "/ack", b.handleAck},
		{post, api + "/ack/batch", b.handleAckBatch},
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
		{get, api + "/messages/:/:", b.handleMessage},
		{del, api + "/messages/:/:", b.handleDeleteMessage},
		{post, api + "/messages/:/:/retry", b.handleReplay},

		{post, api + "/configure", b.handleConfigure},
		{get, api + "/resources/queues", b.handleQueues},
		{get, api + "/resources/queues/:", b.handleQueue},
		{get, api + "/resources/queues/:/depth", b.handleDepth},
		{del, api + "/resources/queues/:", b.handleDeleteQueue},
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
