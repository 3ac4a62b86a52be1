//go:build crowd && !soak

package faults

import "time"

// The crowd uses so many generations of keys, each for so long; a worker dies about so often.
const crowdGenerations, crowdEach, crowdKills = 1, 12 * time.Second, 2 * time.Second

// sampledDeaths is how many kills at crash points tier ci plays.
const sampledDeaths = 8
