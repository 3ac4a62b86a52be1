package conformance

import (
	"fmt"
	"strings"
)

// model wraps processes and root elements into a BPMN file.
func model(parts ...string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" id="defs" targetNamespace="http://example.com">
` + strings.Join(parts, "\n") + `
</bpmn:definitions>`
}

func process(id string, parts ...string) string {
	return fmt.Sprintf(`<bpmn:process id="%s" isExecutable="true">%s</bpmn:process>`, id, strings.Join(parts, "\n"))
}

func start(id string) string { return fmt.Sprintf(`<bpmn:startEvent id="%s"/>`, id) }
func end(id string) string   { return fmt.Sprintf(`<bpmn:endEvent id="%s"/>`, id) }

// task is a service task whose job type is its id; extra goes beside the task definition.
func task(id string, extra ...string) string { return taskOf(id, id, extra...) }

func taskOf(id, jobType string, extra ...string) string {
	return fmt.Sprintf(`<bpmn:serviceTask id="%s"><bpmn:extensionElements><zeebe:taskDefinition type="%s"/>%s</bpmn:extensionElements></bpmn:serviceTask>`,
		id, jobType, strings.Join(extra, ""))
}

// flow chains elements: flow("a", "b", "c") draws a to b and b to c. The flow's id is "a-b".
func flow(ids ...string) string {
	var b strings.Builder
	for i := 1; i < len(ids); i++ {
		fmt.Fprintf(&b, `<bpmn:sequenceFlow id="%s-%s" sourceRef="%s" targetRef="%s"/>`, ids[i-1], ids[i], ids[i-1], ids[i])
	}
	return b.String()
}

func conditional(from, to, condition string) string {
	return fmt.Sprintf(`<bpmn:sequenceFlow id="%s-%s" sourceRef="%s" targetRef="%s"><bpmn:conditionExpression xsi:type="bpmn:tFormalExpression">%s</bpmn:conditionExpression></bpmn:sequenceFlow>`,
		from, to, from, to, escape(condition))
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

func mappings(pairs ...string) string {
	var b strings.Builder
	b.WriteString("<zeebe:ioMapping>")
	for i := 0; i < len(pairs); i += 3 {
		fmt.Fprintf(&b, `<zeebe:%s source="%s" target="%s"/>`, pairs[i], escape(pairs[i+1]), pairs[i+2])
	}
	b.WriteString("</zeebe:ioMapping>")
	return b.String()
}

// boundary is a boundary event with the given definition.
func boundary(id, host string, interrupting bool, definition string, extra ...string) string {
	return fmt.Sprintf(`<bpmn:boundaryEvent id="%s" attachedToRef="%s" cancelActivity="%t">%s%s</bpmn:boundaryEvent>`,
		id, host, interrupting, strings.Join(extra, ""), definition)
}

func timer(kind, text string) string {
	return fmt.Sprintf(`<bpmn:timerEventDefinition><bpmn:%s xsi:type="bpmn:tFormalExpression">%s</bpmn:%s></bpmn:timerEventDefinition>`, kind, escape(text), kind)
}

func duration(text string) string { return timer("timeDuration", text) }

func errorEvent(ref string) string {
	if ref == "" {
		return `<bpmn:errorEventDefinition/>`
	}
	return fmt.Sprintf(`<bpmn:errorEventDefinition errorRef="%s"/>`, ref)
}

func errorDef(id, code string) string {
	return fmt.Sprintf(`<bpmn:error id="%s" name="%s" errorCode="%s"/>`, id, code, escape(code))
}

func messageEvent(ref string) string {
	return fmt.Sprintf(`<bpmn:messageEventDefinition messageRef="%s"/>`, ref)
}

func messageDef(id, name, key string) string {
	sub := ""
	if key != "" {
		sub = fmt.Sprintf(`<bpmn:extensionElements><zeebe:subscription correlationKey="%s"/></bpmn:extensionElements>`, escape(key))
	}
	return fmt.Sprintf(`<bpmn:message id="%s" name="%s">%s</bpmn:message>`, id, name, sub)
}

func catchEvent(id, definition string, extra ...string) string {
	return fmt.Sprintf(`<bpmn:intermediateCatchEvent id="%s">%s%s</bpmn:intermediateCatchEvent>`, id, strings.Join(extra, ""), definition)
}

func throwEvent(id, definition string) string {
	return fmt.Sprintf(`<bpmn:intermediateThrowEvent id="%s">%s</bpmn:intermediateThrowEvent>`, id, definition)
}

func startWith(id, definition string, interrupting bool) string {
	return fmt.Sprintf(`<bpmn:startEvent id="%s" isInterrupting="%t">%s</bpmn:startEvent>`, id, interrupting, definition)
}

func endWith(id, definition string) string {
	return fmt.Sprintf(`<bpmn:endEvent id="%s">%s</bpmn:endEvent>`, id, definition)
}

func sub(id string, parts ...string) string {
	return fmt.Sprintf(`<bpmn:subProcess id="%s">%s</bpmn:subProcess>`, id, strings.Join(parts, "\n"))
}

func eventSub(id string, parts ...string) string {
	return fmt.Sprintf(`<bpmn:subProcess id="%s" triggeredByEvent="true">%s</bpmn:subProcess>`, id, strings.Join(parts, "\n"))
}

func gateway(kind, id string, def ...string) string {
	d := ""
	if len(def) > 0 {
		d = fmt.Sprintf(` default="%s"`, def[0])
	}
	return fmt.Sprintf(`<bpmn:%sGateway id="%s"%s/>`, kind, id, d)
}

func compensationThrow(ref string) string {
	if ref == "" {
		return `<bpmn:compensateEventDefinition/>`
	}
	return fmt.Sprintf(`<bpmn:compensateEventDefinition activityRef="%s"/>`, ref)
}

// undo is a compensation boundary event of host with its handler, a service task.
func undo(host, handler string) string {
	return fmt.Sprintf(`<bpmn:boundaryEvent id="%[1]s-comp" attachedToRef="%[1]s"><bpmn:compensateEventDefinition/></bpmn:boundaryEvent>
<bpmn:serviceTask id="%[2]s" isForCompensation="true"><bpmn:extensionElements><zeebe:taskDefinition type="%[2]s"/></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:association id="%[1]s-assoc" associationDirection="One" sourceRef="%[1]s-comp" targetRef="%[2]s"/>`, host, handler)
}

// oneTask is start, one service task of type work, end.
func oneTask(id string, extra ...string) string {
	return model(process(id, start("s"), task("work", extra...), end("e"), flow("s", "work", "e")))
}

// loop makes an activity multi-instance over the collection, with the element "item".
// attrs are further attributes of zeebe:loopCharacteristics; a text beginning with "<" goes beside it.
func loop(activity, collection string, sequential bool, attrs ...string) string {
	inner := ""
	var a []string
	for _, x := range attrs {
		if strings.HasPrefix(x, "<") {
			inner += x
		} else {
			a = append(a, x)
		}
	}
	mi := fmt.Sprintf(`<bpmn:multiInstanceLoopCharacteristics isSequential="%t"><bpmn:extensionElements><zeebe:loopCharacteristics inputCollection="%s" inputElement="item" %s/></bpmn:extensionElements>%s</bpmn:multiInstanceLoopCharacteristics>`,
		sequential, escape(collection), strings.Join(a, " "), inner)
	i := strings.LastIndex(activity, "</")
	return activity[:i] + mi + activity[i:]
}
