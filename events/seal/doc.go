// Package seal encrypts the bodies of messages where they rest (spec E4).
//
// # Format
//
// A sealed body is bytes that no JSON text begins with:
//
//	"jms1" | mode (1 byte: 'r' at rest, 'e' end to end) | length of the key id (1 byte) | key id | salt (32 bytes) | ciphertext and tag
//
// Key and nonce of each body come from the key and the body's own random salt by
// HKDF-SHA256, so that one key may seal any number of bodies; the cipher is
// AES-256-GCM. All before the ciphertext, and a context that the caller gives
// (the message's id), are authenticated: a body cannot be moved to another row.
//
// # Keys
//
// [Keys] gives keys by id. [OpenDir] reads them from a folder of files; an
// implementation over a KMS unwraps its data keys once and keeps them in memory.
// Rotation is: add a key, make it the current one, seal old rows again
// (`journeyman events reseal`), and only then take the old key away. A body
// whose key is missing is never dropped: [ErrNoKey] parks it.
package seal
