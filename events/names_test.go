package events_test

import (
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	domains := []string{"tour", "revenue-protection"}
	for _, c := range []struct {
		kind events.Kind
		name string
		want string // part of the refusal, "" for none
	}{
		{events.KindEvent, "tour.booking.confirmed", ""},
		{events.KindEvent, "revenue-protection.case_2.partially_paid", ""},
		{events.KindEvent, "platform.replay.started", ""},
		{events.KindEvent, "tour.booking.sent", ""},
		{events.KindCommand, "tour.booking.cancel.requested", ""},
		{events.KindEvent, "tour.booking.cancel.requested", "command's name"},
		{events.KindCommand, "tour.booking.confirmed", "event's name"},
		{events.KindEvent, "tour.booking.confirm", "past tense"},
		{events.KindEvent, "tour.booking.cancel_requested", "must not be or end in"},
		{events.KindEvent, "tour.booking.requested", "must not be or end in"},
		{events.KindEvent, "tour.booking.payment_pending", "must not be or end in"},
		{events.KindEvent, "hotel.booking.confirmed", `domain "hotel" is not one of`},
		{events.KindEvent, "Tour.booking.confirmed", "kebab-case"},
		{events.KindEvent, "tour.book-ing.confirmed", `part "book-ing"`},
		{events.KindEvent, "tour.confirmed", "2 parts"},
		{events.KindEvent, "", "1 parts"},
		{events.KindCommand, "tour.booking.cancelled.requested", "imperative"},
		{events.KindCommand, "tour.booking.cancel.pending", "want a command"},
		{"rumour", "tour.booking.confirmed", `kind "rumour"`},
	} {
		err := events.CheckName(c.kind, c.name, domains)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: got %v, want %q", c.kind, c.name, err, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"tour.booking.confirmed", "tour.booking.confirmed", true},
		{"tour.*.confirmed", "tour.booking.confirmed", true},
		{"tour.*", "tour.booking.confirmed", true},
		{"*", "tour.booking.confirmed", true},
		{"tour.*", "tour", false},
		{"tour.booking", "tour.booking.confirmed", false},
		{"tour.booking.*", "tour.booking.cancel.requested", true},
		{"*.booking.confirmed", "payment.booking.confirmed", true},
		{"tour.*.confirmed", "tour.a.b.confirmed", false},
		{"tourist.*", "tour.booking.confirmed", false},
	} {
		if got := events.Match(c.pattern, c.name); got != c.want {
			t.Errorf("Match(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

func TestDeriveID(t *testing.T) {
	t.Parallel()
	m := events.Message{Type: "tour.booking.confirmed", Version: 1, BusinessKey: "B-1"}
	same := events.DeriveID("op-1", 0, m)
	if same != events.DeriveID("op-1", 0, m) || !events.ValidID(same) || !events.ValidID(events.NewID()) {
		t.Errorf("%s: not stable, or no UUID", same)
	}
	other := m
	other.Type = "tour.booking.failed"
	for _, id := range []string{events.DeriveID("op-2", 0, m), events.DeriveID("op-1", 1, m), events.DeriveID("op-1", 0, other), events.NewID()} {
		if id == same {
			t.Errorf("%s twice", id)
		}
	}
}
