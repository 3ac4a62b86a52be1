// Package faults plays whole tour bookings, refunds and amendments with faults
// and judges them from the outside: what the suppliers' ledgers show, what the
// engine's public API tells of its history, what the partner is answered, what
// stands in Kafka. One process holds everything but the database: engine,
// broker, suppliers, workers, the partners' API. Where workers are killed they
// and the API are processes of their own: this test binary once more (fleet).
//
//	TestMatrix…              each fault and each pair of faults of suppliers, at each step of all models
//	TestLateLandings         requests that land long after the saga was undone and closed
//	TestWire                 faults of the line between worker and engine
//	TestMoments              elements ended at each moment of their operation
//	TestKilledAtEveryPoint   SIGKILL at each crash point of each element
//	TestStorm                random faults, partners, operators and clocks
//	TestCrowd                200 clients with 50 keys against two API processes, while workers are killed
//
// Tier check plays samples that change with the day, without killing processes;
// the build tag crowd adds short forms of the two tests that do, for tier ci, and
// soak plays all. FAULTS_SEED repeats a day.
//
// Tests here own no product code; a fault that they find is fixed where it is.
package faults
