package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/nats"
	"github.com/vitrip/journeyman/internal/app"
)

// busFlags say on which broker events travel, and how it is reached.
type busFlags struct {
	transport   string
	brokers     []string
	kafkaTLS    tlsFlags
	sasl        kafka.SASL
	nats        nats.Config
	natsTLS     tlsFlags
	replication int
}

// add declares the flags of a process that may also make topics.
func (f *busFlags) add(cmd *cobra.Command) {
	f.addConnection(cmd)
	cmd.Flags().IntVar(&f.replication, "replication", 0, "create missing topics or streams with so many copies and check the others; 0 leaves them alone")
	env(cmd, "replication", "JOURNEYMAN_REPLICATION")
}

// addConnection declares the flags that say how the broker is reached.
func (f *busFlags) addConnection(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.transport, "transport", app.TransportKafka, "what events travel on: kafka or nats")
	fl.StringSliceVar(&f.brokers, "kafka", nil, "Kafka brokers, host:port, comma-separated")
	f.kafkaTLS.add(cmd, "kafka", "KAFKA")
	fl.StringVar(&f.sasl.Mechanism, "kafka-sasl", "", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; none when empty")
	fl.StringVar(&f.sasl.Username, "kafka-user", "", "user for --kafka-sasl; the password is in "+kafkaPassword)
	fl.StringVar(&f.nats.URL, "nats", "", "NATS servers, nats://host:port, comma-separated")
	f.natsTLS.add(cmd, "nats", "NATS")
	fl.StringVar(&f.nats.CredentialsFile, "nats-credentials", "", "file with JWT and seed for NATS")
	for flag, variable := range map[string]string{
		"transport": "TRANSPORT", "kafka": "KAFKA", "kafka-sasl": "KAFKA_SASL", "kafka-user": "KAFKA_USER",
		"nats": "NATS", "nats-credentials": "NATS_CREDENTIALS",
	} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
}

// needs is the flag that the chosen transport cannot do without.
func (f *busFlags) needs() string {
	if f.transport == app.TransportNATS {
		return "nats"
	}
	return "kafka"
}

// given says whether any flag names a broker.
func (f *busFlags) given() bool { return len(f.brokers) > 0 || f.nats.URL != "" }

// open connects as the flags say.
func (f *busFlags) open(s Streams) (app.Bus, error) {
	var cfg app.Config
	if err := f.configure(&cfg, s); err != nil {
		return nil, err
	}
	return app.OpenBus(cfg)
}

// configure sets what the flags say; what stands there for the other transport is refused by [app.New].
func (f *busFlags) configure(cfg *app.Config, s Streams) error {
	var errs []error
	var err error
	cfg.Transport, cfg.Brokers, cfg.NATS, cfg.Replication = f.transport, f.brokers, f.nats, f.replication
	if f.transport != app.TransportKafka && f.transport != app.TransportNATS {
		errs = append(errs, fmt.Errorf("--transport %q: want %s or %s", f.transport, app.TransportKafka, app.TransportNATS))
	}
	if f.replication < 0 {
		errs = append(errs, fmt.Errorf("--replication %d: want 1 or more, or 0 to create nothing", f.replication))
	}
	if cfg.Kafka.TLS, err = f.kafkaTLS.config(); err != nil {
		errs = append(errs, err)
	}
	if cfg.NATS.TLS, err = f.natsTLS.config(); err != nil {
		errs = append(errs, err)
	}
	cfg.Kafka.SASL = f.sasl
	if f.sasl.Mechanism != "" {
		if cfg.Kafka.SASL.Password = s.Getenv(kafkaPassword); cfg.Kafka.SASL.Password == "" || f.sasl.Username == "" {
			errs = append(errs, fmt.Errorf("--kafka-sasl %s: want --kafka-user and %s", f.sasl.Mechanism, kafkaPassword))
		}
	}
	return errors.Join(errs...)
}

// tlsFlags say how a connection is encrypted.
type tlsFlags struct {
	prefix        string
	on            bool
	ca, cert, key string
}

func (f *tlsFlags) add(cmd *cobra.Command, prefix, variable string) {
	f.prefix = prefix
	fl := cmd.Flags()
	fl.BoolVar(&f.on, prefix+"-tls", false, "connect by TLS, with the system's certificate authorities unless --"+prefix+"-ca names others")
	fl.StringVar(&f.ca, prefix+"-ca", "", "file with certificate authorities (PEM)")
	fl.StringVar(&f.cert, prefix+"-cert", "", "file with our certificate (PEM), where the other side wants one")
	fl.StringVar(&f.key, prefix+"-key", "", "file with its key (PEM)")
	for _, name := range []string{"tls", "ca", "cert", "key"} {
		env(cmd, prefix+"-"+name, "JOURNEYMAN_"+variable+"_"+map[string]string{"tls": "TLS", "ca": "CA", "cert": "CERT", "key": "KEY"}[name])
	}
}

// config gives nil when no flag asks for TLS.
func (f *tlsFlags) config() (*tls.Config, error) {
	if !f.on && f.ca == "" && f.cert == "" && f.key == "" {
		return nil, nil //nolint:nilnil // plaintext
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("--%s-ca: %w", f.prefix, err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--%s-ca %s: holds no certificate", f.prefix, f.ca)
		}
	}
	switch {
	case f.cert == "" && f.key != "":
		return nil, fmt.Errorf("--%s-key %s: want --%s-cert with its certificate too", f.prefix, f.key, f.prefix)
	case f.cert != "" && f.key == "":
		return nil, fmt.Errorf("--%s-cert %s: want --%s-key with its key too", f.prefix, f.cert, f.prefix)
	case f.cert != "":
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--%s-cert, --%s-key: %w", f.prefix, f.prefix, err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
