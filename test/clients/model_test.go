//go:build clients

package clients

import (
	"fmt"
	"slices"
	"strings"
)

// node is an element of a model under test, with its elements inside, or a sequence flow.
type node struct {
	kind, id string
	attrs    string // as written in XML
	ext      string // inside extensionElements
	inner    string // after incoming and outgoing
	kids     []node
	from, to string // of a sequence flow
}

// el is an element; parts are "attr: …", "ext: …", or what stands inside.
func el(kind, id string, parts ...string) node {
	n := node{kind: kind, id: id}
	for _, p := range parts {
		switch {
		case strings.HasPrefix(p, "attr: "):
			n.attrs += " " + strings.TrimPrefix(p, "attr: ")
		case strings.HasPrefix(p, "ext: "):
			n.ext += strings.TrimPrefix(p, "ext: ")
		default:
			n.inner += p
		}
	}
	return n
}

// with puts elements inside a subprocess.
func (n node) with(kids ...node) node {
	n.kids = kids
	return n
}

// flow is a sequence flow from an element to another; cond is its condition, if any.
func flow(from, to string, cond ...string) node {
	n := node{kind: "sequenceFlow", id: from + "-" + to, from: from, to: to, attrs: fmt.Sprintf(` sourceRef=%q targetRef=%q`, from, to)}
	for _, c := range cond {
		n.inner += `<conditionExpression xsi:type="tFormalExpression">` + c + `</conditionExpression>`
	}
	return n
}

// path connects elements one after the other.
func path(ids ...string) []node {
	var out []node
	for i := 1; i < len(ids); i++ {
		out = append(out, flow(ids[i-1], ids[i]))
	}
	return out
}

// all joins nodes and lists of nodes.
func all(parts ...any) []node {
	var out []node
	for _, p := range parts {
		switch x := p.(type) {
		case node:
			out = append(out, x)
		case []node:
			out = append(out, x...)
		}
	}
	return out
}

func render(b *strings.Builder, nodes []node) {
	for _, n := range nodes {
		fmt.Fprintf(b, "<%s id=%q%s>\n", n.kind, n.id, n.attrs)
		if n.ext != "" {
			fmt.Fprintf(b, "<extensionElements>%s</extensionElements>\n", n.ext)
		}
		for _, f := range nodes {
			if f.from != "" && f.to == n.id {
				fmt.Fprintf(b, "<incoming>%s</incoming>", f.id)
			}
		}
		for _, f := range nodes {
			if f.from != "" && f.from == n.id {
				fmt.Fprintf(b, "<outgoing>%s</outgoing>", f.id)
			}
		}
		b.WriteString(n.inner)
		render(b, n.kids)
		fmt.Fprintf(b, "</%s>\n", n.kind)
	}
}

func rank(n node) int {
	if n.kind == "association" {
		return 1
	}
	return 0
}

// model is a file with one executable process.
func model(roots string, nodes []node) string {
	return file(roots, `<process id="p" isExecutable="true">`, nodes)
}

func file(roots, process string, nodes []node) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" id="parity" targetNamespace="https://journeyman.example/parity">
` + roots + "\n" + process + "\n")
	// The schema wants associations after all elements.
	slices.SortStableFunc(nodes, func(x, y node) int { return rank(x) - rank(y) })
	render(&b, nodes)
	b.WriteString("</process>\n</definitions>\n")
	return b.String()
}
