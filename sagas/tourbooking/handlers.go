package tourbooking

import (
	"time"

	"github.com/vitrip/journeyman/worker"
)

//go:generate journeyman generate ../../bpmn/models/tour-booking.bpmn

// handlers are the handlers of tour-booking.bpmn.
type handlers struct {
	flight, hotel, transfer desk
	till                    till
	confirm                 confirmation
	honoured                worker.Option // how long suppliers honour an idempotency key
	sla                     worker.Option
	retain                  worker.Option // how long their answers are kept (spec D1)
	perSecond               float64       // bookings
}

// What steps cost, and in how many bookings a follow-up runs (spec W10).
const (
	costCall     = 300 * time.Millisecond
	costOwn      = 10 * time.Millisecond
	oftenAsked   = 0.01
	oftenForward = 1 // of each kind of segments too: a flight, a hotel and a transfer are the usual tour
)

// expect declares how often a step runs per booking, and what one run costs.
func (h handlers) expect(perBooking float64, cost time.Duration) worker.Option {
	return worker.Expect(h.perSecond*perBooking, cost)
}

var _ TourBookingHandlers = handlers{}

// FlightReserve reserves a flight.
func (h handlers) FlightReserve() FlightReserveHandler {
	in := func(in FlightReserveIn) offer {
		return offer{Segment: in.SegmentID, Offer: in.Offer, Travellers: in.Travellers}
	}
	out := func(id string) FlightReserveOut { return FlightReserveOut{ReservationID: id} }
	return FlightReserveExternal(reservation(h.flight, in, out), FlightReserveUndo(cancellation(h.flight, in)), worker.Orphan(worker.Undo), h.honoured, h.sla, h.retain, h.expect(oftenForward, costCall))
}

// FlightFollowUp finds out what became of a reservation with an unknown outcome.
func (h handlers) FlightFollowUp() FlightFollowUpHandler {
	in := func(in FlightFollowUpIn) asked { return asked{in.SegmentID, in.ForwardOperationID} }
	out := func(id string) FlightFollowUpOut { return FlightFollowUpOut{ReservationID: id} }
	return FlightFollowUpExternal(followUp(h.flight, in, out), FlightFollowUpUndo(followUpCancellation(h.flight, in)),
		worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), h.retain, h.expect(oftenAsked, costCall))
}

// HotelReserve reserves a hotel. The hotel ignores idempotency keys.
func (h handlers) HotelReserve() HotelReserveHandler {
	in := func(in HotelReserveIn) offer {
		return offer{Segment: in.SegmentID, Offer: in.Offer, Travellers: in.Travellers, Nights: in.Nights}
	}
	out := func(id string) HotelReserveOut { return HotelReserveOut{ReservationID: id} }
	return HotelReserveExternal(reservation(h.hotel, in, out), HotelReserveUndo(cancellation(h.hotel, in)), worker.Orphan(worker.Undo), worker.KeyIgnored(), h.sla, h.retain, h.expect(oftenForward, costCall))
}

// HotelFollowUp finds out what became of a reservation with an unknown outcome.
func (h handlers) HotelFollowUp() HotelFollowUpHandler {
	in := func(in HotelFollowUpIn) asked { return asked{in.SegmentID, in.ForwardOperationID} }
	out := func(id string) HotelFollowUpOut { return HotelFollowUpOut{ReservationID: id} }
	return HotelFollowUpExternal(followUp(h.hotel, in, out), HotelFollowUpUndo(followUpCancellation(h.hotel, in)),
		worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), h.retain, h.expect(oftenAsked, costCall))
}

// TransferReserve reserves a transfer.
func (h handlers) TransferReserve() TransferReserveHandler {
	in := func(in TransferReserveIn) offer {
		return offer{Segment: in.SegmentID, Offer: in.Offer, Travellers: in.Travellers}
	}
	out := func(id string) TransferReserveOut { return TransferReserveOut{ReservationID: id} }
	return TransferReserveExternal(reservation(h.transfer, in, out), TransferReserveUndo(cancellation(h.transfer, in)), worker.Orphan(worker.Undo), h.honoured, h.sla, h.retain, h.expect(oftenForward, costCall))
}

// TransferFollowUp finds out what became of a reservation with an unknown outcome.
func (h handlers) TransferFollowUp() TransferFollowUpHandler {
	in := func(in TransferFollowUpIn) asked { return asked{in.SegmentID, in.ForwardOperationID} }
	out := func(id string) TransferFollowUpOut { return TransferFollowUpOut{ReservationID: id} }
	return TransferFollowUpExternal(followUp(h.transfer, in, out), TransferFollowUpUndo(followUpCancellation(h.transfer, in)),
		worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), h.retain, h.expect(oftenAsked, costCall))
}
