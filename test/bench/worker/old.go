package main

import (
	"context"
	"fmt"
)

// age fills a schema's operation table with operations that ended long ago, as large as those of this benchmark.
func (o *ours) age(ctx context.Context, rows int) error {
	const most = 200_000
	for at := 0; at < rows; at += most {
		n := min(most, rows-at)
		if _, err := o.pool.Exec(ctx, fmt.Sprintf(`INSERT INTO %s.operation (operation_id, business_key, job_type, fingerprint, fingerprint_fields, state, class, variables,
				result_hash, bytes, attempts, meta, cluster, job_key, process_instance_key, element_instance_key, element_id, policy, created_at, settled_at, expires_at)
			SELECT md5(g::text) || ':reserve', 'B-' || md5(g::text), 'old', sha256(g::text::bytea), ARRAY['amount.currency', 'amount.minor', 'class', 'offer', 'passenger.birth', 'passenger.name', 'seats'],
				'done', 'SUCCESS', '{"reservation":"R-1"}', sha256(g::text::bytea), 21, 1, json_build_object('key', g, 'operationId', md5(g::text), 'correlationId', md5(g::text),
				'traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'), 'default', g, g, g, 'reserve', 'none:bench',
				now() - interval '1 day', now() - interval '1 day', now() + interval '29 days'
			FROM generate_series($1::bigint, $2::bigint) g`, o.schema), at+1, at+n); err != nil {
			return fmt.Errorf("old rows: %w", err)
		}
		fmt.Fprintf(o.progress, "old operations: %d of %d\n", at+n, rows) //nolint:errcheck // progress
	}
	_, err := o.pool.Exec(ctx, fmt.Sprintf("VACUUM ANALYZE %s.operation", o.schema))
	return err
}
