// Package e2e proves Muster against a real kube-apiserver and an unmodified kube-scheduler: both are built from the
// Kubernetes modules (cmd/kube), configured with the very files of deploy/, and run as processes beside musterd. Nodes
// have no kubelets; pods that are bound are marked Running.
package e2e
