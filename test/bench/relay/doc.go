// Command relay measures the outbox relay and the inbox against the limits of the same PostgreSQL server and the same broker, in
// one run, and prints one JSON object:
//
//	go run ./relay                              # about ten minutes
//	go run ./relay -quick                       # about three minutes, coarse
//	go run ./relay -only backlog -backlog 5000000
//
// PostgreSQL flushes to disk. The broker is kfake, a Kafka-compatible one in memory, in a process of its own; for drains it
// forgets what it is given. Rows are of about 300 bytes of body and eight headers, over 1000 keys and 16 partitions.
//
// The limits: read_and_delete is a bare loop on one connection that reads 1000 rows by primary key and deletes them, without a
// broker, without a log and without waiting for the disk; produce is kafka-go's Client.Produce with 1000 records of one
// partition at a time. drain ratios are the relay's rows per second over those of read_and_delete in the same round, medians
// over rounds; the limit swings more than the relay, so it is run three times a round and its middle one counts. Fields that end
// in _log are with the event log, which is the relay's default; the others are without.
//
// staging_cost is what an event adds to the transaction of package worker for one job: claim, the handler's row, the operation's
// record and the engine's command in two round trips, on eight connections. staging_cost_by_hand is of the least transaction that
// refuses duplicates. A bare INSERT of the same row stands beside each; the rest of the cost is the row of the business key, which
// orders its transactions and numbers its messages, and the clock.
//
// poison_p99_ratio is the p99 from the send to the handler of good messages, while one in twenty is poison (broken JSON, an unknown
// version, a panic, a schema the registry does not know, more than a mebibyte), over that of the clean turns between.
package main
