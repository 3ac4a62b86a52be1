package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// show creates an instance, waits for its end and prints what the worker answered.
func show(ctx context.Context, out io.Writer, conn *zeebe.Conn, restAddr, variables string) error {
	instance, err := conn.CreateInstance(ctx, "quickstart", variables)
	if err != nil {
		return err
	}
	history, err := rest.New(rest.Config{Base: "http://" + restAddr})
	if err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		state, err := history.ProcessInstance(ctx, instance.ProcessInstanceKey)
		if err == nil && state.State == "COMPLETED" {
			break
		}
		if err == nil && state.HasIncident {
			return incident(ctx, history, instance.ProcessInstanceKey)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the process did not end: %w", ctx.Err())
		case <-tick.C:
		}
	}
	vars, err := history.SearchVariables(ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(instance.ProcessInstanceKey)}, Sort: []rest.Sort{{Field: "name"}}})
	if err != nil {
		return err
	}
	for _, v := range vars.Items {
		if v.Name == "text" || v.Name == "nth" {
			fmt.Fprintf(out, "%s = %s\n", v.Name, v.Value)
		}
	}
	return nil
}

// incident tells why the process waits for a person.
func incident(ctx context.Context, history *rest.Client, instanceKey int64) error {
	found, err := history.SearchIncidents(ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(instanceKey)}})
	if err != nil {
		return err
	}
	for _, i := range found.Items {
		return fmt.Errorf("incident at %s: %s", i.ElementID, i.ErrorMessage)
	}
	return fmt.Errorf("incident of instance %d not found", instanceKey)
}
