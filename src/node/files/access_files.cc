#include "node/files/access_files.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace foliot {
namespace {

std::vector<std::filesystem::path> paths_of(const TlsFiles& files) {
  std::vector<std::filesystem::path> paths{files.certificate, files.private_key};
  if (!files.peer_authority.empty()) paths.push_back(files.peer_authority);
  return paths;
}

WatchedFiles reload(std::vector<std::filesystem::path> files, const std::string& what, std::function<Status()> read,
                    Logger& log) {
  const auto on_change = [what, read = std::move(read), &log] {
    const Status status = read();
    if (status.ok()) return log.write(Severity::kInfo, fmt::format("the {} was replaced", what));
    log.write(Severity::kError, fmt::format("the {} stays as it was: {}", what, status.message()));
  };
  return {std::move(files), on_change};
}

}  // namespace

Result<Access> read_access(const AccessFiles& files) {
  Access access;
  if (!files.tls.certificate.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(access.tls, read_tls_identity(files.tls));
  } else if (!files.tls.private_key.empty() || !files.tls.peer_authority.empty()) {
    return Status::invalid_argument("--tls-key and --tls-client-ca need --tls-certificate");
  }
  if (!files.keys.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(KeyRing keys, KeyRing::read(files.keys));
    access.keys = std::make_shared<const KeyRing>(std::move(keys));
  }
  return access;
}

Status open_access(const AccessFiles& files, Logger& log, FrontendOptions& frontend) {
  FOLIOT_ASSIGN_OR_RETURN(Access access, read_access(files));
  frontend.tls = std::move(access.tls);
  frontend.keys = std::move(access.keys);
  const auto warn = [&log](const std::string& line) { log.write(Severity::kWarning, line); };
  frontend.on_denial = warn;
  frontend.on_unknown_name = warn;
  return Status();
}

Result<std::shared_ptr<const TlsContext>> open_link_tls(const TlsFiles& files) {
  const bool all = !files.certificate.empty() && !files.private_key.empty() && !files.peer_authority.empty();
  const bool none = files.certificate.empty() && files.private_key.empty() && files.peer_authority.empty();
  if (none) return std::shared_ptr<const TlsContext>();
  if (!all) return Status::invalid_argument("give --tls-link-certificate, --tls-link-key and --tls-link-ca, or none");
  FOLIOT_ASSIGN_OR_RETURN(const TlsIdentity identity, read_tls_identity(files));
  return TlsContext::make(identity);
}

std::vector<WatchedFiles> reloads(const AccessFiles& files, const AccessUser& user, Logger& log) {
  std::vector<WatchedFiles> watched;
  if (!files.keys.empty()) {
    const auto read = [file = files.keys, use = user.use_keys]() -> Status {
      FOLIOT_ASSIGN_OR_RETURN(KeyRing keys, KeyRing::read(file));
      use(std::make_shared<const KeyRing>(std::move(keys)));
      return Status();
    };
    watched.push_back(reload({files.keys}, "file of keys", read, log));
  }
  if (!files.tls.certificate.empty()) {
    const auto read = [files = files.tls, use = user.use_tls]() -> Status {
      FOLIOT_ASSIGN_OR_RETURN(const TlsIdentity identity, read_tls_identity(files));
      return use(identity);
    };
    watched.push_back(reload(paths_of(files.tls), "certificate", read, log));
  }
  return watched;
}

std::vector<WatchedFiles> reloads(const AccessFiles& files, Frontend& frontend, Logger& log) {
  return reloads(files,
                 {.use_keys = [&](std::shared_ptr<const KeyRing> keys) { frontend.use_keys(std::move(keys)); },
                  .use_tls = [&](const TlsIdentity& identity) { return frontend.use_tls(identity); }},
                 log);
}

std::vector<WatchedFiles> link_tls_reloads(const TlsFiles& files, LinkLoop& loop, Logger& log) {
  if (files.certificate.empty()) return {};
  const auto read = [files, &loop]() -> Status {
    FOLIOT_ASSIGN_OR_RETURN(auto tls, open_link_tls(files));
    loop.use_tls(std::move(tls));
    return Status();
  };
  return {reload(paths_of(files), "certificate of the links", read, log)};
}

}  // namespace foliot
