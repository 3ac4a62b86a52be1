package audit

import (
	"context"
	"testing"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

// Every statement can be prepared with nothing on the search path.
func TestStatements(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	if err := outbox.Migrate(ctx, pool, "other_schema"); err != nil {
		t.Fatal(err)
	}
	pgtest.Statements(t, pool, render("other_schema"), nil)
}

func FuzzUnpack(f *testing.F) {
	whole, err := pack([]Row{{Chain: "a", Link: 1, EventID: "x"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(_ *testing.T, raw []byte) { _ = unpack("x", raw, func(Row) {}) })
}

func FuzzParseHead(f *testing.F) {
	f.Add(Head{Chain: "a/b/0", Link: 3, Hash: Genesis}.String())
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := ParseHead(text); err == nil && h.Chain == "" {
			t.Errorf("%q: no chain", text)
		}
	})
}
