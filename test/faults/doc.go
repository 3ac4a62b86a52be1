// Package faults plays whole tour bookings and refunds with faults and judges
// them from the outside: what the suppliers' ledgers show, what the engine's
// public API tells of its history, what the partner is answered, what stands in
// Kafka. One process holds everything but the database: engine, broker,
// suppliers, workers, the partners' API.
//
// Tests here own no product code; a fault that they find is fixed where it is.
package faults
