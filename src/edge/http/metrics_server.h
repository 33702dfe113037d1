// MetricsServer: GET /metrics over HTTP: one for every process that has metrics. With a monitor,
// also the monitor page at /, its files, and what it shows at /monitor/feed and
// /monitor/explanation.
//
// It has a thread of its own: a scrape of thousands of series must not delay
// inferences. With a key ring, all but the files of the page, which say nothing of this server,
// need a key with the scope `metrics`: a browser sends none until the page has asked for it.
#ifndef FOLIOT_EDGE_HTTP_METRICS_SERVER_H_
#define FOLIOT_EDGE_HTTP_METRICS_SERVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "edge/http/http_server.h"
#include "edge/requests/gate.h"
#include "foundation/access/tls.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "observe/monitor/feed.h"

namespace foliot {

struct MetricsServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  uint32_t header_bytes_max = 64 << 10;
  Duration idle_timeout = Duration::seconds(60);
  Duration request_timeout = Duration::seconds(60);
  std::optional<TlsIdentity> tls;
};

// Threading: start() and stop() belong to the owner; `page` is called on the server's
// thread.
class MetricsServer : private HttpHandler {
 public:
  // `gate` outlives the server. `page` makes what is served.
  MetricsServer(const MetricsServerOptions& options, const Gate& gate, std::function<std::string()> page,
                const std::function<TimePoint()>& now);

  // Before start(). `feed` outlives the server, and is asked on its thread.
  void show(MonitorFeed& feed) { feed_ = &feed; }
  // Errors: as HttpServer::start().
  Status start() { return server_.start(); }
  void stop() { server_.stop(); }
  uint16_t port() const { return server_.port(); }
  Status use_tls(const TlsIdentity& identity) { return server_.use_tls(identity); }

 private:
  std::optional<HttpResponse> on_header(const HttpExchange& exchange) override;
  void handle(HttpExchange& exchange) override;

  // Status, type, headers and body; not found: 404.
  HttpResponse answer(std::string_view path, std::string_view query);
  HttpResponse explanation(std::string_view query);

  const Gate& gate_;
  const std::function<std::string()> page_;
  MonitorFeed* feed_ = nullptr;  // null: there is no monitor
  HttpServer server_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_METRICS_SERVER_H_
