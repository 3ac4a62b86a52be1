// Command worker measures the worker runtime against what one would write without it: alternating runs in one process, on one
// PostgreSQL server that flushes to disk, with the engine in a process of its own. It prints one JSON object.
//
//	go run ./worker            # under five minutes
//	go run ./worker -quick     # under one minute, coarse
//	go run ./worker -old 10000000 -only old
//
// CPU is that of this process and of its PostgreSQL backends, from /proc; the engine and PostgreSQL's background processes are
// not counted. Ratios are theirs divided by ours for CPU, ours divided by theirs for jobs per second: above 1 is ahead.
package main
