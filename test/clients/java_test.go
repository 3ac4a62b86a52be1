//go:build clients

package clients

import (
	"testing"

	"github.com/vitrip/journeyman/test/clients/toolcache"
)

// TestJavaClient plays the cases with the Java client. What it cannot say over
// gRPC (searches, user tasks) it says over REST by itself.
func TestJavaClient(t *testing.T) {
	for _, version := range []string{"8.8.14", "8.9.0"} {
		for _, api := range []string{"grpc", "rest"} {
			t.Run("camunda-client-java-"+version+"-"+api, func(t *testing.T) {
				classpath, err := toolcache.Classpath(t.Context(), "java/pom.xml", version)
				if err != nil {
					t.Fatal(err)
				}
				classpath, err = toolcache.Compile(t.Context(), "java/Client.java", classpath)
				if err != nil {
					t.Fatal(err)
				}
				cmd := command(t, "java", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", classpath, "Client")
				cmd.Env = []string{"ENGINE_API=" + api}
				play(t, len(cases), cmd)
			})
		}
	}
}
