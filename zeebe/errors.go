package zeebe

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrorCode is the gateway's gRPC status code by name.
type ErrorCode string

// The codes a gateway answers with, and what they mean there.
const (
	OK                 ErrorCode = "OK"
	NotFound           ErrorCode = "NOT_FOUND"           // no such job, instance, incident; proves nothing (path rule 14)
	FailedPrecondition ErrorCode = "FAILED_PRECONDITION" // wrong state now, maybe right later (path rule 6)
	InvalidArgument    ErrorCode = "INVALID_ARGUMENT"    // never right
	AlreadyExists      ErrorCode = "ALREADY_EXISTS"      // message id published before
	ResourceExhausted  ErrorCode = "RESOURCE_EXHAUSTED"  // back pressure
	Unavailable        ErrorCode = "UNAVAILABLE"
	DeadlineExceeded   ErrorCode = "DEADLINE_EXCEEDED"
	Unauthenticated    ErrorCode = "UNAUTHENTICATED"
	PermissionDenied   ErrorCode = "PERMISSION_DENIED"
	Unimplemented      ErrorCode = "UNIMPLEMENTED"
	Canceled           ErrorCode = "CANCELED"
	Internal           ErrorCode = "INTERNAL"
	Unknown            ErrorCode = "UNKNOWN"
)

// Error is what a call came back with. Take it apart with errors.As, [Code] or the Is functions.
type Error struct {
	Call   string // RPC name, for example "CompleteJob"
	Code   ErrorCode
	Detail string // the gateway's own text
	cause  error
}

// Error gives call, code and the gateway's text.
func (e *Error) Error() string { return fmt.Sprintf("zeebe %s: %s: %s", e.Call, e.Code, e.Detail) }

// Unwrap gives the gRPC error.
func (e *Error) Unwrap() error { return e.cause }

// Code is the code of err: OK for nil, UNKNOWN for an error that is not the gateway's.
func Code(err error) ErrorCode {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	}
	return Unknown
}

// IsNotFound reports whether the engine knows no such thing (any more).
func IsNotFound(err error) bool { return Code(err) == NotFound }

// IsFailedPrecondition reports whether the thing is in a state that does not allow the call now.
func IsFailedPrecondition(err error) bool { return Code(err) == FailedPrecondition }

// IsAlreadyExists reports whether a message with this id was published before.
func IsAlreadyExists(err error) bool { return Code(err) == AlreadyExists }

// IsInvalidArgument reports whether the call can never succeed as it is.
func IsInvalidArgument(err error) bool { return Code(err) == InvalidArgument }

// IsTransient reports whether the same call may succeed later without anybody changing anything.
func IsTransient(err error) bool {
	switch Code(err) {
	case ResourceExhausted, Unavailable, DeadlineExceeded, Canceled, Internal, Unknown, Unauthenticated:
		return true
	default:
		return false
	}
}

// wrap turns a gRPC error into *Error; nil stays nil.
func wrap(call string, err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	s, ok := status.FromError(err)
	if !ok {
		return &Error{Call: call, Code: Code(err), Detail: err.Error(), cause: err}
	}
	return &Error{Call: call, Code: codeName(s.Code()), Detail: s.Message(), cause: err}
}

func codeName(c codes.Code) ErrorCode {
	switch c {
	case codes.OK:
		return OK
	case codes.NotFound:
		return NotFound
	case codes.FailedPrecondition:
		return FailedPrecondition
	case codes.InvalidArgument:
		return InvalidArgument
	case codes.AlreadyExists:
		return AlreadyExists
	case codes.ResourceExhausted:
		return ResourceExhausted
	case codes.Unavailable:
		return Unavailable
	case codes.DeadlineExceeded:
		return DeadlineExceeded
	case codes.Unauthenticated:
		return Unauthenticated
	case codes.PermissionDenied:
		return PermissionDenied
	case codes.Unimplemented:
		return Unimplemented
	case codes.Canceled:
		return Canceled
	case codes.Internal, codes.Aborted, codes.DataLoss:
		return Internal
	default:
		return Unknown
	}
}
