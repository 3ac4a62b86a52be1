package sagas

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// OperationID derives the id of an attempt (path rule 15). Two tenants with the same key never meet:
// every part is length-prefixed before hashing. attempt counts from 1.
func OperationID(tenant, typ, key string, attempt int) string {
	h := sha256.New()
	for _, part := range []string{tenant, typ, key, strconv.Itoa(attempt)} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	sum := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil))
	return "op_" + strings.ToLower(sum[:26])
}

// internalKey is K for the first attempt and K@retry-N for the N-th forced retry (spec I7).
func internalKey(key string, attempt int) string {
	if attempt <= 1 {
		return key
	}
	return key + "@retry-" + strconv.Itoa(attempt-1)
}

// stepName is what is left of a step's operation id after the saga's: "<elementId>" or "<elementId>:<n>".
func stepName(sagaID, operationID, elementID string) string {
	if name, ok := strings.CutPrefix(operationID, sagaID+":"); ok {
		return name
	}
	return elementID
}

var traceparentForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`) //nolint:gochecknoglobals // compiled once

// newTraceparent makes a W3C trace context for a request that brought none.
func newTraceparent() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-01"
}
