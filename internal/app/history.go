package app

import (
	"context"
	"fmt"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// elements tells what became of element instances, by the REST API; nil without one.
func elements(client *rest.Client) worker.Elements {
	if client == nil {
		return nil
	}
	return worker.ElementsFunc(client.ElementState)
}

// instanceEnded tells whether a process instance of this cluster has ended; nil without a REST API.
// An instance that is not found has not been exported yet, or was purged: that proves nothing.
func instanceEnded(client *rest.Client, cluster string) func(ctx context.Context, of string, key int64) (bool, error) {
	if client == nil {
		return nil
	}
	return func(ctx context.Context, of string, key int64) (bool, error) {
		if of != cluster {
			return false, fmt.Errorf("process instance %d: belongs to cluster %q, this process serves %q", key, of, cluster)
		}
		i, err := client.ProcessInstance(ctx, key)
		if rest.IsNotFound(err) {
			return false, nil
		}
		return err == nil && (i.State == "COMPLETED" || i.State == "TERMINATED"), err
	}
}
