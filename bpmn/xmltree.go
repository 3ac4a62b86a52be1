package bpmn

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of what Parse reads. A model beyond them is refused.
const (
	MaxBytes    = 2 << 20 // bytes of XML
	MaxDepth    = 64      // nested XML elements
	MaxElements = 20_000  // XML elements in the file
)

// XML namespaces that Parse understands.
const (
	nsBPMN     = "http://www.omg.org/spec/BPMN/20100524/MODEL"
	nsDI       = "http://www.omg.org/spec/BPMN/20100524/DI"
	nsDC       = "http://www.omg.org/spec/DD/20100524/DC"
	nsDD       = "http://www.omg.org/spec/DD/20100524/DI"
	nsZeebe    = "http://camunda.org/schema/zeebe/1.0"
	nsCamunda7 = "http://camunda.org/schema/1.0/bpmn"
	nsModeler  = "http://camunda.org/schema/modeler/1.0"
)

// node is one XML element.
type node struct {
	space, local string
	attrs        []xml.Attr
	children     []*node
	text         string
	line         int
}

func (n *node) is(space, local string) bool { return n.space == space && n.local == local }

// attr returns an attribute without namespace, or "".
func (n *node) attr(local string) string {
	v, _ := n.lookup(local)
	return v
}

func (n *node) lookup(local string) (string, bool) {
	for _, a := range n.attrs {
		if a.Name.Space == "" && a.Name.Local == local {
			return a.Value, true
		}
	}
	return "", false
}

func (n *node) child(space, local string) *node {
	for _, c := range n.children {
		if c.is(space, local) {
			return c
		}
	}
	return nil
}

func (n *node) all(space, local string) []*node {
	var out []*node
	for _, c := range n.children {
		if c.is(space, local) {
			out = append(out, c)
		}
	}
	return out
}

func (n *node) trimmed() string { return strings.TrimSpace(n.text) }

// readTree reads one XML document within the limits.
func readTree(r io.Reader) (*node, error) {
	limited := &io.LimitedReader{R: r, N: MaxBytes + 1}
	d := xml.NewDecoder(limited)
	d.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("encoding %q is not supported: save the file as UTF-8", charset)
	}
	var root *node
	var stack []*node
	var texts [][]byte
	count := 0
	for {
		line, _ := d.InputPos()
		tok, err := d.RawToken()
		if limited.N <= 0 {
			return nil, &Error{Line: line, Reason: fmt.Sprintf("file is larger than %d bytes", MaxBytes)}
		}
		if errors.Is(err, io.EOF) && len(stack) == 0 {
			break
		}
		if err != nil {
			return nil, xmlError(err, line)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if root != nil && len(stack) == 0 {
				return nil, &Error{Line: line, Reason: fmt.Sprintf("second root element %q: expected one document", t.Name.Local)}
			}
			if count++; count > MaxElements {
				return nil, &Error{Line: line, Reason: fmt.Sprintf("more than %d XML elements", MaxElements)}
			}
			if len(stack) >= MaxDepth {
				return nil, &Error{Line: line, Reason: fmt.Sprintf("XML elements are nested deeper than %d", MaxDepth)}
			}
			n, err := startNode(t, line)
			if err != nil {
				return nil, err
			}
			if root == nil {
				root = n
			} else {
				parent := stack[len(stack)-1]
				parent.children = append(parent.children, n)
			}
			stack = append(stack, n)
			texts = append(texts, nil)
		case xml.EndElement:
			if len(stack) == 0 {
				return nil, &Error{Line: line, Reason: fmt.Sprintf("unexpected end tag %q", t.Name.Local)}
			}
			top := stack[len(stack)-1]
			if top.space != t.Name.Space || top.local != t.Name.Local {
				return nil, &Error{Line: line, Reason: fmt.Sprintf("end tag %q does not match start tag %q of line %d", rawName(t.Name), rawName(xml.Name{Space: top.space, Local: top.local}), top.line)}
			}
			top.text = string(texts[len(texts)-1])
			stack, texts = stack[:len(stack)-1], texts[:len(texts)-1]
		case xml.CharData:
			if len(stack) > 0 {
				texts[len(texts)-1] = append(texts[len(texts)-1], t...)
			} else if strings.TrimSpace(string(t)) != "" && strings.Trim(string(t), "\ufeff \t\r\n") != "" {
				return nil, &Error{Line: line, Reason: "text outside the root element: expected XML"}
			}
		case xml.Directive:
			return nil, &Error{Line: line, Reason: "document type declarations and other <! directives are not allowed"}
		case xml.ProcInst:
			// The XML declaration; RawToken has checked version and encoding.
		}
	}
	if root == nil {
		return nil, &Error{Reason: "no XML element: expected bpmn:definitions"}
	}
	resolve(root, map[string]string{"xml": "http://www.w3.org/XML/1998/namespace"})
	return root, nil
}

func rawName(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

func startNode(t xml.StartElement, line int) (*node, error) {
	n := &node{space: t.Name.Space, local: t.Name.Local, line: line, attrs: append([]xml.Attr(nil), t.Attr...)}
	for i, a := range n.attrs {
		for _, b := range n.attrs[:i] {
			if a.Name == b.Name {
				return nil, &Error{Line: line, Reason: fmt.Sprintf("element %q has attribute %q twice", rawName(t.Name), rawName(a.Name))}
			}
		}
	}
	return n, nil
}

// resolve turns prefixes into namespaces. A prefix that nobody declared stays
// as it is and therefore matches no namespace.
func resolve(n *node, scope map[string]string) {
	own := false
	for _, a := range n.attrs {
		prefix, declares := "", false
		switch {
		case a.Name.Space == "xmlns":
			prefix, declares = a.Name.Local, true
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			declares = true
		}
		if !declares {
			continue
		}
		if !own {
			own = true
			inner := make(map[string]string, len(scope)+len(n.attrs))
			for k, v := range scope {
				inner[k] = v
			}
			scope = inner
		}
		scope[prefix] = a.Value
	}
	if uri, ok := scope[n.space]; ok {
		n.space = uri
	}
	for i, a := range n.attrs {
		if a.Name.Space == "" || a.Name.Space == "xmlns" {
			continue
		}
		if uri, ok := scope[a.Name.Space]; ok {
			n.attrs[i].Name.Space = uri
		}
	}
	for _, c := range n.children {
		resolve(c, scope)
	}
}

func xmlError(err error, line int) error {
	if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return &Error{Line: syntax.Line, Reason: "not well-formed XML: " + syntax.Msg}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Line: line, Reason: "file ends inside an element"}
	}
	return fmt.Errorf("read BPMN at line %d: %w", line, err)
}
