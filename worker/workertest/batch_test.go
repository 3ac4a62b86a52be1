package workertest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/worker/workertest"
)

// stays writes all stays with one statement. A hotel of a name without H is refused, H-broken breaks the statement.
func stays(calls *int) worker.Handler {
	return worker.Batch(10, func(ctx context.Context, tx *worker.Tx, jobs []worker.Job[stay]) ([]worker.BatchEnd[held], error) {
		*calls++
		ends := make([]worker.BatchEnd[held], len(jobs))
		var ids, hotels []string
		for i, j := range jobs {
			switch {
			case !strings.HasPrefix(j.In.Hotel, "H"):
				ends[i].Err = worker.BusinessError("SOLD_OUT", "no such hotel", worker.WithEvents(event("refused")))
				continue
			case j.In.Hotel == "H-later":
				ends[i].Err = errors.New("busy")
				continue
			case j.In.Hotel == "H-broken":
				_, err := tx.Exec(ctx, `SELECT 1/0`)
				return nil, err
			}
			ends[i].Out.ID, ends[i].Events = "R-"+j.In.Hotel, append(ends[i].Events, event("held"))
			ids, hotels = append(ids, j.OperationID), append(hotels, j.In.Hotel)
		}
		_, err := tx.Exec(ctx, `INSERT INTO stay SELECT * FROM unnest($1::text[], $2::text[])`, ids, hotels)
		return ends, err
	}, worker.Throws("SOLD_OUT"), worker.NotCompensable("a test"))
}

func reserves(hotels ...string) []workertest.Job {
	jobs := make([]workertest.Job, len(hotels))
	for i, hotel := range hotels {
		jobs[i] = workertest.Job{Type: "room.reserve", Input: stay{hotel, 1}}
	}
	return jobs
}

// One call for all, an end for each; a bad job does not take the others down.
func TestRunBatch(t *testing.T) {
	t.Parallel()
	b, calls := db.Begin(t), 0
	r := b.RunBatch(stays(&calls), reserves("H-1", "nowhere", "H-later", "H-2")...)
	r[0].WantSuccess()
	r[1].WantCode("SOLD_OUT")
	r[2].Want(outcome.Retryable, "")
	if id := workertest.Decode[held](r[3].WantSuccess()).ID; id != "R-H-2" || calls != 1 {
		t.Errorf("id %s after %d calls, want R-H-2 after 1", id, calls)
	}
	if d := cmp.Diff([][]string{{"tour.room.held"}, {"tour.room.refused"}, {}, {"tour.room.held"}}, [][]string{r[0].Types(), r[1].Types(), r[2].Types(), r[3].Types()}); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
	if n := workertest.Get[int](b, `SELECT count(*) FROM stay`); n != 2 {
		t.Errorf("%d stays, want 2", n)
	}
}

// A statement that fails takes the call back, and each job runs by itself.
func TestRunBatch_split(t *testing.T) {
	t.Parallel()
	b, calls := db.Begin(t), 0
	r := b.RunBatch(stays(&calls), reserves("H-1", "H-broken", "H-2")...)
	r[0].WantSuccess()
	r[1].Want(outcome.Retryable, "")
	r[2].WantSuccess()
	if n := workertest.Get[int](b, `SELECT count(*) FROM stay`); n != 2 || calls != 4 {
		t.Errorf("%d stays after %d calls, want 2 after 4", n, calls)
	}
}
