#include "frontend/gate.h"

#include <fmt/format.h>

#include <boost/beast/core/string.hpp>
#include <utility>

namespace foliot {
namespace {

constexpr std::string_view kBearer = "Bearer ";
// Of what a peer sent, in the log.
constexpr size_t kShownMax = 200;

CallError denial(unsigned http_status, GrpcCode grpc_code, std::string message) {
  return {.http_status = http_status,
          .grpc_code = grpc_code,
          .message = std::move(message),
          .reason = {},
          .earliest_completion = {},
          .retry_after = {}};
}

// Printable ASCII, so that nobody writes lines of his own into the log.
std::string shown(std::string_view text) {
  std::string shown(text.substr(0, kShownMax));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

std::string_view key_in(std::string_view authorization) {
  const bool bearer = authorization.size() > kBearer.size() &&
                      boost::beast::iequals({authorization.data(), kBearer.size()}, {kBearer.data(), kBearer.size()});
  return bearer ? authorization.substr(kBearer.size()) : std::string_view();
}

}  // namespace

std::optional<CallError> Gate::turn_away(std::string_view authorization, Scope scope, std::string_view peer,
                                         std::string_view what) const {
  if (open()) return std::nullopt;
  const auto log = [&](std::string_view who, std::string_view why) {
    log_(fmt::format("turned away {} at {} for {}: {}", who, peer, shown(what), why));
  };
  const std::string_view key = key_in(authorization);
  if (key.empty()) {
    log("somebody", "no key was shown");
    return denial(401, GrpcCode::kUnauthenticated, "a key is needed: send the header 'Authorization: Bearer KEY'");
  }
  const KeyRing::Decision decision = keys_->decide(key, scope);
  switch (decision.verdict) {
    case KeyRing::Verdict::kGranted: return std::nullopt;
    case KeyRing::Verdict::kUnknownKey:
      log("somebody", "the key is not known");
      return denial(401, GrpcCode::kUnauthenticated, "the key is not known");
    case KeyRing::Verdict::kWrongScope: break;
  }
  const std::string why = fmt::format("the key has no scope '{}'", to_string(scope));
  log(fmt::format("'{}'", decision.name), why);
  return denial(403, GrpcCode::kPermissionDenied, why);
}

}  // namespace foliot
