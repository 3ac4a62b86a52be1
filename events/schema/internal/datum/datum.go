// Package datum holds what the formats say alike of decoded JSON.
package datum

import (
	"encoding/json"
	"math"
)

// Kind is what JSON calls a value, for messages that must not show it. Numbers are expected as json.Number.
func Kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// Finite gives shown, or text for what JSON has no number for.
func Finite(x float64, shown any) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return shown
}
