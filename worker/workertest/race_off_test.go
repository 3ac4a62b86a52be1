//go:build !race

package workertest_test

// slower is how much longer the race detector may take; it is off.
const slower = 1
