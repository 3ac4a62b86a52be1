package sagas_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/examples/order"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
)

// orderDeclared are the handlers of the shop, as its process declares them.
func orderDeclared() []worker.Declared {
	mux := worker.NewMux()
	order.RegisterOrder(mux, order.Handlers{})
	return mux.Declared()
}

// Issue 6, item 6: a declared saga matches its model; each of these changes is found, and named.
func TestCheckModel(t *testing.T) {
	t.Parallel()
	check := func(text string, typ sagas.Type, handlers []worker.Declared) error {
		m, err := bpmn.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return sagas.CheckModel(m, typ, handlers)
	}
	good := string(order.Model)
	if err := check(good, order.Type(), orderDeclared()); err != nil {
		t.Fatalf("the shop's own: %v", err)
	}
	if err := check(good, order.Type(), nil); err != nil {
		t.Errorf("without workers: %v", err)
	}
	swap := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the model does not hold %q", old)
		}
		return strings.ReplaceAll(good, old, with)
	}
	for name, c := range map[string]struct {
		model string
		typ   func(*sagas.Type)
		edit  func(*worker.Declared)
		want  string
	}{
		"another process":           {typ: func(t *sagas.Type) { t.ProcessID = "shop" }, want: `no process "shop"`},
		"another start message":     {model: swap("saga.start.order", "saga.start.shop"), want: "no start by message saga.start.order"},
		"no close":                  {model: swap(`type="saga.close"`, `type="shop.close"`), want: "0 tasks saga.close"},
		"no undo-rest":              {model: swap(`type="saga.undo-rest"`, `type="shop.undo"`), want: "not followed by saga.undo-rest"},
		"no path for a cancel":      {model: swap(`value="cancelled"`, `value="expired"`), want: "no saga.give-up with reason cancelled"},
		"a reason nobody knows":     {model: swap(`value="cancelled"`, `value="whatever"`), want: `header reason is "whatever"`},
		"another undo":              {edit: func(d *worker.Declared) { d.Undo = strings.Replace(d.Undo, "stock.release", "stock.back", 1) }, want: `is compensated by "stock.release", its handler by "stock.back"`},
		"no handler undoes":         {edit: func(d *worker.Declared) { d.Undo = "" }, want: `no handler declares CompensatedBy("stock.release")`},
		"no handler":                {edit: func(d *worker.Declared) { d.JobType = strings.Replace(d.JobType, "courier.book", "courier.take", 1) }, want: `job type "courier.book" has no handler`},
		"no pivot in the handler":   {edit: func(d *worker.Declared) { d.Pivot = false }, want: "is the pivot by the model: true, by its handler: false"},
		"no pivot in the model":     {model: swap("journeyman:pivot", "journeyman:no-undo-here"), want: "no task is the pivot"},
		"a second pivot":            {edit: func(d *worker.Declared) { d.Pivot = true }, want: "stockReserve: is the pivot by the model: false, by its handler: true"},
		"a person's task not there": {edit: func(d *worker.Declared) { d.Manual = "callThem" }, want: `undone by a person in task "callThem"`},
		"a step that is not there":  {typ: func(t *sagas.Type) { t.Steps = append(t.Steps, "wrap") }, want: `step "wrap" is shown`},
		"kept too short":            {typ: func(t *sagas.Type) { t.Retention = 90 * 24 * time.Hour }, want: "courierBook: its handler keeps what it did for 720h0m0s, want at least the 2160h0m0s"},
		"undeclared money":          {typ: func(t *sagas.Type) { t.Money = false }, edit: func(d *worker.Declared) { d.Money = true }, want: "moves money, the type does not declare Money"},
		"an SLA of nothing":         {typ: func(t *sagas.Type) { t.StepSLA = map[string]time.Duration{"wrap.do": time.Second} }, want: `job type "wrap.do" has an SLA`},
	} {
		typ, handlers, model := order.Type(), orderDeclared(), good
		if c.typ != nil {
			c.typ(&typ)
		}
		if c.edit != nil {
			for i := range handlers {
				c.edit(&handlers[i])
			}
		}
		if c.model != "" {
			model = c.model
		}
		if err := check(model, typ, handlers); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// The undo of a later step comes first, each once.
func TestCheckModelOrder(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../bpmn/models/tour-booking.bpmn")
	if err != nil {
		t.Fatal(err)
	}
	typ := sagas.Type{
		Name: "tour-booking", Timeout: time.Hour, Retention: time.Hour,
		Parse: func(context.Context, string, []byte) (sagas.Plan, error) { return sagas.Plan{}, nil },
	}
	for name, c := range map[string]struct{ old, with, want string }{
		"as it is":    {"", "", ""},
		"wrong order": {`activityRef="paymentAuthorize"`, `activityRef="X"`, "undoes eachSegment before paymentAuthorize"},
		"left out":    {`activityRef="eachSegment"`, `activityRef="paymentAuthorize"`, "compensates eachSegment 0 times"},
	} {
		model := bytes.ReplaceAll(text, []byte(c.old), []byte(c.with))
		if name == "as it is" {
			model = text
		}
		if name == "wrong order" {
			model = bytes.ReplaceAll(model, []byte(`activityRef="eachSegment"`), []byte(`activityRef="paymentAuthorize"`))
			model = bytes.ReplaceAll(model, []byte(`activityRef="X"`), []byte(`activityRef="eachSegment"`))
		}
		m, err := bpmn.Parse(bytes.NewReader(model))
		if err != nil {
			t.Fatal(err)
		}
		err = sagas.CheckModel(m, typ, nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
