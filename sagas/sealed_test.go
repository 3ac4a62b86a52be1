package sagas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/worker"
)

// What must not be read where records rest: in a request, a partial result and an answer, and the client that asked.
const (
	secret = "passport-4711"
	actor  = "agency-client"
)

// sealing is a world whose records rest encrypted, and the folder of its keys. Its trips have the secret in all their contents.
func sealing(t *testing.T) (*world, string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "keys")
	if err := seal.Generate(folder, "k1"); err != nil {
		t.Fatal(err)
	}
	w := setupWith(t, func(c *Config) { c.Keys = keysOf(t, folder) })
	secretive(w.s)
	return w, folder
}

func keysOf(t testing.TB, folder string) *seal.Dir {
	t.Helper()
	d, err := seal.OpenDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// with is another process with other keys, nil for none.
func (w *world) with(keys seal.Keys, openOnly bool) *Sagas {
	w.Helper()
	s := w.another(func(c *Config) { c.Keys, c.KeysOpenOnly = keys, openOnly })
	secretive(s)
	return s
}

func secretive(s *Sagas) {
	t := s.types["trip"]
	t.Parse = func(ctx context.Context, tenant string, body []byte) (Plan, error) {
		p, err := parseTrip(ctx, tenant, body)
		p.Variables = map[string]any{"traveller": secret}
		p.Partial = map[string]any{"flight": secret, "hotel": map[string]any{"guest": secret}}
		return p, err
	}
	t.Partial = func(st worker.Step) (string, any) { return st.ElementID, map[string]any{"guest": secret} }
	t.Result = func(context.Context, *outbox.Tx, Attempt, Ending) (any, error) {
		return map[string]any{"guest": secret}, nil
	}
}

// shows says what of the secrets can be read in a text: in letters, or as PostgreSQL shows bytes.
func shows(text string) bool {
	for _, s := range []string{secret, actor} {
		if strings.Contains(text, s) || strings.Contains(text, hex.EncodeToString([]byte(s))) || strings.Contains(text, base64.RawStdEncoding.EncodeToString([]byte(s))[:12]) {
			return true
		}
	}
	return false
}

// stored is all that the record store has of records, each column as text and each byte of the answers.
func (w *world) stored() (all string) {
	w.Helper()
	if err := w.records.QueryRow(w.ctx, `SELECT (SELECT string_agg(r::text || coalesce(encode(r.final, 'escape'), ''), E'\n' ORDER BY operation_id) FROM journeyman_records.record r)
		|| (SELECT string_agg(k::text, E'\n') FROM journeyman_records.record_key k)`).Scan(&all); err != nil {
		w.Fatal(err)
	}
	return all
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.records.Exec(w.ctx, sql, args...); err != nil {
		w.Fatal(err)
	}
}

// answer is the answer that the domain gave an operation, before it went to the record store.
func (w *world) answer(id string) []byte {
	w.Helper()
	var data []byte
	if err := w.domain.QueryRow(w.ctx, `SELECT convert_from(body, 'UTF8')::jsonb -> 'data' FROM journeyman.outbox WHERE starts_with(operation_id, $1) AND type IN ($2, $3)`,
		id, EventCompleted, EventFailed).Scan(&data); err != nil {
		w.Fatal(err)
	}
	var p Progress
	if err := json.Unmarshal(data, &p); err != nil {
		w.Fatal(err)
	}
	return p.Final
}

// E4: nothing of request, partial results and answer can be read in the record store or in the archive; partners are answered as ever.
// The digest that is kept is that of the clear answer.
func TestE4_RecordsRestEncrypted(t *testing.T) {
	w, folder := sealing(t)
	w.s.types["trip"].Money = true
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	if err := w.bind(id1("k"), instance); err != nil {
		t.Fatal(err)
	}
	w.mustRun(id1("k"), step{element: "hotel", undo: "hotel.cancel"})
	w.deliver(false)
	running := w.stored()
	if shows(running) || strings.Count(running, "sealed:am1zM") != 4 {
		t.Errorf("while it runs, the store has %s, want plan, origin and both partial results sealed", running)
	}
	want := `"partial_result":{"flight":"` + secret + `","hotel":{"guest":"` + secret + `"}}`
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id1("k"), "a", ""); r.status != http.StatusAccepted || !strings.Contains(string(r.body), want) {
		t.Errorf("in progress: got %d %s, want %s", r.status, r.body, want)
	}
	w.mustRun(id1("k"), w.confirm(id1("k")))
	w.mustClose(id1("k"), closeIn{})
	w.deliver(false)
	answer := w.answer(id1("k"))
	if ended := w.stored(); shows(ended) || !bytes.Contains(answer, []byte(secret)) {
		t.Errorf("at the end, the store has %s of %s", ended, answer)
	}
	for name, r := range map[string]reply{
		"status": w.do(srv, http.MethodGet, "/v1/operations/"+id1("k"), "a", ""), "repeat": w.post(srv, "a", "k", goodTrip), "again": w.post(srv, "a", "k", goodTrip),
	} {
		if r.status != http.StatusOK || !bytes.Equal(r.body, answer) {
			t.Errorf("%s: got %d %s, want %s byte for byte", name, r.status, r.body, answer)
		}
	}
	w.advance(31 * day)
	var object []byte
	w.retain(Retention{Archive: archiveFunc(func(_ context.Context, _ string, content []byte) error { object = content; return nil })})
	var line struct {
		Plan  json.RawMessage `json:"plan"`
		Final string          `json:"final"`
	}
	if err := json.Unmarshal(object, &line); err != nil {
		t.Fatal(err)
	}
	final, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(line.Final, "\n", ""))
	if err != nil || shows(string(object)) || shows(string(final)) {
		t.Errorf("the archive has %s, with the answer %q, %v", object, final, err)
	}
	if got, err := seal.Open(keysOf(t, folder), final, restingAt(id1("k"), placeFinal)); err != nil || !bytes.Equal(got, answer) {
		t.Errorf("the archived answer opens as %s, %v", got, err)
	}
	w.advance(400 * day)
	w.retain(Retention{Archive: discard{}})
	sum := sha256.Sum256(answer)
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record_money WHERE result_sha256 = $1`, sum[:]); n != 1 {
		t.Error("what outlives the record is not the digest of the answer that the partner got")
	}
}

// E4, Z6: after a crash the sweep starts from a sealed plan. A plan that was put into another record starts nothing, is told of by
// its error, waits, and is in nobody's way.
func TestE4_SweepStartsFromASealedPlan(t *testing.T) {
	w, folder := sealing(t)
	srv := w.server(w.s)
	w.refuse = errors.New("domain database is away")
	for _, key := range []string{"k", "moved"} {
		w.post(srv, "a", key, goodTrip)
	}
	w.refuse = nil
	var own string
	if err := w.records.QueryRow(w.ctx, `SELECT plan::text FROM journeyman_records.record WHERE key = 'moved'`).Scan(&own); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE journeyman_records.record SET plan = (SELECT plan FROM journeyman_records.record WHERE key = 'k') WHERE key = 'moved'`)
	other := w.with(keysOf(t, folder), false)
	w.advance(day / 1000)
	if err := other.Sweep(w.ctx); !errors.Is(err, seal.ErrTampered) || !strings.Contains(err.Error(), id1("moved")) {
		t.Errorf("sweep: got %v, want the record that is not as it was sealed", err)
	}
	const started = `SELECT count(*) FROM journeyman.saga WHERE variables ->> 'traveller' = $1 AND actor ->> 'serviceClient' = $2`
	if n := w.count(w.domain, started, secret, actor); n != 1 {
		t.Errorf("sagas with their plan and origin: got %d, want 1", n)
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record WHERE key = 'moved' AND start_state = 'pending' AND start_error LIKE '%with key "k1"%'`); n != 1 {
		t.Error("the other record does not say why it waits")
	}
	w.exec(`UPDATE journeyman_records.record SET plan = $1 WHERE key = 'moved'`, own)
	w.advance(day / 100)
	if err := other.Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n := w.count(w.domain, started, secret, actor); n != 2 {
		t.Errorf("with its own plan again: got %d sagas, want 2", n)
	}
}

// E4: records from before there were keys answer as they did and go on, their new parts encrypted. With keys that only open, new
// contents rest clear and what is encrypted is read.
func TestE4_ClearRecordsAreRead(t *testing.T) {
	w, folder := sealing(t)
	keys, before := w.s, w.with(nil, false)
	old := w.server(before)
	for _, key := range []string{"ended", "runs"} {
		w.post(old, "a", key, goodTrip)
	}
	w.s = before
	w.ended(id1("ended"), Completed)
	w.s = keys
	if text := w.stored(); strings.Contains(text, "sealed:") || !shows(text) {
		t.Fatalf("without keys the store has %s", text)
	}
	srv, openOnly := w.server(w.s), w.server(w.with(keysOf(t, folder), true))
	if r := w.post(srv, "a", "ended", goodTrip); r.status != http.StatusOK || !bytes.Equal(r.body, w.answer(id1("ended"))) {
		t.Errorf("ended before: got %d %s", r.status, r.body)
	}
	if err := w.bind(id1("runs"), instance); err != nil {
		t.Fatal(err)
	}
	w.mustRun(id1("runs"), step{element: "hotel", undo: "hotel.cancel"})
	w.deliver(false)
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record WHERE key = 'runs' AND partial ->> 'flight' = $1 AND starts_with(partial ->> 'hotel', 'sealed:')`, secret); n != 1 {
		t.Error("the step's part is not sealed beside the clear one")
	}
	for name, at := range map[string]*httptest.Server{"keys": srv, "keys that only open": openOnly} {
		w.exec(`DELETE FROM journeyman_records.record_poll`)
		r := w.do(at, http.MethodGet, "/v1/operations/"+id1("runs"), "a", "")
		if r.status != http.StatusAccepted || strings.Count(string(r.body), secret) != 2 {
			t.Errorf("%s: got %d %s", name, r.status, r.body)
		}
	}
	w.post(openOnly, "a", "later", goodTrip)
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record WHERE key = 'later' AND plan #>> '{Variables,traveller}' = $1`, secret); n != 1 {
		t.Error("with keys that only open, a new plan does not rest clear")
	}
}

// E4: without its key, or with another record's contents, an operation is answered with 503 and by an error that names key and
// record, never with a part of it; others are answered, strangers learn nothing, and with the key back all is as it was.
func TestE4_KeyMissingOrContentMoved(t *testing.T) {
	w, folder := sealing(t)
	srv := w.server(w.s)
	for _, key := range []string{"k", "twin"} {
		w.post(srv, "a", key, goodTrip)
		w.ended(id1(key), Completed)
	}
	w.post(srv, "a", "runs", goodTrip)
	rows := w.stored()
	foreign := filepath.Join(t.TempDir(), "keys")
	if err := seal.Generate(foreign, "k9"); err != nil {
		t.Fatal(err)
	}
	refused := func(name string, s *Sagas, keys []string, want error) {
		t.Helper()
		srv := w.server(s)
		for _, key := range keys {
			if _, err := s.readKey(w.ctx, "agency", "trip", key); !errors.Is(err, want) || !strings.Contains(err.Error(), `key "k1"`) || !strings.Contains(err.Error(), id1(key)) {
				t.Errorf("%s, read of %s: got %v, want %v with the key and the record", name, key, err, want)
			}
			for how, r := range map[string]reply{"repeat": w.post(srv, "a", key, goodTrip), "status": w.do(srv, http.MethodGet, "/v1/operations/"+id1(key), "a", "")} {
				if r.status != http.StatusServiceUnavailable || shows(string(r.body)) {
					t.Errorf("%s, %s of %s: got %d %s, want 503", name, how, key, r.status, r.body)
				}
			}
			if r := w.do(srv, http.MethodGet, "/v1/operations/"+id1(key), "b", ""); r.status != http.StatusNotFound {
				t.Errorf("%s, another tenant: got %d, want 404", name, r.status)
			}
		}
	}
	refused("no keys", w.with(nil, false), []string{"k", "runs"}, seal.ErrNoKey)
	refused("other keys", w.with(keysOf(t, foreign), false), []string{"k", "runs"}, seal.ErrNoKey)
	if now := w.stored(); now != rows {
		t.Errorf("reads without the key left\n%s\nof\n%s", now, rows)
	}
	for name, sql := range map[string]string{
		"another's answer":     `final = (SELECT final FROM journeyman_records.record WHERE key = 'twin')`,
		"another's plan":       `plan = (SELECT plan FROM journeyman_records.record WHERE key = 'twin')`,
		"origin as plan":       `plan = origin`,
		"another segment's":    `partial = jsonb_build_object('hotel', partial -> 'flight')`,
		"an answer cut short":  `final = substring(final FOR length(final) - 1)`,
		"a plan cut short":     `plan = to_jsonb(left(plan #>> '{}', 30))`,
		"a byte of the answer": `final = set_byte(final, 60, (get_byte(final, 60) + 1) % 256)`,
	} {
		w.exec(`CREATE TABLE saved AS SELECT plan, origin, partial, final FROM journeyman_records.record WHERE key = 'k'`)
		w.exec(`UPDATE journeyman_records.record SET ` + sql + ` WHERE key = 'k'`)
		_, err := w.s.readKey(w.ctx, "agency", "trip", "k")
		if !errors.Is(err, seal.ErrTampered) {
			t.Errorf("%s: got %v, want %v", name, err, seal.ErrTampered)
		}
		if r := w.post(srv, "a", "k", goodTrip); r.status != http.StatusServiceUnavailable {
			t.Errorf("%s: got %d %s, want 503", name, r.status, r.body)
		}
		if both, err := w.s.lookAll(w.ctx, []ownOperation{{id1("k"), "agency"}, {id1("twin"), "agency"}}); err != nil || len(both) != 2 {
			t.Errorf("%s: who polls another operation at the same moment gets %v", name, err)
		}
		w.exec(`UPDATE journeyman_records.record r SET plan = s.plan, origin = s.origin, partial = s.partial, final = s.final FROM saved s WHERE key = 'k'`)
		w.exec(`DROP TABLE saved`)
	}
	if r := w.post(w.server(w.with(keysOf(t, folder), false)), "a", "k", goodTrip); r.status != http.StatusOK || !bytes.Equal(r.body, w.answer(id1("k"))) {
		t.Errorf("with the key back: got %d %s", r.status, r.body)
	}
}

// E4: keys are changed while operations run. After a reseal the old key is needed for nothing: all answer as before.
func TestE4_RecordKeysRotate(t *testing.T) {
	w, folder := sealing(t)
	srv := w.server(w.s)
	w.post(w.server(w.with(nil, false)), "a", "clear", goodTrip)
	for _, key := range []string{"k", "runs", "lost"} {
		w.post(srv, "a", key, goodTrip)
	}
	w.ended(id1("k"), Failed)
	plan := func(key string) string {
		t.Helper()
		r, err := w.s.readKey(w.ctx, "agency", "trip", key)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal([]any{r.Plan, r.Origin, r.Partial, string(r.Final)})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := map[string]string{"k": plan("k"), "runs": plan("runs"), "clear": plan("clear")}
	w.exec(`UPDATE journeyman_records.record SET partial = jsonb_set(partial, '{hotel}', partial -> 'flight') WHERE key = 'lost'`)
	if err := seal.Generate(folder, "k2"); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(folder, "k1.key"))
	if err != nil {
		t.Fatal(err)
	}
	away := func() {
		t.Helper()
		if err := os.Remove(filepath.Join(folder, "k1.key")); err != nil {
			t.Fatal(err)
		}
	}
	away()
	const values = 3*4 + 1 // plan, origin and two partial results of each, and one answer
	got, err := seal.Reseal(w.ctx, w.records, keysOf(t, folder), SealedTables(DefaultRecordSchema), nil)
	if err != nil || got.Rows != 0 || got.Left["k1"] != values {
		t.Errorf("without the old key: %+v, %v, want %d left", got, err, values)
	}
	if err := os.WriteFile(filepath.Join(folder, "k1.key"), old, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{values - 1, 0} {
		got, err := seal.Reseal(w.ctx, w.records, keysOf(t, folder), SealedTables(DefaultRecordSchema), nil)
		if err != nil || got.Rows != want || len(got.Left) != 0 || got.Changed != 1 {
			t.Errorf("reseal: %+v, %v, want %d, and the moved one told", got, err, want)
		}
	}
	away()
	w.s = w.with(keysOf(t, folder), false)
	for key, want := range before {
		if now := plan(key); now != want {
			t.Errorf("%s under the new key: got %s, want %s", key, now, want)
		}
	}
	if r := w.post(w.server(w.s), "a", "k", goodTrip); r.status != http.StatusOK || !bytes.Equal(r.body, w.answer(id1("k"))) {
		t.Errorf("under the new key: got %d %s", r.status, r.body)
	}
}

// E4: a reseal stands in nobody's way: who writes the same records in another order waits for it, and it for them, without a deadlock.
func TestE4_ResealBesideWriters(t *testing.T) {
	w, folder := sealing(t)
	srv := w.server(w.s)
	for _, key := range []string{"first", "second"} {
		w.post(srv, "a", key, goodTrip)
	}
	if err := seal.Generate(folder, "k2"); err != nil {
		t.Fatal(err)
	}
	tx, err := w.records.Begin(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(w.ctx)
	move := func(key string) {
		t.Helper()
		if _, err := tx.Exec(w.ctx, `UPDATE journeyman_records.record SET polls = polls + 1 WHERE key = $1`, key); err != nil {
			t.Errorf("a writer beside the reseal: %v", err)
		}
	}
	move("second")
	ended := make(chan error, 1)
	var got seal.Resealed
	go func() {
		var err error
		got, err = seal.Reseal(w.ctx, w.records, keysOf(t, folder), SealedTables(DefaultRecordSchema), nil)
		ended <- err
	}()
	w.eventually(func() bool {
		return len(ended) > 0 || w.count(w.records, `SELECT count(*) FROM pg_locks WHERE NOT granted`) > 0
	})
	move("first")
	if err := tx.Commit(w.ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || got.Rows != 8 {
		t.Errorf("reseal: %+v, %v, want 8 bodies", got, err)
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record WHERE polls = 1`); n != 2 {
		t.Errorf("the writer's rows: got %d of 2", n)
	}
}

// E4: a saga is shown with its timeline also when its messages rest encrypted.
func TestE4_TimelineOfEncryptedMessages(t *testing.T) {
	w, folder := sealing(t)
	catalog, err := events.ParseCatalog(Catalog())
	if err == nil {
		catalog, err = catalog.Encrypted(map[events.Class]events.Encryption{events.ClassSaga: events.EncryptAtRest})
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.stager, err = outbox.NewStager(outbox.Config{Catalog: catalog, Producer: "tester", Instance: "tester-1", Env: "test", Keys: keysOf(t, folder)}); err != nil {
		t.Fatal(err)
	}
	w.s = w.with(keysOf(t, folder), false)
	w.post(w.server(w.s), "a", "k", goodTrip)
	d, err := w.s.Show(w.ctx, id1("k"))
	if err != nil || !slices.ContainsFunc(d.Timeline, func(e Entry) bool { return e.Type == EventStarted }) {
		t.Errorf("got %+v, %v, want the start in the timeline", d.Timeline, err)
	}
}
