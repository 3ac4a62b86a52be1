package main

import (
	"slices"
)

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
