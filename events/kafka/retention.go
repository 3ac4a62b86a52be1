package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/vitrip/journeyman/events"
)

const retentionConfig = "retention.ms"

// keepLonger raises the retention of existing topics that keep records for a
// shorter time than the catalog asks for. Topics that keep longer stay as they are.
func (c *Client) keepLonger(ctx context.Context, topics []events.TopicSpec) error {
	want := map[string]time.Duration{}
	ask := &kafka.DescribeConfigsRequest{}
	for _, t := range topics {
		if t.Retention > 0 {
			want[t.Name] = t.Retention
			ask.Resources = append(ask.Resources, kafka.DescribeConfigRequestResource{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: t.Name, ConfigNames: []string{retentionConfig},
			})
		}
	}
	if len(want) == 0 {
		return nil
	}
	res, err := c.api.DescribeConfigs(ctx, ask)
	if err != nil {
		return fmt.Errorf("kafka: describe topics: %w", err)
	}
	change := &kafka.IncrementalAlterConfigsRequest{}
	var errs []error
	for _, r := range res.Resources {
		if r.Error != nil {
			errs = append(errs, fmt.Errorf("kafka: describe topic %s: %w", r.ResourceName, r.Error))
			continue
		}
		for _, e := range r.ConfigEntries {
			ms, err := strconv.ParseInt(e.ConfigValue, 10, 64)
			if e.ConfigName != retentionConfig || err == nil && (ms < 0 || ms >= want[r.ResourceName].Milliseconds()) {
				continue // -1 keeps for ever
			}
			change.Resources = append(change.Resources, kafka.IncrementalAlterConfigsRequestResource{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: r.ResourceName,
				Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
					Name: retentionConfig, Value: strconv.FormatInt(want[r.ResourceName].Milliseconds(), 10), ConfigOperation: kafka.ConfigOperationSet,
				}},
			})
		}
	}
	if err := errors.Join(errs...); err != nil || len(change.Resources) == 0 {
		return err
	}
	done, err := c.api.IncrementalAlterConfigs(ctx, change)
	if err != nil {
		return fmt.Errorf("kafka: raise retention: %w", err)
	}
	for _, r := range done.Resources {
		if r.Error != nil {
			errs = append(errs, fmt.Errorf("kafka: raise retention of topic %s: %w", r.ResourceName, r.Error))
		}
	}
	return errors.Join(errs...)
}
