// The commands that read manifests: apply, delete, submit, confirm, plan. Each returns the exit status.
#ifndef MUSTER_CLIENTS_MUSTERCTL_MANIFEST_COMMANDS_H_
#define MUSTER_CLIENTS_MUSTERCTL_MANIFEST_COMMANDS_H_

#include <string>

#include "clients/cpp/muster_client.h"
#include "clients/musterctl/showing.h"

namespace muster {

// Applies or deletes everything in the files as one step.
int Apply(MusterClient* client, const Options& options, bool remove);
// Submits a gang; waits for its plan and confirms it where that was asked for.
int Submit(MusterClient* client, const Options& options);
// Takes a submitted gang's plan.
int Confirm(MusterClient* client, const Options& options);
// Tells where a gang would go, or what stops it. 1: it would wait, or nothing is known.
int Plan(MusterClient* client, const Options& options, const std::string& name_space);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_MANIFEST_COMMANDS_H_
