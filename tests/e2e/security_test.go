package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writeClientCertificate creates an authority for clients, and a certificate signed by it.
func (c *cluster) writeClientCertificate(t *testing.T, common string) {
	t.Helper()
	authority := &x509.Certificate{Subject: pkix.Name{CommonName: "clients"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	authorityKey, authorityPEM, _, err := issue(authority, nil, nil)
	must(t, err)
	client := &x509.Certificate{Subject: pkix.Name{CommonName: common}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	_, clientPEM, keyPEM, err := issue(client, authority, authorityKey)
	must(t, err)
	must(t, c.writeFiles(map[string][]byte{"clients-ca.crt": authorityPEM, "client.crt": clientPEM, "client.key": keyPEM}))
}

// TestSecuredDoors: the real kube-scheduler uses mutual TLS with both ports of the extender, and a gang starts; a
// caller without a certificate is refused. Kubernetes' own tokens authorise gRPC calls by their roles. SPEC S-6.
func TestSecuredDoors(t *testing.T) {
	shared.writeClientCertificate(t, "the-scheduler")
	shared.editScheduler = func(config map[string]any) {
		for _, entry := range config["extenders"].([]any) {
			extender := entry.(map[string]any)
			extender["urlPrefix"] = strings.Replace(extender["urlPrefix"].(string), "http://", "https://", 1)
			extender["enableHTTPS"] = true
			extender["tlsConfig"] = map[string]any{"caFile": shared.path("serving.crt"), "certFile": shared.path("client.crt"),
				"keyFile": shared.path("client.key")}
		}
	}
	defer func() { shared.editScheduler = nil }()
	shared.install(t, guard, fmt.Sprintf(`
tls: {certFile: %[1]q, keyFile: %[2]q, clientCaFile: %[3]q, extender: true}
auth: {tokenReview: true, writers: ["cert:the-scheduler", "user:admin"], readers: ["user:system:kube-scheduler"]}
`, shared.path("serving.crt"), shared.path("serving.key"), shared.path("clients-ca.crt")))

	w := newWorld(t, shared)
	w.nodes(2, "4")
	w.podsStart("secured", 4, "2", gang("secured", 4))

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(shared.caPEM)
	anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	response, err := anonymous.Post(fmt.Sprintf("https://127.0.0.1:%d/filter", shared.extenderPort), "application/json", strings.NewReader("{}"))
	w.must(err)
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("filter without a certificate or token: %s; want 401", response.Status)
	}

	musterctl := filepath.Join(filepath.Dir(shared.musterd), "musterctl")
	ask := func(token string, words ...string) string {
		words = append(words, "--server", fmt.Sprintf("127.0.0.1:%d", shared.grpcPort), "--ca", shared.path("serving.crt"),
			"--token", token, "--timeout", "5")
		out, _ := exec.Command(musterctl, words...).CombinedOutput()
		return string(out)
	}
	for _, c := range []struct{ token, want string }{
		{adminToken, "secured"},
		{schedulerToken, "secured"},
		{musterToken, "is in neither auth.writers nor auth.readers"},
		{"forged", "not known to Kubernetes"},
	} {
		if out := ask(c.token, "get", "gangs", "-A"); !strings.Contains(out, c.want) {
			t.Errorf("musterctl get gangs with token %s says %q; want %q", c.token, out, c.want)
		}
	}
	if out := ask(schedulerToken, "abandon", "nothing"); !strings.Contains(out, "is read-only") {
		t.Errorf("a reader that writes is told %q", out)
	}
	if out := ask(adminToken, "abandon", "nothing"); !strings.Contains(out, "musterd reads nodes and pods from Kubernetes") {
		t.Errorf("a submission beside Kubernetes is told %q", out)
	}
}
