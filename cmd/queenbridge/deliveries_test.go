package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/queenbridge/queenbridge/bridge/adminapi"
)

func TestDeliveriesSayWhyAWebhookWasNotDeliveredAndThatItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var well atomic.Bool
	f := newTarget(t, failingUntil(&well, http.StatusInternalServerError))
	p := w.startAPI(w.embedded(), "")
	p.putPath("fragile", f.URL)
	follower := launch(t, []string{"QUEENBRIDGE_ENDPOINT=" + p.admin, "QUEENBRIDGE_TOKEN=" + apiToken}, "deliveries", "--route", "fragile", "--follow")
	if status := p.webhook("fragile", "one"); status != http.StatusOK {
		t.Fatalf("webhook = %d", status)
	}
	first := f.next()
	failed := p.delivery(adminapi.DeliveryQuery{Route: "fragile", Outcome: "retry"})
	if failed.Delivery != first.id || failed.Event != "github:one" || failed.Attempt != 1 || failed.Status != 500 ||
		failed.Class != "http_5xx" || failed.Error != "answered 500" || failed.Delay == "" || failed.Target != "fragile" {
		t.Errorf("delivery = %+v", failed)
	}
	well.Store(true)
	var page adminapi.RetryPage
	eventually(t, "a pending retry", func() (bool, string) {
		var err error
		page, err = p.api().Retries(t.Context(), "fragile", false, adminapi.ListOptions{})
		return err == nil && len(page.Items) == 1, fmt.Sprint(page, err)
	})
	if err := p.api().RetryNow(t.Context(), "fragile", page.Items[0].Key); err != nil {
		t.Fatal(err)
	}
	f.next()
	if d := p.delivery(adminapi.DeliveryQuery{Delivery: first.id, After: failed.ID}); d.Outcome != "delivered" || d.Attempt != 2 || d.Error != "" {
		t.Errorf("delivery = %+v", d)
	}
	eventually(t, "both are followed, once each", func() (bool, string) {
		log := follower.log()
		return strings.Count(log, "github:one") == 2 && strings.Contains(log, "http_5xx: answered 500, again in ") && strings.Contains(log, "delivered "), log
	})
	if err := follower.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if <-follower.done; follower.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("exit code %d of the follower", follower.cmd.ProcessState.ExitCode())
	}
	s, err := p.api().Status(t.Context())
	if err != nil || len(s.Routes) != 1 || s.Routes[0].State != "popping" || len(s.Targets) != 1 || s.Targets[0].Breaker != "closed" || s.Targets[0].Limit < 1 {
		t.Errorf("Status = %+v, %v", s, err)
	}
}

// delivery waits for the newest one that fits.
func (p *process) delivery(q adminapi.DeliveryQuery) (found adminapi.Delivery) {
	p.t.Helper()
	eventually(p.t, "a delivery", func() (bool, string) {
		page, err := p.api().Deliveries(p.t.Context(), q, adminapi.ListOptions{Size: 1})
		if err != nil || len(page.Items) == 0 {
			return false, fmt.Sprint(page, err)
		}
		found = page.Items[0]
		return true, ""
	})
	return found
}

func TestDeliveriesAreNotServedWhereNothingIsDispatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.startAPI(w.embedded(), "", "--only", "admin")
	if _, err := p.api().Deliveries(t.Context(), adminapi.DeliveryQuery{}, adminapi.ListOptions{}); !adminapi.IsCode(err, adminapi.CodeNotServed) {
		t.Errorf("Deliveries = %v", err)
	}
	if _, err := p.api().TestFire(t.Context(), "any", adminapi.TestEvent{}); !adminapi.IsCode(err, adminapi.CodeNotServed) {
		t.Errorf("TestFire = %v", err)
	}
}
