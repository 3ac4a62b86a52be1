package bpmn

import (
	"fmt"
	"strings"
)

// palette is one colour scheme: paper, ink, and stroke and fill by state.
type palette struct {
	paper, container, ink, soft string
	states                      map[State][2]string
}

func light() palette {
	return palette{"#ffffff", "#fafbfc", "#1f2933", "#616e7c", map[State][2]string{
		StateActive: {"#1264d1", "#e3f0ff"}, StateCompleted: {"#1a7f43", "#e6f6ec"}, StateCompensated: {"#8a5a00", "#fff4d6"},
		StateIncident: {"#c22323", "#ffe9e7"}, StateTerminated: {"#6b7280", "#eef0f2"},
	}}
}

func dark() palette {
	return palette{"#1b2027", "#171b21", "#e4e7eb", "#9aa5b1", map[State][2]string{
		StateActive: {"#6cb2ff", "#14304f"}, StateCompleted: {"#5fd38d", "#14351f"}, StateCompensated: {"#f0b93a", "#3a2e0c"},
		StateIncident: {"#ff8078", "#451a1a"}, StateTerminated: {"#9aa5b1", "#2a2f36"},
	}}
}

// StyleSheet returns the CSS that [Draw] embeds: plain rules for light paper,
// and the same for prefers-color-scheme: dark. It names only classes under .bpmn.
func StyleSheet() string {
	var b strings.Builder
	b.WriteString(`.bpmn text{font:12px system-ui,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;text-anchor:middle;stroke:none}` +
		`.bpmn .bpmn-left{text-anchor:start}` +
		`.bpmn .bpmn-shape{stroke-width:1.5}.bpmn .bpmn-thick{stroke-width:3.5}` +
		`.bpmn .bpmn-mark,.bpmn .bpmn-line{fill:none;stroke-width:1.2;stroke-linejoin:round}` +
		`.bpmn .bpmn-bold{fill:none;stroke-width:3}.bpmn .bpmn-gear{fill:none;stroke-width:2.4}` +
		`.bpmn .bpmn-flow{fill:none;stroke-width:1.5;stroke-linejoin:round}` +
		`.bpmn .bpmn-dashed{stroke-dasharray:5 4}.bpmn .bpmn-dotted{stroke-dasharray:1.5 4;stroke-linecap:round;stroke-width:2}` +
		`.bpmn .bpmn-cut{fill:none;stroke-width:1.2}.bpmn .bpmn-badge path{stroke-width:1.8;stroke-linecap:round}` +
		`.bpmn a:focus-visible .bpmn-shape{stroke-width:4}`)
	light().write(&b)
	b.WriteString("@media (prefers-color-scheme:dark){")
	dark().write(&b)
	b.WriteString("}")
	return b.String()
}

func (p palette) write(b *strings.Builder) {
	fmt.Fprintf(b, `.bpmn text{fill:%s}.bpmn .bpmn-shape{fill:%s;stroke:%s}.bpmn .bpmn-container,.bpmn .bpmn-pool{fill:%s}`, p.ink, p.paper, p.ink, p.container)
	fmt.Fprintf(b, `.bpmn .bpmn-mark,.bpmn .bpmn-line,.bpmn .bpmn-bold,.bpmn .bpmn-gear{stroke:%s}.bpmn .bpmn-fill{fill:%s;stroke:%s}.bpmn .bpmn-cut{stroke:%s}`, p.ink, p.ink, p.ink, p.paper)
	fmt.Fprintf(b, `.bpmn .bpmn-flow{stroke:%s}.bpmn .bpmn-arrow{fill:%s}.bpmn .bpmn-open{fill:%s;stroke:%s}.bpmn .group .bpmn-mark{stroke:%s}`, p.soft, p.soft, p.paper, p.soft, p.soft)
	for _, s := range []State{StateTerminated, StateCompleted, StateCompensated, StateActive, StateIncident} {
		c := p.states[s]
		fmt.Fprintf(b, `.bpmn .is-%s>.bpmn-shape{stroke:%s;fill:%s}.bpmn .is-%s>.bpmn-flow{stroke:%s;stroke-width:2.5}.bpmn .is-%s>.bpmn-arrow{fill:%s}`, s, c[0], c[1], s, c[0], s, c[0])
		fmt.Fprintf(b, `.bpmn .is-%s>.bpmn-badge{fill:%s;stroke:%s}.bpmn .is-%s>.bpmn-badge path{stroke:%s;fill:%s}.bpmn .is-%s>.bpmn-badge path[fill=none]{fill:none}`, s, c[0], p.paper, s, p.paper, p.paper, s)
	}
}
