package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

// ReplayBeginning is the Since of a replay of all that a queue still holds.
const ReplayBeginning = "beginning"

// Replay is the body of a replay.
type Replay struct {
	// Since is an RFC 3339 time such as 2026-01-02T15:04:05Z, or beginning. What
	// was pushed then or later, by Queen's clock, is delivered again.
	Since string `json:"since"`
}

// ReplayResult is what a replay came to.
type ReplayResult struct {
	// Since is where the route begins again.
	Since time.Time `json:"since"`
	// Partitions of the queue that the route has read.
	Partitions int `json:"partitions"`
	// Pending events are delivered once the route is resumed.
	Pending int `json:"pending"`
}

// ReplayRoute lets a paused route deliver again what was pushed since a time;
// zero means all that the queue still holds. Repeating it does no harm.
func (c *Client) ReplayRoute(ctx context.Context, route string, since time.Time) (ReplayResult, error) {
	order := Replay{Since: ReplayBeginning}
	if !since.IsZero() {
		order.Since = rfc3339(since)
	}
	var result ReplayResult
	body, err := json.Marshal(order)
	if err != nil {
		return result, fmt.Errorf("write replay: %w", err)
	}
	err = c.do(ctx, request{method: http.MethodPost, path: resourcePath(bridge.KindRoute, route) + "/replay", body: body, repeatable: true}, &result)
	return result, err
}
