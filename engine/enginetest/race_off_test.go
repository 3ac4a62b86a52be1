//go:build !race

package enginetest_test

// slower is how much longer the race detector may take; it is off.
const slower = 1
