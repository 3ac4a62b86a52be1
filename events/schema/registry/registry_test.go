package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/schema/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers is a registry that says what its function says.
type answers struct {
	asked atomic.Int64
	say   func(req *http.Request) (status int, body string, err error)
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	a.asked.Add(1)
	status, body, err := a.say(req)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

func client(tb testing.TB, a *answers, cache string) *registry.Client {
	tb.Helper()
	c, err := registry.New(registry.Config{URLs: []string{"http://registry.invalid"}, Transport: a, Cache: cache})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

const known = `{"schemaType":"AVRO","schema":"\"string\""}`

func TestSchema_IsAskedForOnce_E5(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &answers{say: func(*http.Request) (int, string, error) { <-time.After(time.Second); return http.StatusOK, known, nil }} // virtual time
		c := client(t, a, "")
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if s, err := c.Schema(t.Context(), 7); err != nil || s.Format != events.FormatAvro || s.Text != `"string"` {
					t.Errorf("got %+v, %v", s, err)
				}
			})
		}
		wg.Wait()
		if _, err := c.Schema(t.Context(), 7); err != nil || a.asked.Load() != 1 {
			t.Errorf("asked %d times, %v; want once", a.asked.Load(), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.Schema(ctx, 8); !errors.Is(err, events.ErrSchemaUnavailable) {
			t.Errorf("a caller whose time is up: %v", err)
		}
		<-time.After(2 * time.Second)
	})
}

// Tries are bounded, and a registry that does not answer is left alone for a while.
func TestSchema_RetriesAreBounded_E5(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(*http.Request) (int, string, error){
		"no connection": func(*http.Request) (int, string, error) { return 0, "", errors.New("refused") },
		"server error": func(*http.Request) (int, string, error) {
			return http.StatusInternalServerError, `{"error_code":50001,"message":"m"}`, nil
		},
		"too many":         func(*http.Request) (int, string, error) { return http.StatusTooManyRequests, "", nil },
		"not allowed":      func(*http.Request) (int, string, error) { return http.StatusUnauthorized, "", nil },
		"not the registry": func(*http.Request) (int, string, error) { return http.StatusNotFound, "<html>", nil },
		"no JSON":          func(*http.Request) (int, string, error) { return http.StatusOK, "<html>", nil },
		"endless": func(*http.Request) (int, string, error) {
			return http.StatusOK, `{"schema":"` + strings.Repeat("x", 5<<20), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &answers{say: say}
				c := client(t, a, "")
				for range 5 {
					if _, err := c.Schema(t.Context(), 7); !errors.Is(err, events.ErrSchemaUnavailable) || errors.Is(err, events.ErrSchemaUnknown) {
						t.Fatalf("got %v, want it to be unavailable", err)
					}
				}
				if n := a.asked.Load(); n != 3 {
					t.Errorf("asked %d times, want 3 and then a pause", n)
				}
				<-time.After(1100 * time.Millisecond) // virtual
				a.say = func(*http.Request) (int, string, error) { return http.StatusOK, known, nil }
				if _, err := c.Schema(t.Context(), 7); err != nil {
					t.Errorf("after the pause: %v", err)
				}
			})
		})
	}
}

func TestSchema_UnknownIsAnAnswer_E5(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &answers{say: func(*http.Request) (int, string, error) {
			return http.StatusNotFound, `{"error_code":40403,"message":"Schema not found"}`, nil
		}}
		c := client(t, a, "")
		for range 5 {
			if _, err := c.Schema(t.Context(), 7); !errors.Is(err, events.ErrSchemaUnknown) || errors.Is(err, events.ErrSchemaUnavailable) {
				t.Fatalf("got %v, want it to be unknown", err)
			}
		}
		if n := a.asked.Load(); n != 1 {
			t.Errorf("asked %d times, want once a second", n)
		}
		a.say = func(*http.Request) (int, string, error) { return http.StatusOK, known, nil }
		if _, err := c.Schema(t.Context(), 8); err != nil {
			t.Errorf("another id: %v", err)
		}
		<-time.After(1100 * time.Millisecond) // virtual
		if _, err := c.Schema(t.Context(), 7); err != nil {
			t.Errorf("an id that is known by now: %v", err)
		}
	})
}

func TestSchema_References(t *testing.T) {
	t.Parallel()
	a := &answers{say: func(req *http.Request) (int, string, error) {
		switch {
		case strings.HasSuffix(req.URL.Path, "/schemas/ids/1"):
			return http.StatusOK, `{"schemaType":"PROTOBUF","schema":"whole","references":[{"name":"b.proto","subject":"b","version":1},{"name":"a.proto","subject":"a","version":1}]}`, nil
		case strings.HasSuffix(req.URL.Path, "/subjects/b/versions/1"):
			return http.StatusOK, `{"schemaType":"PROTOBUF","schema":"b needs a","references":[{"name":"a.proto","subject":"a","version":1}]}`, nil
		case strings.HasSuffix(req.URL.Path, "/subjects/a/versions/1"):
			return http.StatusOK, `{"schemaType":"PROTOBUF","schema":"a"}`, nil
		case strings.HasSuffix(req.URL.Path, "/schemas/ids/2"):
			return http.StatusOK, `{"schema":"x","references":[{"name":"r0","subject":"0","version":1}]}`, nil
		}
		var n int
		_, _ = fmt.Sscanf(req.URL.Path, "/subjects/%d/", &n)
		return http.StatusOK, fmt.Sprintf(`{"schema":"x","references":[{"name":"r%d","subject":"%d","version":1}]}`, n+1, n+1), nil
	}}
	c := client(t, a, "")
	s, err := c.Schema(t.Context(), 1)
	if err != nil || len(s.References) != 2 || s.References[0] != (registry.Reference{Name: "a.proto", Text: "a"}) || s.References[1].Name != "b.proto" {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := c.Schema(t.Context(), 2); err == nil || errors.Is(err, events.ErrSchemaUnavailable) || !strings.Contains(err.Error(), "more than 64") {
		t.Errorf("references without end: %v", err)
	}
}

func TestCache_StartsWithoutTheRegistry_E5(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "cache")
		up := &answers{say: func(req *http.Request) (int, string, error) {
			if req.Method == http.MethodPost {
				return http.StatusOK, `{"id":5}`, nil
			}
			return http.StatusOK, known, nil
		}}
		mine := registry.Schema{Format: events.FormatAvro, Text: `"int"`}
		c := client(t, up, dir)
		if id, err := c.Register(t.Context(), "s-value", mine); err != nil || id != 5 {
			t.Fatal(id, err)
		}
		if _, err := c.Schema(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		down := &answers{say: func(*http.Request) (int, string, error) { return 0, "", errors.New("refused") }}
		c = client(t, down, dir)
		if id, err := c.Register(t.Context(), "s-value", mine); err != nil || id != 5 {
			t.Errorf("got %d, %v; want 5 from the cache", id, err)
		}
		if _, err := c.Register(t.Context(), "s-value", registry.Schema{Format: events.FormatAvro, Text: `"long"`}); !errors.Is(err, events.ErrSchemaUnavailable) {
			t.Errorf("another schema: %v", err)
		}
		if _, err := c.Register(t.Context(), "other", mine); !errors.Is(err, events.ErrSchemaUnavailable) {
			t.Errorf("another subject: %v", err)
		}
		if s, err := c.Schema(t.Context(), 7); err != nil || s.Text != `"string"` {
			t.Errorf("got %+v, %v", s, err)
		}
		if _, err := c.Schema(t.Context(), 8); !errors.Is(err, events.ErrSchemaUnavailable) {
			t.Errorf("an id that nobody asked for: %v", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "schema-9.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Schema(t.Context(), 9); !errors.Is(err, events.ErrSchemaUnavailable) || !strings.Contains(err.Error(), "schema-9.json") {
			t.Errorf("a broken file: %v", err)
		}
	})
}

func TestRegister_Refusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"incompatible": {http.StatusConflict, `{"error_code":409,"message":"incompatible"}`, registry.ErrIncompatible},
		"bad schema":   {http.StatusUnprocessableEntity, `{"error_code":42201,"message":"Invalid Avro schema"}`, nil},
		"no id":        {http.StatusOK, `{}`, nil},
	} {
		a := &answers{say: func(*http.Request) (int, string, error) { return c.status, c.body, nil }}
		_, err := client(t, a, "").Register(t.Context(), "s-value", registry.Schema{Format: events.FormatAvro, Text: `"int"`})
		if err == nil || !strings.Contains(err.Error(), "subject s-value") || c.want != nil && !errors.Is(err, c.want) || errors.Is(err, events.ErrSchemaUnavailable) || a.asked.Load() != 1 {
			t.Errorf("%s: got %v after %d questions", name, err, a.asked.Load())
		}
	}
}
