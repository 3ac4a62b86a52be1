package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/examples/bookings"
)

// kill points that a default run must hit at least once (reliability 1.4).
var wantPoints = []string{
	"worker.claimed", "worker.commit.before", "worker.commit.after", "worker.answer.before", "worker.answer.after",
	"worker.call.before", "worker.call.after", "relay.publish.before", "relay.publish.acked", "relay.delete.after",
}

func TestLoadScript_ours(t *testing.T) {
	t.Parallel()
	script, err := LoadScript(bookings.FS())
	if err != nil {
		t.Fatal(err)
	}
	planned := map[string]bool{}
	for _, p := range killPlan(script) {
		point, _, _ := strings.Cut(p, "@")
		planned[point] = true
	}
	for _, p := range wantPoints {
		if !planned[p] {
			t.Errorf("no booking is killed at %s", p)
		}
	}
	ids := map[string]string{}
	for _, b := range script {
		if other, ok := ids[sagaID(b)]; ok {
			t.Errorf("%q and %q are one operation", b.Name, other)
		}
		ids[sagaID(b)] = b.Name
	}
}

func TestLoadScript_refuses(t *testing.T) {
	t.Parallel()
	good := `{"name":"a","about":"b","tenant":"acme","key":"k","type":"tour-booking","body":{},"expect":{"states":["completed"]}}`
	tests := map[string]struct{ change, to, says string }{
		"unknown field":            {`"about":"b"`, `"about":"b","abuot":"c"`, `abuot`},
		"no tenant":                {`"tenant":"acme"`, `"tenant":""`, "tenant is empty"},
		"no body":                  {`"body":{},`, ``, "body is missing"},
		"unknown state":            {`"completed"`, `"done"`, `"done"`},
		"unknown fault":            {`"body"`, `"faults":[{"segment":"hotel","action":"reserve","do":"explode"}],"body"`, "explode"},
		"kill without a place":     {`"body"`, `"kill":["worker.claimed"],"body"`, "want point@step"},
		"act without a condition":  {`"body"`, `"acts":[{"when":"sometime","cancel":true}],"body"`, "sometime"},
		"act with two actions":     {`"body"`, `"acts":[{"when":"event a.b.c","cancel":true,"duplicate":true}],"body"`, "2 actions"},
		"clock moved in company":   {`"body"`, `"acts":[{"when":"event a.b.c","advance":"31m"}],"body"`, "must be alone"},
		"clock moved backwards":    {`"body"`, `"alone":true,"acts":[{"when":"event a.b.c","advance":"-1m"}],"body"`, "positive duration"},
		"duplicate of no event":    {`"body"`, `"acts":[{"when":"call hotel.reserve","duplicate":true}],"body"`, "only an event"},
		"unknown expected effect":  {`"states":["completed"]`, `"states":["completed"],"effects":{"hotel":"gone"}`, "gone"},
		"data after the object":    {`}}`, `}} {}`, "data after"},
		"after an unknown booking": {`"body"`, `"after":"z","body"`, "no earlier file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(good, tt.change, tt.to, 1)
			_, err := LoadScript(fstest.MapFS{"01-a.json": {Data: []byte(text)}})
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "01-a.json") {
				t.Errorf("got %v, want a refusal that names the file and %q", err, tt.says)
			}
		})
	}
	twice := fstest.MapFS{"01-a.json": {Data: []byte(good)}, "02-b.json": {Data: []byte(good)}}
	if _, err := LoadScript(twice); err == nil || !strings.Contains(err.Error(), "is taken by 01-a.json") {
		t.Errorf("one name twice: got %v", err)
	}
	if _, err := LoadScript(fstest.MapFS{}); err == nil {
		t.Error("an empty script was taken")
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	parse := func(s string) (v any) {
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	got, err := fill(parse(`{"a":"$after.result.segments.flight.id","b":["x","$after.n"],"c":1}`),
		parse(`{"n":7,"result":{"segments":[{"segment":"hotel","id":"R0"},{"segment":"flight","id":"R1"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(`{"a":"R1","b":["x",7],"c":1}`), got); diff != "" {
		t.Errorf("filled (-want +got):\n%s", diff)
	}
	if _, err := fill(parse(`{"a":"$after.result.hotel.id"}`), parse(`{"result":{"flight":{}}}`)); err == nil || !strings.Contains(err.Error(), `"hotel"`) {
		t.Errorf("missing path: got %v, want an error that names it", err)
	}
}
