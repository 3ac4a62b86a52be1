package nats

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vitrip/journeyman/events"
)

// escape writes s as one token of a subject: letters, digits, '-' and '_' stay, each other byte becomes "=" and two hex digits.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

func unescape(token string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		if token[i] != '=' {
			b.WriteByte(token[i])
			continue
		}
		if i+2 >= len(token) {
			return "", errors.New("cut short")
		}
		raw, err := hex.DecodeString(token[i+1 : i+3])
		if err != nil {
			return "", err
		}
		b.Write(raw)
		i += 2
	}
	return b.String(), nil
}

// stream is the name of the stream that holds a topic: one for each domain.
func (c *Client) stream(topic string) string { return c.cfg.Prefix + escape(events.Domain(topic)) }

// subjects covers all keys of a topic; its number of parts is the topic's and two, so that no two topics overlap.
func subjects(topic string) string { return topic + ".*.*" }

func ofPartition(p partition) string { return p.topic + "." + strconv.Itoa(p.no) + ".*" }

func subject(p partition, key string) string {
	return p.topic + "." + strconv.Itoa(p.no) + "." + escape(key)
}

// keyOf gives the key of a subject.
func keyOf(subject string) (string, error) {
	key, err := unescape(subject[strings.LastIndexByte(subject, '.')+1:])
	if err != nil {
		return "", fmt.Errorf("nats: subject %q: key: %w", subject, err)
	}
	return key, nil
}
