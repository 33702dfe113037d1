#include "app/commands/access_flags.h"

#include <fmt/format.h>

#include <string>

#include "app/commands/help_formatter.h"

namespace foliot {

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

void add_access_flags(CLI::App& app, AccessFiles& files, FrontendOptions& frontend) {
  const FlagGroup group(app, "HTTP and gRPC");
  app.add_option("--metrics-address", frontend.metrics_address, "address of the metrics")
      ->default_str("that of --address");
  app.add_option("--admin-port", frontend.admin_port,
                 "a port of its own for the repository API, over HTTP only; other ports then refuse it")
      ->default_str("none: on --http-port and --grpc-port");
  app.add_option("--admin-address", frontend.admin_address, "address of --admin-port")->capture_default_str();
  add_key_flags(app, files);
}

void add_key_flags(CLI::App& app, AccessFiles& files) {
  const FlagGroup group(app, "Authentication and TLS");
  app.add_option("--keys", files.keys, "API keys and their scopes, as `foliot keys new` writes them")
      ->type_name("FILE")
      ->default_str("none: no authentication");
  app.add_option("--tls-certificate", files.tls.certificate, "serve with TLS: certificate and chain, PEM")
      ->type_name("FILE")
      ->default_str("none: no TLS");
  app.add_option("--tls-key", files.tls.private_key, "its private key, PEM")->type_name("FILE");
  app.add_option("--tls-client-ca", files.tls.peer_authority,
                 "clients must show a certificate that this authority signed, PEM")
      ->type_name("FILE");
}

}  // namespace foliot
