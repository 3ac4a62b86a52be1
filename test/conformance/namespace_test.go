package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A namespace gives a case names of its own on a cluster that others use too:
// what the case calls "work" the cluster knows as "work_k3x9q2az". Outgoing
// names of processes, job types, messages and signals get the suffix, in models,
// gRPC requests and REST bodies; answers and error texts lose it again.
type namespace string

func newNamespace() namespace {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := []byte("_zt")
	for range 9 {
		b = append(b, letters[rand.IntN(len(letters))])
	}
	return namespace(b)
}

// name is what the cluster knows the name as; names that an expression makes need it.
func (n namespace) name(s string) string {
	if strings.TrimSpace(s) == "" || strings.HasPrefix(s, "=") || strings.HasPrefix(s, "io.camunda.zeebe:") || strings.HasSuffix(s, string(n)) {
		return s
	}
	return s + string(n)
}

func (n namespace) strip(s string) string { return strings.ReplaceAll(s, string(n), "") }

var named = regexp.MustCompile(`(<bpmn:process id|<zeebe:calledElement processId|<zeebe:taskDefinition type|<bpmn:(?:message|signal) id="[^"]*" name)="([^"]*)"`)

// model is a BPMN file with the names of the namespace.
func (n namespace) model(xml []byte) []byte {
	return named.ReplaceAllFunc(xml, func(m []byte) []byte {
		parts := named.FindSubmatch(m)
		return fmt.Appendf(nil, `%s="%s"`, parts[1], n.name(string(parts[2])))
	})
}

// request is a copy of a gRPC request with the names of the namespace.
func (n namespace) request(req any) any {
	m, ok := req.(proto.Message)
	if !ok {
		return req
	}
	switch r := proto.Clone(m).(type) {
	case *pb.DeployResourceRequest:
		for _, res := range r.GetResources() {
			res.Content = n.model(res.GetContent())
		}
		return r
	case *pb.DeployProcessRequest: //nolint:staticcheck // part of the service
		for _, p := range r.GetProcesses() {
			p.Definition = n.model(p.GetDefinition())
		}
		return r
	case *pb.CreateProcessInstanceRequest:
		r.BpmnProcessId = n.name(r.GetBpmnProcessId())
		return r
	case *pb.CreateProcessInstanceWithResultRequest:
		if r.GetRequest() != nil {
			r.Request.BpmnProcessId = n.name(r.GetRequest().GetBpmnProcessId())
		}
		return r
	case *pb.PublishMessageRequest:
		r.Name = n.name(r.GetName())
		return r
	case *pb.BroadcastSignalRequest:
		r.SignalName = n.name(r.GetSignalName())
		return r
	case *pb.ActivateJobsRequest:
		r.Type = n.name(r.GetType())
		return r
	case *pb.StreamActivatedJobsRequest:
		r.Type = n.name(r.GetType())
		return r
	}
	return req
}

// answer takes the suffix off every text of a gRPC message.
func (n namespace) answer(reply any) {
	if m, ok := reply.(proto.Message); ok {
		n.stripMessage(m.ProtoReflect())
	}
}

func (n namespace) stripMessage(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				n.stripMessage(v.List().Get(i).Message())
			}
		case f.IsList() || f.IsMap():
		case f.Kind() == protoreflect.MessageKind:
			n.stripMessage(v.Message())
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(n.strip(v.String())))
		}
		return true
	})
}

func (n namespace) err(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	p := s.Proto()
	p.Message = n.strip(p.GetMessage())
	return status.FromProto(p).Err()
}

// dialOptions put the namespace between a gRPC client and the cluster.
func (n namespace) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoke(ctx, method, n.request(req), reply, cc, opts...)
			n.answer(reply)
			return n.err(err)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(ctx, desc, cc, method, opts...)
			return namedStream{s, n}, n.err(err)
		}),
	}
}

type namedStream struct {
	grpc.ClientStream
	n namespace
}

func (s namedStream) SendMsg(m any) error { return s.ClientStream.SendMsg(s.n.request(m)) }

func (s namedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.n.answer(m)
	return s.n.err(err)
}

// RoundTrip of namedTransport does the same for REST.
type namedTransport struct {
	*http.Transport
	n    namespace
	late *lateness
}

func (t namedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(req.Header.Get("Content-Type"), "multipart/") {
			body = t.n.model(body)
		} else {
			body = t.n.body(req.URL.Path, body)
		}
		req = req.Clone(req.Context())
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	res, err := t.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(res.Body)
	if closed := res.Body.Close(); err == nil {
		err = closed
	}
	answer = t.late.hide(req, body, res, answer)
	res.Body = io.NopCloser(strings.NewReader(t.n.strip(string(answer))))
	return res, err
}

// body is a REST body with the names of the namespace; what is no JSON object stays as it is.
func (n namespace) body(path string, body []byte) []byte {
	var v map[string]any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil || dec.More() {
		return body
	}
	names := map[string]bool{"processDefinitionId": true}
	switch {
	case strings.HasPrefix(path, "/v2/messages/"):
		names["name"] = true
	case strings.HasPrefix(path, "/v2/signals/"):
		names["signalName"] = true
	case strings.HasPrefix(path, "/v2/jobs/activation"), strings.HasPrefix(path, "/v2/jobs/search"):
		names["type"] = true
	}
	if !n.rename(v, names, true) {
		return body
	}
	out, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return out
}

// rename changes the named members of v and of its filter and reports whether there were any.
func (n namespace) rename(v map[string]any, names map[string]bool, top bool) bool {
	changed := false
	for key, value := range v {
		if names[key] {
			v[key], changed = n.value(value), true
		}
		if filter, ok := value.(map[string]any); ok && top && key == "filter" {
			changed = n.rename(filter, names, false) || changed
		}
	}
	return changed
}

// value is a name, or an operator of a search with names.
func (n namespace) value(v any) any {
	switch x := v.(type) {
	case string:
		return n.name(x)
	case []any:
		for i := range x {
			x[i] = n.value(x[i])
		}
	case map[string]any:
		for op := range x {
			x[op] = n.value(x[op])
		}
	}
	return v
}
