package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// errNoTopic is what kafka-go says by itself, without asking, of a topic that its cached view of the cluster lacks.
var errNoTopic = protocol.ErrNoTopic

// unusable reports whether only an operator can help: credentials, certificates, rights.
func unusable(err error) bool {
	for _, code := range []kafka.Error{
		kafka.SASLAuthenticationFailed, kafka.UnsupportedSASLMechanism, kafka.IllegalSASLState, kafka.ClusterAuthorizationFailed,
		kafka.SecurityDisabled, kafka.UnsupportedVersion,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok
}
