package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/natstest"
	"github.com/vitrip/journeyman/internal/testca"
)

// opened gives the bus of a command line and its environment.
func opened(t *testing.T, vars map[string]string, args ...string) (app.Bus, error) {
	t.Helper()
	var f busFlags
	cmd := &cobra.Command{Use: "test"}
	f.addConnection(cmd)
	getenv := func(name string) string { return vars[name] }
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := fromEnvironment(cmd, getenv); err != nil {
		t.Fatal(err)
	}
	return f.open(Streams{Getenv: getenv})
}

// A broker that wants certificates from both sides is reached with what the flags name, or the environment, and not with a part of it.
func TestBusFlags_TLS(t *testing.T) {
	t.Parallel()
	ca, dir := testca.New(t), t.TempDir()
	certText, keyText := ca.ClientPEM()
	caFile := writeFile(t, dir, "ca.pem", string(ca.PEM()))
	cert, key := writeFile(t, dir, "client.pem", string(certText)), writeFile(t, dir, "client.key", string(keyText))
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(ca.Server(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	brokers := strings.Join(cluster.ListenAddrs(), ",")
	url := natstest.Serve(t, func(o *server.Options) {
		o.TLSConfig, o.TLS, o.TLSVerify, o.TLSTimeout = ca.Server(true), true, true, 5
	})
	tests := map[string]struct {
		vars    map[string]string
		args    []string
		reaches bool
	}{
		"kafka": {nil, []string{"--kafka", brokers, "--kafka-ca", caFile, "--kafka-cert", cert, "--kafka-key", key}, true},
		"kafka by environment": {map[string]string{
			"JOURNEYMAN_KAFKA": brokers, "JOURNEYMAN_KAFKA_CA": caFile, "JOURNEYMAN_KAFKA_CERT": cert, "JOURNEYMAN_KAFKA_KEY": key,
		}, nil, true},
		"kafka without certificate":       {nil, []string{"--kafka", brokers, "--kafka-ca", caFile}, false},
		"kafka by the system's authority": {nil, []string{"--kafka", brokers, "--kafka-tls", "--kafka-cert", cert, "--kafka-key", key}, false},
		"nats":                            {nil, []string{"--transport", "nats", "--nats", url, "--nats-ca", caFile, "--nats-cert", cert, "--nats-key", key}, true},
		"nats by environment": {map[string]string{
			"JOURNEYMAN_TRANSPORT": "nats", "JOURNEYMAN_NATS": url, "JOURNEYMAN_NATS_CA": caFile, "JOURNEYMAN_NATS_CERT": cert, "JOURNEYMAN_NATS_KEY": key,
		}, nil, true},
		"nats without certificate": {nil, []string{"--transport", "nats", "--nats", url, "--nats-ca", caFile}, false},
		"nats by the system's authority": {
			nil, []string{"--transport", "nats", "--nats", url, "--nats-tls", "--nats-cert", cert, "--nats-key", key}, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bus, err := opened(t, tt.vars, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			defer bus.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err = bus.EnsureTopics(ctx, 1, events.TopicSpec{Name: "test.thing.created.v1", Partitions: 1})
			if (err == nil) != tt.reaches {
				t.Errorf("got %v, want the broker reached: %v", err, tt.reaches)
			}
		})
	}
}

// What is wrong with the files is said before anything connects, with the flag and the file.
func TestBusFlags_TLS_RefusesBadFiles(t *testing.T) {
	t.Parallel()
	ca, dir := testca.New(t), t.TempDir()
	certText, keyText := ca.ClientPEM()
	_, strange := ca.ClientPEM()
	caFile := writeFile(t, dir, "ca.pem", string(ca.PEM()))
	cert, key, other := writeFile(t, dir, "client.pem", string(certText)), writeFile(t, dir, "client.key", string(keyText)), writeFile(t, dir, "other.key", string(strange))
	empty, none := writeFile(t, dir, "empty.pem", "no certificate"), filepath.Join(dir, "none.pem")
	tests := map[string]struct {
		args []string // without the transport's prefix
		says []string
	}{
		"authority: no file":               {[]string{"ca", none}, []string{"-ca", none, "no such file"}},
		"authority: no certificate":        {[]string{"ca", empty}, []string{"-ca", empty, "holds no certificate"}},
		"authority: a key":                 {[]string{"ca", key}, []string{"-ca", key, "holds no certificate"}},
		"certificate: no file":             {[]string{"cert", none, "key", key}, []string{"-cert", none, "no such file"}},
		"key: no file":                     {[]string{"cert", cert, "key", none}, []string{"-key", none, "no such file"}},
		"key without certificate":          {[]string{"ca", caFile, "key", key}, []string{"-cert", "-key " + key, "want"}},
		"certificate without key":          {[]string{"ca", caFile, "cert", cert}, []string{"-cert " + cert, "-key", "want"}},
		"key of another certificate":       {[]string{"cert", cert, "key", other}, []string{"-cert", "-key", "does not match"}},
		"certificate and key turned round": {[]string{"cert", key, "key", cert}, []string{"-cert", "-key"}},
	}
	for name, tt := range tests {
		for transport, to := range map[string]string{"kafka": "127.0.0.1:1", "nats": "nats://127.0.0.1:1"} {
			t.Run(transport+" "+name, func(t *testing.T) {
				args := []string{"--transport", transport, "--" + transport, to}
				for i := 0; i < len(tt.args); i += 2 {
					args = append(args, "--"+transport+"-"+tt.args[i], tt.args[i+1])
				}
				bus, err := opened(t, nil, args...)
				if err == nil {
					_ = bus.Close()
					t.Fatalf("%q was taken", args)
				}
				for _, want := range tt.says {
					if strings.HasPrefix(want, "-") {
						want = "--" + transport + want
					}
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want it to name %s", err, want)
					}
				}
				if strings.Contains(err.Error(), "PRIVATE KEY") {
					t.Error("the error shows the key")
				}
			})
		}
	}
}
