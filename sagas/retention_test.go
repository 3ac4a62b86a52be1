package sagas

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

type discard struct{}

func (discard) Put(context.Context, string, []byte) error { return nil }

type archiveFunc func(ctx context.Context, name string, content []byte) error

func (f archiveFunc) Put(ctx context.Context, name string, content []byte) error {
	return f(ctx, name, content)
}

const day = 24 * time.Hour

func (w *world) retain(r Retention) Retained {
	w.Helper()
	done, err := w.s.Retain(w.ctx, r)
	if err != nil {
		w.Fatal(err)
	}
	return done
}

// A record goes to the archive after its retention, out of the store after a year, and its key is never run again.
func TestI09_RecordsAreArchivedAndDeleted(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	dir := t.TempDir()
	archive, err := NewDirArchive(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := Retention{Archive: archive, Batch: 2}
	if done := w.retain(r); len(done.Made) != 3 || !done.Leader {
		t.Errorf("got %+v, want the partitions of three months", done)
	}
	var finals []string
	for _, key := range []string{"a", "b", "c"} {
		w.post(srv, "a", key, strings.Replace(goodTrip, "B-1", "B-"+key, 1))
		w.ended(id1(key), Failed)
		finals = append(finals, string(w.post(srv, "a", key, strings.Replace(goodTrip, "B-1", "B-"+key, 1)).body))
	}
	w.post(srv, "a", "runs", goodTrip)
	if n := w.count(w.records, `SELECT count(*) FROM ONLY journeyman_records.record_rest`); n != 0 {
		t.Errorf("rows without a partition: got %d, want 0", n)
	}
	if done := w.retain(r); done.Archived != 0 {
		t.Errorf("within retention: got %+v", done)
	}
	w.advance(31 * day)
	if done := w.retain(r); done.Archived != 3 || done.Delete != 0 {
		t.Errorf("past retention: got %+v, want 3 archived", done)
	}
	lines := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "records/*/*/*.jsonl"))
	if err != nil || len(files) != 2 {
		t.Fatalf("objects: got %v, %v, want 2", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var rec struct {
				Final string `json:"final"`
			}
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				t.Fatal(err)
			}
			final, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(rec.Final, "\n", ""))
			if err != nil {
				t.Fatal(err)
			}
			lines[string(final)] = true
		}
	}
	for _, final := range finals {
		if !lines[final] {
			t.Errorf("the archive lacks %s", final)
		}
	}
	goneFor := func(when string) {
		t.Helper()
		body := strings.Replace(goodTrip, "B-1", "B-a", 1)
		for name, reply := range map[string]reply{
			"repeat": w.post(srv, "a", "a", body), "force retry": w.post(srv, "a", "a", body, HeaderForceRetry, "true"),
			"status": w.do(srv, http.MethodGet, "/v1/operations/"+id1("a"), "a", ""), "cancel": w.do(srv, http.MethodPost, "/v1/operations/"+id1("a")+"/cancel", "a", ""),
		} {
			if reply.status != http.StatusGone {
				t.Errorf("%s, %s: got %d %s, want 410", when, name, reply.status, reply.body)
			}
		}
		if reply := w.post(srv, "a", "a", goodTrip); reply.status != http.StatusUnprocessableEntity {
			t.Errorf("%s, other payload: got %d, want 422", when, reply.status)
		}
		if reply := w.do(srv, http.MethodGet, "/v1/operations/"+id1("a"), "b", ""); reply.status != http.StatusNotFound {
			t.Errorf("%s, other tenant: got %d, want 404", when, reply.status)
		}
	}
	goneFor("archived")
	w.advance(396 * day) // a year after the end of the next month too, whose partition is empty, on whatever day of a month this runs
	done := w.retain(r)
	if done.Delete != 3 || len(done.Made) != 3 || len(done.Dropped) == 0 {
		t.Errorf("past a year: got %+v, want 3 deleted and an empty partition dropped", done)
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record`); n != 1 {
		t.Errorf("records: got %d, want the running one only", n)
	}
	goneFor("deleted")
	w.deliver(true) // events of years ago bring nothing back
	goneFor("deleted and told again")
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 4 {
		t.Errorf("sagas: got %d, want 4: nothing ran afresh", n)
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record_money`); n != 0 {
		t.Errorf("money rows: got %d, want none of a type without money", n)
	}
}

// Of money operations business key and hash outlive the record, for seven years (spec D3).
func TestMoneyOutlivesTheRecord(t *testing.T) {
	w := setup(t)
	w.s.types["trip"].Money = true
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	w.ended(id1("k"), Completed)
	w.advance(400 * day)
	if done := w.retain(Retention{Archive: discard{}}); done.Archived != 1 || done.Delete != 1 {
		t.Errorf("got %+v, want one archived and deleted", done)
	}
	const left = `SELECT count(*) FROM journeyman_records.record_money WHERE business_key = 'agency:B-1' AND length(result_sha256) = 32`
	if n := w.count(w.records, left); n != 1 {
		t.Errorf("money rows: got %d, want 1", n)
	}
	w.advance(5 * 366 * day)
	w.retain(Retention{Archive: discard{}})
	if n := w.count(w.records, left); n != 1 {
		t.Errorf("after six years: got %d, want 1", n)
	}
	w.advance(2 * 366 * day)
	w.retain(Retention{Archive: discard{}})
	if n := w.count(w.records, left); n != 0 {
		t.Errorf("after eight years: got %d, want 0", n)
	}
}

// A round that is cut after its object was written is done again, under the same name; two rounds never work at a time.
func TestRetentionResumesAndHasOneLeader(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	w.ended(id1("k"), Completed)
	w.advance(31 * day)
	var names []string
	boom := errors.New("killed")
	cut := archiveFunc(func(_ context.Context, name string, _ []byte) error { names = append(names, name); return boom })
	if _, err := w.s.Retain(w.ctx, Retention{Archive: cut}); !errors.Is(err, boom) {
		t.Fatalf("got %v, want the archive's error", err)
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record WHERE final IS NOT NULL`); n != 1 {
		t.Errorf("records with their answer: got %d, want it kept until the archive has it", n)
	}
	other := w.another(nil)
	second := archiveFunc(func(ctx context.Context, name string, _ []byte) error {
		names = append(names, name)
		done, err := other.Retain(ctx, Retention{Archive: discard{}})
		if err != nil || done.Leader || done.Archived != 0 {
			t.Errorf("a second process meanwhile: got %+v, %v, want it to do nothing", done, err)
		}
		return nil
	})
	if done := w.retain(Retention{Archive: second}); done.Archived != 1 {
		t.Errorf("got %+v, want one archived", done)
	}
	if len(names) != 2 || names[0] != names[1] {
		t.Errorf("objects: got %v, want one name twice", names)
	}
	if done, err := other.Retain(w.ctx, Retention{Archive: discard{}}); err != nil || !done.Leader {
		t.Errorf("afterwards: got %+v, %v, want the lead free", done, err)
	}
}

// margince#423: a sweep beside a re-claim. Forced retries at the edge of the retention either start one attempt that
// the sweep leaves alone, or are told 410; none hangs, none runs after the retention.
func TestKnownBug_SweepRacesAReclaim(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	w.ended(id1("k"), Failed)
	rec, err := w.s.readKey(w.ctx, "agency", "trip", "k")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := parseTrip(w.ctx, "agency", []byte(goodTrip))
	if err != nil {
		t.Fatal(err)
	}
	// The request read the record within its retention; then the retention ends, the sweep archives, deletes even.
	w.advance(31 * day)
	w.retain(Retention{Archive: discard{}})
	if made, err := w.s.retry(w.ctx, w.s.types["trip"], rec, plan, origin{}); err != nil || made {
		t.Errorf("re-claim after the archive: made %v, %v, want nothing", made, err)
	}
	w.advance(366 * day)
	w.retain(Retention{Archive: discard{}})
	if made, err := w.s.retry(w.ctx, w.s.types["trip"], rec, plan, origin{}); err != nil || made {
		t.Errorf("re-claim after the deletion: made %v, %v, want nothing", made, err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if r := w.post(srv, "a", "k", goodTrip, HeaderForceRetry, "true"); r.status != http.StatusGone {
				t.Errorf("got %d %s, want 410", r.status, r.body)
			}
		})
		wg.Go(func() {
			if _, err := w.s.Retain(w.ctx, Retention{Archive: discard{}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// A retry that was in time is not swept with the attempt before it.
	w.post(srv, "a", "k2", goodTrip)
	w.ended(id1("k2"), Failed)
	if r := w.post(srv, "a", "k2", goodTrip, HeaderForceRetry, "true"); r.status != http.StatusAccepted {
		t.Fatalf("got %d %s", r.status, r.body)
	}
	w.advance(400 * day)
	w.retain(Retention{Archive: discard{}})
	if r := w.post(srv, "a", "k2", goodTrip); r.status != http.StatusAccepted || r.json(t)["operation_id"] != OperationID("agency", "trip", "k2", 2) {
		t.Errorf("the attempt that runs: got %d %s, want it in progress", r.status, r.body)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 3 {
		t.Errorf("sagas: got %d, want 3", n)
	}
}

// Records that came before their partition are moved into it, beside writers.
func TestPartitionsTakeUpTheRest(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "before", goodTrip)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if r := w.post(srv, "a", "w"+strings.Repeat("x", i%200+1), goodTrip); r.status != http.StatusAccepted && r.status != http.StatusTooManyRequests {
				t.Errorf("beside it: got %d %s", r.status, r.body)
			}
		}
	})
	done := w.retain(Retention{Archive: discard{}})
	close(stop)
	wg.Wait()
	if len(done.Made) != 3 {
		t.Errorf("made: got %v", done.Made)
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record_rest`); n != 0 {
		t.Errorf("left in the rest partition: got %d", n)
	}
	if r := w.post(srv, "a", "before", goodTrip); r.status != http.StatusAccepted {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

func TestDirArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := NewDirArchive(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Put(t.Context(), "records/x.jsonl", []byte("one\n")); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "records", "x.jsonl")); err != nil || string(text) != "one\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := a.Put(t.Context(), "../x", nil); err == nil {
		t.Error("a name that leads out: got no error")
	}
	if _, err := NewDirArchive(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing directory: got no error")
	}
	if _, err := (Retention{}).withDefaults(); err == nil {
		t.Error("no archive: got no error")
	}
}
