// Scope: what a key permits.
#ifndef FOLIOT_FOUNDATION_ACCESS_SCOPE_H_
#define FOLIOT_FOUNDATION_ACCESS_SCOPE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace foliot {

enum class Scope : uint8_t {
  kInfer,     // infer, and read which models are served
  kAdmin,     // list, load and unload models
  kMetrics,   // read the metrics
  kFeedback,  // send feedback on answers
  kObserve,   // send observations of users to personal models, and forget users
  kJobs,      // submit jobs, and see and cancel one's own
};

inline constexpr std::array kScopes{Scope::kInfer,    Scope::kAdmin,   Scope::kMetrics,
                                    Scope::kFeedback, Scope::kObserve, Scope::kJobs};

// "infer", "admin", "metrics", "feedback", "observe", "jobs".
std::string_view to_string(Scope scope);
std::optional<Scope> scope_named(std::string_view name);

class ScopeSet {
 public:
  void add(Scope scope) { bits_ |= bit(scope); }
  bool has(Scope scope) const { return (bits_ & bit(scope)) != 0; }
  bool empty() const { return bits_ == 0; }

 private:
  static uint8_t bit(Scope scope) { return static_cast<uint8_t>(1u << static_cast<unsigned>(scope)); }
  uint8_t bits_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_ACCESS_SCOPE_H_
