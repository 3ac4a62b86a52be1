package events

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// NewID gives a random message id (UUID version 4, spec Z10).
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return format(b, 0x40)
}

// DeriveID gives the id of the n-th message (from 0) that a run named by seed
// stages: the same for the same seed, position, type, version and key (spec O7).
// It is shaped as a UUID version 8 (custom, RFC 9562), cut from a SHA-256.
func DeriveID(seed string, n int, m Message) string {
	h := sha256.New()
	var number [8]byte
	for _, part := range []string{"journeyman.message", seed, m.Type, m.BusinessKey} {
		binary.BigEndian.PutUint64(number[:], uint64(len(part)))
		h.Write(number[:])
		h.Write([]byte(part))
	}
	_, _ = fmt.Fprintf(h, "%d/%d", n, m.Version)
	var b [16]byte
	copy(b[:], h.Sum(nil))
	return format(b, 0x80)
}

// ValidID reports whether s is a UUID of any version in its 36-character lower- or upper-case form.
func ValidID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return false
			}
		}
	}
	return true
}

func format(b [16]byte, version byte) string {
	b[6] = b[6]&0x0f | version
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:36], b[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}
