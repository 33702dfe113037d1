// Demo: a network made here is served in this process and asked what the machine can answer, then three times that. A
// table has the results beside those of a simulated server that answers in the order of arrival.
//
// Threading: run_demo() blocks; `stopped` and `print` are called from its thread.
#ifndef FOLIOT_NODE_DEMO_DEMO_H_
#define FOLIOT_NODE_DEMO_DEMO_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "foundation/base/status.h"
#include "node/server/server_options.h"

namespace foliot {

struct DemoOptions {
  uint32_t seconds = 20;          // of load, in all
  std::filesystem::path keep;     // where network, package and log stay; empty: nowhere
  ServerOptions server;           // repository, ports and log are set by the demo
  std::function<bool()> stopped;  // asked several times a second; true ends the demo early, without an error
  std::function<void(const std::string& line)> print;
};

// Errors: the folder cannot be written; those of Server::start(), run_bench() and simulate().
Status run_demo(const DemoOptions& options);

}  // namespace foliot

#endif  // FOLIOT_NODE_DEMO_DEMO_H_
