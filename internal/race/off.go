//go:build !race

// Package race says how much the race detector costs, for tests that bound a time.
package race

// Slower is how many times as long something may take: 1, the race detector is off.
const Slower = 1
