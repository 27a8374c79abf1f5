package ingress_test

import (
	"context"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/queen"
	"github.com/queenbridge/queenbridge/ingress"
)

type instantQueen struct{}

func (instantQueen) Push(_ context.Context, items []queen.Item) ([]queen.PushVerdict, error) {
	v := make([]queen.PushVerdict, len(items))
	for i := range v {
		v[i].Status = queen.PushQueued
	}
	return v, nil
}

func benchQueen(testing.TB) ingress.Pusher { return instantQueen{} }
