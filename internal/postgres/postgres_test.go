package postgres_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestMigrate(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	files := fstest.MapFS{"0001_create_a.sql": {Data: []byte(`CREATE TABLE {{schema}}.a (n int)`)}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := postgres.Migrate(ctx, pool, "journeyman", "test", files); err != nil {
				t.Errorf("eight processes at once: %v", err)
			}
		})
	}
	wg.Wait()
	files["0001_create_a.sql"].Data = []byte(`CREATE TABLE {{schema}}.b (n int)`)
	if err := postgres.Migrate(ctx, pool, "journeyman", "test", files); err == nil || !strings.Contains(err.Error(), "0001_create_a.sql") {
		t.Errorf("changed file: got %v, want a refusal that names it", err)
	}
	if err := postgres.Migrate(ctx, pool, `x"y`, "test", files); err == nil {
		t.Error("schema that needs quoting was taken")
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	if err := postgres.Migrate(ctx, pool, "journeyman", "core", nil); err != nil {
		t.Fatal(err)
	}
	if err := postgres.AdvanceClock(ctx, pool, "journeyman", 72*time.Hour); err != nil {
		t.Fatal(err)
	}
	var ahead time.Duration
	if err := pool.QueryRow(ctx, `SELECT journeyman.now() - pg_catalog.now()`).Scan(&ahead); err != nil {
		t.Fatal(err)
	}
	if ahead < 72*time.Hour || ahead > 73*time.Hour {
		t.Errorf("clock ahead by %v, want 72 h", ahead)
	}
}
