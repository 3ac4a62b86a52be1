//go:build crowd || soak

package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// death is the kill of a worker process at one crash point of one element of a saga of its own.
type death struct {
	saga, element, point string
	undone               bool // the saga is given up before: a supplier refuses
}

func (d death) String() string { return d.saga + " " + d.element + " at " + d.point }

// deaths are all of them, in all models.
func deaths() (all []death) {
	add := func(saga string, undone bool, elements ...string) {
		for _, e := range elements {
			for _, p := range moments() {
				if p != during {
					all = append(all, death{saga, e, p, undone})
				}
			}
		}
	}
	add(tourbooking.TypeName, false, "begin", "flightReserve:flight", "hotelReserve:hotel", "transferReserve:transfer", "paymentAuthorize", "bookingConfirm", "paymentCapture", "close")
	add(tourbooking.TypeName, true, "giveUpFailure", "flightReserve:flight:undo", "hotelReserve:hotel:undo", "transferReserve:transfer:undo", "undoRestFailure")
	add(refund.TypeName, false, "begin", "segmentRefund:1", "segmentRefund:3", "refundApprove", "refundPay", "close")
	add(refund.TypeName, true, "giveUpFailure", "undoRestFailure")
	add(amendment.TypeName, false, "begin", "amendmentBegin", "segmentReserve", "differenceAuthorize", "amendmentConfirm", "differenceSettle", "oldRelease", "close")
	add(amendment.TypeName, true, "giveUpFailure", "segmentReserve:undo", "amendmentBegin:undo", "undoRestFailure")
	return all
}

func (d death) plan() plan {
	p := plan{saga: d.saga, about: d.String(), ends: []string{"completed"}, random: true}
	if d.undone {
		refused := step{d.saga, "payment", "authorize", forward}
		if d.saga == refund.TypeName {
			refused = step{d.saga, "transfer", "refund", forward}
		}
		p.cells, p.ends = []cell{{refused, refuses}}, []string{"failed"}
	}
	return p
}

// reaper keeps one worker process running that dies at each of the planned points.
type reaper struct {
	*fleet
	log string

	mu   sync.Mutex
	left []string // "point@operation"
	from time.Time
	at   int64 // what had moved when the process began
}

// run blocks until ctx ends.
func (r *reaper) run(ctx context.Context) {
	for ctx.Err() == nil {
		m := r.as
		r.mu.Lock()
		armed := make([]string, len(r.left))
		for i, l := range r.left {
			armed[i] = l + ":1"
		}
		r.from, r.at = time.Now(), r.traffic.moved.Load()
		r.mu.Unlock()
		m.CrashAt, m.KillLog = strings.Join(armed, ","), r.log
		p, err := r.launch(m, nil)
		if err != nil {
			r.Errorf("start a worker: %v", err)
			return
		}
		select {
		case <-p.ended:
			_ = p.hold.Close()
		case <-ctx.Done():
			p.kill()
		}
		if err := r.read(); err != nil {
			r.Errorf("read the kills: %v", err)
			return
		}
	}
}

// read takes from the plan what has happened.
func (r *reaper) read() error {
	f, err := os.Open(r.log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	r.mu.Lock()
	defer r.mu.Unlock()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		done := strings.Replace(lines.Text(), "\t", "@", 1)
		r.left = slices.DeleteFunc(r.left, func(l string) bool { return l == done })
	}
	return nil
}

// working says that the process has begun to work, or should have.
func (r *reaper) working() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.traffic.moved.Load() > r.at || time.Since(r.from) > 2*time.Second
}

// TestKilledAtEveryPoint kills the worker process at every crash point of every element of all models, and takes up what it left.
func TestKilledAtEveryPoint(t *testing.T) {
	r := &reaper{fleet: setupFleet(t, 1, 0), log: filepath.Join(t.TempDir(), "kills")}
	var plans []plan
	all := sample(t, deaths(), sampledDeaths)
	for i, d := range all {
		plans = append(plans, d.plan())
		r.left = append(r.left, d.point+"@"+sagas.OperationID(tenant, d.saga, d.saga+"-"+name(1+i), 1)+":"+d.element)
	}
	planned := len(r.left)
	r.ready = r.working
	ctx, stop := context.WithCancel(r.ctx)
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx) })
	defer running.Wait()
	defer stop()
	var runs []*run
	const together = 24 // their time-outs are longer than the process takes to die so often
	for some := range slices.Chunk(plans, together) {
		runs = append(runs, r.play(some, 1+len(runs))...)
	}
	missed := map[string]bool{}
	r.mu.Lock()
	for i, d := range all {
		if slices.Contains(r.left, d.point+"@"+runs[i].id+":"+d.element) {
			missed[fmt.Sprint(d)] = true
		}
	}
	r.mu.Unlock()
	acts := 0
	for _, p := range runs {
		acts += len(p.acts)
	}
	t.Logf("%d of %d kills happened, persons acted %d times; elements without an external call pass no point of one: %d missed", planned-len(missed), planned, acts, len(missed))
	for _, d := range all {
		if missed[d.String()] && !strings.HasPrefix(d.point, "worker.call") {
			t.Logf("missed: %s", d)
		}
	}
	if len(missed) > planned/2 {
		t.Errorf("only %d of %d kills happened", planned-len(missed), planned)
	}
	r.finish(runs)
}
