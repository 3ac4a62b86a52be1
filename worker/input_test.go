package worker

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/zeebe"
)

type address struct {
	City string `json:"city"`
	Zip  *int   `json:"zip"`
}

type shapes struct {
	Name    string             `json:"name"`
	Count   int8               `json:"count"`
	Rate    float64            `json:"rate,omitempty"`
	On      *bool              `json:"on"`
	When    time.Time          `json:"when,omitzero"`
	Home    address            `json:"home"`
	Stops   []address          `json:"stops,omitempty"`
	Tags    []string           `json:"tags,omitempty"`
	Raw     json.RawMessage    `json:"raw,omitempty"`
	Amounts map[string]float64 `json:"amounts,omitempty"`
	Hidden  string             `json:"-"`
	private string             //nolint:unused // must be passed over
	Next    *shapes            `json:"next,omitempty"`
}

func TestPlan(t *testing.T) {
	t.Parallel()
	p := planOf(reflect.TypeFor[shapes]())
	want := []string{"amounts", "count", "home.city", "home.zip", "name", "next", "on", "rate", "raw", "stops[].city", "stops[].zip", "tags", "when"}
	if d := cmp.Diff(want, p.fields); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"amounts", "count", "home", "name", "next", "on", "rate", "raw", "stops", "tags", "when"}, p.names); d != "" {
		t.Errorf("variables to fetch (-want +got):\n%s", d)
	}
}

func TestPlan_check(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ doc, want string }{
		{`{"name":"a","count":1,"home":{"city":"X"}}`, ""},
		{`{"name":"a","count":1.0,"home":{"city":"X","zip":null},"stops":[{"city":"Y"}],"when":"2026-11-30T00:00:00Z","raw":[1],"amounts":{"a":1.5}}`, ""},
		{`{"name":null,"count":1,"home":{"city":"X"}}`, "variable name: missing, want string"},
		{`{"name":"a","count":300,"home":{"city":"X"}}`, "variable count: the number does not fit int8"},
		{`{"name":"a","count":1.5,"home":{"city":"X"}}`, "variable count: the number does not fit int8"},
		{`{"name":"a","count":"1","home":{"city":"X"}}`, "variable count: is string, want int8"},
		{`{"name":"a","count":1}`, "variable home: missing, want object"},
		{`{"name":"a","count":1,"home":"X"}`, "variable home: is string, want object"},
		{`{"name":"a","count":1,"home":{}}`, "variable home.city: missing, want string"},
		{`{"name":"a","count":1,"home":{"city":"X"},"stops":[{"city":"Y"},{"zip":1}]}`, "variable stops[1].city: missing, want string"},
		{`{"name":"a","count":1,"home":{"city":"X"},"stops":{}}`, "variable stops: is object, want list"},
		{`{"name":"a","count":1,"home":{"city":"X"},"on":"yes"}`, "variable on: is string, want boolean"},
		{`{"name":"a","count":1,"home":{"city":"X"},"when":"yesterday"}`, "variable when: string does not fit time.Time"},
		{`{"name":"a","count":1,"home":{"city":"X"},"rate":1e400}`, "variable rate: the number does not fit float64"},
		{`{"count":[],"home":7}`, "variable count: is list, want int8; variable home: is number, want object; variable name: missing, want string"},
	} {
		err := takeShapes(tt.doc)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.doc, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.doc, err, tt.want)
		}
	}
}

func takeShapes(doc string) error {
	r := &Runtime{plans: map[string]*plan{"t": planOf(reflect.TypeFor[shapes]())}}
	vars, err := parseVariables(doc)
	if err != nil {
		return err
	}
	t := &task{meta: Meta{Type: "t"}}
	if err := r.takeInput(t, vars, []byte(doc)); err != nil {
		return err
	}
	_, err = decode[shapes](t.input)
	return err
}

// FuzzInput: no document makes the input check panic, and what passes the check decodes.
func FuzzInput(f *testing.F) {
	for _, s := range []string{`{"name":"a","count":1,"home":{"city":"X"}}`, `{"next":{"next":{}}}`, `{"count":1e9999999999}`, `[]`, `{"home":[],"stops":[null]}`, "{\"name\":\"\\u0000\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		vars, err := parseVariables(doc)
		if err != nil {
			return
		}
		if _, err := metaOf(zeebe.Job{ElementID: "x"}, "c", vars); err != nil && !strings.Contains(err.Error(), "correlation variables") {
			t.Fatalf("%q: %v", doc, err)
		}
		if err := takeShapes(doc); err != nil && !strings.Contains(err.Error(), "input: ") && !strings.Contains(err.Error(), "decode") && !strings.Contains(err.Error(), "decoded") {
			t.Fatalf("%q: %v", doc, err)
		}
	})
}

func TestMetaOf_mappings(t *testing.T) {
	t.Parallel()
	_, err := metaOf(zeebe.Job{ElementID: "reserveHotel"}, "c", map[string]any{"businessKey": "B"})
	want := `FATAL_ERROR (input): correlation variables: missing correlationId, operationId, traceparent
Add to the zeebe:ioMapping of service task reserveHotel:
  <zeebe:input source="=correlationId" target="correlationId" />
  <zeebe:input source="=sagaId + &#34;:reserveHotel&#34;" target="operationId" />
  <zeebe:input source="=traceparent" target="traceparent" />
  (inside multi-instance: source="=sagaId + &#34;:reserveHotel:&#34; + string(loopCounter)")
`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	for _, tt := range []struct {
		name string
		v    any
	}{{"businessKey", true}, {"operationId", strings.Repeat("x", 300)}, {"correlationId", "a\x00b"}, {"actor", "me"}} {
		vars := map[string]any{"businessKey": "B", "operationId": "o", "correlationId": "c", "traceId": "0AF7651916cd43dd8448eb211c80319c"}
		if _, err := metaOf(zeebe.Job{}, "c", vars); err != nil {
			t.Fatal(err)
		}
		vars[tt.name] = tt.v
		if _, err := metaOf(zeebe.Job{}, "c", vars); err == nil || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("%s %T: %v", tt.name, tt.v, err)
		}
	}
}
