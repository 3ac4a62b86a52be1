package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/engine/internal/broker"
	"github.com/vitrip/journeyman/engine/internal/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abbbc", true}, {"a*c", "ab", false}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"*b*", "abc", true}, {"**", "x", true}, {`a\*`, "a*", true}, {`a\*`, "ab", false}, {`\?`, "?", true}, {"ü?", "üä", true}, {"a*b*c", "axbxbxc", true}, {"abc", "abcd", false},
	} {
		if got := like(c.pattern, c.text); got != c.want {
			t.Errorf("like(%q, %q): got %t, want %t", c.pattern, c.text, got, c.want)
		}
	}
}

// Whatever the body is, a route answers a documented status and a JSON body, and the engine lives.
func FuzzBodies(f *testing.F) {
	routes := []string{
		"/v2/process-instances/search", "/v2/jobs/search", "/v2/incidents/search", "/v2/element-instances/search", "/v2/variables/search", "/v2/process-definitions/search",
		"/v2/user-tasks/search", "/v2/process-instances", "/v2/messages/publication", "/v2/jobs/activation", "/v2/jobs/1/failure", "/v2/jobs/1/error", "/v2/signals/broadcast", "/v2/deployments",
		"/v2/process-instances/1/modification", "/v2/process-instances/1/migration",
	}
	for i, body := range []string{
		`{"filter":{"state":"ACTIVE","startDate":{"$gt":"2026-01-01T00:00:00Z"}},"sort":[{"field":"startDate","order":"DESC"}],"page":{"limit":5,"after":"WzFd"}}`,
		`{"filter":{"jobKey":{"$in":["1",2]},"type":{"$like":"a*"}}}`, `{"page":{"from":1}}`, `{}`, ``, `[]`, `null`, `{"filter":null}`, `{"filter":{"state":{}}}`,
		`{"name":"m","timeToLive":"60000","variables":{"a":1}}`, `{"type":"t","timeout":1,"maxJobsToActivate":1,"requestTimeout":-1}`, `{"filter":{"$or":[{"elementId":"a","hasElementInstanceIncident":true},{"tags":["a"],"incidentErrorHashCode":{"$gt":0}}]}}`, `{"activateInstructions":[{"elementId":"a","variableInstructions":[{"variables":{}}]}],"terminateInstructions":[{"elementInstanceKey":"1"}]}`,
		`{"targetProcessDefinitionKey":"1","mappingInstructions":[{"sourceElementId":"a","targetElementId":"b"}]}`, `{"filter":{"variables":[{"name":"a","value":{"$eq":"1"}}]}}`,
	} {
		f.Add(uint8(i), body)
	}
	b := broker.New(0, [32]byte{})
	f.Cleanup(func() {
		if err := b.Close(); err != nil {
			f.Error(err)
		}
	})
	if err := b.Do(func(c *core.Core) error {
		c.Broadcast("x", nil)
		return nil
	}); err != nil {
		f.Fatal(err)
	}
	h := New(b, false, "8.8.0", "localhost", 1)
	f.Fuzz(func(t *testing.T, route uint8, body string) {
		path := routes[int(route)%len(routes)]
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // an activation would wait for jobs
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body)))
		switch w.Code {
		case 200, 204, 400, 404, 409, 413, 504:
		default:
			t.Errorf("%s %q: status %d: %s", path, body, w.Code, w.Body)
		}
		if w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: answer %s is not JSON", path, body, w.Body)
		}
	})
}
