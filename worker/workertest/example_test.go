package workertest_test

import (
	"context"
	"testing"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/worker/workertest"
)

// A handler test: tables from Migrate, a row or two, the handler, and a look at
// what it wrote. Everything is rolled back when the test ends.
func ExampleDatabase_Begin() {
	type In struct {
		Hotel string `json:"hotel"`
	}
	book := worker.Transactional(func(ctx context.Context, tx *worker.Tx, job worker.Job[In]) (struct{}, error) {
		tag, err := tx.Exec(ctx, `UPDATE room SET free = free - 1 WHERE hotel = $1 AND free > 0`, job.In.Hotel)
		if err == nil && tag.RowsAffected() == 0 {
			return struct{}{}, worker.BusinessError("SOLD_OUT", "no room left")
		}
		return struct{}{}, err
	}, worker.Throws("SOLD_OUT"), worker.NotCompensable("an example"))

	_ = func(t *testing.T) {
		b := db.Begin(t)
		b.Exec(`INSERT INTO room VALUES ('H-1', 1)`)
		job := workertest.Job{Type: "room.book", Input: In{Hotel: "H-1"}}
		b.Run(book, job).WantSuccess()
		b.Run(book, job).WantCode("SOLD_OUT")
		if free := workertest.Get[int](b, `SELECT free FROM room`); free != 0 {
			t.Errorf("%d rooms free, want 0", free)
		}
	}
}
