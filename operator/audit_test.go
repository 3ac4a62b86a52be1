package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator"
)

// audited makes a desk with n audit rows and gives the last.
func audited(t *testing.T, n int) (*operator.Desk, *operatortest.Rig, operator.AuditRow) {
	t.Helper()
	d, rig := newDesk(t)
	var last operator.AuditRow
	for i := range n {
		var err error
		last, err = d.Append(t.Context(), "ann", fmt.Sprintf("reason %d", i+1), map[string]int{"n": i}, map[string]string{"text": hostile})
		if err != nil {
			t.Fatal(err)
		}
	}
	return d, rig, last
}

func verify(t *testing.T, d *operator.Desk, known ...operator.Head) operator.Verification {
	t.Helper()
	v, err := d.VerifyAudit(t.Context(), known...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	_, rig, _ := audited(t, 2)
	for _, sql := range []string{
		`UPDATE jm_test.operator_audit SET reason = 'nicer' WHERE seq = 1`, `DELETE FROM jm_test.operator_audit`, `TRUNCATE jm_test.operator_audit`,
		`UPDATE jm_test.operator_audit SET seq = seq`,
	} {
		_, err := rig.Pool.Exec(t.Context(), sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || !strings.Contains(pg.Message, "append-only") {
			t.Errorf("%s: %v, want it refused as append-only", sql, err)
		}
	}
}

func TestAuditChain(t *testing.T) {
	t.Parallel()
	d, _, _ := audited(t, 0)
	if v := verify(t, d); !v.OK() || v.Rows != 0 || v.Head.Seq != 0 {
		t.Errorf("empty chain: %+v, want whole", v)
	}
	d, _, last := audited(t, 3)
	head := operator.Head{Seq: last.Seq, Hash: last.Hash}
	if v := verify(t, d, head); !v.OK() || v.Rows != 3 || v.Head != head {
		t.Errorf("chain: %+v, want whole, 3 rows, head %s", v, head)
	}
	rows, err := d.Audit(t.Context(), "", 0, 2)
	if err != nil || len(rows) != 2 || rows[0].Seq != 3 || rows[0].PrevHash != rows[1].Hash {
		t.Errorf("Audit: %+v, %v; want rows 3 and 2, linked", rows, err)
	}
	older, err := d.Audit(t.Context(), "t", 2, 10)
	if err != nil || len(older) != 1 || older[0].Reason != "reason 1" {
		t.Errorf("Audit before 2: %+v, %v; want row 1", older, err)
	}
	if one, err := d.AuditRow(t.Context(), 2); err != nil || string(one.Before) != `{"n":1}` {
		t.Errorf("AuditRow 2: %+v, %v", one, err)
	}
	if _, err := d.AuditRow(t.Context(), 4); !errors.Is(err, operator.ErrNotFound) {
		t.Errorf("AuditRow 4: %v, want ErrNotFound", err)
	}
}

// TestAuditSeesTampering removes the trigger, as an owner of the database could, and changes the past.
func TestAuditSeesTampering(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"reason changed":      {`UPDATE {{schema}}.operator_audit SET reason = 'nicer' WHERE seq = 2`, "row 2: its content does not match its hash"},
		"time changed":        {`UPDATE {{schema}}.operator_audit SET at = at + interval '1 microsecond' WHERE seq = 2`, "row 2: its content"},
		"text moved over":     {`UPDATE {{schema}}.operator_audit SET actor = actor || 't', action = 'est' WHERE seq = 2`, "row 2: its content"},
		"row removed":         {`DELETE FROM {{schema}}.operator_audit WHERE seq = 2`, "row 3 follows row 1"},
		"first removed":       {`DELETE FROM {{schema}}.operator_audit WHERE seq = 1`, "row 2 follows row 0"},
		"last removed":        {`DELETE FROM {{schema}}.operator_audit WHERE seq = 3`, "the chain ends at 2:"},
		"all removed":         {`DELETE FROM {{schema}}.operator_audit`, "the chain ends at 0:"},
		"link changed":        {`UPDATE {{schema}}.operator_audit SET prev_hash = sha256('x') WHERE seq = 2`, "row 2: does not continue row 1"},
		"last and its record": {`DELETE FROM {{schema}}.operator_audit WHERE seq = 3; UPDATE {{schema}}.operator_audit_head h SET seq = 2, hash = a.hash FROM {{schema}}.operator_audit a WHERE a.seq = 2`, "known head 3:"},
	} {
		d, rig, last := audited(t, 3)
		rig.Run(`DROP TRIGGER operator_audit_append_only ON {{schema}}.operator_audit; ` + c.sql)
		v := verify(t, d, operator.Head{Seq: 3, Hash: last.Hash})
		if !strings.Contains(v.Fault, c.want) {
			t.Errorf("%s: fault %q, want %q", name, v.Fault, c.want)
		}
	}
}

func TestAuditConcurrentActs(t *testing.T) {
	t.Parallel()
	d, _, _ := audited(t, 0)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				if _, err := d.Append(t.Context(), fmt.Sprint("actor ", i), "why", nil, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if v := verify(t, d); !v.OK() || v.Rows != 40 {
		t.Errorf("after 40 acts at once: %+v, want a whole chain of 40 rows", v)
	}
}

func TestParseHead(t *testing.T) {
	t.Parallel()
	h := operator.Head{Seq: 12, Hash: strings.Repeat("0a", 32)}
	if got, err := operator.ParseHead(h.String()); err != nil || got != h {
		t.Errorf("ParseHead(%q) = %v, %v", h, got, err)
	}
	for _, bad := range []string{"", "12", "12:", "x:" + h.Hash, "12:" + strings.Repeat("zz", 32), "-1:" + h.Hash, "12:" + h.Hash + "00"} {
		if _, err := operator.ParseHead(bad); err == nil {
			t.Errorf("ParseHead(%q): no error", bad)
		}
	}
}
