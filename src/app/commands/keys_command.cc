#include "app/commands/keys_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "foundation/access/api_key.h"
#include "foundation/access/scope.h"

namespace foliot {
namespace {

struct KeysFlags {
  std::string name;
  std::vector<std::string> scopes{"infer"};
};

// The entry to standard output, so that it can be appended to the file; the secret
// to standard error, so that it is not.
void make_key(const KeysFlags& flags) {
  const std::string key = random_api_key();
  fmt::print("\n[[keys]]\nname = \"{}\"\nscopes = [\"{}\"]\nsha256 = \"{}\"\n", flags.name,
             fmt::join(flags.scopes, "\", \""), to_hexadecimal(digest_of(key)));
  std::fflush(stdout);
  fmt::print(stderr, "The key, shown this once:\n{}\n", key);
}

// Goes into TOML as it is.
std::string check_name(const std::string& name) {
  const bool plain = !name.empty() && name.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789-_.@ ") == std::string::npos;
  return plain ? "" : fmt::format("'{}': a name has letters, digits, spaces and - _ . @", name);
}

}  // namespace

void add_keys_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("keys", "Make API keys");
  command->require_subcommand(1);
  CLI::App* make = command->add_subcommand("new", "Make a key for --keys");
  make->footer(
      "The server's file gets the key's SHA-256 and never the key itself, which is printed once, on\n"
      "standard error. Clients send it as the header (gRPC: metadata) `Authorization: Bearer KEY`.\n"
      "A key in the file may also have requests_per_second, requests_in_flight, and a weight: of its\n"
      "share when all keys together ask for more than there is (1 to 1000, default 1).\n\n"
      "  foliot keys new mobile-app >> keys.toml\n"
      "  foliot keys new operator --scope admin --scope metrics >> keys.toml\n"
      "  foliot serve models --keys keys.toml\n"
      "  curl -H \"Authorization: Bearer $KEY\" localhost:8000/v2/models/digits");
  auto flags = std::make_shared<KeysFlags>();
  make->add_option("name", flags->name, "its name in the log")->required()->check(CLI::Validator(check_name, "NAME"));
  make->add_option("--scope", flags->scopes,
                   "infer: inferences and what is served; admin: the repository API; metrics; feedback; observe; jobs")
      ->capture_default_str()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::IsMember({"infer", "admin", "metrics", "feedback", "observe", "jobs"}));
  make->callback([flags, &exit_code] {
    make_key(*flags);
    exit_code = 0;
  });
}

}  // namespace foliot
