#include "edge/http/metrics_server.h"

#include <utility>

#include "edge/http/deflate.h"

namespace foliot {
namespace {

constexpr uint64_t kBodyBytesMax = 4 << 10;
constexpr uint32_t kConnectionsMax = 64;

HttpServerOptions http_options(const MetricsServerOptions& options) {
  return {.thread_name = "foliot-metrics",
          .address = options.address,
          .port = options.port,
          .port_flag = "--metrics-port",
          .body_bytes_max = kBodyBytesMax,
          .bodies_bytes_max = kConnectionsMax * kBodyBytesMax,
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
  const auto error =
      gate_.turn_away(exchange.header("Authorization"), Scope::kMetrics, exchange.peer(), exchange.target());
  if (!error) return std::nullopt;
  HttpResponse response;
  response.status = error->http_status;
  response.content_type = "text/plain; charset=utf-8";
  response.body.push_back(error->message + "\n");
  return response;
}

void MetricsServer::handle(HttpExchange& exchange) {
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  const std::string_view path = exchange.target().substr(0, exchange.target().find('?'));
  if (path != "/metrics") {
    response.status = 404;
    response.body.emplace_back("the metrics are at /metrics\n");
  } else if (exchange.method() != "GET") {
    response.status = 405;
    response.headers.emplace_back("Allow", "GET");
  } else {
    response.body.push_back(page_());
    compress(response, preferred_encoding(exchange.header("Accept-Encoding")));
  }
  exchange.respond(std::move(response));
}

}  // namespace foliot
