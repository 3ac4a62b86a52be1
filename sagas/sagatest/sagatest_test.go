package sagatest_test

import (
	"os"
	"testing"
	"time"

	"github.com/vitrip/journeyman/examples/order"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/sagatest"
	"github.com/vitrip/journeyman/worker/workertest"
)

var db workertest.Database

func TestMain(m *testing.M) { os.Exit(db.Main(m)) }

// typ is the shop's, without its tables.
func typ() sagas.Type {
	t := order.Type()
	t.Result = nil
	return t
}

var lamp = order.Request{Order: "1", Item: "lamp", Quantity: 1, Card: "visa", Amount: 1500, Address: "Main Street 1"}

func start(t *testing.T) *sagatest.Kit {
	t.Parallel()
	return sagatest.Start(t, sagatest.Config{Database: &db, Types: []sagas.Type{typ()}, Models: map[string][]byte{"order.bpmn": order.Model}})
}

func TestKit(t *testing.T) {
	k := start(t)
	k.Script(order.JobStockReserve, sagatest.Fail("busy"), sagatest.ActSilently(map[string]any{"shelf": "A-7"}))
	k.Run("order", "completes", lamp).Want("completed", "")
	k.Script(order.JobCourierBook, sagatest.Refuse(order.CodeNoCourier))
	again := lamp
	again.Order = "2"
	k.Run("order", "refused", again).Want("failed", order.CodeNoCourier, order.ElementOrderPaymentTake, order.ElementOrderStockReserve)
	k.Balanced()
	if n := len(k.Effects()); n != 6 {
		t.Errorf("effects: got %d, want 3 of each order, the refused one without effect", n)
	}
}

func TestKit_lateAndExpired(t *testing.T) {
	k := start(t)
	release := make(chan struct{})
	k.Script(order.JobCourierBook, sagatest.Hold(release, sagatest.Succeed(nil)))
	id := k.Post("order", "late", lamp)
	k.Until("stock and payment are done", func() bool { return len(k.Effects()) == 2 })
	k.Advance(11 * time.Minute)
	close(release)
	r := k.Wait(id)
	if r.State != "expired" || r.Reason.Code != "deadline" {
		t.Errorf("got %+v, want it expired", r)
	}
	k.Balanced()
}
