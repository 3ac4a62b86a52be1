package worker

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/vitrip/journeyman/outcome"
)

// Option declares something about a handler. Exactly one of CompensatedBy, NotCompensable, Manual and NoEffect must be given (spec W15).
type Option interface{ apply(*options) }

type option func(*options)

func (f option) apply(o *options) { f(o) }

// Orphans says what happens to an effect whose element was terminated before the answer came (spec Z4).
type Orphans int

// The policies. Park is the default: money is left to a person.
const (
	Park Orphans = iota
	Undo
)

type options struct {
	declared   []string // names of the W15 declarations that were given
	undo       *undoSpec
	policy     string // none:<reason>, manual:<task>
	orphans    Orphans
	pivot      bool
	noEffect   bool
	control    bool
	keyFor     time.Duration
	keyIgnored bool
	askFor     time.Duration
	sla        time.Duration
	backoff    *outcome.Backoff
	codes      map[string]bool
	rate       float64
	cost       time.Duration
	timeout    time.Duration
	pollOnly   bool
	amount     func(input json.RawMessage) (json.RawMessage, error)
	amountType reflect.Type
	retain     time.Duration
	financial  bool
}

// CompensatedBy declares the compensating operation. jobType is the type of the model's compensation handler; a job of that
// type with variable forwardOperationId runs u once for that operation (path rules 11, 12). In is the forward handler's
// input, Res the result of its Call (External) or its output (Transactional).
func CompensatedBy[In, Res any](jobType string, u RemoteUndo[In, Res]) Option {
	return option(func(o *options) {
		o.declared = append(o.declared, "CompensatedBy")
		o.undo = remoteUndo(jobType, u)
	})
}

// CompensatedByTx is CompensatedBy for a compensation that is done inside the transaction.
func CompensatedByTx[In, Res any](jobType string, f func(ctx context.Context, tx *Tx, u UndoOf[In, Res]) error) Option {
	return option(func(o *options) {
		o.declared = append(o.declared, "CompensatedBy")
		o.undo = txUndo(jobType, f)
	})
}

// NotCompensable declares that the effect cannot be undone, and why.
func NotCompensable(reason string) Option {
	return option(func(o *options) {
		o.declared = append(o.declared, "NotCompensable")
		o.policy = "none:" + reason
	})
}

// Manual declares that a person undoes the effect, in the named task of the model.
func Manual(task string) Option {
	return option(func(o *options) {
		o.declared = append(o.declared, "Manual")
		o.policy = "manual:" + task
	})
}

// NoEffect declares that the handler changes nothing outside its own records: there is nothing to undo.
func NoEffect() Option {
	return option(func(o *options) {
		o.declared = append(o.declared, "NoEffect")
		o.noEffect = true
	})
}

// Orphan sets what happens to an effect whose element was terminated meanwhile. Undo needs CompensatedBy.
func Orphan(p Orphans) Option { return option(func(o *options) { o.orphans = p }) }

// Pivot marks the step after which the saga is not rolled back (spec Z5).
func Pivot() Option { return option(func(o *options) { o.pivot = true }) }

// SagaControl marks a job type of the saga machinery: it passes no gate and leaves no ledger row.
func SagaControl() Option { return option(func(o *options) { o.control = true }) }

// KeyValidFor says how long the other system honours the idempotency key, from the first call. Past it Call is never repeated (path rule 18).
func KeyValidFor(d time.Duration) Option { return option(func(o *options) { o.keyFor = d }) }

// KeyIgnored says that the other system does not honour idempotency keys: the handler is at-least-once and listed as such.
// Resolve must be given, and Call is repeated only where Resolve says that it did not happen.
func KeyIgnored() Option { return option(func(o *options) { o.keyIgnored = true }) }

// AskFor says how long after its first call an external operation may still take effect at the other system. When the other system has
// not seen a call whose outcome is unknown, it is asked about it until then, at growing distances, after the operation was undone and after
// a repeat of the call was refused. Default what KeyValidFor says, with KeyIgnored Config.AskFor. The first hour is asked through in any
// case (path rule 11).
func AskFor(d time.Duration) Option { return option(func(o *options) { o.askFor = d }) }

// SLA bounds how long an operation may stay unknown, from its first attempt, and until when a job's time-out is extended, from its receipt
// (spec W10, W14). Default 15 minutes.
func SLA(d time.Duration) Option { return option(func(o *options) { o.sla = d }) }

// Backoff sets the waits between attempts of this handler, instead of the worker's.
func Backoff(b outcome.Backoff) Option { return option(func(o *options) { o.backoff = &b }) }

// Throws lists the BPMN error codes that the handler may throw. Another code is FATAL, decided before the commit (path rule 28).
// Without Throws any well-formed code passes.
func Throws(codes ...string) Option {
	return option(func(o *options) {
		if o.codes == nil {
			o.codes = map[string]bool{}
		}
		for _, c := range codes {
			o.codes[c] = true
		}
	})
}

// Timeout bounds one run of the handler's transaction, at most the worker's HandlerTimeout (path rule 8).
func Timeout(d time.Duration) Option { return option(func(o *options) { o.timeout = d }) }

// Expect declares the expected jobs per second and the cost of one job; tools show them beside what is measured (spec W10).
func Expect(jobsPerSecond float64, cost time.Duration) Option {
	return option(func(o *options) { o.rate, o.cost = jobsPerSecond, cost })
}

// PollOnly makes jobs of this type, and of its compensation, come by polling alone, where others are streamed (spec W1). A
// stream pushes at once and costs a poll nothing; polling alone leaves the choice of the next worker to who asks first.
func PollOnly() Option { return option(func(o *options) { o.pollOnly = true }) }

// Retain sets how long operations of this type, and their undo, stay after their end, where that is longer than Config.Retain
// (spec D1): at least the retention of what started them and the life of their incidents. Until then a repeat gets the stored answer.
func Retain(d time.Duration) Option { return option(func(o *options) { o.retain = d }) }

// Financial marks an operation that moves money: business key, fingerprint, class and result hash stay for seven years (spec D3),
// everything else goes at the end of its retention. A repeat after that is FATAL where its answer had variables. [Amount] implies it.
func Financial() Option { return option(func(o *options) { o.financial = true }) }

// Amount tells the ledger how much money the effect puts at risk, in minor units. It implies [Financial].
func Amount[In any](f func(In) (minor int64, currency string)) Option {
	return option(func(o *options) {
		o.amountType, o.financial = reflect.TypeFor[In](), true
		o.amount = func(input json.RawMessage) (json.RawMessage, error) {
			var in In
			if err := json.Unmarshal(input, &in); err != nil {
				return nil, err
			}
			minor, currency := f(in)
			return json.Marshal(map[string]any{"minor": minor, "currency": currency})
		}
	})
}
