package webhook

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// E11: addresses that are not of the public internet, in all the forms they come in. Pure: nothing is dialled.
func TestE11_AddressFilter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"127.0.0.1:443": false, "127.9.9.9:443": false, "10.0.0.1:443": false, "172.16.0.1:443": false, "172.31.255.255:443": false, "192.168.1.1:443": false,
		"169.254.169.254:443": false, "100.64.0.1:443": false, "100.127.255.255:443": false, "0.0.0.0:443": false, "0.1.2.3:443": false, "224.0.0.1:443": false,
		"255.255.255.255:443": false, "240.0.0.1:443": false, "198.18.0.1:443": false, "192.0.2.1:443": false, "198.51.100.7:443": false, "203.0.113.9:443": false, "192.0.0.8:443": false,
		"[::1]:443": false, "[::]:443": false, "[fe80::1]:443": false, "[fe80::1%25eth0]:443": false, "[fc00::1]:443": false, "[fd12:3456::1]:443": false, "[ff02::1]:443": false,
		"[::ffff:127.0.0.1]:443": false, "[::ffff:10.0.0.1]:443": false, "[::127.0.0.1]:443": false, "[64:ff9b::7f00:1]:443": false, "[64:ff9b::a00:1]:443": false, "[2002:7f00:1::]:443": false,
		"[2002:a9fe:a9fe::1]:443": false, "[2001:db8::1]:443": false, "[2001::1]:443": false, "[fec0::1]:443": false, "[100::1]:443": false, "[64:ff9b:1::1]:443": false, "[4000::1]:443": false,
		"93.184.215.14:443": true, "93.184.215.14:8443": true, "100.63.255.255:443": true, "100.128.0.1:443": true, "172.32.0.1:443": true, "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443": true,
		"[64:ff9b::5db8:d70e]:443": true, "[2002:5db8:d70e::1]:443": true, "[::ffff:93.184.215.14]:443": true,
		"93.184.215.14:22": false, "93.184.215.14:25": false, "93.184.215.14:80": false, "93.184.215.14:1023": false, "93.184.215.14:0": false,
	} {
		to, err := netip.ParseAddrPort(strings.Replace(text, "%25", "%", 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := PublicOnly(to); (err == nil) != want {
			t.Errorf("%s: got %v, want allowed %v", text, err, want)
		}
	}
	if err := PublicOnly(netip.AddrPort{}); err == nil {
		t.Error("no address was let pass")
	}
}

func TestReadEndpoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("a.secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
	write("bad.secret", "hunter2hunter2")
	all, err := ReadEndpoints(write("good.yaml", "endpoints:\n  - {id: a, tenant: acme, url: 'https://acme.example/h', types: ['operation.*'], secret_files: [a.secret]}\n"))
	if err != nil || len(all) != 1 || !all[0].wants("operation.failed") || all[0].wants("tour.booking.held") || len(all[0].Secrets) != 1 {
		t.Errorf("got %+v, %v", all, err)
	}
	_, err = ReadEndpoints(write("bad.yaml", `endpoints:
  - {id: a, tenant: "", url: 'http://acme.example/h', secret_files: [bad.secret]}
  - {id: a, tenant: x, url: 'https://u:p@acme.example/h#x', secret_files: [none.secret]}
`))
	for _, want := range []string{"Tenant", "want https", "does not begin with whsec_", "stands twice", "neither user", "no such file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the secret is shown: %v", err)
	}
	if _, err := ReadEndpoints(write("odd.yaml", "endpoints:\n  - {idd: a}\n")); err == nil {
		t.Error("a field nobody knows was taken")
	}
}
