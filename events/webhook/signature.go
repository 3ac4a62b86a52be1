package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of the Standard Webhooks specification.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// Tolerance is how far the time-stamp of a message may be from the receiver's clock.
const Tolerance = 5 * time.Minute

const secretPrefix, secretMin, secretMax = "whsec_", 24, 64

// Secret signs messages of one endpoint: 24 to 64 bytes. It prints as nothing.
type Secret struct{ key []byte }

// ParseSecret reads "whsec_" and base64, the form in which partners are given it. Errors never show it.
func ParseSecret(s string) (Secret, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(s), secretPrefix)
	if !ok {
		return Secret{}, errors.New("webhook secret: does not begin with " + secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Secret{}, errors.New("webhook secret: what follows " + secretPrefix + " is not base64")
	}
	if len(key) < secretMin || len(key) > secretMax {
		return Secret{}, fmt.Errorf("webhook secret: has %d bytes, want %d to %d", len(key), secretMin, secretMax)
	}
	return Secret{key}, nil
}

// String hides the secret.
func (Secret) String() string { return secretPrefix + "…" }

// GoString hides the secret.
func (Secret) GoString() string { return secretPrefix + "…" }

func (s Secret) sign(id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return h.Sum(nil)
}

// Sign sets the three headers. Each secret gives a signature: during a rotation the receiver may know either.
func Sign(h http.Header, id string, at time.Time, body []byte, secrets ...Secret) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(s.sign(id, timestamp, body))
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}

// ErrSignature is wrapped when a message is not what its headers say, or is too old or too new.
var ErrSignature = errors.New("webhook signature does not hold")

// Verify is for receivers: one signature by one of the secrets must hold, and the time-stamp be within [Tolerance] of now.
// A receiver that acts on a message should remember its webhook-id: the same may come again.
func Verify(h http.Header, body []byte, now time.Time, secrets ...Secret) error {
	id, timestamp := h.Get(HeaderID), h.Get(HeaderTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return fmt.Errorf("%w: %s or %s is missing or malformed", ErrSignature, HeaderID, HeaderTimestamp)
	}
	if off := now.Sub(time.Unix(seconds, 0)).Abs(); off > Tolerance {
		return fmt.Errorf("%w: its time is %v away, at most %v is taken", ErrSignature, off.Round(time.Second), Tolerance)
	}
	for _, one := range strings.Fields(h.Get(HeaderSignature)) {
		version, text, _ := strings.Cut(one, ",")
		got, err := base64.StdEncoding.DecodeString(text)
		if version != "v1" || err != nil {
			continue
		}
		for _, s := range secrets {
			if hmac.Equal(got, s.sign(id, timestamp, body)) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: no signature matches", ErrSignature)
}
