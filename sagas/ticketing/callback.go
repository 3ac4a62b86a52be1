package ticketing

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/zeebe"
)

// Commands is the queue of engine commands. *zeebe.Queue is one.
type Commands interface {
	Queue(b *pgx.Batch, cmd zeebe.Command) *zeebe.Queued
}

// Sender sends a queued command at once. *zeebe.Sender is one.
type Sender interface {
	Send(ctx context.Context, cmd *zeebe.Queued) error
}

// CallbackConfig is for [NewCallback]. Pool, Commands and Secret must be set.
type CallbackConfig struct {
	Pool     *pgxpool.Pool
	Schema   string // "" = "journeyman"
	Commands Commands
	Sender   Sender // nil = the command is left to the sweep
	Secret   []byte // signs callback addresses; at least 16 bytes
	// MaxWait is how long the answer waits in the broker for the process to ask for it; 0 = 25 h, longer than the saga's time-out.
	MaxWait time.Duration
	Log     zerolog.Logger
}

// Limits of a callback.
const (
	maxCallback = 64 << 10                     // bytes
	maxTickets  = 99 * tourbooking.MaxSegments // of each traveller for each flight
	minSecret   = 16
)

func checkSecret(secret []byte) error {
	if len(secret) < minSecret {
		return fmt.Errorf("ticketing: the callback secret has %d bytes, want at least %d", len(secret), minSecret)
	}
	return nil
}

// signed is the callback address of one request: only who was given it can answer that request.
func signed(address string, secret []byte, reference string) string {
	return address + "?" + url.Values{"reference": {reference}, "signature": {signature(secret, reference)}}.Encode()
}

func signature(secret []byte, reference string) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte(reference)) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}

type callback struct {
	cfg CallbackConfig
	sql queries
}

// NewCallback is the door where the airline's answers come in: POST with reference and signature in the query.
// It answers 204 once the answer is committed, also for a repeat; 4xx is final, 5xx may be tried again.
// The handler is safe for concurrent use.
//
// Errors: every field that is missing or bad, at once.
func NewCallback(cfg CallbackConfig) (http.Handler, error) {
	errs := []error{checkSecret(cfg.Secret), postgres.CheckSchema(postgres.SchemaOr(cfg.Schema))}
	if cfg.Pool == nil {
		errs = append(errs, errors.New("ticketing: Pool is nil, want a database pool"))
	}
	if cfg.Commands == nil {
		errs = append(errs, errors.New("ticketing: Commands is nil, want the engine command queue"))
	}
	if cfg.MaxWait < 0 {
		errs = append(errs, fmt.Errorf("ticketing: MaxWait is %v, want 0 or more", cfg.MaxWait))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = 25 * time.Hour
	}
	return callback{cfg: cfg, sql: render(postgres.SchemaOr(cfg.Schema))}, nil
}

// answer is the airline's own format.
type answer struct {
	Reference string   `json:"reference"`
	ID        string   `json:"id"`
	Booking   string   `json:"booking"`
	Tickets   []string `json:"tickets"`
}

func (c callback) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		rw.Header().Set("Allow", http.MethodPost)
		problem(rw, http.StatusMethodNotAllowed, "want POST")
		return
	}
	reference := r.URL.Query().Get("reference")
	want := signature(c.cfg.Secret, reference)
	if !hmac.Equal([]byte(want), []byte(r.URL.Query().Get("signature"))) {
		problem(rw, http.StatusForbidden, "signature does not fit the reference")
		return
	}
	var a answer
	if err := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxCallback)).Decode(&a); err != nil {
		problem(rw, http.StatusBadRequest, "body cannot be read as JSON")
		return
	}
	if err := a.check(reference); err != nil {
		problem(rw, http.StatusBadRequest, err.Error())
		return
	}
	first, err := c.take(r.Context(), a)
	if err != nil {
		c.cfg.Log.Error().Err(err).Str("operation_id", a.Reference).Msg("ticket answer not taken")
		problem(rw, http.StatusServiceUnavailable, "try again")
		return
	}
	c.cfg.Log.Info().Str("operation_id", a.Reference).Bool("repeat", !first).Msg("ticket answer taken")
	rw.WriteHeader(http.StatusNoContent)
}

// problem answers with an RFC 9457 problem document.
func problem(rw http.ResponseWriter, status int, detail string) {
	rw.Header().Set("Content-Type", "application/problem+json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail}) // the caller may have gone
}

func (a answer) check(reference string) error {
	if a.Reference != reference {
		return errors.New("field reference differs from the address")
	}
	if a.ID == "" {
		return errors.New("field id is missing")
	}
	if len(a.Tickets) < 1 || len(a.Tickets) > maxTickets {
		return fmt.Errorf("field tickets must have 1 to %d numbers", maxTickets)
	}
	for i, number := range a.Tickets {
		if number == "" || len(number) > 64 || !utf8.ValidString(number) || strings.ContainsRune(number, 0) {
			return fmt.Errorf("field tickets[%d] must be 1 to 64 bytes of text", i)
		}
	}
	return nil
}

// take writes the answer down and queues the message to the process. The second answer finds the first and
// changes nothing: the message id is that of the request, so the broker would drop it too.
func (c callback) take(ctx context.Context, a answer) (first bool, err error) {
	sagaID, _, ok := strings.Cut(a.Reference, ":")
	if !ok {
		return false, fmt.Errorf("reference %q is no operation of a saga", a.Reference)
	}
	tx, err := c.cfg.Pool.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // no effect after commit
	tag, err := tx.Exec(ctx, c.sql.insertAnswer, a.Reference, sagaID, a.ID, a.Tickets)
	if err != nil {
		return false, err
	}
	if tag.RowsAffected() == 0 {
		return false, tx.Commit(ctx)
	}
	variables, err := ticketVariables(a.Tickets)
	if err != nil {
		return false, err
	}
	b := &pgx.Batch{}
	queued := c.cfg.Commands.Queue(b, zeebe.Command{
		Kind: zeebe.KindPublish, OperationID: a.Reference, Name: MessageTicketingTicketIssued, CorrelationKey: sagaID, MessageID: a.Reference,
		TTL: c.cfg.MaxWait, Variables: variables,
	})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return false, err
	}
	if err := tx.Commit(ctx); err != nil {
		return false, err
	}
	if c.cfg.Sender != nil {
		if err := c.cfg.Sender.Send(ctx, queued); err != nil {
			c.cfg.Log.Debug().Err(err).Str("operation_id", a.Reference).Msg("message left to the sweep")
		}
	}
	return true, nil
}
