package events

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Header is one transport header. Names may repeat; order is kept.
type Header struct{ Name, Value string }

// Record is a message as a transport carries it. Key is the business key and
// decides the partition, never empty.
type Record struct {
	Topic   string
	Key     string
	Headers []Header
	Body    []byte
}

// Header gives the value of the first header of that name, "" when there is none.
func (r Record) Header(name string) string {
	for _, h := range r.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// Publisher sends records to a broker.
//
// Publish blocks until each record is acknowledged by the broker as durable or
// has failed, and gives one error per record, nil for acknowledged ones. Records
// of one key in one topic are sent in the order given; from the first of them
// that fails, the later ones are not sent ([ErrHeldBack]) within this call. An
// error other than permanent says nothing about whether the broker has the
// record: publish it again. Safe for concurrent use as long as one key is in one
// call at a time.
type Publisher interface {
	Publish(ctx context.Context, records []Record) []error
}

// Position is where a delivery stood in its topic.
type Position struct {
	Topic     string
	Partition int
	Offset    int64
}

// Delivery is one record received from a transport.
type Delivery struct {
	Record
	Position Position
	Time     time.Time // the broker's time of the record
}

// Consumer is one member of a consumer group, made by a [Subscriber].
type Consumer interface {
	// Fetch waits for the next record. Records of a partition come in order.
	// It does not acknowledge anything. Not safe for concurrent use.
	Fetch(ctx context.Context) (Delivery, error)
	// Commit says that these records need not be delivered to the group again.
	// Records may be committed in any order: the transport acknowledges a
	// partition only up to the first record that is not committed yet.
	Commit(ctx context.Context, done ...Delivery) error
	// Close leaves the group. Uncommitted records are delivered again to others.
	Close() error
}

// Subscriber joins consumer groups.
type Subscriber interface {
	// Subscribe joins group for the topics. A group that is new starts at the
	// oldest record. Close the consumer to leave.
	Subscribe(ctx context.Context, group string, topics ...string) (Consumer, error)
}

// TopicSpec is a topic that a catalog asks for.
type TopicSpec struct {
	Name       string
	Partitions int
	Retention  time.Duration
	MaxBytes   int // largest record, 0 = the broker's default
}

// Admin creates topics.
type Admin interface {
	// EnsureTopics creates the missing topics with the given replication and the
	// retention asked for, raises the retention of existing ones that keep for a shorter time, and
	// refuses existing ones with fewer copies (spec O3), or whose partition count
	// differs: a key would move to another partition and lose its order. All mistakes are named at once.
	EnsureTopics(ctx context.Context, replication int, topics ...TopicSpec) error
}

// Fault is how a record failed to be published.
type Fault int

// The three faults. Retriable is what an unclassified error is taken for.
const (
	Retriable Fault = iota // the broker may have it or not: the same record again later
	Permanent              // this record will never be taken: park its key (spec O4)
	Unusable               // nothing can be published before an operator acts: credentials, certificates
)

// PublishError carries the fault of one record.
type PublishError struct {
	Fault Fault
	Err   error
}

// Error names the cause.
func (e *PublishError) Error() string {
	return fmt.Sprintf("publish: %v", e.Err)
}

// Unwrap gives the cause.
func (e *PublishError) Unwrap() error { return e.Err }

// ErrHeldBack marks a record that was not sent because an earlier one of its key or partition failed.
var ErrHeldBack = errors.New("not sent: an earlier record failed")

// ErrUnknownTopic is wrapped by the error of a record whose topic the broker does not know (yet).
var ErrUnknownTopic = errors.New("unknown topic")

// FaultOf gives the fault of an error of [Publisher].Publish, [Retriable] for errors that carry none.
func FaultOf(err error) Fault {
	if e, ok := errors.AsType[*PublishError](err); ok {
		return e.Fault
	}
	return Retriable
}

// Received is a message as a consumer's handler gets it.
type Received struct {
	Envelope
	Position Position
	Attempt  int    // 1 for the first
	Replay   bool   // explicit replay mode: no side effects unless the handler means to (spec E9)
	ReplayID string // the replay or redrive that brought it, "" for none
}
