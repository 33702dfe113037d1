// KeyRing: the keys that a server accepts, from a TOML file that holds no secret:
//
//   [[keys]]
//   name = "mobile-app"     # for the log
//   scopes = ["infer"]      # infer, admin, metrics, feedback, observe, jobs
//   sha256 = "9f86d081..."  # of the key; `foliot keys new` writes all of this
//   requests_per_second = 100   # without it: as many as there are
//   requests_in_flight = 32     # likewise
//   weight = 3                  # of its share under overload, beside those of others; else 1
//
// Threading: any; it does not change.
#ifndef FOLIOT_FOUNDATION_ACCESS_KEY_RING_H_
#define FOLIOT_FOUNDATION_ACCESS_KEY_RING_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/access/api_key.h"
#include "foundation/access/scope.h"
#include "foundation/base/status.h"

namespace foliot {

// How much a key may ask for; nullopt: there is no limit.
struct KeyLimits {
  std::optional<double> requests_per_second;
  std::optional<uint32_t> requests_in_flight;
  // Of its share of the machine beside those of others.
  static constexpr uint32_t kWeightMax = 1000;
  uint32_t weight = 1;
};

class KeyRing {
 public:
  struct Entry {
    std::string name;
    ScopeSet scopes;
    KeyDigest digest;
    KeyLimits limits;
  };
  enum class Verdict { kGranted, kUnknownKey, kWrongScope };
  struct Decision {
    Verdict verdict = Verdict::kUnknownKey;
    std::string_view name;  // of the key, if it is known; as long as the ring lives
  };

  // Errors: kInvalidArgument naming file, line and key.
  static Result<KeyRing> read(const std::filesystem::path& file);

  // Compares with every key, so that the time does not reveal which one it was.
  Decision decide(std::string_view key, Scope scope) const;

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_ACCESS_KEY_RING_H_
