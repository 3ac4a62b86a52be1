// Package proto encodes the data of messages by the Protobuf messages of a
// catalog and reads what others wrote with versions of them. It compiles .proto
// text itself and needs no generated code.
//
// Data stands as JSON in handlers, in the form of ProtoJSON with one
// difference: 64-bit integers are numbers, so that a Go struct with an int64
// reads what it wrote (their text is taken too). Fields go by their JSON name:
// order_id is orderId unless json_name says otherwise. Fields that hold their
// zero value without presence are left out. With generated types: stage
// json.RawMessage of protojson.Marshal, and protojson.Unmarshal what comes.
package proto

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Schema is a message of a compiled .proto file. Safe for concurrent use.
type Schema struct {
	text    string
	message protoreflect.MessageDescriptor
	index   []int
}

const (
	fileName = "schema.proto"
	maxText  = 1 << 20 // bytes of a file with what it imports
	maxDepth = 100     // of messages in a message, as Protobuf's own limit for other languages
)

// Parse compiles the text of one .proto file, which may import the files of
// google/protobuf only, and picks the message of that full name; "" means the
// only message at the file's top.
func Parse(written any, message string) (*Schema, error) {
	text, ok := written.(string)
	if !ok {
		return nil, errors.New("want the text of a .proto file")
	}
	file, err := compile(text, nil)
	if err != nil {
		return nil, err
	}
	if message == "" {
		if n := file.Messages().Len(); n != 1 {
			return nil, fmt.Errorf("has %d messages, want one, or its name under message", n)
		}
		message = string(file.Messages().Get(0).FullName())
	}
	d, ok := file.FindDescriptorByName(protoreflect.FullName(message)).(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("has no message %q", message)
	}
	return &Schema{text: text, message: d, index: indexOf(d)}, nil
}

// file is what the compiler gives for a file.
type file interface {
	protoreflect.FileDescriptor
	FindDescriptorByName(name protoreflect.FullName) protoreflect.Descriptor
}

// compile compiles a file with the files that it imports, by their names.
func compile(text string, imports map[string]string) (file, error) {
	files, size := map[string]string{fileName: text}, len(text)
	for name, t := range imports {
		files[name], size = t, size+len(t)
	}
	if size > maxText {
		return nil, fmt.Errorf("has %d bytes, want at most %d", size, maxText)
	}
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(files)}), MaxParallelism: 1}
	out, err := c.Compile(context.Background(), fileName)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// indexOf is the way to a message through its file, as it stands in frames.
func indexOf(d protoreflect.MessageDescriptor) []int {
	var path []int
	for at := protoreflect.Descriptor(d); ; at = at.Parent() {
		m, ok := at.(protoreflect.MessageDescriptor)
		if !ok {
			return path
		}
		path = append([]int{m.Index()}, path...)
	}
}

// Text is the text of the file, as it is registered.
func (s *Schema) Text() string { return s.text }

// Name is the message's full name.
func (s *Schema) Name() string { return string(s.message.FullName()) }

// Index is the way to the message through its file: [0] for the first, [1 0] for the first message inside the second.
func (s *Schema) Index() []int { return s.index }

// Encode gives the message of data, a JSON object. Data that does not fit is
// refused, naming each field and never a value.
func (s *Schema) Encode(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, errors.New("is no JSON")
	}
	m := dynamicpb.NewMessage(s.message)
	var f faults
	fill(m, "data", v, 0, &f)
	if len(f) > 0 {
		return nil, fmt.Errorf("breaks its schema: %s", strings.Join(f, "; "))
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m) // refuses a required field that is missing, by its name
}

// Reader reads messages that another version of the file wrote, in the shape of this one.
type Reader struct {
	schema *Schema
	writer protoreflect.FileDescriptor
}

// Reader makes a reader of what a writer's file wrote; imports are the files
// that it imports beside those of google/protobuf, by their names. It refuses a writer whose message
// gives a number of ours another type: Protobuf would drop such a field silently.
func (s *Schema) Reader(writer string, imports map[string]string) (*Reader, error) {
	f, err := compile(writer, imports)
	if err != nil {
		return nil, fmt.Errorf("writer's schema: %w", err)
	}
	d, ok := f.FindDescriptorByName(s.message.FullName()).(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("writer's schema has no message %s", s.Name())
	}
	var errs []error
	compare(d, s.message, "data", map[protoreflect.FullName]bool{}, func(d Difference, wire bool) {
		if wire {
			errs = append(errs, fmt.Errorf("writer's schema: field %s is %s, want %s", d.Field, d.From, d.To))
		}
	})
	return &Reader{schema: s, writer: f}, errors.Join(errs...)
}

// Decode gives the data of a message as a JSON object. index is the way to the
// message through the writer's file, from the frame. The error never shows a value.
func (r *Reader) Decode(index []int, record []byte) (json.RawMessage, error) {
	within := r.writer.Messages()
	var d protoreflect.MessageDescriptor
	for _, n := range index {
		if n < 0 || n >= within.Len() {
			return nil, fmt.Errorf("frame names message %v, which the writer's schema does not have", index)
		}
		d = within.Get(n)
		within = d.Messages()
	}
	if d == nil || d.FullName() != r.schema.message.FullName() {
		return nil, fmt.Errorf("frame names message %v of the writer's schema, want %s", index, r.schema.Name())
	}
	m := dynamicpb.NewMessage(r.schema.message)
	if err := unmarshal(record, m); err != nil {
		return nil, fmt.Errorf("is no message %s", r.schema.Name())
	}
	shown, err := show(m)
	if err != nil {
		return nil, err
	}
	return json.Marshal(shown)
}

// unmarshal reads a record. The runtime (1.36.12) panics at a map entry with two
// keys, the second of another wire type, when it has no generated code; see testdata/fuzz/FuzzDecode.
func unmarshal(record []byte, m proto.Message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("is no message")
		}
	}()
	return proto.UnmarshalOptions{RecursionLimit: maxDepth}.Unmarshal(record, m)
}
