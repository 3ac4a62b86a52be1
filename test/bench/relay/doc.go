// Command relay measures the outbox relay and the inbox against the limits of the same PostgreSQL server and the same broker, in
// one run, and prints one JSON object:
//
//	go run ./relay                              # under five minutes
//	go run ./relay -quick                       # under one minute, coarse
//	go run ./relay -only backlog -backlog 5000000
//
// PostgreSQL flushes to disk. The broker is kfake, a Kafka-compatible one in memory, in a process of its own; for drains it
// forgets what it is given. Rows are of about 300 bytes of body and eight headers, over 1000 keys and 16 partitions.
//
// The limits: read_and_delete is a bare loop on one connection that reads 1000 rows by primary key and deletes them, without a
// broker, without a log and without waiting for the disk; produce is kafka-go's Client.Produce with 1000 records of one
// partition at a time. drain ratios are the relay's rows per second over those of read_and_delete in the same round, medians
// over rounds. Fields that end in _log are with the event log, which is the relay's default; the others are without.
package main
