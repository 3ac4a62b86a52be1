//go:build crowd || soak

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// crowdKeys is how many idempotency keys are in use at a moment, crowdClients how many clients use them.
const crowdKeys, crowdClients = 50, 200

// crowdKey is an idempotency key that many clients use.
type crowdKey struct {
	plan
	booking, key string
	body         map[string]any
	text, other  []byte // the payload, and one that is not that of the key
	operation    string // of the last answer
}

// crowd plays partners: many clients with few keys. What they are told is checked at once and kept.
type crowd struct {
	*fleet

	mu     sync.Mutex
	keys   []*crowdKey // in use now
	finals map[string][]byte
	told   map[string]int
	acts   map[string][]string // of persons, by saga
	wrong  []string
}

func (c *crowd) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 50 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

// client makes requests until ctx ends, a few each second.
func (c *crowd) client(ctx context.Context, random *rand.Rand) {
	for {
		pause := time.NewTimer(time.Duration(200+random.IntN(800)) * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		c.mu.Lock()
		k := c.keys[random.IntN(len(c.keys))]
		operation := k.operation
		c.mu.Unlock()
		path := "/v1/operations/" + k.saga
		switch n := random.IntN(100); {
		case n < 55 || operation == "":
			c.request(ctx, "post", k, http.MethodPost, path, k.text, []int{200, 202, 429}, "Idempotency-Key", k.key)
		case n < 80:
			c.request(ctx, "status", k, http.MethodGet, "/v1/operations/"+operation, nil, []int{200, 202, 429})
		case n < 84:
			c.request(ctx, "cancel", k, http.MethodPost, "/v1/operations/"+operation+"/cancel", nil, []int{200, 202})
		case n < 95:
			c.request(ctx, "force retry", k, http.MethodPost, path, k.text, []int{200, 202, 409, 429}, "Idempotency-Key", k.key, "X-Idempotency-Force-Retry", "true")
		default:
			c.request(ctx, "other payload", k, http.MethodPost, path, k.other, []int{422}, "Idempotency-Key", k.key)
		}
	}
}

// request makes one and judges its answer.
func (c *crowd) request(ctx context.Context, what string, k *crowdKey, method, path string, body []byte, want []int, header ...string) {
	a, err := c.ask(ctx, method, path, body, header...)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.fail("%s of %s: %v", what, k.key, err)
		return
	}
	if !slices.Contains(want, a.status) {
		c.fail("%s of %s: status %d, want one of %v: %s", what, k.key, a.status, want, a.body)
	}
	if (a.status == 429 || a.status == 202) && a.wait == "" {
		c.fail("%s of %s: status %d without Retry-After", what, k.key, a.status)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told[fmt.Sprintf("%s %d", what, a.status)]++
	if a.OperationID != "" && (a.status == 200 || a.status == 202) {
		k.operation = a.OperationID
	}
	if !a.final() {
		return
	}
	first, ok := c.finals[a.OperationID]
	if !ok {
		c.finals[a.OperationID] = a.body
	} else if !bytes.Equal(first, a.body) && len(c.wrong) < 50 {
		c.wrong = append(c.wrong, fmt.Sprintf("%s was told two ends:\n  %s\n  %s", a.OperationID, first, a.body))
	}
}

// plans are those of one generation of keys.
func (c *crowd) plans(random *rand.Rand) (plans []plan) {
	kinds := []string{tourbooking.TypeName, tourbooking.TypeName, tourbooking.TypeName, refund.TypeName, amendment.TypeName}
	faults := []fault{refuses, timesOut, actsTimesOut, answersTwice, failsOnce, actsFailsOnce}
	for i := range crowdKeys {
		p := plan{saga: kinds[i%len(kinds)], ends: []string{"completed", "failed", "expired", "manual"}, random: true}
		own := slices.DeleteFunc(append(steps(), more()...), func(st step) bool { return st.saga != p.saga || st.cheaper() })
		for range random.IntN(3) {
			p.cells = append(p.cells, cell{own[random.IntN(len(own))], faults[random.IntN(len(faults))]})
		}
		plans = append(plans, p)
	}
	return plans
}

// generation prepares keys; bookings are numbered from first.
func (c *crowd) generation(plans []plan, first int) (keys []*crowdKey) {
	sold := c.sell(plans, first)
	for i, p := range plans {
		r := c.prepare(p, name(first+i), sold)
		text, err := json.Marshal(r.body)
		c.must(err)
		other, err := json.Marshal(map[string]any{"booking": r.booking, "other": true})
		c.must(err)
		keys = append(keys, &crowdKey{plan: p, booking: r.booking, key: r.key, body: r.body, text: text, other: other})
	}
	return keys
}

// attempts are runs of all operations of the partners there are, by the database; bookings that others start from are left out.
func (c *crowd) attempts(keys []*crowdKey) (runs []*run) {
	c.Helper()
	byKey := map[string]*crowdKey{}
	for _, k := range keys {
		byKey[k.saga+" "+k.key] = k
	}
	rows, err := c.pool.Query(c.ctx, `SELECT r.operation_id, r.type, r.key, r.next IS NOT NULL FROM journeyman_records.record r ORDER BY r.started_at`)
	c.must(err)
	var id, saga, key string
	var retried bool
	_, err = pgx.ForEachRow(rows, []any{&id, &saga, &key, &retried}, func() error {
		if k := byKey[saga+" "+key]; k != nil {
			runs = append(runs, &run{
				plan: k.plan, booking: k.booking, key: k.key, id: id, body: k.body, acts: c.acts[id],
				cancelled: true, retried: retried, whenDecided: func() {}, whenQuiet: func() {},
			})
		}
		return nil
	})
	c.must(err)
	return runs
}

// help does what people do, for all sagas that are open.
func (c *crowd) help() {
	c.Helper()
	rows, err := c.pool.Query(c.ctx, `SELECT id FROM journeyman.saga WHERE closed_at IS NULL AND begun_at IS NOT NULL`)
	c.must(err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	c.must(err)
	for _, id := range ids {
		r := &run{id: id}
		c.person(r)
		c.acts[id] = append(c.acts[id], r.acts...)
	}
}

// play lets the crowd use generations of keys, each for a while, with clocks that jump and workers that die.
func (c *crowd) play(random *rand.Rand, generations [][]*crowdKey, each, kills time.Duration) {
	c.Helper()
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	c.keys = generations[0]
	var all sync.WaitGroup
	all.Go(func() { c.hunt(ctx, rand.New(rand.NewPCG(random.Uint64(), 1)), kills) }) //nolint:gosec // a plan
	for range crowdClients {
		mine := rand.New(rand.NewPCG(random.Uint64(), 2)) //nolint:gosec // a plan
		all.Go(func() { c.client(ctx, mine) })
	}
	for _, keys := range generations {
		c.mu.Lock()
		c.keys = keys
		c.mu.Unlock()
		end, tick := time.NewTimer(each), time.NewTicker(time.Second)
		for n, over := 1, false; !over; n++ {
			select {
			case <-end.C:
				over = true
			case <-tick.C:
			}
			c.help()
			by := time.Duration(1+random.IntN(8)) * time.Second
			if n%12 == 0 {
				by = 31 * time.Minute // everything that runs expires
			}
			c.advance(by)
		}
		tick.Stop()
	}
	stop()
	all.Wait()
}

// TestCrowd: 200 clients on 50 keys that repeat, cancel, force retries and send other payloads to two API processes, while operations
// expire and worker processes are killed. Per key there is one effect set or its full undo, every final answer stays the same bytes
// until its retention ends, and nothing is stuck. Issue 6, "Must hold".
func TestCrowd(t *testing.T) {
	random := rand.New(rand.NewPCG(seed(t), 3)) //nolint:gosec // a plan
	c := &crowd{fleet: setupFleet(t, 2, 2), finals: map[string][]byte{}, told: map[string]int{}, acts: map[string][]string{}}
	var generations [][]*crowdKey
	var keys []*crowdKey
	for i := range crowdGenerations {
		g := c.generation(c.plans(random), 1+i*crowdKeys)
		generations, keys = append(generations, g), append(keys, g...)
	}
	c.play(random, generations, crowdEach, crowdKills)
	runs := c.attempts(keys)
	c.drive(runs)
	c.settle(runs)
	c.judge(runs)
	c.once(runs)
	for _, r := range runs {
		if told, ok := c.finals[r.id]; ok && r.end.final() && !bytes.Equal(told, r.end.body) {
			r.fail("a client was told:\n  %s\nnow:\n  %s", told, r.end.body)
		}
	}
	ends := map[string]int{}
	for _, r := range runs {
		ends[r.saga+" "+r.end.State]++
	}
	for _, w := range c.wrong {
		t.Error(w)
	}
	t.Logf("%d operations of %d keys, %d workers killed, %d final answers read by clients; ends %v; answers %v", len(runs), len(keys), c.kills, len(c.finals), ends, c.told)
	c.finish(runs)
	c.nothingStuck()
	c.retained(runs)
	c.report(runs)
}

// once checks that no key has two attempts that completed.
func (c *crowd) once(runs []*run) {
	c.Helper()
	done := map[string]string{}
	for _, r := range runs {
		if r.end.State != "completed" {
			continue
		}
		if other := done[r.key]; other != "" {
			r.fail("key %s completed twice, before by %s", r.key, other)
		}
		done[r.key] = r.id
	}
}

// nothingStuck reads what is left everywhere.
func (c *crowd) nothingStuck() {
	c.Helper()
	for what, sql := range map[string]string{
		"sagas that are open":           `SELECT count(*) FROM journeyman.saga WHERE closed_at IS NULL AND state <> 'manual'`,
		"records without an end":        `SELECT count(*) FROM journeyman_records.record r WHERE final IS NULL AND NOT EXISTS (SELECT 1 FROM journeyman.saga s WHERE s.id = r.operation_id AND s.state = 'manual')`,
		"commands not told":             `SELECT count(*) FROM journeyman.zeebe_command WHERE state = 'pending'`,
		"operations between two states": `SELECT count(*) FROM journeyman.operation WHERE state IN ('claimed', 'calling', 'called', 'undoing')`,
		"parked events":                 `SELECT count(*) FROM journeyman.outbox_parked`,
	} {
		still, n := c.stillness(), 0
		begin := c.offset()
		c.until("reading "+what, time.Minute, func() bool {
			c.must(c.pool.QueryRow(c.ctx, sql).Scan(&n))
			if n > 0 && still.quiet() {
				c.advance(time.Minute)
				still.reset()
			}
			return n == 0 || c.offset()-begin > 30*time.Minute
		})
		if n > 0 {
			c.Errorf("%d %s", n, what)
		}
	}
	rows, err := c.pool.Query(c.ctx, `SELECT operation_id, state, effect, class, code, message, undone_at IS NOT NULL FROM journeyman.operation WHERE orphan = 'open'`)
	c.must(err)
	var id, state, effect, class, code, message string
	var undone bool
	_, err = pgx.ForEachRow(rows, []any{&id, &state, &effect, &class, &code, &message, &undone}, func() error {
		saga, _, _ := strings.Cut(id, ":")
		c.Errorf("orphan %s nobody undid: %s effect %q %s %s %s, undone %v; %s", id, state, effect, class, code, message, undone, c.stuck(&run{id: saga}))
		return nil
	})
	c.must(err)
}

// retained reads all final answers again shortly before their retention ends, and behind it.
func (c *crowd) retained(runs []*run) {
	c.Helper()
	day := 24 * time.Hour
	c.advance(29 * day)
	read := 0
	for _, r := range runs {
		if r.end.final() {
			c.same(r)
			read++
		}
	}
	c.advance(2 * day)
	gone := 0
	for _, r := range runs {
		if !r.end.final() {
			continue
		}
		a := c.status(r.id)
		switch kept := r.saga == refund.TypeName || r.saga == ticketing.TypeName; { // 90 days
		case kept && !bytes.Equal(a.body, r.end.body):
			r.fail("31 days later: status %d: %s", a.status, a.body)
		case !kept && a.status != http.StatusGone:
			r.fail("31 days later: status %d, want 410", a.status)
		case !kept:
			gone++
		}
	}
	c.Logf("%d final answers are the same 29 days later; 31 days later %d are gone, the others the same", read, gone)
	if read == 0 || gone == 0 {
		c.Error("no answer was read again: the test proves nothing")
	}
}
