package queen

import (
	"context"
	"errors"
	"time"
)

// Extend lengthens a lease to at least d from now, in whole seconds, rounded
// up; it never shortens one. renewed counts the partitions still held under
// it: 0 means that all are lost. More than 0 does not tell which are held.
func (c *Client) Extend(ctx context.Context, l Lease, d time.Duration) (renewed int, err error) {
	if l.ID == "" {
		return 0, errors.New("extend lease: no lease id")
	}
	body := c.pooled(append(appendInt(c.buffer(), `{"seconds":`, wholeSeconds(d)), '}'))
	defer body.release()
	k := &call{method: "POST", path: "/api/v1/lease/" + segment(l.ID) + "/extend", body: body, node: l.Node, safe: true}
	k.until = time.Now().Add(d / 3) // later it would not help the lease
	a, err := c.do(ctx, k)
	if err != nil {
		return 0, err
	}
	var wire struct {
		Success *bool `json:"success"`
		Renewed *int  `json:"renewed"`
	}
	if err := a.decode(&wire); err != nil {
		return 0, err
	}
	if wire.Success == nil || wire.Renewed == nil || *wire.Success != (*wire.Renewed > 0) {
		return 0, a.misfit("success and renewed are missing or disagree")
	}
	return *wire.Renewed, nil
}
