// AccessFiles: the files of authentication, TLS certificates and API keys, which are
// read again when they change while a node runs.
#ifndef FOLIOT_NODE_FILES_ACCESS_FILES_H_
#define FOLIOT_NODE_FILES_ACCESS_FILES_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cluster/transport/link_loop.h"
#include "edge/frontend/frontend.h"
#include "foundation/access/key_ring.h"
#include "foundation/access/tls.h"
#include "foundation/access/tls_session.h"
#include "foundation/base/status.h"
#include "foundation/logging/logger.h"
#include "node/files/file_watch.h"

namespace foliot {

struct AccessFiles {
  TlsFiles tls;
  std::filesystem::path keys;
};

// What the files hold.
struct Access {
  std::optional<TlsIdentity> tls;
  std::shared_ptr<const KeyRing> keys;  // null: none
};
// Errors: kInvalidArgument naming the file, or the flag that is missing beside another.
Result<Access> read_access(const AccessFiles& files);
// Denied calls are written to `log`, which outlives the front end. Errors: as read_access().
Status open_access(const AccessFiles& files, Logger& log, FrontendOptions& frontend);

// TLS of the links between nodes: all three files, or none. Null: the links are plain.
// Errors: as read_access().
Result<std::shared_ptr<const TlsContext>> open_link_tls(const TlsFiles& files);

// What takes new keys and certificates. Any thread.
struct AccessUser {
  std::function<void(std::shared_ptr<const KeyRing>)> use_keys;
  std::function<Status(const TlsIdentity&)> use_tls;
};
// Reads the files again where they change; what cannot be used is logged, and what was
// there before stays. All references outlive the watch.
std::vector<WatchedFiles> reloads(const AccessFiles& files, const AccessUser& user, Logger& log);
std::vector<WatchedFiles> reloads(const AccessFiles& files, Frontend& frontend, Logger& log);
std::vector<WatchedFiles> link_tls_reloads(const TlsFiles& files, LinkLoop& loop, Logger& log);
// How often the files are looked at.
inline constexpr Duration kReloadInterval = Duration::seconds(5);

}  // namespace foliot

#endif  // FOLIOT_NODE_FILES_ACCESS_FILES_H_
