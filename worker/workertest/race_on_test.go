//go:build race

package workertest_test

// slower is how much longer the race detector may take.
const slower = 5
