// Package e2e tests Muster against a real kube-apiserver and an unmodified kube-scheduler: both are built from the
// Kubernetes modules (cmd/kube), configured with the files of deploy/, and run as processes beside musterd. Nodes have
// no kubelets; bound pods are marked Running.
package e2e
