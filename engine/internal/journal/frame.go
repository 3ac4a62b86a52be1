package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A file is a header and frames. A frame is the payload's length and the
// CRC-32C of length and payload, 4 bytes each, little endian, then the payload, which is never empty.
const (
	frameHead  = 8
	headerSize = 24
	version    = 1

	// maxFrame bounds a payload, in bytes. It also makes text look unlike a
	// frame, so that a search for the next frame is cheap.
	maxFrame = 256 << 20
)

// The kinds of files, the first 8 bytes of each.
const (
	logMagic      = "JNYM-LOG"
	snapshotMagic = "JNYM-SNP"
)

func checksum(length []byte, payload []byte) uint32 {
	t := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(length, t), t, payload)
}

func appendFrame(b, payload []byte) []byte {
	var head [frameHead]byte
	binary.LittleEndian.PutUint32(head[:4], uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[4:], checksum(head[:4], payload))
	return append(append(b, head[:]...), payload...)
}

// header is magic, version, generation and their CRC-32C.
func header(magic string, generation uint64) []byte {
	b := append(make([]byte, 0, headerSize), magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, generation)
	return binary.LittleEndian.AppendUint32(b, checksum(nil, b))
}

func checkHeader(name, magic string, generation uint64, b []byte) error {
	switch {
	case len(b) < headerSize || string(b[:8]) != magic:
		return &CorruptError{name, 0, "it does not begin as such a file does"}
	case binary.LittleEndian.Uint32(b[8:]) != version:
		return fmt.Errorf("%s: format version %d, this program reads version %d", name, binary.LittleEndian.Uint32(b[8:]), version)
	case binary.LittleEndian.Uint32(b[20:]) != checksum(nil, b[:20]):
		return &CorruptError{name, 0, "the header's checksum is wrong"}
	case binary.LittleEndian.Uint64(b[12:]) != generation:
		return &CorruptError{name, 12, fmt.Sprintf("it is of generation %d, its name says %d", binary.LittleEndian.Uint64(b[12:]), generation)}
	}
	return nil
}

// CorruptError is a file that was changed or damaged after it was written.
type CorruptError struct {
	File   string
	Offset int64 // where it begins, in bytes
	Why    string
}

// Error names file, offset and reason.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged at offset %d: %s", e.File, e.Offset, e.Why)
}

// frameAt reads the frame at off; ok is false when there is no whole, sound frame.
func frameAt(b []byte, off int) (payload []byte, next int, ok bool) {
	if len(b)-off < frameHead {
		return nil, 0, false
	}
	n := binary.LittleEndian.Uint32(b[off:])
	if n == 0 || n > maxFrame || int(n) > len(b)-off-frameHead {
		return nil, 0, false
	}
	payload = b[off+frameHead : off+frameHead+int(n)]
	if binary.LittleEndian.Uint32(b[off+4:]) != checksum(b[off:off+4], payload) {
		return nil, 0, false
	}
	return payload, off + frameHead + int(n), true
}

// frames calls fn for each frame behind the header and returns where the sound
// part ends. What follows there must be a torn tail: a sound frame behind it
// means damage in the middle, which is an error.
func frames(name string, b []byte, fn func(payload []byte) error) (end int, err error) {
	off := headerSize
	for off < len(b) {
		payload, next, ok := frameAt(b, off)
		if !ok {
			break
		}
		if err := fn(payload); err != nil {
			return off, fmt.Errorf("%s, record at offset %d: %w", name, off, err)
		}
		off = next
	}
	for at := off + 1; at < len(b); at++ {
		if _, _, ok := frameAt(b, at); ok {
			return off, &CorruptError{name, int64(off), fmt.Sprintf("no sound record there, but one at offset %d", at)}
		}
	}
	return off, nil
}
