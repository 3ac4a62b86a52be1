package demo

import (
	"fmt"
	"sync"

	"github.com/vitrip/journeyman/internal/audit"
	"github.com/vitrip/journeyman/internal/suppliers"
)

// simulated is the world of the supplier simulators.
type simulated struct{ *suppliers.World }

func (w simulated) fault(booking string, f Fault) (func(), error) {
	gate := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(gate) }) }
	var b suppliers.Behaviour
	switch f.Do {
	case "refuse":
		b = suppliers.Refuse(f.Code)
		if f.Hold {
			b = b.When(gate)
		}
	case "time_out_before":
		b = suppliers.TimeoutBefore()
	case "time_out_after":
		b = suppliers.TimeoutAfter()
	case "late":
		b = suppliers.Late(gate)
	case "land_late":
		b = suppliers.LandLate(gate)
	case "twice":
		b = suppliers.Twice()
	case "fail":
		b = suppliers.Fail(max(1, f.Times))
	case "act_then_fail":
		b = suppliers.ActThenFail()
	default:
		return nil, fmt.Errorf("fault %q: not known", f.Do)
	}
	if f.Times > 1 && f.Do != "fail" {
		b = b.Times(f.Times)
	}
	w.Script(booking, f.Segment, suppliers.Action(f.Action), b)
	if f.Do == "late" || f.Do == "land_late" || f.Hold {
		return release, nil
	}
	return nil, nil
}

func (w simulated) called(booking, segment, action string) bool {
	return w.Requests(booking, segment, suppliers.Action(action)) > 0
}

func (w simulated) effects() []audit.Effect {
	ledger := w.Ledger()
	out := make([]audit.Effect, len(ledger))
	for i, e := range ledger {
		out[i] = audit.Effect{
			Seq: int64(e.Seq), Supplier: string(e.Supplier), Kind: string(e.Kind), Booking: e.Booking, Segment: e.Segment,
			Amount: e.Amount, Currency: e.Currency, Reference: e.Reference, At: e.At,
		}
	}
	return out
}
