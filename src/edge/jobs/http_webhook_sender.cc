#include "edge/jobs/http_webhook_sender.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace foliot {

Result<HttpWebhookSender> HttpWebhookSender::make(const std::vector<std::string>& allowed, Duration timeout) {
  std::vector<Allowed> hosts;
  for (const std::string& text : allowed) {
    const Result<UrlParts> parts = parse_url("http://" + text);
    // What is more than a host and a port would be read as a path, and allow more than was meant.
    if (!parts.ok() || text.find_first_of("/?#@* ") != std::string::npos) {
      return Status::invalid_argument(fmt::format("--webhooks {}: must be HOST or HOST:PORT", text));
    }
    const bool has_port = text.rfind(':') != std::string::npos && text.back() != ']';
    hosts.push_back({.host = parts->host, .port = has_port ? parts->port : uint16_t{0}});
  }
  return HttpWebhookSender(std::move(hosts), timeout);
}

Status HttpWebhookSender::check(const std::string& url) const {
  const Result<UrlParts> read = parse_url(url);
  if (!read.ok()) return read.status().with_context("webhook");
  const UrlParts& parts = *read;
  const uint16_t usual = parts.scheme == "https" ? 443 : 80;
  const bool is_allowed = std::ranges::any_of(allowed_, [&](const Allowed& allowed) {
    return allowed.host == parts.host && parts.port == (allowed.port == 0 ? usual : allowed.port);
  });
  if (is_allowed) return Status();
  return Status::invalid_argument(
      fmt::format("webhook '{}': {}:{} is not allowed; the server's --webhooks name the hosts that are", url,
                  parts.host, parts.port));
}

Status HttpWebhookSender::send(const std::string& url, const std::string& json) {
  FOLIOT_RETURN_IF_ERROR(check(url));
  FOLIOT_ASSIGN_OR_RETURN(const HttpAnswer answer, http_call({.method = "POST",
                                                              .url = url,
                                                              .headers = {"Content-Type: application/json", "Expect:"},
                                                              .body = json,
                                                              .timeout = timeout_}));
  if (answer.code >= 200 && answer.code < 300) return Status();
  return Status::unavailable(fmt::format("{} answered {}", url, answer.code));
}

}  // namespace foliot
