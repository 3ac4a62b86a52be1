package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/internal/audit"
	"github.com/vitrip/journeyman/sagas"
)

// world is what the script can do to the suppliers and read from them.
type world interface {
	// fault makes a supplier misbehave for one booking; release ends a hold.
	fault(booking string, f Fault) (release func(), err error)
	// called reports whether a request for this action has reached the supplier.
	called(booking, segment, action string) bool
	// effects is the ledger so far.
	effects() []audit.Effect
}

// player plays the script.
type player struct {
	world   world
	watch   *watch
	workers *workers
	clocks  *clocks
	engine  audit.Engine
	table   *table
	partner func(tenant string) partner
	brokers []string
	within  time.Duration // for one booking's end
	tick    time.Duration // how often conditions without a signal are looked at

	mu      sync.Mutex
	ended   map[string]answer // by name
	results []audit.Booking
	pending map[string]*pending // bookings under way, by saga id
}

// pending is a booking that a kill may concern.
type pending struct {
	booking Booking
	killed  map[string]bool
}

// sagaID is known before the booking is sent: it is derived from tenant, type, key and attempt.
func sagaID(b Booking) string { return sagas.OperationID(b.Tenant, b.Type, b.Key, 1) }

// businessKey scopes a booking to its tenant.
func businessKey(b Booking) string {
	var body struct {
		Booking string `json:"booking"`
	}
	_ = json.Unmarshal(b.Body, &body) // a body without one is refused at the door
	return b.Tenant + ":" + body.Booking
}

// killPlan pins each planned kill to the operation it names.
func killPlan(script []Booking) []string {
	var plan []string
	for _, b := range script {
		for _, k := range b.Kill {
			point, element, _ := strings.Cut(k, "@")
			detail := ""
			if element != "" {
				detail = sagaID(b) + ":" + element
			}
			plan = append(plan, point+"@"+detail)
		}
	}
	return plan
}

// play plays the script in three parts: what can go on side by side; then the
// bookings whose worker is killed, together with load, so that each kill meets
// other work too; then, one by one, those that move the clocks.
func (p *player) play(ctx context.Context, script, load []Booking, atOnce int) error {
	var calm, killed, alone []Booking
	for _, b := range script {
		switch {
		case b.Alone:
			alone = append(alone, b)
		case len(b.Kill) > 0:
			killed = append(killed, b)
		default:
			calm = append(calm, b)
		}
	}
	if err := p.together(ctx, calm, atOnce); err != nil {
		return err
	}
	p.workers.arm(killPlan(killed))
	if err := p.together(ctx, append(killed, load...), atOnce); err != nil {
		return err
	}
	p.workers.arm(killPlan(alone))
	for _, b := range alone {
		if err := p.one(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// together plays bookings side by side, at most atOnce of them.
func (p *player) together(ctx context.Context, script []Booking, atOnce int) error {
	done := map[string]chan struct{}{}
	for _, b := range script {
		done[b.Name] = make(chan struct{})
	}
	g, ctx := errgroup.WithContext(ctx)
	slots := make(chan struct{}, atOnce)
	for _, b := range script {
		g.Go(func() error {
			defer close(done[b.Name])
			if before := done[b.After]; before != nil {
				select {
				case <-before:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() { <-slots }()
			return p.one(ctx, b)
		})
	}
	return g.Wait()
}

// one plays one booking to its end and compares it with what the script expects.
func (p *player) one(ctx context.Context, b Booking) error {
	result := audit.Booking{Name: b.Name, Key: businessKey(b), Type: b.Type}
	last, err := p.run(ctx, b, &result)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Name, err)
	}
	result.Wrong = p.differs(b, result)
	p.mu.Lock()
	p.ended[b.Name] = last
	p.results = append(p.results, result)
	p.mu.Unlock()
	note := result.Reason
	if result.Wrong != "" {
		note = result.Wrong
	}
	p.table.set(b.Name, shown(result), note, true, result.Wrong != "")
	return nil
}

func shown(r audit.Booking) string {
	if r.Operation == "" {
		return "refused"
	}
	return r.State
}

func (p *player) run(ctx context.Context, b Booking, result *audit.Booking) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	saga := sagaID(b)
	body, err := p.body(b)
	if err != nil {
		return answer{}, err
	}
	releases := map[string]func(){}
	for _, f := range b.Faults {
		release, err := p.world.fault(result.Key, f)
		if err != nil {
			return answer{}, err
		}
		if release != nil {
			releases[f.Segment+"."+f.Action] = release
			defer release()
		}
	}
	entry := &pending{booking: b, killed: map[string]bool{}}
	p.mu.Lock()
	p.pending[saga] = entry
	p.mu.Unlock()

	first, err := p.send(ctx, b, body)
	if err != nil {
		return first, err
	}
	if first.status >= 400 && first.status < 500 {
		result.State = "refused"
		result.Reason = first.Detail
		return first, nil
	}
	if first.OperationID != saga {
		return first, fmt.Errorf("status %d, operation %q, want 202 and %q: %.300s", first.status, first.OperationID, saga, first.body)
	}
	result.Operation = saga
	p.table.set(b.Name, "running", b.About, false, false)

	acts, actx := errgroup.WithContext(ctx)
	for _, a := range b.Acts {
		acts.Go(func() error { return p.act(actx, b, a, releases) })
	}
	last, err := p.partner(b.Tenant).await(ctx, saga, p.within, func() (bool, <-chan struct{}) {
		_, change := p.watch.seen()
		return p.watch.ended(saga), change
	})
	if errors.Is(err, errOpen) {
		result.State = cmp.Or(last.State, "in_progress")
		cancel()
		_ = acts.Wait()
		return last, nil
	}
	if err != nil {
		return last, err
	}
	result.State, result.Reason = last.State, last.Reason.Code
	if err := p.finishActs(acts, cancel); err != nil {
		result.Wrong = err.Error()
	}
	return last, nil
}

// actGrace is how long acts may still wait for their condition once the booking has its answer.
const actGrace = 10 * time.Second

func (p *player) finishActs(acts *errgroup.Group, cancel context.CancelFunc) error {
	timer := time.AfterFunc(actGrace, cancel)
	defer timer.Stop()
	if err := acts.Wait(); err != nil {
		return fmt.Errorf("act: %w", err)
	}
	return nil
}

// send sends the request as often as the script says, all at once, and wants one answer from all.
func (p *player) send(ctx context.Context, b Booking, body []byte) (answer, error) {
	n := max(1, b.Repeat)
	answers := make([]answer, n)
	g, gctx := errgroup.WithContext(ctx)
	for i := range n {
		g.Go(func() error {
			var err error
			answers[i], err = p.partner(b.Tenant).start(gctx, b.Type, b.Key, body)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return answer{}, err
	}
	for _, a := range answers[1:] {
		if a.OperationID != answers[0].OperationID || (a.status != http.StatusAccepted && a.status != http.StatusOK) {
			return a, fmt.Errorf("%d requests with one key: status %d and operation %q beside %d and %q", n,
				a.status, a.OperationID, answers[0].status, answers[0].OperationID)
		}
	}
	return answers[0], nil
}

// body fills "$after.path" strings from the final answer of the booking named by After.
func (p *player) body(b Booking) ([]byte, error) {
	if b.After == "" || !bytes.Contains(b.Body, []byte("$after.")) {
		return b.Body, nil
	}
	p.mu.Lock()
	before := p.ended[b.After]
	p.mu.Unlock()
	var source, body any
	if err := json.Unmarshal(before.body, &source); err != nil {
		return nil, fmt.Errorf("answer of %q: %w", b.After, err)
	}
	if err := json.Unmarshal(b.Body, &body); err != nil {
		return nil, err
	}
	filled, err := fill(body, source)
	if err != nil {
		return nil, err
	}
	return json.Marshal(filled)
}

func fill(v, source any) (any, error) {
	var err error
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if v[k], err = fill(v[k], source); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = fill(v[i], source); err != nil {
				return nil, err
			}
		}
	case string:
		path, ok := strings.CutPrefix(v, "$after.")
		if !ok {
			return v, nil
		}
		at := source
		for _, step := range strings.Split(path, ".") {
			if at = descend(at, step); at == nil {
				return nil, fmt.Errorf("%s: the earlier answer has no %q", v, step)
			}
		}
		return at, nil
	}
	return v, nil
}

// descend gives a field of an object, or the element of a list that is of this segment; nil when there is none.
func descend(v any, step string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[step]
	case []any:
		for _, e := range v {
			if m, ok := e.(map[string]any); ok && m["segment"] == step {
				return e
			}
		}
	}
	return nil
}

// outcomes are the bookings that have ended so far.
func (p *player) outcomes() []audit.Booking {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.results)
}

// differs says how a booking ended otherwise than the script expects, "" when it did not.
func (p *player) differs(b Booking, r audit.Booking) string {
	if r.Wrong != "" {
		return r.Wrong
	}
	if !slices.Contains(b.Expect.States, r.State) {
		return fmt.Sprintf("ended %s (%s), want %s", r.State, r.Reason, strings.Join(b.Expect.States, " or "))
	}
	if b.Expect.Reason != "" && r.State != "completed" && b.Expect.Reason != r.Reason {
		return fmt.Sprintf("reason %q, want %q", r.Reason, b.Expect.Reason)
	}
	did, undone := map[string]int{}, map[string]int{}
	var order []string
	for _, e := range p.world.effects() {
		if e.Booking != r.Key {
			continue
		}
		switch e.Kind {
		case "reserve", "authorize":
			did[e.Segment]++
		case "cancel", "void":
			undone[e.Segment]++
			order = append(order, e.Segment)
		}
	}
	for _, segment := range slices.Sorted(maps.Keys(b.Expect.Effects)) {
		got := "none"
		switch {
		case did[segment] > undone[segment]:
			got = "held"
		case did[segment] > 0:
			got = "released"
		}
		if want := b.Expect.Effects[segment]; got != want && (want != "free" || got == "held") {
			return fmt.Sprintf("%s is %s, want %s", segment, got, want)
		}
	}
	if len(b.Expect.Undo) > 0 && !slices.Equal(order, b.Expect.Undo) {
		return fmt.Sprintf("undone in the order %v, want %v", order, b.Expect.Undo)
	}
	return ""
}
