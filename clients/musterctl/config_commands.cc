#include "clients/musterctl/config_commands.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "clients/musterctl/output.h"

namespace muster {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "musterctl: " << Printable(std::string(status.message())) << "\n";
  return 1;
}

}  // namespace

ConfigCommands::ConfigCommands(CLI::App* cli, const ContextSettings* flags) : flags_(flags) {
  config_ = cli->add_subcommand("config", "contexts: named connection settings for musterd servers");
  config_->require_subcommand(1);
  list_ = config_->add_subcommand("get-contexts", "list contexts; * marks the current one");
  use_ = config_->add_subcommand("use-context", "choose the current context");
  set_ = config_->add_subcommand("set-context", "create or change a context from the connection flags given");
  delete_ = config_->add_subcommand("delete-context", "delete a context");
  for (CLI::App* command : {use_, set_, delete_}) command->add_option("name", name_, "context")->required();
}

int ConfigCommands::Run() const {
  const std::string path = ContextPath();
  absl::StatusOr<ContextFile> file = LoadContexts(path);
  if (!file.ok()) return Fail(file.status());
  if (list_->parsed()) {
    for (const auto& [name, settings] : file->contexts) {
      const auto server = settings.find("server");
      std::cout << (name == file->current ? "* " : "  ") << name << "  "
                << (server == settings.end() ? "" : server->second) << "\n";
    }
    if (file->contexts.empty()) std::cout << "no contexts in " << path << "\n";
    return 0;
  }
  if (!set_->parsed() && file->contexts.count(name_) == 0) {
    return Fail(absl::NotFoundError(absl::StrCat("there is no context ", name_, " in ", path)));
  }
  if (set_->parsed()) {
    if (name_.empty()) return Fail(absl::InvalidArgumentError("name: is empty; expected a name for the context"));
    Override(*flags_, &file->contexts[name_]);
    if (file->current.empty()) file->current = name_;
  } else if (use_->parsed()) {
    file->current = name_;
  } else {
    file->contexts.erase(name_);
    if (file->current == name_) file->current.clear();
  }
  const absl::Status saved = SaveContexts(path, *file);
  if (!saved.ok()) return Fail(saved);
  std::cout << path << " written\n";
  return 0;
}

}  // namespace muster
