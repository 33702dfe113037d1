// ServerCall: a call of a running server's HTTP interface, for commands that ask it something.
#ifndef FOLIOT_APP_COMMANDS_SERVER_CALL_H_
#define FOLIOT_APP_COMMANDS_SERVER_CALL_H_

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct ServerPlace {
  std::string url = "localhost:8000";  // HOST:PORT, or with http:// or https:// before it
  std::filesystem::path key_file;      // of its first line; empty: no key is sent
};

// --url and --key-file. `place` outlives the command.
void add_server_flags(CLI::App& app, ServerPlace& place);

struct ServerCall {
  std::string method = "GET";
  std::string path;
  std::string body{};
  std::vector<std::string> headers{"Content-Type: application/json"};
  Duration timeout = Duration::seconds(60);
};

// The body of an answer of 2xx. Errors: kNotFound for the file of the key; kUnavailable
// with what the server says, or why it cannot be reached.
Result<std::string> ask_server(const ServerPlace& place, ServerCall call);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_SERVER_CALL_H_
