package rig

import (
	"encoding/json"
	"io"
	"math"
)

// Report is the JSON object that a benchmark prints.
type Report map[string]any

// Print writes the report, indented.
func (r Report) Print(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Round keeps three significant digits; 0 for what is no number.
func Round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
