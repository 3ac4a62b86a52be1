package operator_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/operator"
)

// An act of another package and its audit row commit together, in the chain.
func TestRecord_P2_CommitsWithTheAct(t *testing.T) {
	t.Parallel()
	d, rig := newDesk(t)
	row := operator.AuditRow{Actor: "ann", Action: "dlq.drop", Target: "letter:7", Reason: "agreed"}
	undo := errors.New("undo")
	for _, end := range []error{undo, nil} {
		err := pgx.BeginFunc(t.Context(), rig.Pool, func(tx pgx.Tx) error {
			if r, err := d.Record(t.Context(), tx, row, map[string]int{"n": 1}, nil); err != nil || r.Seq != 1 || r.Hash == "" {
				t.Errorf("row %+v, %v", r, err)
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}
	if v := verify(t, d); !v.OK() || v.Rows != 1 {
		t.Errorf("%+v, want one row", v)
	}
	row.Reason = " "
	err := pgx.BeginFunc(t.Context(), rig.Pool, func(tx pgx.Tx) error {
		_, err := d.Record(t.Context(), tx, row, nil, nil)
		return err
	})
	var field *operator.FieldError
	if !errors.As(err, &field) || field.Field != "reason" {
		t.Errorf("without a reason: %v", err)
	}
}
