// Access flags: TLS, keys, and addresses of their own for some ports.
#ifndef FOLIOT_APP_COMMANDS_ACCESS_FLAGS_H_
#define FOLIOT_APP_COMMANDS_ACCESS_FLAGS_H_

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "access/key_ring.h"
#include "access/tls.h"
#include "access/tls_session.h"
#include "base/status.h"
#include "frontend/frontend.h"
#include "logging/logger.h"
#include "serving/file_watch.h"
#include "transport/link_loop.h"

namespace foliot {

struct AccessFlags {
  TlsFiles tls;
  std::filesystem::path keys;
};

// TLS of the links between processes: all three files, or none.
void add_link_tls_flags(CLI::App& app, TlsFiles& files);
// null: the links are plain. Errors: as open_access().
Result<std::shared_ptr<const TlsContext>> open_link_tls(const TlsFiles& files);

// --keys and --tls-...
void add_key_flags(CLI::App& app, AccessFlags& flags);
void add_access_flags(CLI::App& app, AccessFlags& flags, FrontendOptions& frontend);

// What the files hold.
struct Access {
  std::optional<TlsIdentity> tls;
  std::shared_ptr<const KeyRing> keys;  // null: none
};
// Errors: kInvalidArgument naming the file, or the flag that is missing beside another.
Result<Access> read_access(const AccessFlags& flags);
// Refused calls are written to `log`, which outlives the front end. Errors: as
// read_access().
Status open_access(const AccessFlags& flags, Logger& log, FrontendOptions& frontend);

// The receiver of new keys and certificates. Any thread.
struct AccessUser {
  std::function<void(std::shared_ptr<const KeyRing>)> use_keys;
  std::function<Status(const TlsIdentity&)> use_tls;
};
// Reads the files again when they change; an invalid file is logged, and the previous
// content stays in force. All references outlive the watch.
std::vector<WatchedFiles> reloads(const AccessFlags& flags, const AccessUser& user, Logger& log);
std::vector<WatchedFiles> reloads(const AccessFlags& flags, Frontend& frontend, Logger& log);
std::vector<WatchedFiles> link_tls_reloads(const TlsFiles& files, LinkLoop& loop, Logger& log);
// How often changes are looked for.
inline constexpr Duration kReloadInterval = Duration::seconds(5);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_ACCESS_FLAGS_H_
