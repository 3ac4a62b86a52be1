package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/vitrip/journeyman/outcome"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	sql := func(code string) error {
		return fmt.Errorf("insert: %w", &pgconn.PgError{Code: code, Message: "secret"})
	}
	for _, tt := range []struct {
		err    error
		class  outcome.Class
		reason string
	}{
		{errors.New("x"), outcome.Retryable, outcome.ReasonError},
		{fmt.Errorf("call: %w", context.DeadlineExceeded), outcome.Retryable, outcome.ReasonDeadline},
		{context.Canceled, outcome.Retryable, outcome.ReasonCanceled},
		{sql("40001"), outcome.Retryable, outcome.ReasonContention},
		{sql("40P01"), outcome.Retryable, outcome.ReasonContention},
		{sql("55P03"), outcome.Retryable, outcome.ReasonContention},
		{sql("57P01"), outcome.Retryable, outcome.ReasonUnavailable},
		{sql("57014"), outcome.Retryable, outcome.ReasonDeadline},
		{sql("08006"), outcome.Retryable, outcome.ReasonUnavailable},
		{sql("53300"), outcome.Retryable, outcome.ReasonUnavailable},
		{sql("23505"), outcome.Retryable, outcome.ReasonError},
		{sql("42P01"), outcome.Fatal, outcome.ReasonStatement},
		{sql(""), outcome.Retryable, outcome.ReasonError},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, outcome.Retryable, outcome.ReasonUnavailable},
		{io.ErrUnexpectedEOF, outcome.Retryable, outcome.ReasonUnavailable},
		{fmt.Errorf("wrapped: %w", outcome.NewBusiness("X", "no")), outcome.Business, ""},
		{outcome.Panicked("boom"), outcome.Fatal, outcome.ReasonPanic},
		{outcome.NewUnknown(io.EOF), outcome.Retryable, outcome.ReasonUnknown},
	} {
		got := outcome.Classify(tt.err)
		if got.Class != tt.class || got.Reason != tt.reason {
			t.Errorf("Classify(%v) = %s %s, want %s %s", tt.err, got.Class, got.Reason, tt.class, tt.reason)
		}
		if tt.class != outcome.Business && !errors.Is(tt.err, got) && got.Err == nil && got.Reason != outcome.ReasonPanic {
			t.Errorf("Classify(%v) lost the cause", tt.err)
		}
		if strings.Contains(got.Error(), "secret") && tt.reason != outcome.ReasonStatement {
			t.Errorf("%q shows what a statement's error may quote", got.Error())
		}
	}
	if outcome.Classify(nil) != nil || outcome.ClassOf(nil) != outcome.Success {
		t.Error("nil is no error")
	}
}

func TestError_Is(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("step: %w", outcome.NewBusiness("SOLD_OUT", "none"))
	if !errors.Is(err, &outcome.Error{Code: "SOLD_OUT"}) || errors.Is(err, &outcome.Error{Code: "OTHER"}) || !errors.Is(err, &outcome.Error{Class: outcome.Business}) {
		t.Error("comparison by class and code")
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := outcome.Backoff{
			Min:    time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "min")),
			Factor: rapid.Float64Range(1, 10).Draw(t, "factor"),
		}
		b.Max = b.Min + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "more"))
		b.Floor = time.Duration(rapid.Int64Range(0, int64(b.Min)).Draw(t, "floor"))
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(-5, 1<<30).Draw(t, "n")
		if w := b.Wait(n); w < b.Floor || w > b.Max || w > max(b.Bound(n), b.Floor) {
			t.Fatalf("Wait(%d) = %s, want %s to %s", n, w, b.Floor, b.Bound(n))
		}
	})
	b := outcome.DefaultBackoff()
	for n, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1000: time.Minute} {
		if got := b.Bound(n); got != want {
			t.Errorf("Bound(%d) = %s, want %s", n, got, want)
		}
	}
	err := outcome.Backoff{Max: 48 * time.Hour, Factor: 0.5, Floor: time.Second}.Check()
	for _, want := range []string{"min 0s", "max 48h0m0s", "factor 0.5", "floor 1s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
