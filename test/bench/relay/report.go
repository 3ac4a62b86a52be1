package main

import (
	"math"
	"slices"
)

// report is the JSON object that is printed.
type report map[string]any

// round keeps three significant digits.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// quantile of values, 0 for none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

// series are rates of one contestant, one a round.
type series map[string][]float64

func (s series) median(name string) float64 { return quantile(s[name], 0.5) }

// ratio is the median of the ratios of each round.
func (s series) ratio(over, under string) float64 {
	var v []float64
	for i := range min(len(s[over]), len(s[under])) {
		v = append(v, s[over][i]/s[under][i])
	}
	return quantile(v, 0.5)
}
