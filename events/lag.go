package events

import (
	"context"
	"time"
)

// Lag is how far a consumer group is behind in one partition.
type Lag struct {
	Topic     string
	Partition int
	Committed int64 // position the group goes on from; -1: it has never committed, and begins at the oldest record
	End       int64 // position behind the newest record
	Next      int64 // position at or behind which the first record stands that the group has not finished; End or above when there is none
	Behind    int64 // records that the group has not finished, never negative
	// Lost is how many records the broker dropped before the group came to them.
	Lost int64
	// Ahead: the group's position is behind the end of the partition. The topic was made anew, or lost records; Behind is 0 and means nothing.
	Ahead bool
}

// LagReader tells how far a consumer group is behind. Packages events/kafka and events/nats have one each.
type LagReader interface {
	// Lag gives one entry per partition of the topics, by topic and partition. The group need not run, nor exist.
	Lag(ctx context.Context, group string, topics ...string) ([]Lag, error)
	// TimeAt gives the broker's time of the first record of a partition at or behind a position, zero when there is none.
	TimeAt(ctx context.Context, at Position) (time.Time, error)
}

// MakeLag computes an entry from what a transport knows: positions of the
// group (-1 for none), of the oldest record and behind the newest one.
func MakeLag(topic string, no int, committed, first, end int64) Lag {
	l := Lag{Topic: topic, Partition: no, Committed: committed, End: end, Next: committed}
	if l.Next < first {
		if committed >= 0 {
			l.Lost = first - committed
		}
		l.Next = first
	}
	if l.Ahead = l.Next > end; !l.Ahead {
		l.Behind = end - l.Next
	}
	return l
}
