// The commands that read manifests: apply, delete, submit, confirm, plan. Each returns the exit status.
#ifndef MUSTER_CLIENTS_MUSTERCTL_MANIFEST_COMMANDS_H_
#define MUSTER_CLIENTS_MUSTERCTL_MANIFEST_COMMANDS_H_

#include <string>

#include "clients/cpp/muster_client.h"
#include "clients/musterctl/command_output.h"

namespace muster {

// Applies or deletes everything in the files as one step.
int Apply(MusterClient* client, const Options& options, bool remove);
// Submits a gang. If requested, waits for its plan and confirms it.
int Submit(MusterClient* client, const Options& options);
// Accepts the plan of a submitted gang.
int Confirm(MusterClient* client, const Options& options);
// Shows where a gang would be placed, or what prevents it. 1: it would wait, or there is no answer.
int Plan(MusterClient* client, const Options& options, const std::string& name_space);

}  // namespace muster

#endif  // MUSTER_CLIENTS_MUSTERCTL_MANIFEST_COMMANDS_H_
