package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	adminToken     = "admin-token"
	musterToken    = "muster-token"
	schedulerToken = "scheduler-token"
)

// process is one program under test; its output goes to a file.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

func startProcess(dir, name string, path string, args ...string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		log.Close()
		close(p.done)
	}()
	return p, nil
}

// kill sends SIGKILL and waits for the end of the process.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// stop sends SIGTERM and waits; the process must end within ten seconds.
func (p *process) stop() error { return p.stopWithin(10 * time.Second) }

func (p *process) stopWithin(limit time.Duration) error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("%s did not stop within %v of SIGTERM", p.name, limit)
	}
}

// pause stops the process with all of its connections open; it answers nothing until it is resumed.
func (p *process) pause()  { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// What the tests of one build switch on in kube-apiserver, and in both it and kube-scheduler.
var (
	controlPlaneFlags []string
	featureGates      string
)

// cluster is the API server with its etcd, and the scheduler and musterd that run against it now.
type cluster struct {
	dir       string
	root      string // of the repository
	kube      string // the binary with Kubernetes, see cmd/kube
	musterd   string
	url       string
	caPEM     []byte
	etcd      *process
	apiserver *process
	scheduler *process
	muster    *process

	// editScheduler changes the scheduler's configuration before its use; may be nil.
	editScheduler func(config map[string]any)
	// kubernetes is appended to that section of musterd's configuration; whole lines.
	kubernetes string
	// holds replaces holds.max of musterd's configuration; 0: as shipped.
	holds int
	// alsoServes is a second scheduler whose pods musterd plans; empty: none.
	alsoServes string

	adminPort, extenderPort, bindPort, grpcPort int

	config *rest.Config
	client *kubernetes.Clientset
	dyn    *dynamic.DynamicClient
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func newCluster() (*cluster, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	c := &cluster{root: root}
	c.kube = envOr("MUSTER_E2E_KUBE", filepath.Join(root, "tests/e2e/bin/kube"))
	c.musterd = envOr("MUSTER_E2E_MUSTERD", filepath.Join(root, "build/release/musterd"))
	for _, program := range []string{c.kube, c.musterd} {
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("%w; `make e2e` builds it", err)
		}
	}
	c.dir = envOr("MUSTER_E2E_OUT", filepath.Join(root, "tests/e2e/out"))
	if err := os.RemoveAll(c.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, err
	}
	if err := c.startControlPlane(); err != nil {
		c.stopAll()
		return nil, err
	}
	return c, nil
}

func envOr(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

// issue creates a certificate for a day and its key, both also as PEM. Without an issuer it is signed with its own key.
func issue(template, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) (key *ecdsa.PrivateKey, certificate, keyPEM []byte, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, nil, err
	}
	if issuer == nil {
		issuer, issuerKey = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		return nil, nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), err
}

func (c *cluster) writeFiles(files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeCertificates creates a self-signed serving certificate, which is its own authority, and a key for service
// accounts.
func (c *cluster) writeCertificates() error {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "127.0.0.1"},
		IPAddresses:           []net.IP{net.ParseIP("127.0.0.1")},
		DNSNames:              []string{"localhost"},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	_, serving, key, err := issue(template, nil, nil)
	if err != nil {
		return err
	}
	c.caPEM = serving
	accounts, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return c.writeFiles(map[string][]byte{
		"serving.crt":  serving,
		"serving.key":  key,
		"accounts.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(accounts)}),
		"tokens.csv": []byte(adminToken + ",admin,admin,system:masters\n" +
			musterToken + ",system:serviceaccount:muster-system:muster,muster\n" +
			schedulerToken + ",system:kube-scheduler,scheduler\n"),
	})
}

func (c *cluster) startControlPlane() error {
	if err := c.writeCertificates(); err != nil {
		return err
	}
	etcdURL := fmt.Sprintf("http://127.0.0.1:%d", freePort())
	var err error
	if c.etcd, err = startProcess(c.dir, "etcd", c.kube, "etcd", c.path("etcd"), etcdURL, fmt.Sprintf("http://127.0.0.1:%d", freePort())); err != nil {
		return err
	}
	port := freePort()
	c.url = fmt.Sprintf("https://127.0.0.1:%d", port)
	if c.apiserver, err = startProcess(c.dir, "kube-apiserver", c.kube, append([]string{"kube-apiserver",
		"--etcd-servers=" + etcdURL,
		fmt.Sprintf("--secure-port=%d", port),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // no client looks it up in the cluster; 1.37 accepts no loopback address otherwise
		"--tls-cert-file=" + c.path("serving.crt"), "--tls-private-key-file=" + c.path("serving.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("accounts.key"), "--service-account-signing-key-file=" + c.path("accounts.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--token-auth-file=" + c.path("tokens.csv"),
		"--authorization-mode=RBAC",
		// Without kubelets and controllers, nothing would mark a node ready or create a service account.
		"--disable-admission-plugins=TaintNodesByCondition,ServiceAccount,DefaultTolerationSeconds",
		"--max-requests-inflight=3000", "--max-mutating-requests-inflight=1000",
		"--feature-gates=" + featureGates,
	}, controlPlaneFlags...)...); err != nil {
		return err
	}
	c.config = &rest.Config{Host: c.url, BearerToken: adminToken, QPS: 5000, Burst: 5000,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.caPEM}}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	if c.dyn, err = dynamic.NewForConfig(c.config); err != nil {
		return err
	}
	if err := waitFor(120*time.Second, "the API server", func() (bool, string) {
		body, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(context.Background())
		return err == nil, fmt.Sprint(string(body), err)
	}); err != nil {
		return err
	}
	for _, file := range []string{"crds/podgroups.scheduling.sigs.k8s.io.yaml", "crds/podgroups.scheduling.x-k8s.io.yaml", "crds/queues.muster.dev.yaml", guard} {
		if err := c.apply(filepath.Join(c.root, "deploy", file)); err != nil {
			return fmt.Errorf("applying deploy/%s: %w", file, err)
		}
	}
	return c.apply(filepath.Join(c.root, "tests/e2e/crds/podgroups.scheduling.run.ai.yaml"))
}

// documents returns the objects of a YAML file.
func documents(path string) (objects []*unstructured.Unstructured, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// apply creates every object of a YAML file of deploy/.
func (c *cluster) apply(path string) error {
	objects, err := documents(path)
	for _, object := range objects {
		if err := c.create(object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return err
}

// shipped returns the configuration in a ConfigMap of a file of deploy/.
func (c *cluster) shipped(file, configMap, key string) (string, error) {
	objects, err := documents(filepath.Join(c.root, "deploy", file))
	if err != nil {
		return "", err
	}
	for _, object := range objects {
		content, found, err := unstructured.NestedString(object.Object, "data", key)
		if err == nil && found && object.GetKind() == "ConfigMap" && object.GetName() == configMap {
			return content, nil
		}
	}
	return "", fmt.Errorf("deploy/%s has no ConfigMap %s with %s", file, configMap, key)
}

// addresses replaces the shipped ports by those of this run.
func (c *cluster) addresses(text string) string {
	return strings.NewReplacer("0.0.0.0:9090", fmt.Sprintf("127.0.0.1:%d", c.adminPort),
		"127.0.0.1:9091", fmt.Sprintf("127.0.0.1:%d", c.grpcPort),
		"127.0.0.1:8888", fmt.Sprintf("127.0.0.1:%d", c.extenderPort),
		"127.0.0.1:8889", fmt.Sprintf("127.0.0.1:%d", c.bindPort),
		"/var/lib/muster/muster.db", c.path("muster.db")).Replace(text)
}

func (c *cluster) kubeconfig(name, token string) (string, error) {
	path := c.path(name + ".kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: e2e
contexts: [{name: e2e, context: {cluster: e2e, user: e2e}}]
clusters: [{name: e2e, cluster: {server: %q, certificate-authority: serving.crt}}]
users: [{name: e2e, user: {token: %s}}]
`, c.url, token)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// startScheduler runs the unmodified kube-scheduler with the configuration of a file of deploy/ ("" for a plain one).
// It fills in the addresses and the kubeconfig, and removes the limit on calls and leader election: the tests restart
// it often, and would wait for the lease each time. TestAsShipped changes none of these.
func (c *cluster) startScheduler(configuration string) error {
	config := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"profiles": []any{map[string]any{"schedulerName": "muster"}}}
	if configuration != "" {
		text, err := c.shipped(configuration, "muster-scheduler", "config.yaml")
		if err != nil {
			return err
		}
		if err := yaml.Unmarshal([]byte(c.addresses(text)), &config); err != nil {
			return err
		}
	}
	if c.editScheduler != nil {
		c.editScheduler(config)
	}
	config["leaderElection"] = map[string]any{"leaderElect": false}
	config["clientConnection"] = map[string]any{"qps": 5000, "burst": 5000}
	var err error
	c.scheduler, err = c.runScheduler("kube-scheduler", schedulerToken, config)
	return err
}

// runScheduler runs kube-scheduler under the identity of the token, and waits until it is healthy.
func (c *cluster) runScheduler(name, token string, config map[string]any) (*process, error) {
	kubeconfig, err := c.kubeconfig(name, token)
	if err != nil {
		return nil, err
	}
	connection, _ := config["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
		config["clientConnection"] = connection
	}
	connection["kubeconfig"] = kubeconfig
	text, err := yaml.Marshal(config)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.path(name+".yaml"), text, 0o600); err != nil {
		return nil, err
	}
	port := freePort()
	scheduler, err := startProcess(c.dir, name, c.kube, "kube-scheduler", "--config="+c.path(name+".yaml"),
		fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1",
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--feature-gates="+featureGates, "--v=2")
	if err != nil {
		return nil, err
	}
	insecure := &http.Client{Transport: c.insecureTransport()}
	return scheduler, waitFor(30*time.Second, "kube-scheduler", func() (bool, string) {
		response, err := insecure.Get(fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
		if err != nil {
			return false, err.Error()
		}
		response.Body.Close()
		return response.StatusCode == 200, response.Status
	})
}

// startMuster runs musterd with its configuration in deploy/muster.yaml, on its own ports; `extra` is appended (a later
// key must not repeat an earlier one).
func (c *cluster) startMuster(extra string) error {
	kubeconfig, err := c.kubeconfig("musterd", musterToken)
	if err != nil {
		return err
	}
	if c.adminPort == 0 {
		c.adminPort, c.extenderPort, c.bindPort, c.grpcPort = freePort(), freePort(), freePort(), freePort()
	}
	text, err := c.shipped(guard, "muster", "musterd.yaml")
	if err != nil {
		return err
	}
	serves := "schedulerNames: ["
	if c.alsoServes != "" {
		serves += c.alsoServes + ", "
	}
	replaced := strings.NewReplacer("schedulerNames: [", serves, "kubernetes:\n", "kubernetes:\n"+c.kubernetes).Replace(c.addresses(text))
	if c.holds > 0 {
		shipped := "\n  max: 5000\n"
		if !strings.Contains(replaced, shipped) {
			return fmt.Errorf("musterd's configuration in deploy/ has no holds.max: 5000")
		}
		replaced = strings.Replace(replaced, shipped, fmt.Sprintf("\n  max: %d\n", c.holds), 1)
	}
	if err := os.WriteFile(c.path("musterd.yaml"), []byte(replaced+extra), 0o600); err != nil {
		return err
	}
	if c.muster, err = startProcess(c.dir, "musterd", c.musterd, "--config", c.path("musterd.yaml"), "--kubeconfig", kubeconfig); err != nil {
		return err
	}
	return waitFor(30*time.Second, "musterd", func() (bool, string) {
		select {
		case <-c.muster.done:
			return false, "it has exited, see " + c.path("musterd.log")
		default:
		}
		body, status, err := httpGet(fmt.Sprintf("http://127.0.0.1:%d/readyz", c.adminPort))
		if err != nil {
			return false, err.Error()
		}
		return status == 200, body
	})
}

// installServing is install with a musterd that serves a second scheduler.
func (c *cluster) installServing(t *testing.T, configuration, scheduler string) {
	t.Helper()
	c.alsoServes = scheduler
	t.Cleanup(func() { c.alsoServes = "" })
	c.install(t, configuration, "")
}

// install (re)starts musterd and kube-scheduler: "muster.yaml" (guard), "opt-in.yaml", or "" for a plain scheduler.
func (c *cluster) install(t *testing.T, configuration, extra string) {
	t.Helper()
	c.scheduler.kill()
	c.scheduler = nil
	if err := c.muster.stop(); err != nil {
		t.Error(err)
	}
	c.muster = nil
	if configuration != "" {
		must(t, c.startMuster(extra))
	}
	must(t, c.startScheduler(configuration))
}

func (c *cluster) stopAll() {
	for _, p := range []*process{c.scheduler, c.muster, c.apiserver, c.etcd} {
		p.kill()
	}
}

func httpGet(url string) (string, int, error) {
	client := &http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), response.StatusCode, err
}

// waitFor polls until `done` returns true; after `limit` the error contains its last text.
func waitFor(limit time.Duration, what string, done func() (bool, string)) error {
	deadline := time.Now().Add(limit)
	for {
		ok, state := done()
		if ok {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not so within %s: %s", what, limit, state)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
