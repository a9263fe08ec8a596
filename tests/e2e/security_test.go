package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeClientCertificate creates an authority for clients, and a certificate signed by it.
func (c *cluster) writeClientCertificate(t *testing.T, common string) {
	t.Helper()
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	write := func(name, kind string, bytes []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()),
			Subject:      pkix.Name{CommonName: name},
			NotBefore:    time.Now().Add(-time.Hour),
			NotAfter:     time.Now().Add(time.Hour),
		}
	}
	authority := template("clients")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	authorityKey := newKey()
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	write("clients-ca.crt", "CERTIFICATE", der, err)
	client := template(common)
	client.KeyUsage, client.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	clientKey := newKey()
	der, err = x509.CreateCertificate(rand.Reader, client, authority, &clientKey.PublicKey, authorityKey)
	write("client.crt", "CERTIFICATE", der, err)
	keyDER, err := x509.MarshalECPrivateKey(clientKey)
	write("client.key", "EC PRIVATE KEY", keyDER, err)
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
	w.pods("secured", 4, "2", gang("secured", 4))
	w.waitBound("secured", 4, 20*time.Second)

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
