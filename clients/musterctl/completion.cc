#include "clients/musterctl/completion.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace muster {
namespace {

// Possible words after "get gangs" and the like: subcommands, then flags, each with its description.
using Words = std::vector<std::pair<std::string, std::string>>;

Words After(const CLI::App& command, const CLI::App& root) {
  Words words;
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; })) {
    words.emplace_back(child->get_name(), child->get_description());
  }
  const auto flags = [&](const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_lnames().empty() || (&app == &root && &command != &root && option->get_lnames()[0] == "help"))
        continue;
      words.emplace_back("--" + option->get_lnames()[0], option->get_description());
    }
  };
  flags(command);
  if (&command != &root) flags(root);
  return words;
}

void Walk(const CLI::App& command, const CLI::App& root, const std::string& path,
          std::vector<std::pair<std::string, Words>>* out) {
  out->emplace_back(path, After(command, root));
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; })) {
    Walk(*child, root, path.empty() ? child->get_name() : absl::StrCat(path, " ", child->get_name()), out);
  }
}

std::string Names(const Words& words) {
  return absl::StrJoin(words, " ", [](std::string* out, const auto& word) { absl::StrAppend(out, word.first); });
}

std::string Bash(const std::vector<std::pair<std::string, Words>>& table) {
  std::string cases;
  for (const auto& [path, words] : table)
    absl::StrAppend(&cases, "    \"", path, "\") words=\"", Names(words), "\" ;;\n");
  return absl::StrCat(R"(# musterctl completion for bash: source <(musterctl completion bash)
_musterctl() {
  local path="" word words=""
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) case "$path" in "" | get | describe | explain | trace | watch | config) path="${path:+$path }$word" ;; esac ;; esac
  done
  case "$path" in
)",
                      cases, R"(  esac
  case "${COMP_WORDS[COMP_CWORD-1]}" in
    -f | --filename | --ca | --cert | --key | --token-file) COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")); return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _musterctl musterctl
)");
}

std::string Fish(const std::vector<std::pair<std::string, Words>>& table) {
  std::string out = "# musterctl completion for fish: musterctl completion fish | source\ncomplete -c musterctl -f\n";
  for (const auto& [path, words] : table) {
    std::string condition = "__fish_use_subcommand";
    if (!path.empty()) {
      condition = absl::StrCat("__fish_seen_subcommand_from ",
                               absl::StrReplaceAll(path, {{" ", "; and __fish_seen_subcommand_from "}}));
    }
    for (const auto& [word, about] : words) {
      const std::string text = absl::StrReplaceAll(about, {{"'", ""}});
      const bool flag = word.rfind("--", 0) == 0;
      absl::StrAppend(&out, "complete -c musterctl -n '", condition, "' ", flag ? "-l " : "-a ",
                      flag ? word.substr(2) : word, " -d '", text, "'\n");
    }
  }
  return out;
}

}  // namespace

std::string CompletionScript(const CLI::App& cli, const std::string& shell) {
  std::vector<std::pair<std::string, Words>> table;
  Walk(cli, cli, "", &table);
  if (shell == "fish") return Fish(table);
  std::string bash = Bash(table);
  if (shell == "bash") return bash;
  return absl::StrCat("autoload -U +X bashcompinit && bashcompinit\n", bash);
}

}  // namespace muster
