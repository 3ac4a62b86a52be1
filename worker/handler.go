package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/vitrip/journeyman/outcome"
)

type shape int

const (
	shapeTx shape = iota
	shapeExternal
)

// spec is a handler with its types erased: input, result and output are JSON documents that have been checked.
type spec struct {
	shape   shape
	in      reflect.Type
	res     reflect.Type // what a compensation is given: Out of a transactional handler, Res of an external one
	opt     options
	run     func(ctx context.Context, tx *Tx, m Meta, input json.RawMessage) (json.RawMessage, error)
	call    func(ctx context.Context, c remoteCall) (json.RawMessage, error)
	resolve func(ctx context.Context, c remoteCall) (json.RawMessage, error)
	batch   func(ctx context.Context, tx *Tx, tasks []*task) ([]batchEnd, error) // of a Batch handler, whose run is a batch of one
	most    int                                                                  // jobs of a batch
	settle  func(ctx context.Context, tx *Tx, m Meta, input, res json.RawMessage) (json.RawMessage, error)
	settles bool     // settle is a function of the handler's own, not only the result as it is
	missing []string // functions of Remote that are nil
}

// remoteCall is Call with its types erased.
type remoteCall struct {
	meta  Meta
	input json.RawMessage
	again bool
	undo  func(ctx context.Context, forwardOperationID, reason string) (UndoResult, error)

	progress func(text string)
}

func (s *spec) handler() *spec { return s }

// Transactional makes a handler from a function that does everything inside its transaction (spec W9).
// In must be a struct. Out must marshal to a JSON object; a nil pointer or an empty struct means no variables.
func Transactional[In, Out any](f Func[In, Out], opts ...Option) Handler {
	s := newSpec[In](shapeTx, opts)
	s.res = reflect.TypeFor[Out]()
	if f == nil {
		s.missing = append(s.missing, "function")
		return s
	}
	s.run = func(ctx context.Context, tx *Tx, m Meta, input json.RawMessage) (json.RawMessage, error) {
		in, err := decode[In](input)
		if err != nil {
			return nil, err
		}
		out, err := f(ctx, tx, Job[In]{Meta: m, In: in})
		if err != nil {
			return nil, err
		}
		return encode(out)
	}
	return s
}

// External makes a handler that calls another system outside any transaction and settles inside one (spec W9, path rules 16 to 20).
// Resolve may be nil when the other system honours keys and Call is safe to repeat; Settle may be nil when Out is the result itself.
func External[In, Res, Out any](r Remote[In, Res, Out], opts ...Option) Handler {
	s := newSpec[In](shapeExternal, opts)
	s.res = reflect.TypeFor[Res]()
	if r.Call == nil {
		s.missing = append(s.missing, "Call")
	}
	if r.Settle == nil && reflect.TypeFor[Res]() != reflect.TypeFor[Out]() {
		s.missing = append(s.missing, "Settle")
	}
	s.call = eraseCall(r.Call)
	if r.Resolve != nil {
		s.resolve = eraseCall(r.Resolve)
	}
	s.settles = r.Settle != nil
	s.settle = func(ctx context.Context, tx *Tx, m Meta, input, res json.RawMessage) (json.RawMessage, error) {
		if r.Settle == nil {
			return res, nil
		}
		in, err := decode[In](input)
		if err != nil {
			return nil, err
		}
		re, err := decode[Res](res)
		if err != nil {
			return nil, err
		}
		out, err := r.Settle(ctx, tx, Job[In]{Meta: m, In: in}, re)
		if err != nil {
			return nil, err
		}
		return encode(out)
	}
	return s
}

func newSpec[In any](sh shape, opts []Option) *spec {
	s := &spec{shape: sh, in: reflect.TypeFor[In]()}
	for _, o := range opts {
		o.apply(&s.opt)
	}
	return s
}

func eraseCall[In, Res any](f func(context.Context, Call[In]) (Res, error)) func(context.Context, remoteCall) (json.RawMessage, error) {
	return func(ctx context.Context, c remoteCall) (json.RawMessage, error) {
		in, err := decode[In](c.input)
		if err != nil {
			return nil, err
		}
		tell := c.progress
		if tell == nil {
			tell = func(string) {}
		}
		res, err := f(ctx, Call[In]{Job: Job[In]{Meta: c.meta, In: in}, Key: c.meta.OperationID, Again: c.again, Undo: c.undo, Progress: tell})
		if err != nil {
			return nil, err
		}
		doc, err := json.Marshal(res)
		if err != nil {
			// The effect exists; only a person can write down what it was.
			return nil, outcome.NewUnknown(fmt.Errorf("result of Call cannot be stored as JSON: %w", err))
		}
		return doc, nil
	}
}

// decode reads a document that passed the input check, or one that we stored.
func decode[T any](doc json.RawMessage) (T, error) {
	var v T
	if len(doc) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(doc, &v); err != nil {
		return v, outcome.Fatalf(outcome.ReasonInput, "decode %T: %s", v, unquoted(err))
	}
	return v, nil
}

// encode writes a handler's output; the limits are checked later.
func encode(out any) (json.RawMessage, error) {
	doc, err := json.Marshal(out)
	if err != nil {
		return nil, outcome.Fatalf(outcome.ReasonOutput, "output %T cannot be written as JSON: %w", out, err)
	}
	return doc, nil
}

// unquoted keeps offsets and field names of a JSON error and drops quoted payload.
func unquoted(err error) string {
	switch e := err.(type) { //nolint:errorlint // json returns these unwrapped
	case *json.SyntaxError:
		return fmt.Sprintf("invalid JSON at byte %d", e.Offset)
	case *json.UnmarshalTypeError:
		return fmt.Sprintf("field %s: JSON %s does not fit %s", e.Field, e.Value, e.Type)
	default:
		return "does not fit the type"
	}
}
