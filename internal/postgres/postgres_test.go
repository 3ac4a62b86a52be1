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
	conn, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `PREPARE ahead AS SELECT journeyman.now() - pg_catalog.now()`); err != nil {
		t.Fatal(err)
	}
	aheadBy := func(want time.Duration) {
		t.Helper()
		var ahead time.Duration
		if err := conn.QueryRow(ctx, `EXECUTE ahead`).Scan(&ahead); err != nil {
			t.Fatal(err)
		}
		if ahead < want || ahead > want+time.Hour {
			t.Errorf("clock ahead by %v, want %v", ahead, want)
		}
	}
	for range 8 { // the plan is the session's own by now
		aheadBy(0)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := postgres.AdvanceClock(ctx, pool, "journeyman", 9*time.Hour); err != nil {
				t.Errorf("moved by eight at once: %v", err)
			}
		})
	}
	wg.Wait()
	aheadBy(72 * time.Hour)
	if _, err := conn.Exec(ctx, `DO $$ DECLARE plan text; BEGIN EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) SELECT journeyman.now()' INTO plan;
		IF plan LIKE '%journeyman.now%' THEN RAISE EXCEPTION 'now() is called: %', plan; END IF; END $$`); err != nil {
		t.Error(err)
	}
}
