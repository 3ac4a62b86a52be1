//go:build race

package race

// Slower is how many times as long something may take: the race detector is on.
const Slower = 5
