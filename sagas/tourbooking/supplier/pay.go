package supplier

import "context"

const (
	pathAuthorizations = "/authorizations"
	pathCaptures       = "/captures"
	pathRefunds        = "/refunds"
)

// Payment is the payment provider's segment of a booking.
const Payment = "payment"

type authorizationRequest struct {
	Reference string `json:"reference"`
	Booking   string `json:"booking"`
	Amount    int64  `json:"amount"` // minor units
	Currency  string `json:"currency"`
	Token     string `json:"token"`
}

type captureRequest struct {
	Reference     string `json:"reference"`
	Authorization string `json:"authorization"`
}

type refundRequest struct {
	Reference string `json:"reference"`
	Booking   string `json:"booking"`
	Amount    int64  `json:"amount"` // minor units
	Currency  string `json:"currency"`
}

// Authorize blocks an amount, in minor units, under a reference, which is the idempotency key too. Any refusal is an error with
// the code refused; see [Outcome].
func (c *Client) Authorize(ctx context.Context, reference, booking string, amount int64, currency, token, refused string) (Held, error) {
	return c.pay(ctx, pathAuthorizations, reference, authorizationRequest{reference, booking, amount, currency, token}, refused)
}

// Authorized asks what a [Client.Authorize] made, as [Resolve] does.
func (c *Client) Authorized(ctx context.Context, reference, booking string) (Held, error) {
	return Resolve(ctx, c, pathAuthorizations, reference, booking, Payment)
}

// Void gives an authorization back, by the provider's id.
func (c *Client) Void(ctx context.Context, key, id string) error {
	_, err := c.Post(ctx, pathAuthorizations+"/"+id+"/void", key, struct{}{})
	return Outcome(err, nil)
}

// Voided asks, under the reference of the authorization, whether a [Client.Void] took effect, as [Became] does.
func (c *Client) Voided(ctx context.Context, reference, booking string) error {
	return Became(ctx, c, pathAuthorizations, reference, booking, Payment, "voided")
}

// Capture takes what was authorized. See [Client.Authorize].
func (c *Client) Capture(ctx context.Context, reference, authorization, refused string) (Held, error) {
	return c.pay(ctx, pathCaptures, reference, captureRequest{reference, authorization}, refused)
}

// Captured asks what a [Client.Capture] made, as [Resolve] does.
func (c *Client) Captured(ctx context.Context, reference, booking string) (Held, error) {
	return Resolve(ctx, c, pathCaptures, reference, booking, Payment)
}

// Refund pays an amount back. See [Client.Authorize].
func (c *Client) Refund(ctx context.Context, reference, booking string, amount int64, currency, refused string) (Held, error) {
	return c.pay(ctx, pathRefunds, reference, refundRequest{reference, booking, amount, currency}, refused)
}

// Refunded asks what a [Client.Refund] made, as [Resolve] does.
func (c *Client) Refunded(ctx context.Context, reference, booking string) (Held, error) {
	return Resolve(ctx, c, pathRefunds, reference, booking, Payment)
}

func (c *Client) pay(ctx context.Context, path, reference string, body any, refused string) (Held, error) {
	t, err := c.Post(ctx, path, reference, body)
	return t.Held(), Outcome(err, map[string]string{"": refused})
}
