package demo

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events"
)

// startBroker starts an in-process Kafka broker with the catalog's topics. Its
// records stand in memory. Call Close on it.
func startBroker(catalog *events.Catalog) (*kfake.Cluster, error) {
	opts := []kfake.Opt{kfake.NumBrokers(1)}
	for _, t := range catalog.Topics() {
		opts = append(opts, kfake.SeedTopics(int32(t.Partitions), t.Name)) //nolint:gosec // a catalog's partitions are few
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	return cluster, nil
}

// topicNames lists the catalog's topics.
func topicNames(catalog *events.Catalog) []string {
	var names []string
	for _, t := range catalog.Topics() {
		names = append(names, t.Name)
	}
	return names
}
