package sagas

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// fingerprint is the sha256 of a body's canonical form. It does not depend on key order, white
// space, the spelling of numbers (1, 1.0 and 1e0 are equal) or on whether an absent field is
// written as null (path rule 4). Fields count whether or not the type uses them.
func fingerprint(body []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("fingerprint: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("fingerprint: data after the JSON value")
	}
	var b bytes.Buffer
	if err := canonical(&b, v); err != nil {
		return nil, fmt.Errorf("fingerprint: %w", err)
	}
	sum := sha256.Sum256(b.Bytes())
	return sum[:], nil
}

func canonical(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
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
			if err := canonical(b, k); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := canonical(b, v[k]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := canonical(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case json.Number:
		n, err := canonicalNumber(v.String())
		if err != nil {
			return err
		}
		b.WriteString(n)
	default: // string, bool, nil
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		b.Write(text)
	}
	return nil
}

// canonicalNumber writes a JSON number as <digits>e<exponent> without trailing zeros, exactly: no
// number is too long or too large for it, and nothing is rounded.
func canonicalNumber(s string) (string, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	exp := new(big.Int)
	if exponent != "" {
		if _, ok := exp.SetString(strings.TrimPrefix(exponent, "+"), 10); !ok {
			return "", fmt.Errorf("number %.40q: exponent is not an integer", s)
		}
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	exp.Sub(exp, big.NewInt(int64(len(frac))))
	digits := strings.TrimLeft(whole+frac, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0", nil
	}
	exp.Add(exp, big.NewInt(int64(len(digits)-len(trimmed))))
	return sign + trimmed + "e" + exp.String(), nil
}
