package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator/console"
)

// TestConsole_P3_signIn serves the console as a user starts it, with people of a file, and signs in.
func TestConsole_P3_signIn(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	sum := sha256.Sum256([]byte("ann's token"))
	people := writeFile(t, t.TempDir(), "people.yaml", "- {name: ann, role: operator, token_sha256: "+hex.EncodeToString(sum[:])+"}\n")
	at := start(t, operatorEnv(r), "console", "--listen", "127.0.0.1:0", "--people", people).address("console")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string, form url.Values) (string, string) {
		t.Helper()
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close() //nolint:errcheck // read only
		buf := new(strings.Builder)
		if err := res.Write(buf); err != nil {
			t.Fatal(err)
		}
		return res.Request.URL.Path, buf.String()
	}
	if path, text := get("/sagas", nil); path != "/signin" || !strings.Contains(text, `name="token"`) {
		t.Errorf("without a session: %s", path)
	}
	if path, _ := get("/signin", url.Values{"token": {"bob's token"}}); path != "/signin" {
		t.Errorf("with nobody's token: %s", path)
	}
	if path, text := get("/signin", url.Values{"token": {"ann's token"}}); path != "/sagas" || !strings.Contains(text, "Signed in as <b>ann</b>, operator") {
		t.Errorf("with ann's token: %s %s", path, text)
	}
}

// TestConsole_P3_tokens: the scope of an access token gives the role, and its session ends with it.
func TestConsole_P3_tokens(t *testing.T) {
	t.Parallel()
	keys, token := jwks(t, t.TempDir())
	f := peopleFlags{issuerFlags: issuerFlags{keysFile: keys}, viewer: "view", worker: "operate", session: time.Hour}
	f.jwt.Issuer, f.jwt.Audience, f.jwt.TenantClaim = testIssuer, "operations", "tenant"
	in, err := f.signIn()
	if err != nil {
		t.Fatal(err)
	}
	for scope, want := range map[string]console.Role{"view": console.RoleViewer, "x operate": console.RoleOperator, "view operate": console.RoleOperator} {
		p, err := in.Check(context.Background(), token("ann", scope))
		if err != nil || p.Role != want || p.Name != "ann" || time.Until(p.Until) > time.Hour || time.Until(p.Until) < 50*time.Minute {
			t.Errorf("scope %q: %+v, %v; want %s until the token ends", scope, p, err, want)
		}
	}
	for name, bad := range map[string]string{"no scope": token("ann", "other"), "no person": token("", "operate"), "nonsense": "a.b.c"} {
		if p, err := in.Check(context.Background(), bad); !errors.Is(err, console.ErrDenied) {
			t.Errorf("%s: %+v, %v; want ErrDenied", name, p, err)
		}
	}
}

func TestConsole_refuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := writeFile(t, dir, "people.yaml", "- {name: ann, role: viewer, token_sha256: "+strings.Repeat("ab", 32)+"}\n")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"open to the world":     {[]string{"--listen", ":8081"}, "people must sign in"},
		"in clear to the world": {[]string{"--listen", ":8081", "--people", good, "--host", "ops.example"}, "--tls-in-front"},
		"no name":               {[]string{"--listen", ":8081", "--people", good, "--tls-in-front"}, "want --host"},
		"two ways":              {[]string{"--people", good, "--issuer", testIssuer}, "--issuer and --people"},
		"no audience":           {[]string{"--issuer", testIssuer}, "Audience"},
		"no such file":          {[]string{"--people", dir + "/none"}, "--people: "},
		"bad role":              {[]string{"--people", writeFile(t, dir, "a.yaml", "- {name: ann, role: god, token_sha256: "+strings.Repeat("ab", 32)+"}\n")}, `role "god"`},
		"bad digest":            {[]string{"--people", writeFile(t, dir, "b.yaml", "- {name: ann, role: viewer, token_sha256: s3cr3t}\n")}, "64 hexadecimal digits"},
		"nobody":                {[]string{"--people", writeFile(t, dir, "c.yaml", "[]\n")}, "names nobody"},
		"half a certificate":    {[]string{"--tls-cert", "x"}, "--tls-cert and --tls-key"},
		"no session":            {[]string{"--session", "0s"}, "--session 0s"},
	} {
		code, _, stderr := run(map[string]string{"USER": "ann"}, append([]string{"console", "--dsn", "host=/nowhere"}, c.args...)...)
		if code != ExitUsage || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "s3cr3t") {
			t.Errorf("%s: %d, want %d and %q: %s", name, code, ExitUsage, c.want, stderr)
		}
	}
}
