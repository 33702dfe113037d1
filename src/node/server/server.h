// Server: front end, controller and worker in one process, as `foliot serve` runs them.
// Connects all parts.
#ifndef FOLIOT_NODE_SERVER_SERVER_H_
#define FOLIOT_NODE_SERVER_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "edge/frontend/frontend.h"
#include "foundation/base/status.h"
#include "node/repository/startup_reporter.h"
#include "node/server/server_options.h"

namespace foliot {

class Server {
 public:
  explicit Server(const ServerOptions& options);
  ~Server();

  // Opens the ports, takes memory, and serves the models, each as soon as it is
  // compiled; returns when that is done. Models that cannot be served are reported and
  // left out. Errors: what makes it impossible to serve at all. `cancelled` is called
  // several times a second, and stops a compilation at once.
  Status start(StartupReporter& reporter, const std::function<bool()>& cancelled);
  // Answers what is in flight, refuses what is new, and ends all threads.
  // Calling it again does nothing.
  void stop();

  // REQUIRES: started.
  Frontend& frontend();
  // "ready: 20 models on http 127.0.0.1:8000, grpc :8001, ...", or "not ready: ...", once
  // started.
  std::string description() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_SERVER_H_
