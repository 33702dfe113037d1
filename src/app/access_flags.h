// Flags that say who may call: TLS, keys, and addresses of their own for some ports.
#ifndef FOLIOT_APP_ACCESS_FLAGS_H_
#define FOLIOT_APP_ACCESS_FLAGS_H_

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "access/tls.h"
#include "access/tls_session.h"
#include "base/status.h"
#include "frontend/frontend.h"

namespace foliot {

struct AccessFlags {
  TlsFiles tls;
  std::filesystem::path keys;
};

// TLS of the links between processes: all three files, or none.
void add_link_tls_flags(CLI::App& app, TlsFiles& files);
// null: the links are plain. Errors: as open_access().
Result<std::shared_ptr<const TlsContext>> open_link_tls(const TlsFiles& files);

void add_access_flags(CLI::App& app, AccessFlags& flags, FrontendOptions& frontend);

// Reads the files. Errors: kInvalidArgument naming the file, or the flag that is
// missing beside another.
Status open_access(const AccessFlags& flags, FrontendOptions& frontend);

}  // namespace foliot

#endif  // FOLIOT_APP_ACCESS_FLAGS_H_
