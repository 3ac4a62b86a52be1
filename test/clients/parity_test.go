//go:build clients

package clients

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/test/clients/toolcache"
)

// TestModelsPassZeebesValidators checks the models that the sagas run, and those of the clients.
func TestModelsPassZeebesValidators(t *testing.T) {
	files, err := filepath.Glob("../../bpmn/models/*.bpmn")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models found: %v", err)
	}
	files = append(files, "models/work.bpmn", "models/batch.bpmn", "models/risky.bpmn", "models/wait.bpmn", "models/person.bpmn", "models/alarm.bpmn")
	said := validate(t, files)
	for _, f := range files {
		if got := said[filepath.Base(f)]; got != "ok" {
			t.Errorf("%s: %s", f, got)
		}
	}
}

// TestRefusalsAsZeebesValidators compares our check with Zeebe's over models that are broken or odd.
func TestRefusalsAsZeebesValidators(t *testing.T) {
	cases := parity()
	dir := t.TempDir()
	var files []string
	for _, c := range cases {
		f := filepath.Join(dir, c.name+".bpmn")
		if err := os.WriteFile(f, []byte(c.xml), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	said, gw := validate(t, files), gateway(t)
	differ := 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ours, theirs := verdict(t, gw, c.xml), said[c.name+".bpmn"]
			t.Logf("\nours:   %s\ntheirs: %s", ours, theirs)
			if (ours == "ok") != c.ok {
				t.Errorf("ours: %s; want accepted %t", ours, c.ok)
			}
			switch same := (ours == "ok") == (theirs == "ok"); {
			case theirs == "":
				t.Error("the validators said nothing about it")
			case !same && c.differs == "":
				t.Errorf("ours: %s; theirs: %s", ours, theirs)
			case same && c.differs != "":
				t.Errorf("both agree (%s; %s), but the table says they differ: %s", ours, theirs, c.differs)
			case !same:
				differ++
			}
		})
	}
	t.Logf("%d models, %d judged otherwise on purpose", len(cases), differ)
}

// verdict gives ours, "ok" or the reasons: those of package bpmn, which hold for
// every engine, then those of the embedded engine, which deploys what is left.
func verdict(t *testing.T, gateway pb.GatewayClient, xml string) string {
	t.Helper()
	defs, err := bpmn.Parse(strings.NewReader(xml))
	if err == nil {
		err = defs.Check()
	}
	if err != nil {
		return "bpmn: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	_, err = gateway.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "m.bpmn", Content: []byte(xml)}}})
	switch status.Code(err) {
	case codes.OK:
		return "ok"
	case codes.InvalidArgument:
		_, reason, _ := strings.Cut(status.Convert(err).Message(), "'m.bpmn': ")
		return "engine: " + reason
	}
	t.Fatal(err)
	return ""
}

func gateway(t *testing.T) pb.GatewayClient {
	t.Helper()
	e, err := engine.Start(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(e.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return pb.NewGatewayClient(conn)
}

// validate runs Zeebe's validators over files: name to "ok" or what they say.
func validate(t *testing.T, files []string) map[string]string {
	t.Helper()
	classpath, err := toolcache.Classpath(t.Context(), "java/pom.xml", "8.8.14")
	if err != nil {
		t.Fatal(err)
	}
	classpath, err = toolcache.Compile(t.Context(), "java/Validate.java", classpath)
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd := command(t, "java", append([]string{"-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", classpath, "Validate"}, files...)...)
	cmd.Stderr = &complaints
	raw, err := cmd.Output()
	if err = errors.Join(err, t.Context().Err()); err != nil {
		t.Fatalf("java: %v\n%s", err, complaints.Bytes())
	}
	out := map[string]string{}
	for _, l := range strings.Split(string(raw), "\n") {
		if name, verdict, ok := strings.Cut(l, "\t"); ok {
			out[name] = verdict
		}
	}
	return out
}
