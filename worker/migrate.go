package worker

import (
	"context"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/zeebe"
)

// Migrate brings the tables that a worker needs in schema ("" means
// "journeyman") up to date: operations and engine commands. Safe to call from
// many processes at once; it does nothing when all is up to date. Workers that
// emit events need outbox.Migrate too.
func Migrate(ctx context.Context, db dedup.Beginner, schema string) error {
	if err := dedup.Migrate(ctx, db, schema); err != nil {
		return err
	}
	return zeebe.Migrate(ctx, db, schema)
}
