// Access flags: TLS, keys, and addresses of their own for some ports.
#ifndef FOLIOT_APP_COMMANDS_ACCESS_FLAGS_H_
#define FOLIOT_APP_COMMANDS_ACCESS_FLAGS_H_

#include <CLI/CLI.hpp>

#include "edge/frontend/frontend.h"
#include "node/files/access_files.h"

namespace foliot {

// TLS of the links between nodes: all three files, or none.
void add_link_tls_flags(CLI::App& app, TlsFiles& files);
// --keys and --tls-...
void add_key_flags(CLI::App& app, AccessFiles& files);
void add_access_flags(CLI::App& app, AccessFiles& files, FrontendOptions& frontend);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_ACCESS_FLAGS_H_
