#include "edge/http/metrics_server.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "edge/http/deflate.h"
#include "observe/monitor/page_file.h"

namespace foliot {
namespace {

constexpr uint64_t kBodyBytesMax = 4 << 10;
constexpr uint32_t kConnectionsMax = 64;
// Of answers that wait to be read: a feed's for every connection.
constexpr uint64_t kAnswerBytesMax = MonitorFeed::kBytesMax;
// Of the page: nothing but its own files, and no script or style within them.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";
// The one parameter of the feed.
constexpr std::string_view kSince = "since=";

struct Target {
  std::string_view path;
  std::string_view query;
};
Target split(std::string_view target) {
  const size_t mark = target.find('?');
  return {target.substr(0, mark), mark == std::string_view::npos ? "" : target.substr(mark + 1)};
}

// The text behind `name=` of a query, with %XX read; nullopt: it is not the query's first parameter.
std::optional<std::string> parameter(std::string_view query, std::string_view name) {
  if (!query.starts_with(name) || query.substr(name.size(), 1) != "=") return std::nullopt;
  query = query.substr(name.size() + 1);
  query = query.substr(0, query.find('&'));
  std::string text;
  for (size_t i = 0; i < query.size(); ++i) {
    unsigned value = 0;
    const char* const digits = query.data() + i + 1;
    if (query[i] == '%' && i + 2 < query.size() && std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      text += static_cast<char>(value);
      i += 2;
    } else {
      text += query[i];
    }
  }
  return text;
}

HttpServerOptions http_options(const MetricsServerOptions& options) {
  return {.thread_name = "foliot-metrics",
          .address = options.address,
          .port = options.port,
          .port_flag = "--metrics-port",
          .body_bytes_max = kBodyBytesMax,
          .bodies_bytes_max = kConnectionsMax * (kBodyBytesMax + kAnswerBytesMax),
          .header_bytes_max = options.header_bytes_max,
          .connections_max = kConnectionsMax,
          .idle_timeout = options.idle_timeout,
          .request_timeout = options.request_timeout,
          .tls = options.tls};
}

}  // namespace

MetricsServer::MetricsServer(const MetricsServerOptions& options, const Gate& gate, std::function<std::string()> page,
                             const std::function<TimePoint()>& now)
    : gate_(gate), page_(std::move(page)), server_(http_options(options), *this, now) {}

std::optional<HttpResponse> MetricsServer::on_header(const HttpExchange& exchange) {
  if (feed_ != nullptr && find_page_file(split(exchange.target()).path) != nullptr) return std::nullopt;
  const auto error =
      gate_.turn_away(exchange.header("Authorization"), Scope::kMetrics, exchange.peer(), exchange.target());
  if (!error) return std::nullopt;
  HttpResponse response;
  response.status = error->http_status;
  response.content_type = "text/plain; charset=utf-8";
  response.body.push_back(error->message + "\n");
  return response;
}

HttpResponse MetricsServer::answer(std::string_view path, std::string_view query) {
  HttpResponse response;
  if (path == "/metrics") {
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body.push_back(page_());
    return response;
  }
  const PageFile* const file = feed_ == nullptr ? nullptr : find_page_file(path);
  if (file != nullptr) {
    response.content_type = content_type_of(*file);
    response.headers = {{"Content-Security-Policy", kPolicy},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Referrer-Policy", "no-referrer"},
                        {"Cache-Control", "no-cache"}};
    response.body.emplace_back(file->content);
  } else if (feed_ != nullptr && path == "/monitor/explanation") {
    response = explanation(query);
  } else if (feed_ != nullptr && path == "/monitor/feed") {
    response.headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
    response.body.push_back(feed_->answer(query.starts_with(kSince) ? query.substr(kSince.size()) : ""));
  } else {
    response.status = 404;
    response.content_type = "text/plain; charset=utf-8";
    response.body.emplace_back("the metrics are at /metrics\n");
  }
  return response;
}

HttpResponse MetricsServer::explanation(std::string_view query) {
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  response.headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
  const std::optional<std::string> number = parameter(query, "request"), id = parameter(query, "id");
  uint64_t request = 0;
  const char* const end = number ? number->data() + number->size() : nullptr;
  const bool is_number = number && std::from_chars(number->data(), end, request).ptr == end && !number->empty();
  if (!is_number && !id) {
    response.status = 400;
    response.body.emplace_back("give ?request=NUMBER, or ?id=ID of its client\n");
    return response;
  }
  const Result<std::string> text =
      feed_->explanation(is_number ? std::optional(RequestId(request)) : std::nullopt, id.value_or(""));
  if (!text.ok()) response.status = 404;
  response.body.push_back(text.ok() ? *text : text.status().message() + "\n");
  return response;
}

void MetricsServer::handle(HttpExchange& exchange) {
  HttpResponse response;
  if (exchange.method() == "GET") {
    const Target target = split(exchange.target());
    response = answer(target.path, target.query);
    compress(response, preferred_encoding(exchange.header("Accept-Encoding")));
  } else {
    response.content_type = "text/plain; charset=utf-8";
    response.status = 405;
    response.headers.emplace_back("Allow", "GET");
  }
  exchange.respond(std::move(response));
}

}  // namespace foliot
