#include "foundation/objectstore/s3_access.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string_view>

namespace foliot {
namespace {

using Profile = std::map<std::string, std::string>;

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// The keys of a section of an INI file; empty if there is no such file or section.
Profile read_profile(const std::filesystem::path& path, const std::string& name) {
  constexpr size_t kLineBytesMax = 64 << 10;
  Profile profile;
  std::ifstream file(path);
  bool is_in_it = false;
  for (std::string line; std::getline(file, line) && line.size() < kLineBytesMax;) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.starts_with('#') || text.starts_with(';')) continue;
    if (text.starts_with('[') && text.ends_with(']')) {
      const std::string_view section = trimmed(text.substr(1, text.size() - 2));
      is_in_it = section == name || section == "profile " + name;
    } else if (const size_t equals = text.find('='); is_in_it && equals != text.npos) {
      profile[std::string(trimmed(text.substr(0, equals)))] = trimmed(text.substr(equals + 1));
    }
  }
  return profile;
}

std::string first_of(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return {};
}

}  // namespace

std::string environment_variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return value == nullptr ? "" : value;
}

Result<S3Access> S3Access::read(const Environment& environment) {
  const std::filesystem::path home = std::filesystem::path(environment("HOME")) / ".aws";
  const auto file_of = [&](const char* variable, const char* name) {
    const std::string given = environment(variable);
    return given.empty() ? home / name : std::filesystem::path(given);
  };
  const std::filesystem::path file = file_of("AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const std::string given_profile = environment("AWS_PROFILE");
  const std::string name = given_profile.empty() ? "default" : given_profile;
  Profile secrets = read_profile(file, name);
  Profile settings = read_profile(file_of("AWS_CONFIG_FILE", "config"), name);
  S3Access access{.key_id = environment("AWS_ACCESS_KEY_ID"),
                  .secret = environment("AWS_SECRET_ACCESS_KEY"),
                  .token = environment("AWS_SESSION_TOKEN"),
                  .region = first_of(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}),
                  .endpoint = first_of(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}),
                  .ca_file = environment("AWS_CA_BUNDLE")};
  if (access.region.empty()) access.region = settings["region"];
  if (access.endpoint.empty()) access.endpoint = settings["endpoint_url"];
  if (access.ca_file.empty()) access.ca_file = settings["ca_bundle"];
  if (access.key_id.empty() != access.secret.empty()) {
    return Status::invalid_argument(
        fmt::format("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY belong together, and only "
                    "{} is set",
                    access.secret.empty() ? "the first" : "the second"));
  }
  for (Profile* const profile : {&secrets, &settings}) {
    if (!access.key_id.empty()) break;
    if ((*profile)["aws_access_key_id"].empty() || (*profile)["aws_secret_access_key"].empty()) continue;
    access.key_id = (*profile)["aws_access_key_id"];
    access.secret = (*profile)["aws_secret_access_key"];
    access.token = (*profile)["aws_session_token"];
  }
  if (!access.key_id.empty()) return access;
  return Status::invalid_argument(
      fmt::format("there are no credentials for the object store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                  "write aws_access_key_id and aws_secret_access_key into the profile [{}] of {}",
                  name, file.string()));
}

}  // namespace foliot
