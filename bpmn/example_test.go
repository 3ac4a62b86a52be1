package bpmn_test

import (
	"fmt"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
)

const exampleModel = `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0">
<process id="demo" isExecutable="true">
  <startEvent id="start"/>
  <serviceTask id="book"><extensionElements><z:taskDefinition type="flight.book"/></extensionElements></serviceTask>
  <exclusiveGateway id="booked"/>
  <endEvent id="yes"/><endEvent id="no"/>
  <sequenceFlow id="f1" sourceRef="start" targetRef="book"/>
  <sequenceFlow id="f2" sourceRef="book" targetRef="booked"/>
  <sequenceFlow id="f3" sourceRef="booked" targetRef="yes"><conditionExpression>status = "booked"</conditionExpression></sequenceFlow>
  <sequenceFlow id="f4" sourceRef="booked" targetRef="no"/>
</process></definitions>`

func ExampleDefinitions_Check() {
	defs, err := bpmn.Parse(strings.NewReader(exampleModel))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range bpmn.Errors(defs.Check()) {
		fmt.Println(e)
	}
	// Output:
	// line 9: sequenceFlow "f3": condition "status = \"booked\"" is not an expression: expected a leading "="
	// line 10: sequenceFlow "f4": leaves "booked" without a condition and is not its default flow
}

func ExampleLint() {
	defs, err := bpmn.Parse(strings.NewReader(exampleModel))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range bpmn.Lint(defs) {
		if f.ElementID == "book" {
			fmt.Println(f)
		}
	}
	// Output:
	// line 4: serviceTask "book": lacks the inputs businessKey, operationId, correlationId, traceparent (correlation, error)
	// line 4: serviceTask "book": does not say how many retries its job has (retries, error)
	// line 4: serviceTask "book": has no time-out: no timer on it or around it, and no journeyman:timeout (timeout, warning)
	// line 4: serviceTask "book": has a side effect and no way back (compensation, error)
}
