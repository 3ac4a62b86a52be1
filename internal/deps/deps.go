package deps

import (
	_ "github.com/Shopify/toxiproxy/v2"
	_ "github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	_ "github.com/camunda/zeebe/clients/go/v8/pkg/zbc"
	_ "github.com/cockroachdb/apd/v3"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/rs/zerolog"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/segmentio/kafka-go"
	_ "github.com/spf13/cobra"
	_ "github.com/twmb/franz-go/pkg/kfake"
	_ "go.opentelemetry.io/otel/trace"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
	_ "pgregory.net/rapid"
)
