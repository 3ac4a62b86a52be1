package worker

import (
	"context"
	"encoding/json"
	"reflect"
)

// undoSpec is a compensation with its types erased.
type undoSpec struct {
	jobType string
	in, res reflect.Type
	missing []string
	run     func(ctx context.Context, tx *Tx, u undoOf) error // transactional; nil for a remote one
	call    func(ctx context.Context, key string, u undoOf) error
	resolve func(ctx context.Context, key string, u undoOf) error
	settle  func(ctx context.Context, tx *Tx, u undoOf) error
}

// undoOf is UndoOf with its types erased.
type undoOf struct {
	operationID string
	in, res     json.RawMessage
	reason      string
	meta        Meta
}

func typedUndo[In, Res any](u undoOf) (UndoOf[In, Res], error) {
	t := UndoOf[In, Res]{OperationID: u.operationID, Reason: u.reason, Meta: u.meta}
	var err error
	if t.In, err = decode[In](u.in); err != nil {
		return t, err
	}
	t.Res, err = decode[Res](u.res)
	return t, err
}

func txUndo[In, Res any](jobType string, f func(context.Context, *Tx, UndoOf[In, Res]) error) *undoSpec {
	s := &undoSpec{jobType: jobType, in: reflect.TypeFor[In](), res: reflect.TypeFor[Res]()}
	if f == nil {
		s.missing = append(s.missing, "function")
	}
	s.run = func(ctx context.Context, tx *Tx, u undoOf) error {
		t, err := typedUndo[In, Res](u)
		if err != nil {
			return err
		}
		return f(ctx, tx, t)
	}
	return s
}

func remoteUndo[In, Res any](jobType string, r RemoteUndo[In, Res]) *undoSpec {
	s := &undoSpec{jobType: jobType, in: reflect.TypeFor[In](), res: reflect.TypeFor[Res]()}
	if r.Call == nil {
		s.missing = append(s.missing, "Call")
	}
	erase := func(f func(context.Context, string, UndoOf[In, Res]) error) func(context.Context, string, undoOf) error {
		if f == nil {
			return nil
		}
		return func(ctx context.Context, key string, u undoOf) error {
			t, err := typedUndo[In, Res](u)
			if err != nil {
				return err
			}
			return f(ctx, key, t)
		}
	}
	s.call, s.resolve = erase(r.Call), erase(r.Resolve)
	if r.Settle != nil {
		s.settle = func(ctx context.Context, tx *Tx, u undoOf) error {
			t, err := typedUndo[In, Res](u)
			if err != nil {
				return err
			}
			return r.Settle(ctx, tx, t)
		}
	}
	return s
}
