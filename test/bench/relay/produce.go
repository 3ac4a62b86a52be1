package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/vitrip/journeyman/test/bench/rig"
)

// produceLimit is kafka-go's Client.Produce by itself: one caller, batches of the relay's size, one partition at a time.
func (b *bench) produceLimit(ctx context.Context, r rig.Report) error {
	t := &kafkago.Transport{}
	defer t.CloseIdleConnections()
	c := kafkago.Client{Addr: kafkago.TCP(b.broker.Forgets), Transport: t, Timeout: 10 * time.Second}
	body := []byte(strings.Repeat("0123456789", 30))
	calls := 100
	if b.quick {
		calls = 30
	}
	began := time.Now()
	for i := range calls + 5 {
		if i == 5 { // warm
			began = time.Now()
		}
		records := make([]kafkago.Record, batch)
		for n := range records {
			records[n] = kafkago.Record{Key: kafkago.NewBytes(fmt.Appendf(nil, "booking-%04d", n)), Value: kafkago.NewBytes(body), Headers: []kafkago.Header{{Key: "event_id", Value: body[:36]}, {Key: "event_type", Value: body[:17]}}}
		}
		res, err := c.Produce(ctx, &kafkago.ProduceRequest{Topic: topic, Partition: i % 16, RequiredAcks: kafkago.RequireAll, Records: kafkago.NewRecordReader(records...), Compression: kafkago.Lz4})
		if err == nil {
			err = res.Error
		}
		if err != nil {
			return err
		}
	}
	rate := float64(calls*batch) / time.Since(began).Seconds()
	b.say("%-16s %7.0f records/s", "produce", rate)
	r["records_per_s_produce"] = rig.Round(rate)
	return nil
}
