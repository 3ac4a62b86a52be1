//go:build soak

package storm_test

import "time"

// during is how long things die.
const during = 10 * time.Minute
