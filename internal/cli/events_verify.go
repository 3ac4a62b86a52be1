package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/audit"
	"github.com/vitrip/journeyman/events/seal"
)

type verifyFlags struct {
	db                   databaseFlags
	archive, keys, table string
	heads                []string
	asJSON               bool
}

// verified is what the command prints of each source.
type verified struct {
	Source string `json:"source"` // "ledger", "log" or "archive"
	audit.Report
}

func newEventsVerify(s Streams) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "verify", Short: "Walk the hash chains of audit messages", Args: cobra.NoArgs,
		Long: `Verify recomputes the hash of every audit message and follows each chain from its first link. It names the first
link of each chain that was changed, removed, inserted, reordered or cut off, and then ends with 1.

It reads the ledger of a database (--dsn; --table log reads the event log instead, which may begin late and end early),
the write-once archive (--archive, a folder or URL), or both, and then compares the database with the archive.
--head takes the end of a chain that was kept elsewhere, as this command prints it: a chain that was written anew, head and
all, shows only by such a head or by the archive. --keys opens encrypted bodies; without it they are counted as unchecked.
Messages of class compliance are compared with their digests.

With --json it prints {"ok", "sources": [{"source", "rows", "unchecked", "heads": [{"chain", "link", "hash"}],
"faults": [{"chain", "link", "event_id", "what"}]}]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.db.dsn == "" && f.archive == "" {
				return exit(ExitUsage, fmt.Errorf("want --dsn, --archive or both"))
			}
			if f.table != "ledger" && f.table != "log" {
				return exit(ExitUsage, fmt.Errorf("--table %q, want ledger or log", f.table))
			}
			return f.run(cmd.Context(), s)
		},
	}
	f.db.add(cmd)
	cmd.Flags().StringVar(&f.archive, "archive", "", "folder or URL of the archive, for example file:///var/lib/journeyman/audit")
	cmd.Flags().StringVar(&f.keys, "keys", "", "folder of key files")
	cmd.Flags().StringVar(&f.table, "table", "ledger", "what to read of the database: ledger or log")
	cmd.Flags().StringArrayVar(&f.heads, "head", nil, "a known head, chain:link:hash")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	env(cmd, "archive", "JOURNEYMAN_ARCHIVE")
	env(cmd, "keys", "JOURNEYMAN_KEYS")
	return cmd
}

func (f verifyFlags) run(ctx context.Context, s Streams) error {
	var known []audit.Head
	for _, text := range f.heads {
		h, err := audit.ParseHead(text)
		if err != nil {
			return exit(ExitUsage, fmt.Errorf("--%w", err))
		}
		known = append(known, h)
	}
	keys, err := openKeys(f.keys)
	if err != nil {
		return err
	}
	progress := func(rows int64) { _, _ = fmt.Fprintf(s.Err, "%d messages\n", rows) }
	var all []verified
	if f.archive != "" {
		store, err := openBucket(ctx, f.archive)
		if err != nil {
			return err
		}
		r, err := audit.VerifyArchive(ctx, store, keys, progress, known...)
		_ = store.Close() // read only
		if err != nil {
			return exit(ExitMissing, err)
		}
		all, known = append(all, verified{"archive", r}), append(known, r.Heads...)
	}
	if f.db.dsn != "" {
		pool, err := f.db.open(ctx, 2)
		if err != nil {
			return err
		}
		defer pool.Close()
		read := audit.VerifyLedger
		if f.table == "log" {
			read = audit.VerifyLog
		}
		r, err := read(ctx, pool, f.db.schema, keys, progress, known...)
		if err != nil {
			return exit(ExitMissing, err)
		}
		all = append(all, verified{f.table, r})
	}
	return printVerified(s, all, f.asJSON)
}

func printVerified(s Streams, all []verified, asJSON bool) error {
	ok := true
	for _, v := range all {
		ok = ok && v.OK()
	}
	if asJSON {
		if err := printJSON(s.Out, map[string]any{"ok": ok, "sources": all}); err != nil {
			return err
		}
	}
	for _, v := range all {
		if asJSON {
			break
		}
		if _, err := fmt.Fprintf(s.Out, "%s: %d messages, %d chains, %d bodies unchecked\n", v.Source, v.Rows, len(v.Heads), v.Unchecked); err != nil {
			return err
		}
		for _, h := range v.Heads {
			_, _ = fmt.Fprintf(s.Out, "  head %s\n", h)
		}
		for _, x := range v.Faults {
			_, _ = fmt.Fprintf(s.Out, "  BROKEN %s\n", x)
		}
	}
	if !ok {
		return exit(ExitWrong, fmt.Errorf("the audit is broken"))
	}
	return nil
}

// openKeys opens a folder of keys, "" gives none.
func openKeys(dir string) (seal.Keys, error) {
	if dir == "" {
		return nil, nil //nolint:nilnil // no keys are a choice
	}
	d, err := seal.OpenDir(dir)
	if err != nil {
		return nil, exit(ExitMissing, err)
	}
	return d, nil
}

// openBucket opens object storage by URL, or a folder by its name.
func openBucket(ctx context.Context, address string) (*bucket.Bucket, error) {
	if !strings.Contains(address, "://") {
		dir, err := filepath.Abs(address)
		if err != nil {
			return nil, exit(ExitUsage, err)
		}
		address = "file://" + filepath.ToSlash(dir)
	}
	b, err := bucket.Open(ctx, address)
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	return b, nil
}

func newEventsArchiveAudit(s Streams) *cobra.Command {
	var db databaseFlags
	var to string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "archive-audit", Short: "Write what the write-once archive lacks of the audit chains", Args: cobra.NoArgs,
		Long: `Archive-audit writes every link of the ledger's chains that is not in the archive yet, in segments that are created once and
never written over. It may run from several machines at once, as often as you like, and be killed. A chain that does not
follow what is archived is refused with its first broken link, and the command ends with 1 after the others.
With --json it prints {"rows", "segments"}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "dsn", "archive"); err != nil {
				return err
			}
			return withBucket(cmd.Context(), db, to, func(ctx context.Context, pool *pgxpool.Pool, store *bucket.Bucket) error {
				got, err := audit.Archive(ctx, pool, db.schema, store)
				switch {
				case asJSON:
					if bad := printJSON(s.Out, got); bad != nil {
						return bad
					}
				default:
					_, _ = fmt.Fprintf(s.Out, "%d messages in %d new segments\n", got.Rows, got.Segments)
				}
				return exit(ExitWrong, err)
			})
		},
	}
	db.add(cmd)
	cmd.Flags().StringVar(&to, "archive", "", "folder or URL of the archive")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	env(cmd, "archive", "JOURNEYMAN_ARCHIVE")
	return cmd
}

func withBucket(ctx context.Context, db databaseFlags, address string, fn func(context.Context, *pgxpool.Pool, *bucket.Bucket) error) error {
	store, err := openBucket(ctx, address)
	if err != nil {
		return err
	}
	defer store.Close() //nolint:errcheck // objects are complete when they are created
	pool, err := db.open(ctx, 2)
	if err != nil {
		return err
	}
	defer pool.Close()
	return fn(ctx, pool, store)
}
