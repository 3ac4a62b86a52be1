package dedup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of documents that are made canonical.
const maxDepth = 200

// Canonical gives one spelling of a JSON document: no spaces, object members sorted by name, members that are null left
// out (absent equals null), numbers by their exact value (1, 1.0 and 1e0 are equal; 19 digits stay 19 digits), strings with
// the shortest escapes. It follows RFC 8785 but for numbers, which that one would round to doubles.
// Of two members with one name the last counts. Errors name the byte, never the content.
func Canonical(doc []byte) ([]byte, error) {
	v, err := parse(doc)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := write(&b, v, 0); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func parse(doc []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("invalid JSON at byte %d", position(err, d))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("invalid JSON at byte %d: more than one value", d.InputOffset())
	}
	return v, nil
}

func position(err error, d *json.Decoder) int64 {
	var s *json.SyntaxError
	if errors.As(err, &s) {
		return s.Offset
	}
	return d.InputOffset()
}

func write(b *bytes.Buffer, v any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("JSON nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case json.Number:
		s, err := number(v.String())
		if err != nil {
			return err
		}
		b.WriteString(s)
	case string:
		writeString(b, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := write(b, e, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		first := true
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if v[k] == nil {
				continue
			}
			if !first {
				b.WriteByte(',')
			}
			first = false
			writeString(b, k)
			b.WriteByte(':')
			if err := write(b, v[k], depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		return fmt.Errorf("no JSON value: %T", v)
	}
	return nil
}

func writeString(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < 0x20:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// number gives one spelling for each exact value: an integer in digits when it has at most 40 of them, else d.ddde±x.
func number(s string) (string, error) {
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	mant, expText, _ := strings.Cut(strings.ToLower(s), "e")
	exp := new(big.Int)
	if expText != "" {
		if _, ok := exp.SetString(expText, 10); !ok {
			return "", fmt.Errorf("number with exponent of %d bytes: not understood", len(expText))
		}
	}
	whole, frac, _ := strings.Cut(mant, ".")
	digits := whole + frac
	exp.Sub(exp, big.NewInt(int64(len(frac))))
	if trimmed := strings.TrimRight(digits, "0"); trimmed != digits {
		exp.Add(exp, big.NewInt(int64(len(digits)-len(trimmed))))
		digits = trimmed
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return "0", nil // also -0
	}
	sign := ""
	if neg {
		sign = "-"
	}
	const plain = 40
	if exp.IsInt64() {
		switch e := exp.Int64(); {
		case e >= 0 && int64(len(digits))+e <= plain:
			return sign + digits + strings.Repeat("0", int(e)), nil
		case e < 0 && e >= -plain && len(digits) <= plain:
			point := len(digits) + int(e)
			if point <= 0 {
				return sign + "0." + strings.Repeat("0", -point) + digits, nil
			}
			return sign + digits[:point] + "." + digits[point:], nil
		}
	}
	exp.Add(exp, big.NewInt(int64(len(digits)-1)))
	out := sign + digits[:1]
	if len(digits) > 1 {
		out += "." + digits[1:]
	}
	return out + "e" + exp.String(), nil
}
