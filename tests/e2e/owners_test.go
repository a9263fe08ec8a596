package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// job creates a bare Job with this parallelism. There is no controller: the test creates its pods.
func (w *world) job(name string, parallelism int32) *batchv1.Job {
	job, err := w.client.BatchV1().Jobs(w.namespace).Create(context.Background(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Parallelism: &parallelism, Completions: &parallelism, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "none"}}}}},
	}, metav1.CreateOptions{})
	w.must(err)
	return job
}

// ownedBy makes the Job the owner of pods, as its controller would: without a scheduler name, a gate or any key.
func ownedBy(job *batchv1.Job) podOption {
	return func(pod *corev1.Pod) {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: &yes}}
		pod.Spec.SchedulerName = ""
	}
}

// installWebhook registers the shipped webhook, at this run's address.
func (w *world) installWebhook(port int) {
	objects, err := documents(filepath.Join(w.root, "deploy", "webhook.yaml"))
	w.must(err)
	for _, object := range objects {
		if object.GetKind() != "MutatingWebhookConfiguration" {
			continue
		}
		webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		w.must(err)
		webhooks[0].(map[string]any)["clientConfig"] = map[string]any{
			"url": fmt.Sprintf("https://127.0.0.1:%d/admit", port), "caBundle": base64.StdEncoding.EncodeToString(w.caPEM)}
		w.must(unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"))
		w.must(w.create(object))
		w.t.Cleanup(func() {
			_ = w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(context.Background(), object.GetName(), metav1.DeleteOptions{})
		})
	}
	// The API server uses a new webhook after a short delay.
	w.must(waitFor(20*time.Second, "the webhook", func() (bool, string) {
		w.pod("probe", "1", gang("probe", 2))
		probe, err := w.client.CoreV1().Pods(w.namespace).Get(context.Background(), "probe", metav1.GetOptions{})
		w.must(err)
		w.must(w.deletePod("probe", 0))
		return len(probe.Spec.SchedulingGates) == 1, "a gang's pod has no gate"
	}))
}

// TestBareJob: the webhook adds gates to the pods of a bare Job; they form a gang of the Job's size and start together.
// An invalid declaration is refused at its creation. SPEC D-7, K-8.
func TestBareJob(t *testing.T) {
	port := freePort()
	shared.install(t, guard, fmt.Sprintf("\ngangs:\n  byOwner: [Job]\nwebhook:\n  listen: 127.0.0.1:%d\n  certFile: %s\n  keyFile: %s\n",
		port, shared.path("serving.crt"), shared.path("serving.key")))
	w := newWorld(t, shared)
	w.nodes(2, "4")
	w.installWebhook(port)
	job := w.job("train", 6)
	w.pods("train", 5, "1", ownedBy(job))
	for _, pod := range w.list("train") {
		if len(pod.Spec.SchedulingGates) != 1 || pod.Spec.SchedulingGates[0].Name != gate || pod.Spec.SchedulerName != "muster" {
			t.Errorf("pod %s has gates %v and scheduler %q", pod.Name, pod.Spec.SchedulingGates, pod.Spec.SchedulerName)
		}
	}
	w.gangSays("train", "5 of 6 pods exist", 20*time.Second)
	w.must(waitFor(10*time.Second, "the Job says why it waits", func() (bool, string) {
		said := strings.Join(w.eventsOn(job.UID), "\n")
		return strings.Contains(said, "5 of 6 pods exist"), said
	}))
	w.staysBound("train", 0, time.Second)
	w.podsFrom("train", 5, 1, "1", ownedBy(job))
	w.waitBound("train", 6, 20*time.Second)
	// A Job that does not fit waits as a whole; a lone pod is not changed.
	other := w.job("large", 8)
	w.pods("large", 8, "1", ownedBy(other))
	w.podsStart("plain", 1, "1")
	w.staysBound("large", 0, 2*time.Second)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "wrong", Annotations: map[string]string{
		"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "many"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
	_, err := w.client.CoreV1().Pods(w.namespace).Create(context.Background(), pod, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "min-available") {
		t.Errorf("a pod with a minimum of \"many\" was created: %v", err)
	}
}
