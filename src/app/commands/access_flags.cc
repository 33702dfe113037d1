#include "app/commands/access_flags.h"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

#include "app/commands/help_formatter.h"

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

void add_link_tls_flags(CLI::App& app, TlsFiles& files) {
  const FlagGroup group(app, "TLS on the links");
  app.add_option("--tls-link-certificate", files.certificate,
                 "TLS on the links between controller, workers and front ends: certificate and chain, PEM")
      ->type_name("FILE")
      ->default_str("none: no TLS");
  app.add_option("--tls-link-key", files.private_key, "its private key, PEM")->type_name("FILE");
  app.add_option("--tls-link-ca", files.peer_authority, "the authority that signs the certificates of all of them, PEM")
      ->type_name("FILE");
}

Result<std::shared_ptr<const TlsContext>> open_link_tls(const TlsFiles& files) {
  const bool all = !files.certificate.empty() && !files.private_key.empty() && !files.peer_authority.empty();
  const bool none = files.certificate.empty() && files.private_key.empty() && files.peer_authority.empty();
  if (none) return std::shared_ptr<const TlsContext>();
  if (!all) return Status::invalid_argument("give --tls-link-certificate, --tls-link-key and --tls-link-ca, or none");
  FOLIOT_ASSIGN_OR_RETURN(const TlsIdentity identity, read_tls_identity(files));
  return TlsContext::make(identity);
}

void add_access_flags(CLI::App& app, AccessFlags& flags, FrontendOptions& frontend) {
  const FlagGroup group(app, "HTTP and gRPC");
  app.add_option("--metrics-address", frontend.metrics_address, "address of the metrics")
      ->default_str("that of --address");
  app.add_option("--admin-port", frontend.admin_port,
                 "a port of its own for the repository API, over HTTP only; other ports then refuse it")
      ->default_str("none: on --http-port and --grpc-port");
  app.add_option("--admin-address", frontend.admin_address, "address of --admin-port")->capture_default_str();
  add_key_flags(app, flags);
}

void add_key_flags(CLI::App& app, AccessFlags& flags) {
  const FlagGroup group(app, "Authentication and TLS");
  app.add_option("--keys", flags.keys, "API keys and their scopes, as `foliot keys new` writes them")
      ->type_name("FILE")
      ->default_str("none: no authentication");
  app.add_option("--tls-certificate", flags.tls.certificate, "serve with TLS: certificate and chain, PEM")
      ->type_name("FILE")
      ->default_str("none: no TLS");
  app.add_option("--tls-key", flags.tls.private_key, "its private key, PEM")->type_name("FILE");
  app.add_option("--tls-client-ca", flags.tls.peer_authority,
                 "clients must show a certificate that this authority signed, PEM")
      ->type_name("FILE");
}

std::vector<WatchedFiles> reloads(const AccessFlags& flags, Frontend& frontend, Logger& log) {
  return reloads(flags,
                 {.use_keys = [&](std::shared_ptr<const KeyRing> keys) { frontend.use_keys(std::move(keys)); },
                  .use_tls = [&](const TlsIdentity& identity) { return frontend.use_tls(identity); }},
                 log);
}

std::vector<WatchedFiles> reloads(const AccessFlags& flags, const AccessUser& user, Logger& log) {
  std::vector<WatchedFiles> watched;
  if (!flags.keys.empty()) {
    const auto read = [file = flags.keys, use = user.use_keys]() -> Status {
      FOLIOT_ASSIGN_OR_RETURN(KeyRing keys, KeyRing::read(file));
      use(std::make_shared<const KeyRing>(std::move(keys)));
      return Status();
    };
    watched.push_back(reload({flags.keys}, "file of keys", read, log));
  }
  if (!flags.tls.certificate.empty()) {
    const auto read = [files = flags.tls, use = user.use_tls]() -> Status {
      FOLIOT_ASSIGN_OR_RETURN(const TlsIdentity identity, read_tls_identity(files));
      return use(identity);
    };
    watched.push_back(reload(paths_of(flags.tls), "certificate", read, log));
  }
  return watched;
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

Result<Access> read_access(const AccessFlags& flags) {
  Access access;
  if (!flags.tls.certificate.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(access.tls, read_tls_identity(flags.tls));
  } else if (!flags.tls.private_key.empty() || !flags.tls.peer_authority.empty()) {
    return Status::invalid_argument("--tls-key and --tls-client-ca need --tls-certificate");
  }
  if (!flags.keys.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(KeyRing keys, KeyRing::read(flags.keys));
    access.keys = std::make_shared<const KeyRing>(std::move(keys));
  }
  return access;
}

Status open_access(const AccessFlags& flags, Logger& log, FrontendOptions& frontend) {
  FOLIOT_ASSIGN_OR_RETURN(Access access, read_access(flags));
  frontend.tls = std::move(access.tls);
  frontend.keys = std::move(access.keys);
  const auto warn = [&log](const std::string& line) { log.write(Severity::kWarning, line); };
  frontend.on_denial = warn;
  frontend.on_unknown_name = warn;
  return Status();
}

}  // namespace foliot
