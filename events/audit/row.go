package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outbox"
)

// Genesis is the previous hash of the first link of a chain.
var Genesis = strings.Repeat("0", 64) //nolint:gochecknoglobals // constant

// Row is one message of the ledger.
type Row struct {
	RecordedAt  time.Time    `json:"recorded_at"`
	Class       events.Class `json:"class"`
	Chain       string       `json:"chain"` // "" for class compliance, with link 0 and no hashes
	Link        int64        `json:"link"`  // from 1
	Previous    string       `json:"previous"`
	Hash        string       `json:"hash"`
	EventID     string       `json:"event_id"`
	Type        string       `json:"type"`
	Version     int          `json:"version"`
	Topic       string       `json:"topic"`
	BusinessKey string       `json:"business_key"`
	Seq         int64        `json:"seq"`
	OperationID string       `json:"operation_id"`
	Headers     []string     `json:"headers"` // name, value, name, value, ...
	Body        []byte       `json:"body"`    // as stored, sealed where the catalog says so
	BodySum     string       `json:"body_sum"`
	OccurredAt  time.Time    `json:"occurred_at"`
}

// Sum is the hash that the row should have.
func (r Row) Sum() string {
	h := sha256.New()
	h.Write([]byte("journeyman.audit.v1,"))
	fields := append([]string{
		r.Previous, r.Chain, strconv.FormatInt(r.Link, 10), r.EventID, r.Type, strconv.Itoa(r.Version), r.Topic, r.BusinessKey, strconv.FormatInt(r.Seq, 10),
		r.OperationID, strconv.FormatInt(r.OccurredAt.UnixMicro(), 10), strconv.FormatInt(r.RecordedAt.UnixMicro(), 10), r.BodySum,
	}, r.Headers...)
	for _, f := range fields {
		h.Write([]byte(strconv.Itoa(len(f)) + ":" + f + ","))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// body compares the body with its digest. known is false when its key is missing.
func (r Row) body(keys seal.Keys) (known bool, err error) {
	clear := r.Body
	if _, sealed := seal.Sealed(clear); sealed {
		if keys == nil {
			return false, nil
		}
		if _, err := keys.Key(seal.KeyID(clear)); err != nil {
			return false, nil //nolint:nilerr // told as a body that was not checked
		}
		if clear, err = seal.Open(keys, clear, r.EventID); err != nil {
			return true, err
		}
	}
	if sum := sha256.Sum256(clear); hex.EncodeToString(sum[:]) != r.BodySum {
		return true, fmt.Errorf("its body does not match its digest")
	}
	return true, nil
}

// ofLog makes the row of a message as the event log has it. ok is false for one
// that is no link of a chain.
func ofLog(l outbox.Logged, keys seal.Keys) (r Row, ok bool, err error) {
	r = Row{
		RecordedAt: l.CreatedAt, Class: l.Class, EventID: l.EventID, Type: l.Type, Version: l.Version, Topic: l.Topic, BusinessKey: l.BusinessKey,
		Seq: l.Seq, OperationID: l.OperationID, Body: l.Body, OccurredAt: l.OccurredAt,
	}
	for i := 0; i+1 < len(l.Headers); i += 2 {
		switch name, value := l.Headers[i], l.Headers[i+1]; name {
		case events.HeaderAuditChain:
			r.Chain, ok = value, true
		case events.HeaderAuditLink:
			if r.Link, err = strconv.ParseInt(value, 10, 64); err != nil {
				return r, true, fmt.Errorf("header %s: %w", name, err)
			}
		case events.HeaderAuditPrevious:
			r.Previous = value
		case events.HeaderAuditHash:
			r.Hash = value
		default:
			r.Headers = append(r.Headers, name, value)
		}
	}
	if !ok {
		return r, false, nil
	}
	clear := l.Body
	if _, sealed := seal.Sealed(clear); sealed {
		if clear, err = seal.Open(keys, clear, l.EventID); err != nil {
			return r, true, err
		}
	}
	sum := sha256.Sum256(clear)
	r.BodySum = hex.EncodeToString(sum[:])
	return r, true, nil
}
