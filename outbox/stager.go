package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
)

// Limits of a staged message.
const (
	DefaultMaxBytes = 900_000 // bytes of body and headers: 10 % below Kafka's default limit
	maxKeyBytes     = 200

	DefaultShedAbove = 100_000 // rows of backlog
)

// Config configures a [Stager].
type Config struct {
	Schema   string          // PostgreSQL schema, "" means "journeyman"
	Catalog  *events.Catalog // required
	Producer string          // service name as in the catalog's producers, required
	Instance string          // this process, for the envelope's producerInstance, required
	Env      string          // environment name for the header env, required
	MaxBytes int             // largest message in bytes, 0 means DefaultMaxBytes
	Schemas  events.Schemas  // checks the data of each message, nil means that data is not checked
	Codec    events.Codec    // writes the bodies of types of wire confluent; required when this service may stage one
	Keys     seal.Keys       // required when the catalog encrypts a class
	Emits    []string        // every type this service stages: one that is missing in the catalog, or is another domain's, refuses to start, and no other is staged; empty means that types are checked when they are staged

	ShedAbove int // rows in the outbox above which analytical messages are dropped until it is half of that, 0 means DefaultShedAbove
}

// Stager writes messages into the outbox inside the caller's transaction. Safe for concurrent use.
type Stager struct {
	cfg     Config
	sql     statements
	classes classStatements

	mu       sync.Mutex
	sleepers map[chan struct{}]struct{}
}

// NewStager checks the configuration and refuses all that is wrong with it at once.
func NewStager(cfg Config) (*Stager, error) {
	var errs []error
	if cfg.Schema == "" {
		cfg.Schema = postgres.DefaultSchema
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	errs = append(errs, postgres.CheckSchema(cfg.Schema))
	if cfg.Catalog == nil {
		errs = append(errs, errors.New("catalog: missing"))
	}
	for name, v := range map[string]string{"producer": cfg.Producer, "instance": cfg.Instance, "env": cfg.Env} {
		if v == "" {
			errs = append(errs, fmt.Errorf("%s: empty", name))
		}
	}
	if cfg.ShedAbove == 0 {
		cfg.ShedAbove = DefaultShedAbove
	}
	if cfg.ShedAbove < 1 {
		errs = append(errs, fmt.Errorf("shed above %d, want 1 or more", cfg.ShedAbove))
	}
	errs = append(errs, checkClasses(cfg)...)
	errs = append(errs, cfg.checkCodec()...)
	if cfg.MaxBytes < 1000 {
		errs = append(errs, fmt.Errorf("max bytes %d, want at least 1000", cfg.MaxBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("outbox stager: %w", err)
	}
	if err := declare(cfg, cfg.Emits); err != nil {
		return nil, fmt.Errorf("outbox stager: %w", err)
	}
	return &Stager{cfg: cfg, sql: render(cfg.Schema), classes: renderClasses(cfg.Schema), sleepers: map[chan struct{}]struct{}{}}, nil
}

// Declare refuses, all at once, the message types (version 1 and up) that this
// service stages but that are not in the catalog or that it may not stage
// (spec E3). Call it at start-up with every type the code emits.
// With [Config].Emits a type that is not among these is refused as well.
func (s *Stager) Declare(types ...string) error { return declare(s.cfg, types) }

func declare(cfg Config, types []string) error {
	var errs []error
	for _, t := range types {
		found := false
		for _, e := range cfg.Catalog.Match(t) {
			found = true
			errs = append(errs, cfg.Catalog.MayStage(e, cfg.Producer), cfg.emits(e.Type))
		}
		if !found {
			errs = append(errs, fmt.Errorf("message type %s: not in the catalog", t))
		}
	}
	return errors.Join(errs...)
}

// emits refuses a type that the service does not declare.
func (c Config) emits(messageType string) error {
	if len(c.Emits) == 0 || messageType == DroppedType || slices.Contains(c.Emits, messageType) {
		return nil
	}
	return fmt.Errorf("message type %s: not among the types that %q declares to emit", messageType, c.Producer)
}

// Check refuses messages that could not be staged: type and version not in the
// catalog, an event staged as a command or the reverse, a producer that may not
// stage it, data that is not a JSON object or breaks its schema, a body over the size limit, a
// business key that is too long. An empty business key passes here: it means
// that of the operation. All mistakes are named. [Stager.Queue] checks the same.
func (s *Stager) Check(msgs ...events.Message) error {
	var errs []error
	for _, m := range msgs {
		if m.BusinessKey == "" {
			m.BusinessKey = "-"
		}
		_, err := s.prepare(events.Origin{OperationID: "-"}, m, 0)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// row is one message ready to be inserted.
type row struct {
	events.Message
	entry   events.Entry
	id      string
	headers []string
	body    []byte
	sum     string // of the clear body, for the ledger
}

// Queue adds the staging of msgs to the last round trip of the transaction
// (path rule 21): draw the xid, lock the key rows of all messages and of keys
// in sorted order, insert the rows. keys are further business keys to lock,
// such as a saga's, whose turn [Stager.SeqSQL] reads in later statements of
// the batch. The savepoint of the handler must be settled by statements before
// these, and COMMIT must follow in the same batch: other transactions of the
// keys wait for it. With no messages and no keys it adds nothing.
//
// An error means that a message was refused (see [Stager.Check]) and that
// nothing was added to the batch.
func (s *Stager) Queue(b *pgx.Batch, o events.Origin, msgs []events.Message, keys ...string) error {
	st, err := s.Prepare(o, msgs)
	if err != nil {
		return err
	}
	return s.QueueStaged(b, []*Staged{st}, keys...)
}

// SeqSQL is a scalar subquery with one %d for the number of a parameter that
// holds a business key: the key's turn, a number that grows with every
// transaction that staged or locked the key, in commit order. It is only
// meaningful in a batch after [Stager.Queue] locked the key.
func (s *Stager) SeqSQL() string { return s.sql.seq }

// Wake tells relays of this process that a transaction with staged messages
// has committed. It never blocks. Relays in other processes hear it from a
// [Ringer], or find the rows by polling.
func (s *Stager) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.sleepers {
		select {
		case c <- struct{}{}:
		default: // already woken
		}
	}
}

func (s *Stager) listen() (woken <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	s.sleepers[c] = struct{}{}
	s.mu.Unlock()
	return c, func() {
		s.mu.Lock()
		delete(s.sleepers, c)
		s.mu.Unlock()
	}
}

func (s *Stager) prepare(o events.Origin, m events.Message, n int) (row, error) {
	m.Version = max(m.Version, 1)
	if m.Kind == "" {
		m.Kind = events.KindEvent
	}
	e, ok := s.cfg.Catalog.Entry(m.Type, m.Version)
	if !ok || e.Kind != m.Kind { // the names in the catalog were checked when it was read
		if err := s.cfg.Catalog.CheckName(m.Kind, m.Type); err != nil {
			return row{}, err
		}
	}
	if !ok {
		return row{}, fmt.Errorf("message type %s v%d: not in the catalog", m.Type, m.Version)
	}
	if e.Kind != m.Kind {
		return row{}, fmt.Errorf("message type %s v%d: staged as %s, the catalog says %s", m.Type, m.Version, m.Kind, e.Kind)
	}
	if err := s.cfg.Catalog.MayStage(e, s.cfg.Producer); err != nil {
		return row{}, err
	}
	if err := s.cfg.emits(m.Type); err != nil {
		return row{}, err
	}
	if err := checkKey(m.BusinessKey); err != nil {
		return row{}, fmt.Errorf("message type %s v%d: %w", m.Type, m.Version, err)
	}
	if m.Corrects != "" && !events.ValidID(m.Corrects) {
		return row{}, fmt.Errorf("message type %s v%d: corrects %q, want a messageId", m.Type, m.Version, m.Corrects)
	}
	data, err := s.data(e, o, m)
	if err != nil {
		return row{}, fmt.Errorf("message type %s v%d: data: %w", m.Type, m.Version, err)
	}
	framed, err := s.frame(e, data)
	if err != nil {
		return row{}, fmt.Errorf("message type %s v%d: %w", m.Type, m.Version, err)
	}
	r := row{Message: m, entry: e, id: messageID(o, m, n)}
	r.headers = s.headers(o, r)
	env := s.envelope(o, r, data)
	if framed != nil {
		for _, h := range env.RestHeaders(e.Format, idempotencyKey(e, data)) {
			r.headers = append(r.headers, h.Name, h.Value)
		}
	}
	for i, h := range r.headers {
		if !utf8.ValidString(h) || strings.ContainsRune(h, 0) {
			return row{}, fmt.Errorf("message type %s v%d: header %s: holds NUL or is not UTF-8", m.Type, m.Version, r.headers[i-i%2])
		}
	}
	if !utf8.ValidString(o.OperationID) || strings.ContainsRune(o.OperationID, 0) {
		return row{}, fmt.Errorf("message type %s v%d: operation id holds NUL or is not UTF-8", m.Type, m.Version)
	}
	if r.body = framed; framed == nil {
		if r.body, err = env.Render(); err != nil {
			return row{}, err
		}
	}
	if m.Corrects != "" && strings.EqualFold(m.Corrects, r.id) {
		return row{}, fmt.Errorf("message type %s v%d: corrects itself; a correction is a message of its own", m.Type, m.Version)
	}
	if r.body, r.sum, err = s.protect(e, r.id, r.body); err != nil {
		return row{}, fmt.Errorf("message type %s v%d: %w", m.Type, m.Version, err)
	}
	if size := weigh(r); size > s.cfg.MaxBytes {
		return row{}, fmt.Errorf("message type %s v%d: %d bytes, want at most %d", m.Type, m.Version, size, s.cfg.MaxBytes)
	}
	return r, nil
}

func checkKey(key string) error {
	if key == "" || len(key) > maxKeyBytes || !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
		return fmt.Errorf("business key %q, want 1 to %d bytes of UTF-8", key, maxKeyBytes)
	}
	return nil
}

func messageID(o events.Origin, m events.Message, n int) string {
	seed := o.IDSeed
	if seed == "" {
		seed = o.OperationID
	}
	if seed == "" {
		return events.NewID()
	}
	return events.DeriveID(seed, n, m)
}

// data renders the data part and fills in its idempotency key where the catalog asks for one (spec E1).
func (s *Stager) data(e events.Entry, o events.Origin, m events.Message) (json.RawMessage, error) {
	raw, err := json.Marshal(m.Data)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(raw, []byte("{")) {
		return nil, fmt.Errorf("is %.20s, want a JSON object", raw)
	}
	if e.IdempotencyKey != events.DedupData {
		return raw, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if v, ok := fields["idempotencyKey"]; ok && string(v) != `""` && string(v) != "null" {
		return raw, nil
	}
	key := o.HTTPIdempotencyKey
	if key == "" {
		key = o.OperationID
	}
	if key == "" {
		return nil, errors.New("idempotencyKey: missing, and the operation has no key to copy")
	}
	fields["idempotencyKey"], _ = json.Marshal(key) //nolint:errchkjson // a string always marshals
	return json.Marshal(fields)
}

func (s *Stager) envelope(o events.Origin, r row, data json.RawMessage) events.Envelope {
	instance := ""
	if o.ProcessInstanceKey != 0 {
		instance = strconv.FormatInt(o.ProcessInstanceKey, 10)
	}
	return events.Envelope{
		MessageID: r.id, MessageKind: r.Kind, MessageType: r.Type, MessageVersion: r.Version,
		Producer: s.cfg.Producer, ProducerInstance: s.cfg.Instance, TraceID: events.TraceID(o.Traceparent), Actor: o.Actor, Data: data,
		Metadata: events.Metadata{
			BusinessKey: r.BusinessKey, CorrelationID: o.CorrelationID, OperationID: o.OperationID, ProcessInstanceID: instance,
			EventClass: r.entry.Class, HTTPIdempotencyKey: o.HTTPIdempotencyKey, Corrects: r.Corrects, Replay: o.Replay,
		},
	}
}

// headers are those that do not depend on the committed row; the relay adds occurred_at and sequence.
func (s *Stager) headers(o events.Origin, r row) []string {
	h := []string{
		events.HeaderEventID, r.id, events.HeaderEventType, r.Type, events.HeaderEventVersion, strconv.Itoa(r.Version),
		events.HeaderProducer, s.cfg.Producer, events.HeaderBusinessKey, r.BusinessKey, events.HeaderEnv, s.cfg.Env,
	}
	add := func(name, value string) {
		if value != "" {
			h = append(h, name, value)
		}
	}
	add(events.HeaderCorrelationID, o.CorrelationID)
	add(events.HeaderOperationID, o.OperationID)
	add(events.HeaderTraceparent, o.Traceparent)
	add(events.HeaderTraceID, events.TraceID(o.Traceparent))
	if o.ProcessInstanceKey != 0 {
		add(events.HeaderProcessInstanceID, strconv.FormatInt(o.ProcessInstanceKey, 10))
	}
	return h
}

// weigh is what the message will take in a record, with room for what the relay adds.
func weigh(r row) int {
	n := len(r.body) + len(r.BusinessKey) + 200
	for _, h := range r.headers {
		n += len(h) + 4
	}
	return n
}
