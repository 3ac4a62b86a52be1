// Package models holds the BPMN models of the travel sagas and the names that
// Go code and models share: processes, messages, job types, error codes.
//
// The files are Camunda 8 models with their layout; test/lint/bpmn checks and
// lays them out. Each says in its documentation what it does. What they have in
// common:
//
//   - a message start "saga.start.<type>", then saga.begin, which binds the
//     operation to the instance;
//   - a subprocess with the steps that can be undone, and three interrupting
//     event subprocesses (error, deadline, cancel) that give up: saga.give-up,
//     the drawn compensation in a fixed order, then saga.undo-rest from the ledger;
//   - what is done for each of several things, as the segments of a tour, in a multi-instance subprocess whose iterations end with
//     a result and never throw, each task under an operation id of its own;
//   - one pivot step, property "journeyman:pivot", which takes the decision "completed";
//   - saga.close, which is given the ids of all operations whose result the process holds.
package models

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed *.bpmn
var files embed.FS

// File names of the models, and their process ids.
const (
	TourBooking = "tour-booking.bpmn"
	Refund      = "refund.bpmn"
	Ticketing   = "ticketing.bpmn"
	Amendment   = "amendment.bpmn"
	Reservation = "reservation.bpmn"
	DataExport  = "data-export.bpmn"

	ProcessTourBooking = "tour-booking"
	ProcessRefund      = "refund"
	ProcessTicketing   = "ticketing"
	ProcessAmendment   = "amendment"
	ProcessReservation = "reservation"
	ProcessDataExport  = "data-export"
)

// FS gives the model files, at its root.
func FS() fs.FS { return files }

// Names lists the model files in the order in which they are deployed.
func Names() []string {
	return []string{TourBooking, Refund, Ticketing, Amendment, Reservation, DataExport}
}

// Read returns the bytes of one model file. The caller owns them.
//
// Errors: one that wraps [fs.ErrNotExist] when name is not one of [Names].
func Read(name string) ([]byte, error) {
	b, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read model %q, want one of %v: %w", name, Names(), err)
	}
	return b, nil
}
