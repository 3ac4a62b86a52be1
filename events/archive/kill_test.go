package archive_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/internal/crash"
)

// Variables with which the test binary starts itself as an archiver that dies.
const (
	envChild = "JOURNEYMAN_TEST_ARCHIVE_CHILD" // DSN
	envURL   = "JOURNEYMAN_TEST_ARCHIVE_URL"
	envArm   = "JOURNEYMAN_TEST_ARCHIVE_ARM"
	envLog   = "JOURNEYMAN_TEST_ARCHIVE_LOG"
)

func child() {
	err := func() error {
		if err := crash.Arm(os.Getenv(envArm), os.Getenv(envLog)); err != nil {
			return err
		}
		ctx := context.Background()
		pool, err := pgxpool.New(ctx, os.Getenv(envChild))
		if err != nil {
			return err
		}
		b, err := bucket.Open(ctx, os.Getenv(envURL))
		if err != nil {
			return err
		}
		a, err := archive.New(pool, b, archive.Config{PartRows: 300})
		if err != nil {
			return err
		}
		_, err = a.Pass(ctx)
		return err
	}()
	fmt.Fprintln(os.Stderr, "child ended:", err)
	os.Exit(3)
}

// The archiver is killed with an object written and not recorded, recorded, and
// with the manifest written and not recorded; the next one goes on: every row once.
func TestArchive_E9_Killed(t *testing.T) {
	t.Parallel()
	for _, arm := range []string{"archive.part.written:2", "archive.part.committed:3", "archive.manifest.written:1"} {
		t.Run(arm, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.day("2026-01-02", 1, 1250)
			f.day("2026-01-03", 1251, 800)
			folder := t.TempDir()
			log := filepath.Join(t.TempDir(), "points")
			cmd := exec.CommandContext(f.ctx, os.Args[0])
			cmd.Env = append(os.Environ(), envChild+"="+f.dsn, envURL+"=file://"+folder, envArm+"="+arm, envLog+"="+log)
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:forcetypeassert // Unix
				t.Fatalf("child ended with %v, want SIGKILL\n%s", err, out)
			}
			if text, err := os.ReadFile(log); err != nil || !strings.HasPrefix(string(text), strings.Split(arm, ":")[0]) { //nolint:gosec // our own
				t.Fatalf("point not recorded: %q, %v", text, err)
			}
			b, err := bucket.Open(f.ctx, "file://"+folder)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close() //nolint:errcheck // a folder
			a := f.archiver(b, func(c *archive.Config) { c.PartRows = 300 })
			// The dead process's session may hold the lock for a moment: then a pass leaves the work to it.
			f.eventually("both days to be verified", func() bool {
				f.pass(a)
				return f.count(`SELECT count(*) FROM journeyman.event_log_day WHERE state = 'verified'`) == 2
			})
			f.same(f.archived(b), f.logged())
			f.sound(a, 2050)
			names, err := b.List(f.ctx, "")
			if err != nil || len(names) != 8+2 {
				t.Errorf("%d objects, want 8 parts and 2 manifests: %v, %v", len(names), names, err)
			}
		})
	}
}
