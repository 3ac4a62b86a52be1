package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// amendmentFaults says how the suppliers' ledgers and the booking differ from what the answer of an amendment promises: the
// hotel that was sold stands until the new one is the booking's, and the difference is settled exactly then.
func (s *stage) amendmentFaults(r *run) (wrong []string) {
	completed, byHand := r.end.State == "completed", slices.Contains(r.acts, "task remediate")
	expect := func(what string, got, want int, byPerson bool) {
		if got != want && !(byPerson && got < want && got >= 0) {
			wrong = append(wrong, fmt.Sprintf("%s: got %d after %s, want %d", what, got, r.end.State, want))
		}
	}
	hotel, bad := s.tally(r, "hotel", suppliers.Reserve)
	wrong = append(wrong, bad...)
	if got, want := hotel.standing(), asInt(completed); got != want && !(r.doubled() && hotel.made > 1 && got == want+1) {
		wrong = append(wrong, fmt.Sprintf("hotel: %d new reservations stand after %s, want %d (made %d, undone %d)", got, r.end.State, want, hotel.made, hotel.ended))
	}
	authorized, bad := s.tally(r, "payment", suppliers.Authorize)
	wrong = append(wrong, bad...)
	captured, bad := s.tally(r, "payment", suppliers.Capture)
	wrong = append(wrong, bad...)
	repaid, bad := s.tally(r, "payment", suppliers.Refund)
	wrong = append(wrong, bad...)
	more := completed && !r.cheaper()
	expect("authorizations of the difference that stand", authorized.standing(), asInt(more), false)
	expect("captures of the difference", captured.made, asInt(more), byHand)
	expect("repayments of the difference", repaid.made, asInt(completed && r.cheaper()), byHand)
	expect("releases of the old hotel", s.oldReleased(r), asInt(completed), byHand)
	if r.retried {
		return wrong // the booking is the newer attempt's
	}
	return append(wrong, s.bookingFaults(r, completed)...)
}

// oldReleased counts how often a run gave back the hotel of the sale.
func (s *stage) oldReleased(r *run) (n int) {
	old := sagas.OperationID(tenant, tourbooking.TypeName, tourbooking.TypeName+"-"+r.booking, 1) + ":hotelReserve:hotel"
	for _, e := range s.world.Ledger() {
		if e.Booking == r.businessKey() && e.Kind == suppliers.Cancel && e.Reference == old && strings.HasPrefix(e.Key, r.id+":") {
			n++
		}
	}
	return n
}

// paidFor is the money that was moved for a booking b, minor units.
const paidFor = `(SELECT coalesce(sum(CASE m.kind WHEN 'captured' THEN m.amount WHEN 'refunded' THEN -m.amount ELSE 0 END), 0)::bigint FROM journeyman.tour_settlement m WHERE m.business_key = b.business_key)`

// settledByHand is what a person reports who has settled outside what a saga left to them: of an amendment past its pivot the old hotel
// that the booking still holds, and the difference that was not moved.
func (s *stage) settledByHand(sagaID string) map[string]any {
	s.Helper()
	report := map[string]any{"outcome": "done", "note": "settled by hand"}
	var hand tourbooking.ByHand
	var unpaid int64
	err := s.pool.QueryRow(s.ctx, `SELECT coalesce((SELECT array_agg(t.supplier_id) FROM journeyman.tour_reservation t
			WHERE t.saga_id = b.saga_id AND t.segment = 'hotel' AND t.status = 'confirmed' AND NOT starts_with(t.operation_id, s.id || ':')), '{}'),
			b.amount - `+paidFor+`
		FROM journeyman.saga s JOIN journeyman.tour_booking b ON b.business_key = s.business_key
		WHERE s.id = $1 AND s.type = $2 AND s.decision = 'completed'`, sagaID, amendment.TypeName).Scan(&hand.Released, &unpaid)
	if errors.Is(err, pgx.ErrNoRows) {
		return report
	}
	s.must(err)
	switch {
	case unpaid > 0:
		hand.Moved = []tourbooking.Movement{{Kind: tourbooking.SettledCaptured, Reference: "by-hand-" + sagaID, Amount: unpaid}}
	case unpaid < 0:
		hand.Moved = []tourbooking.Movement{{Kind: tourbooking.SettledRefunded, Reference: "by-hand-" + sagaID, Amount: -unpaid}}
	}
	report["released"], report["moved"] = hand.Released, hand.Moved
	return report
}

// bookingFaults says how our own booking differs: its price, the one hotel that it holds, and the money that was moved for it, also
// where a person settled that by hand and reported it.
func (s *stage) bookingFaults(r *run, completed bool) (wrong []string) {
	var state string
	var amount, paid int64
	var hotels int
	s.must(s.pool.QueryRow(s.ctx, `SELECT b.state, b.amount, (SELECT count(*) FROM journeyman.tour_reservation t WHERE t.saga_id = b.saga_id AND t.segment = 'hotel' AND t.status = 'confirmed'),
			`+paidFor+`
		FROM journeyman.tour_booking b WHERE b.business_key = $1`, r.businessKey()).Scan(&state, &amount, &hotels, &paid))
	want := int64(soldFor)
	switch {
	case completed && r.cheaper():
		want = cheaper
	case completed:
		want = dearer
	}
	if tourbooking.State(state) != tourbooking.Ticketed || amount != want || paid != want || hotels != 1 {
		wrong = append(wrong, fmt.Sprintf("booking: %s for %d, paid %d, with %d hotels after %s, want ticketed for %d with one", state, amount, paid, hotels, r.end.State, want))
	}
	return wrong
}
