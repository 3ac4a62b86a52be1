package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// Keys gives keys by their id. Safe for concurrent use.
type Keys interface {
	// Current gives the id of the key that new bodies are sealed with.
	Current() (id string, err error)
	// Key gives the [KeySize] bytes of a key. A key that is not there is an error that wraps [ErrNoKey].
	Key(id string) ([]byte, error)
}

// Mode says what a body was sealed for. It is authenticated with the body.
type Mode byte

// The two modes.
const (
	AtRest   Mode = 'r' // opened before it goes to the broker, or back to a handler
	EndToEnd Mode = 'e' // sealed at the broker too
)

// ErrNoKey is wrapped by the error about a key that is not there.
var ErrNoKey = errors.New("no such key")

// ErrTampered is wrapped by the error about a body that is not as it was sealed, or was sealed in another context.
var ErrTampered = errors.New("sealed body was changed, or belongs elsewhere")

// Scheme names the format, as the magic bytes and the header [events.HeaderEncryption] do.
const Scheme = magic

const (
	magic    = "jms1"
	saltSize = 32
	maxID    = 64
)

// Sealed reports whether body is one that [Seal] made, and in which mode. It does not check it.
func Sealed(body []byte) (Mode, bool) {
	if len(body) < len(magic)+2 || string(body[:len(magic)]) != magic {
		return 0, false
	}
	m := Mode(body[len(magic)])
	return m, m == AtRest || m == EndToEnd
}

// KeyID gives the id of the key of a sealed body, "" for one that is not sealed.
func KeyID(body []byte) string {
	if _, ok := Sealed(body); !ok {
		return ""
	}
	n := int(body[len(magic)+1])
	if len(body) < len(magic)+2+n {
		return ""
	}
	return string(body[len(magic)+2 : len(magic)+2+n])
}

// Overhead is the largest number of bytes that sealing adds to a body.
const Overhead = len(magic) + 2 + maxID + saltSize + 16

// Seal encrypts clear with the current key. context is what the body belongs to;
// [Open] needs the same.
func Seal(keys Keys, mode Mode, clear []byte, context string) ([]byte, error) {
	id, err := keys.Current()
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	key, err := keys.Key(id)
	if err != nil {
		return nil, fmt.Errorf("seal: key %q: %w", id, err)
	}
	if err := CheckID(id); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	out := make([]byte, 0, len(magic)+2+len(id)+saltSize+len(clear)+16)
	out = append(out, magic...)
	out = append(out, byte(mode), byte(len(id)))
	out = append(out, id...)
	out = out[:len(out)+saltSize]
	salt := out[len(out)-saltSize:]
	_, _ = rand.Read(salt) // never fails: crypto/rand ends the process instead
	aead, nonce, err := derive(key, salt)
	if err != nil {
		return nil, fmt.Errorf("seal: key %q: %w", id, err)
	}
	return aead.Seal(out, nonce, clear, bound(out, context)), nil
}

// Open decrypts a sealed body. The error wraps [ErrNoKey] or [ErrTampered].
func Open(keys Keys, body []byte, context string) ([]byte, error) {
	if _, ok := Sealed(body); !ok {
		return nil, fmt.Errorf("open: not a sealed body: %w", ErrTampered)
	}
	id := KeyID(body)
	head := len(magic) + 2 + len(id) + saltSize
	if id == "" || len(body) < head+16 {
		return nil, fmt.Errorf("open: sealed body is cut off: %w", ErrTampered)
	}
	if keys == nil {
		return nil, fmt.Errorf("open: key %q: no keys are configured: %w", id, ErrNoKey)
	}
	key, err := keys.Key(id)
	if err != nil {
		return nil, fmt.Errorf("open: key %q: %w", id, err)
	}
	aead, nonce, err := derive(key, body[head-saltSize:head])
	if err != nil {
		return nil, fmt.Errorf("open: key %q: %w", id, err)
	}
	clear, err := aead.Open(nil, nonce, body[head:], bound(body[:head], context))
	if err != nil {
		return nil, fmt.Errorf("open with key %q: %w", id, ErrTampered)
	}
	return clear, nil
}

// Again seals a body anew with the current key, in its mode. A body that is not
// sealed, or is sealed with the current key, is given back as it is with false.
func Again(keys Keys, body []byte, context string) ([]byte, bool, error) {
	mode, ok := Sealed(body)
	if !ok {
		return body, false, nil
	}
	current, err := keys.Current()
	if err != nil || KeyID(body) == current {
		return body, false, err
	}
	clear, err := Open(keys, body, context)
	if err != nil {
		return body, false, err
	}
	out, err := Seal(keys, mode, clear, context)
	return out, err == nil, err
}

// bound is what the tag covers beside the body: the head and the context.
func bound(head []byte, context string) []byte {
	return append(append(make([]byte, 0, len(head)+len(context)), head...), context...)
}

func derive(key, salt []byte) (aead cipher.AEAD, nonce []byte, err error) {
	if len(key) != KeySize {
		return nil, nil, fmt.Errorf("has %d bytes, want %d", len(key), KeySize)
	}
	both, err := hkdf.Key(sha256.New, key, salt, "journeyman seal v1", KeySize+12)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(both[:KeySize])
	if err != nil {
		return nil, nil, err
	}
	aead, err = cipher.NewGCM(block)
	return aead, both[KeySize:], err
}

// CheckID refuses a key id that is empty, longer than 64 bytes, or of other than a-z, A-Z, 0-9, '-', '_' and '.'.
func CheckID(id string) error {
	ok := id != "" && len(id) <= maxID && id[0] != '.'
	for _, c := range []byte(id) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	}
	if !ok {
		return fmt.Errorf("key id %q, want 1 to %d of a-z, A-Z, 0-9, '-', '_', '.', not beginning with '.'", id, maxID)
	}
	return nil
}
