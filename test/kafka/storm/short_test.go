//go:build kafka && !soak

package storm_test

import "time"

// during is how long things die.
const during = 20 * time.Second
