package dispatch

import (
	"sync"
	"testing"
	"time"

	"github.com/queenbridge/queenbridge/bridge"
)

var someRecord = DeliveryRecord{Route: "r", Target: "t", Event: "e", Queue: "q", Partition: "p", Attempt: 1, Outcome: bridge.Delivered, Status: 200, Batch: 1}

func TestRememberingAnAttemptAllocatesNothing(t *testing.T) {
	l := newRecent(time.Now())
	for range maxRecent {
		l.add(someRecord)
	}
	if n := testing.AllocsPerRun(1000, func() { l.add(someRecord) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRecentIsReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	l := newRecent(time.Now())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2 * maxRecent {
				l.add(someRecord)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			got := l.list(DeliveryQuery{Limit: 10})
			for i := 1; i < len(got); i++ {
				if got[i].Seq != got[i-1].Seq-1 {
					t.Error("a record is missing or stands there twice")
				}
			}
		}
	})
	wg.Wait()
	if got := l.list(DeliveryQuery{Limit: 1}); got[0].Seq != l.first+8*maxRecent-1 {
		t.Errorf("the newest is %d after the first", got[0].Seq-l.first)
	}
}

func BenchmarkRecord(b *testing.B) {
	l := newRecent(time.Now())
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.add(someRecord)
		}
	})
}
