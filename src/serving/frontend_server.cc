#include "serving/frontend_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "cluster/frontend_link.h"
#include "core/catalog.h"
#include "platform/clock.h"
#include "platform/thread.h"
#include "serving/inference_stack.h"
#include "transport/link_loop.h"

namespace foliot {
namespace {

// Memory for so many of the largest frames that are partly received.
constexpr uint64_t kFrontendFramesAtOnce = 16;

// Workers have the repositories.
class NoRepository : public ModelRepository {
 public:
  void load(const std::string& /*name*/, std::function<void(Status)> done) override { done(refusal()); }
  void unload(const std::string& /*name*/, std::function<void(Status)> done) override { done(refusal()); }

 private:
  static Status refusal() {
    return Status::unimplemented("a front end has no repository: its models are those of the workers");
  }
};

LinkLoopOptions link_loop_options(const FrontendServerOptions& options, std::shared_ptr<const TlsContext> tls) {
  return {.connection = {.role = Role::kClient,
                         .frame_bytes_max = options.frame_bytes_max,
                         .unsent_bytes_max = 4 * options.frame_bytes_max},
          .received_bytes_max = kFrontendFramesAtOnce * options.frame_bytes_max,
          .tls = std::move(tls)};
}

}  // namespace

class FrontendServer::Parts {
 public:
  Parts(const FrontendServerOptions& options, const FrontendOptions& frontend,
        std::shared_ptr<const TlsContext> link_tls, Logger& log)
      : link_(catalog_, frontend.requests_in_flight_max,
              {.log = [&log](Severity level, const std::string& line) { log.write(level, line); },
               .on_ready = options.on_ready}),
        loop_(link_loop_options(options, std::move(link_tls)), link_),
        inference_(frontend, catalog_, link_, repository_, monotonic_now) {}

  Status start(const FrontendServerOptions& options, Logger& log);
  void stop(Duration drain_timeout);
  Frontend& frontend() { return inference_.frontend(); }
  uint64_t in_flight() const { return inference_.in_flight(); }

 private:
  // In the order in which they are made; each uses those before it.
  Catalog catalog_;
  NoRepository repository_;
  FrontendLink link_;
  LinkLoop loop_;
  InferenceStack inference_;
  std::unique_ptr<FileWatch> watch_;
  Thread thread_;
};

Status FrontendServer::Parts::start(const FrontendServerOptions& options, Logger& log) {
  link_.start(inference_.origin(), loop_);
  FOLIOT_RETURN_IF_ERROR(loop_.keep(options.controller));
  FOLIOT_RETURN_IF_ERROR(frontend().start());
  std::vector<WatchedFiles> watched = reloads(options.access, frontend(), log);
  std::ranges::move(link_tls_reloads(options.link_tls, loop_, log), std::back_inserter(watched));
  watch_ = std::make_unique<FileWatch>(std::move(watched));
  FOLIOT_RETURN_IF_ERROR(watch_->start(kReloadInterval));
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "links"}, [this] { loop_.run(); }));
  return Status();
}

void FrontendServer::Parts::stop(Duration drain_timeout) {
  inference_.drain();
  inference_.wait_until_answered(drain_timeout);
  loop_.stop();  // what is still in flight is refused
  thread_.join();
  frontend().stop();
}

FrontendServer::FrontendServer(FrontendServerOptions options, Logger& log) : options_(std::move(options)), log_(log) {}
FrontendServer::~FrontendServer() { stop(); }

Status FrontendServer::start() {
  FrontendOptions frontend = options_.frontend;
  FOLIOT_RETURN_IF_ERROR(open_access(options_.access, log_, frontend));
  FOLIOT_ASSIGN_OR_RETURN(auto link_tls, open_link_tls(options_.link_tls));
  auto parts = std::make_unique<Parts>(options_, frontend, std::move(link_tls), log_);
  FOLIOT_RETURN_IF_ERROR(parts->start(options_, log_));
  parts_ = std::move(parts);
  return Status();
}

void FrontendServer::stop() {
  if (parts_ == nullptr) return;
  parts_->stop(options_.drain_timeout);
  parts_.reset();
}

Frontend& FrontendServer::frontend() { return parts_->frontend(); }

uint64_t FrontendServer::in_flight() const { return parts_->in_flight(); }

std::string FrontendServer::ports() const {
  const Frontend& frontend = parts_->frontend();
  return fmt::format("http {}:{}, grpc :{}, metrics :{}/metrics", options_.frontend.address, frontend.http_port(),
                     frontend.grpc_port(), frontend.metrics_port());
}

}  // namespace foliot
