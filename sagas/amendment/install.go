package amendment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// Job types of the model, in short.
const (
	jobBegin      = models.JobAmendmentBegin
	jobBack       = models.JobAmendmentBack
	jobReserve    = models.JobAmendmentReserve
	jobRelease    = models.JobAmendmentRelease
	jobAuthorize  = models.JobAmendmentAuthorize
	jobVoid       = models.JobAmendmentVoid
	jobConfirm    = models.JobAmendmentConfirm
	jobSettle     = models.JobAmendmentSettle
	jobReleaseOld = models.JobAmendmentReleaseOld
)

// Error codes.
const (
	CodeNotAmendable       = "NOT_AMENDABLE"
	codeSoldOut            = "SOLD_OUT"
	codeOfferUnknown       = "OFFER_UNKNOWN"
	codeReservationRefused = "RESERVATION_REFUSED"
	codePaymentDeclined    = "PAYMENT_DECLINED"
	codeSettlementRefused  = "SETTLEMENT_REFUSED"
	codeReleaseRefused     = "RELEASE_REFUSED"
)

// Sagas is what amendment.confirm needs of *sagas.Sagas: to decide, in its own transaction.
type Sagas interface {
	Decide(ctx context.Context, tx *outbox.Tx, sagaID string, d sagas.Decision) error
}

// Config is for [Install]. The clients and Sagas must be set.
type Config struct {
	Schema                   string // "" = "journeyman"
	Hotel, Transfer, Payment *supplier.Client
	Sagas                    Sagas
	SLA                      time.Duration // how long a supplier's answer may stay unknown; 0 = 5 min
	KeyValidFor              time.Duration // how long the payment provider honours an idempotency key; 0 = 24 h
}

// desk does the work of an amendment.
type desk struct {
	bookings *tourbooking.Bookings
	sagas    Sagas
	payment  *supplier.Client
	segments map[string]*supplier.Client
}

// Install registers the handlers of all job types of the amendment. One handler serves both suppliers, and the hotel ignores
// keys: so amendment.reserve and amendment.release-old are declared at-least-once as a whole.
//
// Errors: every field that is missing, at once.
func Install(mux *worker.Mux, cfg Config) error {
	var errs []error
	for _, c := range []struct {
		name   string
		client *supplier.Client
	}{{"Hotel", cfg.Hotel}, {"Transfer", cfg.Transfer}, {"Payment", cfg.Payment}} {
		if c.client == nil {
			errs = append(errs, fmt.Errorf("amendment: %s is nil, want a supplier client", c.name))
		}
	}
	if cfg.Sagas == nil {
		errs = append(errs, errors.New("amendment: Sagas is nil, want *sagas.Sagas"))
	}
	if cfg.SLA < 0 || cfg.KeyValidFor < 0 {
		errs = append(errs, fmt.Errorf("amendment: SLA is %v and KeyValidFor is %v, want 0 or more", cfg.SLA, cfg.KeyValidFor))
	}
	b, err := tourbooking.NewBookings(cfg.Schema)
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	if cfg.SLA == 0 {
		cfg.SLA = 5 * time.Minute
	}
	if cfg.KeyValidFor == 0 {
		cfg.KeyValidFor = 24 * time.Hour
	}
	d := desk{b, cfg.Sagas, cfg.Payment, map[string]*supplier.Client{"hotel": cfg.Hotel, "transfer": cfg.Transfer}}
	sla, honoured := worker.SLA(cfg.SLA), worker.KeyValidFor(cfg.KeyValidFor)
	mux.Handle(jobBegin, worker.Transactional(d.begin), worker.CompensatedByTx(jobBack, d.back), worker.Orphan(worker.Undo), worker.Throws(CodeNotAmendable))
	mux.Handle(jobReserve, worker.External(worker.Remote[reserveIn, held, reserveOut]{Call: d.reserve, Resolve: d.reserved, Settle: d.settleReserve}),
		worker.CompensatedBy(jobRelease, worker.RemoteUndo[reserveIn, held]{Call: d.release, Resolve: d.released, Settle: d.settleRelease}),
		worker.Orphan(worker.Undo), worker.KeyIgnored(), sla, worker.Throws(codeSoldOut, codeOfferUnknown, codeReservationRefused))
	mux.Handle(jobAuthorize, worker.External(worker.Remote[authorizeIn, held, authorizeOut]{Call: d.authorize, Resolve: d.authorized, Settle: d.settleAuthorize}),
		worker.CompensatedBy(jobVoid, worker.RemoteUndo[authorizeIn, held]{Call: d.void, Resolve: d.voided, Settle: d.settleVoid}),
		worker.Orphan(worker.Undo), honoured, sla, worker.Throws(codePaymentDeclined), worker.Amount(func(in authorizeIn) (int64, string) { return max(in.Difference, 0), in.Currency }))
	mux.Handle(jobConfirm, worker.Transactional(d.confirm), worker.Pivot(), worker.NotCompensable("the pivot: another amendment changes it again"), worker.Throws(worker.CodeSagaGivenUp))
	mux.Handle(jobSettle, worker.External(worker.Remote[settleIn, held, none]{Call: d.settle, Resolve: d.settled, Settle: d.settleSettle}),
		worker.NotCompensable("past the pivot"), honoured, sla, worker.Throws(codeSettlementRefused), worker.Amount(func(in settleIn) (int64, string) { return max(in.Difference, -in.Difference), in.Currency }))
	mux.Handle(jobReleaseOld, worker.External(worker.Remote[oldIn, held, none]{Call: d.releaseOld, Resolve: d.releasedOld, Settle: d.settleOld}),
		worker.NotCompensable("past the pivot"), worker.KeyIgnored(), sla, worker.Throws(codeReleaseRefused))
	return nil
}
