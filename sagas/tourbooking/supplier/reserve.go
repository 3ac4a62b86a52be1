package supplier

import "context"

const pathReservations = "/reservations"

// Offer is what a reservation asks a supplier for.
type Offer struct {
	Segment    string // id of the segment in its booking
	Offer      string // the supplier's id of what it sells
	Travellers int64  // 0 where the supplier wants none
	Nights     int64  // hotel only
}

type reservationRequest struct {
	Reference  string `json:"reference"`
	Booking    string `json:"booking"`
	Segment    string `json:"segment"`
	Offer      string `json:"offer"`
	Travellers int64  `json:"travellers,omitempty"`
	Nights     int64  `json:"nights,omitempty"`
}

// Reserve reserves under a reference, which is the idempotency key too. refusals are as for [Outcome], which makes the error.
func (c *Client) Reserve(ctx context.Context, reference, booking string, o Offer, refusals map[string]string) (Held, error) {
	t, err := c.Post(ctx, pathReservations, reference, reservationRequest{reference, booking, o.Segment, o.Offer, o.Travellers, o.Nights})
	return t.Held(), Outcome(err, refusals)
}

// Reserved asks what a [Client.Reserve] made, as [Resolve] does.
func (c *Client) Reserved(ctx context.Context, reference, booking, segment string) (Held, error) {
	return Resolve(ctx, c, pathReservations, reference, booking, segment)
}

// Cancel gives a reservation back, by the supplier's id. Doing it twice does nothing more. refusals are as for [Outcome].
func (c *Client) Cancel(ctx context.Context, key, id string, refusals map[string]string) (Held, error) {
	t, err := c.Post(ctx, pathReservations+"/"+id+"/cancel", key, struct{}{})
	return t.Held(), Outcome(err, refusals)
}

// Cancelled asks, under the reference of the reservation, whether a [Client.Cancel] took effect, as [Became] does.
func (c *Client) Cancelled(ctx context.Context, reference, booking, segment string) error {
	return Became(ctx, c, pathReservations, reference, booking, segment, "cancelled")
}
