package tourbooking_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// fields gives the field names of all FieldErrors in err.
func fields(err error) []string {
	var out []string
	var walk func(error)
	walk = func(err error) {
		var f *sagas.FieldError
		switch e := err.(type) { //nolint:errorlint // the tree is walked by hand
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				walk(inner)
			}
		default:
			if errors.As(err, &f) {
				out = append(out, f.Field)
			}
		}
	}
	walk(err)
	return out
}

func TestParse_tourBooking(t *testing.T) {
	t.Parallel()
	typ, err := tourbooking.Type(tourbooking.TypeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	without := func(old, replacement string) string {
		if !strings.Contains(goodTour, old) {
			t.Fatalf("%q is not in the request", old)
		}
		return strings.Replace(goodTour, old, replacement, 1)
	}
	tests := []struct {
		name, body string
		want       []string
	}{
		{"good", goodTour, nil},
		{"no booking", without(`"booking":"B-1",`, ``), []string{"booking"}},
		{"booking with a colon", without(`"B-1"`, `"a:b"`), []string{"booking"}},
		{"no travellers", without(`"travellers":2,`, ``), []string{"travellers"}},
		{"too many travellers", without(`"travellers":2`, `"travellers":100`), []string{"travellers"}},
		{"unknown hotel", without(`HT-200`, `HT-NOWHERE`), []string{"segments[1].offer"}},
		{"a flight as hotel", without(`HT-200`, `FL-200`), []string{"segments[1].offer"}},
		{"no hotel and no nights", without(`"offer":"HT-200","nights":3`, `"offer":""`), []string{"segments[1].offer", "segments[1].nights"}},
		{"nights of a flight", without(`"FL-100"`, `"FL-100","nights":1`), []string{"segments[0].nights"}},
		{"no segments", `{"booking":"B-1","travellers":2,"segments":[],"payment":{"token":"tok_1","amount":1,"currency":"EUR"}}`, []string{"segments"}},
		{"one segment", `{"booking":"B-1","travellers":2,"segments":[{"id":"a","kind":"transfer","offer":"TR-1"}],"payment":{"token":"tok_1","amount":1,"currency":"EUR"}}`, nil},
		{"too many segments", many(tourbooking.MaxSegments + 1), []string{"segments"}},
		{"as many as may be", many(tourbooking.MaxSegments), nil},
		{"two of one id", without(`"id":"hotel"`, `"id":"flight"`), []string{"segments[1].id"}},
		{"no id", without(`"id":"hotel",`, ``), []string{"segments[1].id"}},
		{"an id with a colon", without(`"id":"hotel"`, `"id":"a:b"`), []string{"segments[1].id"}},
		{"an id that is too long", without(`"id":"hotel"`, `"id":"`+strings.Repeat("a", 33)+`"`), []string{"segments[1].id"}},
		{"the payment as id", without(`"id":"hotel"`, `"id":"payment"`), []string{"segments[1].id"}},
		{"no kind", without(`"kind":"hotel",`, ``), []string{"segments[1].kind"}},
		{"a boat", without(`"kind":"hotel"`, `"kind":"boat"`), []string{"segments[1].kind"}},
		{"negative nights", without(`"nights":3`, `"nights":-3`), []string{"segments[1].nights"}},
		{"negative price", without(`125000`, `-1`), []string{"payment.amount"}},
		{"no price", without(`125000`, `0`), []string{"payment.amount"}},
		{"price with a fraction", without(`125000`, `1250.5`), []string{"payment.amount"}},
		{"price out of all reason", without(`125000`, `100000000001`), []string{"payment.amount"}},
		{"currency in small letters", without(`"EUR"`, `"eur"`), []string{"payment.currency"}},
		{"blank token", without(`"tok_1"`, `"  "`), []string{"payment.token"}},
		{"unknown field", without(`"travellers":2`, `"travellers":2,"pets":1`), []string{"pets"}},
		{"invalid UTF-8", without(`B-1`, "B-\xff"), []string{"booking"}},
		{"several", `{"booking":"B-1"}`, []string{
			"travellers", "segments", "payment.token", "payment.amount", "payment.currency",
		}},
	}
	for _, tt := range tests {
		plan, err := typ.Parse(t.Context(), tenant, []byte(tt.body))
		if d := cmp.Diff(tt.want, fields(err)); d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, d)
		}
		if err == nil && plan.BusinessKey != booked {
			t.Errorf("%s: business key %q, want %q", tt.name, plan.BusinessKey, booked)
		}
	}
}

// many is a request with n flights.
func many(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"id":"f%d","kind":"flight","offer":"FL-%d"}`, i, i+1)
	}
	return `{"booking":"B-1","travellers":2,"segments":[` + strings.Join(all, ",") + `],"payment":{"token":"tok_1","amount":1,"currency":"EUR"}}`
}

// A partner sees one step and one part of the partial result per segment, by its id.
func TestParse_stepsPerSegment(t *testing.T) {
	t.Parallel()
	typ, err := tourbooking.Type(tourbooking.TypeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := typ.Parse(t.Context(), tenant, []byte(`{"booking":"B-1","travellers":2,"segments":[{"id":"out","kind":"flight","offer":"FL-1"},{"id":"stay","kind":"hotel","offer":"HT-1","nights":2},
		{"id":"home","kind":"flight","offer":"FL-2"}],"payment":{"token":"tok_1","amount":1,"currency":"EUR"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"flightReserve:out", "hotelReserve:stay", "flightReserve:home", "paymentAuthorize", "bookingConfirm", "paymentCapture"}, plan.Steps); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	shown, err := json.Marshal(plan.Partial)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"home":{"kind":"flight","status":"pending"},"out":{"kind":"flight","status":"pending"},"payment":{"status":"pending"},"stay":{"kind":"hotel","status":"pending"}}`
	if d := cmp.Diff(want, string(shown)); d != "" {
		t.Errorf("partial result (-want +got):\n%s", d)
	}
}

func TestParse_offersOfTheirOwn(t *testing.T) {
	t.Parallel()
	down := errors.New("the catalogue is down")
	typ, err := tourbooking.Type(tourbooking.TypeConfig{Offers: tourbooking.Offers{Known: func(_ context.Context, _, offer string) (bool, error) {
		if offer == "HT-200" {
			return false, down
		}
		return true, nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := typ.Parse(t.Context(), tenant, []byte(goodTour)); !errors.Is(err, down) || fields(err) != nil {
		t.Errorf("%v, want the catalogue's own error and no field error: it is not the partner's mistake", err)
	}
}

func TestParse_refund(t *testing.T) {
	t.Parallel()
	typ, err := refund.Type(refund.TypeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, body string
		want       []string
	}{
		{"good", `{"booking":"B-1","currency":"EUR","segments":[{"kind":"flight","reference":"FLR-1","amount":100},{"kind":"hotel","reference":"HTR-1","amount":1}]}`, nil},
		{"no segments", `{"booking":"B-1","currency":"EUR","segments":[]}`, []string{"segments"}},
		{"nothing", `{}`, []string{"booking", "currency", "segments"}},
		{"bad segment", `{"booking":"B-1","currency":"EUR","segments":[{"kind":"boat","reference":"","amount":-1}]}`, []string{"segments[0].kind", "segments[0].reference", "segments[0].amount"}},
		{"segment twice", `{"booking":"B-1","currency":"EUR","segments":[{"kind":"flight","reference":"FLR-1","amount":1},{"kind":"flight","reference":"FLR-1","amount":1}]}`, []string{"segments[1].reference"}},
		{"too many", `{"booking":"B-1","currency":"EUR","segments":[` + strings.Repeat(`{"kind":"flight","reference":"a","amount":1},`, 20) + `{"kind":"flight","reference":"b","amount":1}]}`, []string{"segments"}},
	}
	for _, tt := range tests {
		plan, err := typ.Parse(t.Context(), tenant, []byte(tt.body))
		if d := cmp.Diff(tt.want, fields(err)); d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, d)
		}
		if err == nil {
			if d := cmp.Diff([]string{"segmentRefund:1", "segmentRefund:2", "refundApprove", "refundPay"}, plan.Steps); d != "" {
				t.Errorf("steps (-want +got):\n%s", d)
			}
		}
	}
}

func TestParse_ticketingIsNotForPartners(t *testing.T) {
	t.Parallel()
	typ, err := ticketing.Type(ticketing.TypeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := typ.Parse(t.Context(), tenant, []byte(`{"booking":"B-1"}`)); fields(err) == nil {
		t.Errorf("%v, want a refusal", err)
	}
}

func TestType_timeoutsMustNest(t *testing.T) {
	t.Parallel()
	for _, cfg := range []tourbooking.TypeConfig{
		{Timeout: time.Minute, StepTimeout: time.Minute}, {StepTimeout: time.Millisecond}, {Timeout: 5 * time.Minute}, {Schema: "no such; schema"},
	} {
		if _, err := tourbooking.Type(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

func TestInstall_namesEveryMissingField(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"tour booking": tourbooking.Install(worker.NewMux(), tourbooking.Config{}),
		"refund":       refund.Install(worker.NewMux(), refund.Config{}),
		"ticketing":    ticketing.Install(worker.NewMux(), ticketing.Config{}),
	} {
		if err == nil {
			t.Fatalf("%s: an empty Config was taken", name)
		}
		want := []string{"Flight", "Sagas"}
		if name == "ticketing" {
			want = append(want, "CallbackURL", "secret")
		} else {
			want = append(want, "Hotel", "Transfer", "Payment")
		}
		for _, field := range want {
			if !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %q does not name %s", name, err, field)
			}
		}
	}
}

// Every message the domain emits is in the catalog, and the catalog holds nothing that nobody emits.
func TestCatalog_isComplete(t *testing.T) {
	t.Parallel()
	c := catalog(t)
	for _, e := range c.Match("payment.*") {
		if !e.Financial || e.RetentionDays < 7*365 {
			t.Errorf("%s: financial %v, kept %d days, want a financial type kept 7 years", e.Type, e.Financial, e.RetentionDays)
		}
	}
	if n := len(c.Match("tour.booking.*")); n != 19 {
		t.Errorf("%d booking events, want 19", n)
	}
}

func FuzzParse(f *testing.F) {
	typ, err := tourbooking.Type(tourbooking.TypeConfig{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(goodTour))
	f.Add([]byte(`{"booking":"\ud800"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		plan, err := typ.Parse(t.Context(), tenant, body)
		if err == nil && !strings.HasPrefix(plan.BusinessKey, tenant+":") {
			t.Errorf("business key %q is not scoped by the tenant", plan.BusinessKey)
		}
		if err != nil && fields(err) == nil {
			t.Errorf("%v names no field", err)
		}
	})
}

// The segments are undone by one handler on the loop as a whole: it has to draw the compensation of every kind.
func TestCheckModel_theHandlerOfTheLoopDrawsEveryUndo(t *testing.T) {
	t.Parallel()
	typ, err := tourbooking.Type(tourbooking.TypeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := supplier.New("http://127.0.0.1:1", time.Second) // is never asked
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	mux := worker.NewMux()
	if err := tourbooking.Install(mux, tourbooking.Config{Flight: client, Hotel: client, Transfer: client, Payment: client, Sagas: (*sagas.Sagas)(nil)}); err != nil {
		t.Fatal(err)
	}
	text, err := models.Read(models.TourBooking)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, with, want string }{
		{"", "", ""},
		{`type="hotel.cancel"`, `type="flight.cancel"`, `is compensated by "hotel.cancel", which undoSegments, the compensation of eachSegment, does not draw`},
		{`type="transfer.cancel"`, `type="transfer.forget"`, `no handler declares CompensatedBy("transfer.forget")`},
		{`name="journeyman:undo" value="hotel.cancel"`, `name="journeyman:undo" value="flight.cancel"`, `its handler is compensated by "hotel.cancel"`},
	} {
		m, err := bpmn.Parse(strings.NewReader(strings.Replace(string(text), c.old, c.with, 1)))
		if err != nil {
			t.Fatal(err)
		}
		err = sagas.CheckModel(m, typ, mux.Declared())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.with, err, c.want)
		}
	}
}
