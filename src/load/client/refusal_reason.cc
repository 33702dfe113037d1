#include "load/client/refusal_reason.h"

#include <array>

namespace foliot {
namespace {

constexpr std::array<Refusal, 11> kRefusals{Refusal::kUnmeetable, Refusal::kOverload,   Refusal::kExpired,
                                            Refusal::kLate,       Refusal::kWorkerLost, Refusal::kUnloaded,
                                            Refusal::kCancelled,  Refusal::kDraining,   Refusal::kDisconnected,
                                            Refusal::kOverShare,  Refusal::kModelError};

bool in_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

}  // namespace

Refusal find_refusal(std::string_view message) {
  size_t position = 0;
  while (position < message.size()) {
    if (message[position] == '\'') {
      const size_t end = message.find('\'', position + 1);
      if (end == std::string_view::npos) return Refusal::kNone;
      position = end + 1;
      continue;
    }
    size_t end = position;
    while (end < message.size() && in_word(message[end])) ++end;
    const std::string_view word = message.substr(position, end - position);
    for (const Refusal refusal : kRefusals) {
      if (word == to_string(refusal)) return refusal;
    }
    position = end == position ? position + 1 : end;
  }
  return Refusal::kNone;
}

}  // namespace foliot
