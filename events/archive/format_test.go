package archive

import (
	"context"
	"testing"
	"time"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

// Every statement can be prepared with nothing on the search path.
func TestStatements(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{outbox.Migrate, Migrate} {
		if err := migrate(ctx, pool, "other_schema"); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Statements(t, pool, render("other_schema"), nil)
}

func row(id int64, text string) outbox.Logged {
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)
	return outbox.Logged{
		LoggedAt: at, ID: id, EventID: "e", Type: text, Version: 1, Class: "domain", Topic: "t", BusinessKey: "k" + text, Seq: id, OperationID: text,
		Headers: []string{"a", text, "a", ""}, Body: []byte(text), OccurredAt: at.Add(-time.Hour), CreatedAt: at,
	}
}

// The format of a line is a contract with archives that stand for years.
func TestFormat_Line(t *testing.T) {
	t.Parallel()
	const line = `{"logged_at":"2026-11-30T12:00:00.123456Z","shard":3,"id":7,"event_id":"e","type":"a.b.c","version":1,"class":"domain","topic":"a.b.c.v1",` +
		`"business_key":"K","seq":2,"operation_id":"o","headers":[["event_id","e"]],"body":"e30=","occurred_at":"2026-11-30T11:00:00.000000Z","created_at":"2026-11-30T11:00:00.000001Z"}`
	r, err := parse([]byte(line))
	if err != nil || string(r.Body) != "{}" || r.ID != 7 || len(r.Headers) != 2 || r.LoggedAt.Nanosecond() != 123456000 {
		t.Fatalf("parsed %+v, %v", r, err)
	}
	content, p, err := pack("2026-11-30", 1, []outbox.Logged{r})
	if err != nil {
		t.Fatal(err)
	}
	if want := "v1/2026-11-30/part-00001-" + p.SHA256[:16] + ".jsonl.gz"; p.Name != want {
		t.Errorf("name %s, want %s", p.Name, want)
	}
	again, _, err := pack("2026-11-30", 1, []outbox.Logged{r})
	if err != nil || string(again) != string(content) {
		t.Error("the same rows give another object")
	}
}

func FuzzUnpack(f *testing.F) {
	content, p, err := pack("2026-11-30", 1, []outbox.Logged{row(1, "x"), row(2, "ü\x00\"")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content, p.Rows)
	f.Add([]byte("{}\n"), int64(1))
	f.Fuzz(func(t *testing.T, content []byte, rows int64) {
		var got []outbox.Logged
		err := unpack(content, Part{Name: "x", SHA256: hash(content), Rows: rows, IDSum: "3"}, func(r outbox.Logged) error {
			got = append(got, r)
			return nil
		})
		if err == nil && (int64(len(got)) != rows || got == nil) {
			t.Errorf("%d rows without an error, want %d", len(got), rows)
		}
	})
}
