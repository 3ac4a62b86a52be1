package faults

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// seed is FAULTS_SEED, or changes with the day: a sample that rotates and still can be played again.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UTC().Unix() / (24 * 3600)) //nolint:gosec // positive
	if text := os.Getenv("FAULTS_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FAULTS_SEED %q: want a number", text)
		}
	}
	h := fnv.New64()
	_, _ = h.Write([]byte(t.Name()))
	t.Logf("FAULTS_SEED=%d", n)
	return n ^ h.Sum64()
}

// TestMatrixPairs plays a sample of all pairs of faults, another one every day; tier soak plays all.
func TestMatrixPairs(t *testing.T) {
	s := setup(t)
	runs := s.play(sample(t, pairs(), 36), 1)
	t.Logf("%d of %d pairs:\n%s", len(runs), len(pairs()), s.pairTable(runs))
	s.finish(runs)
}

// TestMatrixOneKind plays two faults at two segments of one kind of one booking: the suppliers' ledgers are read per segment.
func TestMatrixOneKind(t *testing.T) {
	s := setup(t)
	runs := s.play(sample(t, oneKind(), sampledOneKind), 1)
	t.Logf("%d of %d pairs:\n%s", len(runs), len(oneKind()), s.pairTable(runs))
	s.finish(runs)
}

// sample takes n of all, by the seed.
func sample[T any](t *testing.T, all []T, n int) []T {
	t.Helper()
	random := rand.New(rand.NewPCG(seed(t), 0)) //nolint:gosec // a sample
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// pairTable counts the ends of pairs by their two faults.
func (s *stage) pairTable(runs []*run) string {
	ends := map[string]map[string]int{}
	for _, r := range runs {
		faults := []string{string(r.cells[0].fault), string(r.cells[1].fault)}
		slices.Sort(faults)
		key := r.saga + ": " + strings.Join(faults, " + ")
		if ends[key] == nil {
			ends[key] = map[string]int{}
		}
		ends[key][s.result(r)]++
	}
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(ends)) {
		out.WriteString(key)
		sep := " -> "
		for _, end := range slices.Sorted(maps.Keys(ends[key])) {
			fmt.Fprintf(&out, "%s%d %s", sep, ends[key][end], end)
			sep = "; "
		}
		out.WriteString("\n")
	}
	return out.String()
}
