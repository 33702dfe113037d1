#include "app/commands/server_call.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "foundation/net/http_call.h"

namespace foliot {
namespace {

constexpr size_t kAnswerBytesMax = 64 << 20;

Result<std::string> key_header(const std::filesystem::path& key_file) {
  std::ifstream file(key_file);
  std::string key;
  if (std::getline(file, key) && !key.empty()) return "Authorization: Bearer " + key;
  return Status::not_found(fmt::format("--key-file {}: cannot be read, or is empty", key_file.string()));
}

}  // namespace

void add_server_flags(CLI::App& app, ServerPlace& place) {
  app.add_option("--url", place.url, "HTTP address of the server, or of its --admin-port")->capture_default_str();
  app.add_option("--key-file", place.key_file, "file with the API key")->type_name("FILE");
}

Result<std::string> ask_server(const ServerPlace& place, ServerCall call) {
  const std::string base = place.url.find("://") == std::string::npos ? "http://" + place.url : place.url;
  if (!place.key_file.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(std::string header, key_header(place.key_file));
    call.headers.push_back(std::move(header));
  }
  Result<HttpAnswer> answer = http_call({.method = call.method,
                                         .url = base + call.path,
                                         .headers = std::move(call.headers),
                                         .body = std::move(call.body),
                                         .timeout = call.timeout,
                                         .answer_bytes_max = kAnswerBytesMax});
  if (!answer.ok()) {
    return Status::unavailable(
        fmt::format("{}; start a server there with `foliot serve`, or give the address of one with --url HOST:PORT",
                    answer.status().message()));
  }
  if (answer->code >= 200 && answer->code < 300) return std::move(answer->body);
  const auto json = nlohmann::json::parse(answer->body, nullptr, false);
  const bool has_error = json.is_object() && json.contains("error") && json["error"].is_string();
  return Status::unavailable(fmt::format("the server answered {}: {}", answer->code,
                                         has_error ? json["error"].get<std::string>() : answer->body.substr(0, 300)));
}

}  // namespace foliot
