//go:build race

package enginetest_test

// slower is how much longer the race detector may take.
const slower = 5
