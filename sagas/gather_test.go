package sagas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// Requests that come while all lanes are busy share a statement, a key twice is asked for once, and an error is everybody's.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var statements [][]int
		hold := make(chan struct{})
		broken := errors.New("broken")
		g := gather[int, string]{all: func(_ context.Context, keys []int) (map[int]string, error) {
			mu.Lock()
			statements = append(statements, slices.Sorted(slices.Values(keys)))
			n := len(statements)
			mu.Unlock()
			<-hold
			if n == gatherLanes+2 {
				return nil, broken
			}
			values := map[int]string{}
			for _, k := range keys {
				if k != 404 {
					values[k] = fmt.Sprint(k)
				}
			}
			return values, nil
		}}
		type got struct {
			v            string
			found, first bool
			err          error
		}
		results := make(chan got, 200)
		get := func(ctx context.Context, k int) {
			v, found, first, err := g.get(ctx, k)
			results <- got{v, found, first, err}
		}
		for i := range gatherLanes {
			go get(t.Context(), i)
			synctest.Wait()
		}
		for range 3 {
			go get(t.Context(), 77)
		}
		go get(t.Context(), 404)
		synctest.Wait()
		if len(statements) != gatherLanes {
			t.Errorf("%d statements ran at once, want %d", len(statements), gatherLanes)
		}
		left, leave := context.WithCancel(t.Context())
		go get(left, 78)
		synctest.Wait()
		leave()
		if r := <-results; !errors.Is(r.err, context.Canceled) {
			t.Errorf("a request that left: got %v", r.err)
		}
		hold <- struct{}{} // one lane is free: it takes what waits
		<-results
		synctest.Wait()
		if want := []int{77, 78, 404}; len(statements) != gatherLanes+1 || !slices.Equal(statements[gatherLanes], want) {
			t.Errorf("statements %v, want the last %v", statements, want)
		}
		go get(t.Context(), 500)
		synctest.Wait()
		close(hold)
		synctest.Wait()
		close(results)
		counts := map[string]int{}
		for r := range results {
			switch {
			case r.err != nil:
				counts[r.err.Error()]++
			case !r.found:
				counts["absent"]++
			case r.v == "77":
				counts["77"]++
				if r.first {
					counts["77 first"]++
				}
			}
		}
		if counts["77"] != 3 || counts["77 first"] != 1 || counts["absent"] != 1 || counts["broken"] != 1 {
			t.Errorf("got %v, want 77 three times and once first, one absent, one broken", counts)
		}
		if g.busy != 0 || len(g.queue) != 0 {
			t.Errorf("%d lanes are busy and %d wait at the end", g.busy, len(g.queue))
		}
	})
}

// Z7: of many polls of one operation at the same moment one is answered, and another tenant's read counts for nothing.
func TestPoll_atTheSameMoment(t *testing.T) {
	w := setup(t)
	if _, err := w.records.Exec(w.ctx, `INSERT INTO journeyman_records.record (operation_id, started_on, tenant, type, key, internal_key, attempt, business_key, plan, origin, state,
			started_at, timeout_at, estimated_at, steps, completed, partial, start_state, start_next_at)
		SELECT 'op_1', current_date, 'agency', 'trip', 'k', 'k', 1, 'agency:B', '{}', '{}', 'in_progress', now(), now() + interval '1 h', now(), '{}', '{}', '{}', 'started', now()`); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, _, err := w.s.look(w.ctx, "op_1", "other"); !errors.Is(err, errNoRecord) {
			t.Fatalf("another tenant: got %v, want no record", err)
		}
	}
	var all sync.WaitGroup
	answers := make([]polled, 40)
	for i := range answers {
		all.Go(func() {
			rec, p, err := w.s.look(w.ctx, "op_1", "agency")
			if err != nil || rec.ID != "op_1" {
				t.Errorf("got %q, %v", rec.ID, err)
			}
			answers[i] = p
		})
	}
	all.Wait()
	allowed := 0
	for _, p := range answers {
		if p.allowed {
			allowed++
		}
		if !p.early {
			t.Error("a poll before the first Retry-After is not early")
		}
	}
	if allowed != 1 {
		t.Errorf("%d of %d polls at once are answered, want 1", allowed, len(answers))
	}
	_, polls, violations := w.s.polls.take()
	if fmt.Sprint(polls, violations) != "[1] [40]" {
		t.Errorf("counted %v polls and %v violations, want 1 and 40", polls, violations)
	}
}
