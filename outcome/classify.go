package outcome

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// Classify turns any Go error into an outcome. nil gives nil. An *[Error] anywhere
// in the chain is returned as it is; everything else is documented here:
//
//	context.DeadlineExceeded              RETRYABLE deadline
//	context.Canceled                      RETRYABLE canceled
//	SQLSTATE 40001 40P01 55P03 57014      RETRYABLE contention (57014: deadline)
//	SQLSTATE class 08 53 57 58, XX        RETRYABLE unavailable
//	SQLSTATE class 42 (syntax, names)     FATAL statement
//	SQLSTATE class 0A 3F                  FATAL statement
//	every other SQLSTATE                  RETRYABLE error
//	net errors, EOF, reset, refused       RETRYABLE unavailable
//	any other error                       RETRYABLE error
//
// A constraint violation (class 23) or bad data (22) is RETRYABLE: whether the domain
// refuses is for the handler to say, and a bounded number of retries ends as an incident.
func Classify(err error) *Error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return classifySQL(err, pg)
	}
	e := &Error{Class: Retryable, Reason: ReasonError, Message: err.Error(), Err: err}
	var ne net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Reason = ReasonDeadline
	case errors.Is(err, context.Canceled):
		e.Reason = ReasonCanceled
	case errors.As(err, &ne),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE):
		e.Reason = ReasonUnavailable
	}
	return e
}

func classifySQL(err error, pg *pgconn.PgError) *Error {
	// The message of a statement's error may quote values; the code and the names do not.
	e := &Error{Class: Retryable, Reason: ReasonError, Err: err, Message: "database: SQLSTATE " + pg.Code + where(pg)}
	if len(pg.Code) != 5 {
		return e
	}
	switch pg.Code {
	case "40001", "40P01", "55P03":
		e.Reason = ReasonContention
		return e
	case "57014":
		e.Reason = ReasonDeadline
		return e
	}
	switch pg.Code[:2] {
	case "08", "53", "57", "58", "XX":
		e.Reason = ReasonUnavailable
	case "42", "0A", "3F":
		e.Class, e.Reason = Fatal, ReasonStatement
		e.Message = "database: SQLSTATE " + pg.Code + ": " + pg.Message
	}
	return e
}

func where(pg *pgconn.PgError) string {
	s := ""
	if pg.TableName != "" {
		s += " table " + pg.TableName
	}
	if pg.ConstraintName != "" {
		s += " constraint " + pg.ConstraintName
	}
	return s
}
