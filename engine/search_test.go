package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vitrip/journeyman/engine"
)

// Z6: every operator on every kind of property in every search: what it finds among two, and what is refused.
func TestREST_Operators(t *testing.T) {
	user := `<bpmn:userTask id="u" name="Look"><bpmn:extensionElements><zeebe:userTask/><zeebe:assignmentDefinition assignee="=who" candidateGroups="=[who, &quot;all&quot;]"/><zeebe:taskSchedule dueDate="=due"/></bpmn:extensionElements></bpmn:userTask>`
	s := open(t, engine.Config{}, bpmnModel(chain("p", user, service("a", "a"))), bpmnModel(chain("p", user, service("a", "b"))), bpmnModel(chain("q", service("z", "a"))))
	for i, who := range []string{"ann", "bob"} {
		s.ok("POST", "/process-instances", object{"processDefinitionId": "p", "processDefinitionVersion": 1 + i, "variables": object{"who": who, "due": fmt.Sprintf("203%d-01-01T00:00:00Z", i)}})
	}
	tasks := s.find("user-tasks", object{}, "userTaskKey")
	first, second := s.find("process-instances", object{}, "processInstanceKey")[0], s.find("process-instances", object{}, "processInstanceKey")[1]
	s.ok("POST", "/user-tasks/"+tasks[0]+"/completion", "")
	s.ok("POST", "/user-tasks/"+tasks[1]+"/completion", "")
	s.fail("a", 0, "broken")
	jobs := s.find("jobs", object{}, "jobKey")
	const past, later = "2031-06-01T00:00:00Z", "2000-01-01T00:00:00Z"

	for _, c := range []struct {
		search, field string
		value         any
		// what operators find: "1", "2", "12" or "" of the two items in the order of their keys
		want map[string]string
		args map[string]any
	}{
		{"process-instances", "processInstanceKey", first, map[string]string{"": "1", "$eq": "1", "$neq": "2", "$in": "12", "$notIn": "2", "$exists": "12"}, map[string]any{"$in": []string{first, second}, "$notIn": []string{first}}},
		{"process-instances", "processDefinitionId", "p", map[string]string{"": "12", "$eq": "12", "$neq": "", "$like": "12", "$in": "12", "$notIn": ""}, map[string]any{"$like": "?", "$in": []string{"p", "q"}, "$notIn": []string{"p"}}},
		{"process-instances", "processDefinitionVersion", 1, map[string]string{"": "1", "$eq": "1", "$neq": "2", "$gt": "2", "$gte": "12", "$lt": "", "$lte": "1", "$in": "1"}, map[string]any{"$in": []int{1, 7}}},
		{"process-instances", "startDate", later, map[string]string{"$gt": "12", "$gte": "12", "$lt": "", "$lte": "", "$neq": "12", "$exists": "12"}, nil},
		{"process-instances", "endDate", later, map[string]string{"$gt": "", "$exists": ""}, nil},
		{"process-instances", "parentProcessInstanceKey", first, map[string]string{"$exists": "", "$neq": "12"}, nil},
		{"process-instances", "state", "ACTIVE", map[string]string{"": "12", "$eq": "12", "$neq": "", "$in": "12", "$like": "12"}, map[string]any{"$in": []string{"ACTIVE", "COMPLETED"}, "$like": "ACT*"}},
		{"process-instances", "hasIncident", true, map[string]string{"": "1"}, nil},
		{"jobs", "retries", 0, map[string]string{"": "1", "$eq": "1", "$neq": "2", "$gt": "2", "$gte": "12", "$lte": "1", "$exists": "12"}, nil},
		{"jobs", "type", "a", map[string]string{"": "1", "$neq": "2", "$like": "12", "$in": "12", "$notIn": "2"}, map[string]any{"$like": "*", "$in": []string{"a", "b"}, "$notIn": []string{"a"}}},
		{"jobs", "errorMessage", "broken", map[string]string{"": "1", "$exists": "1", "$like": "1"}, map[string]any{"$like": "bro*"}},
		{"jobs", "jobKey", jobs[0], map[string]string{"": "1", "$neq": "2", "$notIn": "2"}, map[string]any{"$notIn": []string{jobs[0]}}},
		{"jobs", "hasFailedWithRetriesLeft", true, map[string]string{"": ""}, nil},
		{"jobs", "isDenied", true, map[string]string{"": ""}, nil},
		{"user-tasks", "assignee", "ann", map[string]string{"": "1", "$neq": "2", "$like": "2", "$in": "12", "$exists": "12"}, map[string]any{"$like": "b?b", "$in": []string{"ann", "bob"}}},
		{"user-tasks", "candidateGroup", "ann", map[string]string{"": "1", "$in": "12"}, map[string]any{"$in": []string{"all"}}},
		{"user-tasks", "priority", 50, map[string]string{"": "12", "$gt": "", "$gte": "12"}, nil},
		{"user-tasks", "dueDate", "2030-06-01T00:00:00Z", map[string]string{"$gt": "2", "$lt": "1", "$exists": "12"}, nil},
		{"user-tasks", "followUpDate", past, map[string]string{"$exists": ""}, nil},
		{"user-tasks", "completionDate", later, map[string]string{"$gt": "12"}, nil},
		{"variables", "name", "who", map[string]string{"$in": "12", "$like": "12"}, map[string]any{"$like": "wh?", "$in": []string{"who"}}},
		{"process-definitions", "processDefinitionId", "p", map[string]string{"": "12", "$like": "12"}, map[string]any{"$like": "p*"}},
	} {
		for op, want := range c.want {
			filter := c.value
			if op != "" {
				arg, ok := c.args[op]
				if !ok {
					if arg = c.value; op == "$exists" {
						arg = true
					}
				}
				filter = object{op: arg}
			}
			key := map[string]string{"process-instances": "processInstanceKey", "jobs": "jobKey", "user-tasks": "userTaskKey", "variables": "variableKey", "process-definitions": "processDefinitionKey"}[c.search]
			base := object{}
			if c.search == "variables" {
				base["name"] = "who"
			}
			if c.search == "process-definitions" {
				base["name"] = "p"
			}
			all := s.find(c.search, base, key)
			base[c.field] = filter
			got := ""
			for _, k := range s.find(c.search, base, key) {
				got += fmt.Sprint(slices.Index(all, k) + 1)
			}
			if got != want {
				t.Errorf("%s by %s %v: found %q, want %q", c.search, c.field, filter, got, want)
			}
		}
	}
	for _, c := range []struct {
		search, field string
		bad           any
	}{
		{"process-instances", "processInstanceKey", object{"$gt": first}}, {"process-instances", "processInstanceKey", object{"$like": "2*"}}, {"process-instances", "processDefinitionVersion", object{"$like": "1"}},
		{"process-instances", "processDefinitionVersion", "1"}, {"process-instances", "startDate", object{"$like": "2*"}}, {"process-instances", "startDate", "yesterday"}, {"process-instances", "state", object{"$gt": "A"}},
		{"jobs", "type", object{"$gte": "a"}}, {"jobs", "type", object{"$exists": "yes"}}, {"jobs", "type", object{"$in": "a"}}, {"jobs", "type", object{"$meow": 1}}, {"jobs", "type", 1}, {"jobs", "type", []string{"a"}},
		{"jobs", "hasFailedWithRetriesLeft", object{"$eq": true}}, {"jobs", "retries", 1.5}, {"user-tasks", "priority", "50"}, {"variables", "isTruncated", "no"}, {"variables", "meow", 1},
	} {
		s.refused("POST", "/"+c.search+"/search", object{"filter": object{c.field: c.bad}}, 400, c.field)
	}
	if got := s.find("jobs", object{"type": nil, "state": nil}, "jobKey"); len(got) != 2 {
		t.Errorf("a filter of nulls finds %v, want both", got)
	}
	// What has no value comes last, whichever way it is sorted.
	for _, order := range []string{"ASC", "DESC"} {
		items, _ := s.ok("POST", "/jobs/search", object{"sort": []object{{"field": "errorMessage", "order": order}}})["items"].([]any)
		if len(items) != 2 || items[0].(object)["errorMessage"] != "broken" {
			t.Errorf("sorted by message, %s: %v", order, items)
		}
	}
}
